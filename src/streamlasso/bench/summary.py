"""The table of results -> Markdown: one section per stream, one line per method."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow

from streamlasso._text import markdown_table, percent
from streamlasso.bench.entries import DEFAULT, METHODS, OURS, is_peer
from streamlasso.bench.losses import BURN_IN, LOSS_NAMES

#: A line of the table of results, by column.
Row = dict[str, Any]


@dataclass(frozen=True)
class Standing:
    """A method on a task: its rows at the default and at the best setting in hindsight; None where it failed."""

    default: Row | None
    best: Row | None
    trouble: str


def standing(rows: Iterable[Row], task: str, method: str) -> Standing:
    """How a method did on a task."""
    own = select(rows, task=task, method=method)
    finished = [row for row in own if row["status"] == "ok"]
    default = next((row for row in finished if row["setting"].startswith(DEFAULT)), None)
    best = min(finished, key=lambda row: row["relative"], default=None)
    slow = any(row["status"] == "too slow" for row in own)
    return Standing(default, best, "too slow" if slow else "fails" if own else "-")


def best_peer(rows: Iterable[Row], task: str) -> Row | None:
    """The best of all peers with all settings, persistence included, on a task."""
    peers = [standing(rows, task, method).best for method in METHODS if is_peer(method)]
    return min((row for row in peers if row), key=lambda row: row["relative"], default=None)


def above_ours(ours: Row | None, other: Row | None) -> tuple[float, float] | None:
    """By what share of our loss another one is above it, and the standard error of that; None where one is missing.

    The error is that of a mean of differences, block by block of the same rows: neighbouring rows are alike.

    >>> one, other = ({"loss": loss, "blocks": blocks} for loss, blocks in [(2.0, "1 3"), (3.0, "1 5")])
    >>> above_ours(one, other)
    (0.5, 0.5)
    """
    if ours is None or other is None:
        return None
    differences = _blocks(other) - _blocks(ours)
    error = np.std(differences, ddof=1) / math.sqrt(len(differences)) if len(differences) > 1 else math.nan
    return other["loss"] / ours["loss"] - 1, float(error) / ours["loss"]


def _blocks(row: Row) -> np.ndarray:
    return np.array((row["blocks"] or "").split(), dtype=float)


def _above(ours: Row | None, other: Row | None) -> str:
    """As text, in percent."""
    found = above_ours(ours, other)
    if found is None or ours is other:
        return "-"
    share, error = (100 * number for number in found)
    digits = 0 if max(abs(share), error) >= 10 or math.isnan(error) else 1
    return f"{share:+.{digits}f} ± {error:.{digits}f} %"


def select(rows: Iterable[Row], **wanted: str) -> list[Row]:
    """The rows with these values."""
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def tasks_of(rows: Iterable[Row]) -> list[str]:
    """The names of the tasks, in the order of the table."""
    return list(dict.fromkeys(row["task"] for row in rows))


def microseconds(rows: Iterable[Row], method: str) -> np.ndarray:
    """CPU time per row of each result of a method."""
    times = np.array([row["microseconds"] for row in select(rows, method=method)])
    return times[np.isfinite(times)]


def default_microseconds(rows: Iterable[Row], method: str) -> float:
    """CPU time per row of a method at its default, on one stream; NaN if it failed."""
    return next(row["microseconds"] for row in select(rows, method=method) if row["setting"].startswith(DEFAULT))


def relative(row: Row | None, otherwise: str = "-") -> str:
    if row is None:
        return otherwise
    return f"{row['relative']:.3f}" if row["relative"] < 10 else f"{row['relative']:.0f}"


# --- the text ---------------------------------------------------------------------------------------------------------

HEAD = ("method", "default", "above", "best in hindsight", "above", "its setting", "settings", "us per row")


def summary(table: pyarrow.Table, notes: Sequence[str] = ()) -> str:
    """How each method did on each stream, the best default first; then `notes`.

    >>> import pyarrow
    >>> from streamlasso.bench.results import SCHEMA
    >>> values = ("visits", "poisson", 99, 8, "river", "default", 0.5, 0.8, 90.0, 49, "ok", "0.26", "0")
    >>> table = pyarrow.Table.from_pylist([dict(zip(SCHEMA.names, values))], SCHEMA)
    >>> print(summary(table).splitlines()[10])
    | river | 0.800 | - | 0.800 | - | default | 1 | 90 |
    """
    rows = table.to_pylist()
    parts = [_stream(select(rows, task=task), task) for task in tasks_of(rows)]
    return "\n".join([*parts, *(f"{note}\n" for note in notes)])


def _stream(rows: Sequence[Row], task: str) -> str:
    text = (
        f"# {task}: {rows[0]['rows']:,} rows, {rows[0]['features']:,} features\n\n"
        f"Mean {LOSS_NAMES[rows[0]['family']]} of predictions made before each row is learnt, rows after the "
        f"{BURN_IN}th,\nrelative to the running mean (1; lower is better). The best setting in hindsight is the one "
        "with\nthe lowest loss on this stream, which is not known in advance; +ts: with a standardised target.\n"
        f'"Above": by what share of the loss of {OURS} at its default it is above that; paired, ± one standard\n'
        "error over 20 blocks of rows.\n\n"
    )
    lines = [_method_line(rows, task, method) for method in ordered_methods(rows, task)]
    conclusions = [f"\n{sentence}\n" for sentence in _conclusions(rows, task)]
    return "".join([text, markdown_table(HEAD, lines), *conclusions])


def ordered_methods(rows: Sequence[Row], task: str) -> list[str]:
    """The methods with results, by the loss of the default; those whose default failed are last."""
    found = {row["method"]: standing(rows, task, row["method"]) for row in select(rows, task=task)}
    return sorted(found, key=lambda method: row["relative"] if (row := found[method].default) else math.inf)


def _method_line(rows: Sequence[Row], task: str, method: str) -> list[str]:
    own, stands = select(rows, method=method), standing(rows, task, method)
    time, ours = default_microseconds(own, method), standing(rows, task, OURS).default
    return [
        method,
        relative(stands.default, stands.trouble),
        _above(ours, stands.default),
        relative(stands.best, stands.trouble),
        _above(ours, stands.best),
        "" if stands.best is None else stands.best["setting"],
        str(len(own)),
        "" if math.isnan(time) else f"{time:,.0f}",
    ]


def _conclusions(rows: Sequence[Row], task: str) -> list[str]:
    """Our default against the best peer in hindsight; and a hint where the last response explains more."""
    ours, peer = standing(rows, task, OURS).default, best_peer(rows, task)
    if ours is None or peer is None:
        return []
    gap = ours["relative"] / peer["relative"] - 1
    named = f"{peer['method']} ({peer['setting']})"
    compared = f"{percent(abs(gap))} {'above' if gap > 0 else 'below'} that of the best peer in hindsight, {named}"
    sentences = [f"The loss of {OURS} at its default is {compared}."]
    persistence = standing(rows, task, "persistence").default
    if persistence is not None and persistence["relative"] < ours["relative"]:
        sentences.append("Persistence is better than that: try --lags TARGET:1, the previous target as a feature.")
    return sentences
