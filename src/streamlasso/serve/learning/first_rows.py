"""The first rows of a model, by which its columns and its kind of target are recognised."""

from __future__ import annotations

from typing import Any

from streamlasso._text import shortened
from streamlasso.data.encoding import Encoder, detect_encoder
from streamlasso.data.encoding.reading import numbers
from streamlasso.data.sources.json_lines import array_of
from streamlasso.model.start import started as stream_model
from streamlasso.model.stream_model import StreamModel
from streamlasso.serve.learning.rows import Rows
from streamlasso.serve.problems import Problem
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


def until_detection(n_rows: int) -> int:
    """Rows until the columns are looked at again."""
    return 1 if n_rows == 0 else (1 << n_rows.bit_length()) - n_rows


def detected(rows: Rows, settings: ModelSettings, needs_features: bool = True) -> Encoder:
    """The encoder of these rows, as `streamlasso run` detects it; a ValueError if they cannot be read."""
    names = list(dict.fromkeys(name for row in rows.rows for name in row if name != settings.target))
    lags = settings.lags
    options: dict[str, Any] = {
        "keep": [name for name in settings.keep if name in names],
        "drop": [name for name in settings.drop if name in names],
        "time": settings.time if settings.time in names else None,
        "lags": "auto" if lags is None else {name: lags[name] for name in lags if name in (*names, settings.target)},
    }
    table = rows.table(names, settings.target)
    return detect_encoder(table, settings.target, settings.family, needs_features=needs_features, **options)


def started(encoder: Encoder, settings: ModelSettings) -> StreamModel:
    """The model of an encoder, before its first row."""
    learning = stream_model(
        encoder, {"memory": settings.memory, "tuner": as_tuner(settings.tuner)}, competes=settings.lags is None
    )
    # Intervals are not asked for.
    learning.errors = None
    return learning


def refuse_unreadable(first: Rows, rows: Rows, settings: ModelSettings) -> None:
    """Refuse rows after which no encoder could be found any more: a label outside the family, a value that is too
    large, too many classes."""
    together = Rows([*first.rows, *rows.rows][:FIRST], [*first.y, *rows.y][:FIRST])
    try:
        encoder = detected(together, settings, needs_features=False)
        names = list(dict.fromkeys(name for row in together.rows for name in row))
        encoder.encode(encoder.read(encoder.with_time(together.table(names, settings.target))))
    except ValueError as error:
        raise Problem(422, in_words(error)) from None


def kind_of_labels(labels: list[Any], known: str | None) -> str | None:
    """Whether the labels of a model are "numbers" or "text", which the first one settles; `known` is what it was.

    >>> kind_of_labels([310, None, "12.5"], None), kind_of_labels(["high", "low"], None)
    ('numbers', 'text')
    """
    texts = [label for label in labels if isinstance(label, str)]
    unfit = iter(numbers(array_of(texts))[1].tolist() if texts else [])
    for label in labels:
        if label is None:
            continue
        kind = "text" if isinstance(label, str) and next(unfit) else "numbers"
        if kind != (known or kind):
            raise Problem(
                422,
                f"the label {label!r} is of another kind than the first ones, which were {known}: if labels are "
                "classes, make the model with family=binomial; if they are numbers, with another family",
            )
        known = kind
    return known


def in_words(error: object) -> str:
    """Without the options of the command line, which a request does not have."""
    return shortened(str(error).replace("--target", "target").replace("--family ", "family="), 500)
