"""The first rows of a model, by which its columns are recognised."""

from __future__ import annotations

from streamlasso.data.encoding import Encoder, detect_encoder
from streamlasso.run.learning import Learning
from streamlasso.run.state import MOST_MIXED
from streamlasso.serve.rows import JsonRows
from streamlasso.serve.settings import ModelSettings
from streamlasso.settings import as_tuner

#: What the columns hold is detected again after 1, 2, 4, ... rows, for the last time after so many.
FIRST = 128


def is_detected_after(n_rows: int) -> bool:
    """Whether the columns are looked at again after so many rows.

    >>> [n for n in range(200) if is_detected_after(n)]
    [1, 2, 4, 8, 16, 32, 64, 128]
    """
    return 0 < n_rows <= FIRST and n_rows & (n_rows - 1) == 0


def detected(rows: JsonRows, settings: ModelSettings) -> tuple[Encoder, Learning]:
    """As `streamlasso run` starts on these rows, none of which is learnt yet; a ValueError if they cannot be read."""
    names = list(dict.fromkeys(name for row in rows.dicts() for name in row if name != settings.target))
    table = rows.table(names, settings.target)
    options = settings.for_encoding()
    given = {**options, "keep": _there(options["keep"], names), "drop": _there(options["drop"], names)}
    if settings.time not in names:
        given["time"] = None
    if isinstance(options["lags"], dict):
        given["lags"] = {name: lags for name, lags in options["lags"].items() if name in (*names, settings.target)}
    encoder = detect_encoder(table, settings.target, settings.family, **given)
    parts = settings.for_learning()
    if settings.tuner == "mixture" and len(encoder.features) > MOST_MIXED:
        parts["tuner"] = as_tuner("logrms")
        encoder.notes.append(f"{len(encoder.features):,} features are more than a mixture can hold: one model is used")
    learning = Learning.start(
        encoder.target,
        parts,
        encoder.features,
        season=encoder.season,
        competes=settings.lags is None,
    )
    # Nobody asks for intervals.
    learning.errors = None
    return encoder, learning


def _there(wanted: list[str], names: list[str]) -> list[str]:
    """Columns that have come so far."""
    return [name for name in wanted if name in names]
