"""The table of results -> Markdown: one stream with one line per method, or several with one line per stream."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow

from streamlasso._files import write_whole
from streamlasso._text import markdown_table, percent
from streamlasso.bench.entries import DEFAULT, METHODS, OURS
from streamlasso.bench.losses import BURN_IN, LOSS_NAMES

#: A line of the table of results, by column.
Row = dict[str, Any]


@dataclass(frozen=True)
class Standing:
    """A method on a task: its rows at the default and at the best setting in hindsight; None where it failed."""

    default: Row | None
    best: Row | None
    trouble: str

    @property
    def cell(self) -> str:
        """Default / best in hindsight."""
        if self.default is None and self.best is None:
            return self.trouble
        return f"{_relative(self.default, self.trouble)} / {_relative(self.best, self.trouble)}"


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
    peers = [standing(rows, task, method).best for method in METHODS if method not in (OURS, "running-mean")]
    return min((row for row in peers if row), key=lambda row: row["relative"], default=None)


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


def write_summary(out: Path, text: str) -> str:
    """`out`/summary.md; the text is returned."""
    write_whole(out / "summary.md", text.encode())
    return text


def _relative(row: Row | None, otherwise: str = "-") -> str:
    if row is None:
        return otherwise
    return f"{row['relative']:.3f}" if row["relative"] < 10 else f"{row['relative']:.0f}"


# --- one stream -------------------------------------------------------------------------------------------------------


def stream_summary(table: pyarrow.Table, notes: Sequence[str] = ()) -> str:
    """One stream: how each method did, the best default first; then `notes`.

    >>> import pyarrow
    >>> from streamlasso.bench.results import SCHEMA
    >>> values = ("visits", "poisson", 99, 8, "river", "default", 0.5, 0.8, 90.0, 49, "ok", "0.26", "0")
    >>> table = pyarrow.Table.from_pylist([dict(zip(SCHEMA.names, values))], SCHEMA)
    >>> print(stream_summary(table).splitlines()[-1])
    | river | 0.800 | 0.800 | default | 1 | 90 |
    """
    rows = table.to_pylist()
    task = rows[0]["task"]
    text = (
        f"# {task}: {rows[0]['rows']:,} rows, {rows[0]['features']:,} features\n\n"
        f"Mean {LOSS_NAMES[rows[0]['family']]} of predictions made before each row is learnt, rows after the "
        f"{BURN_IN}th,\nrelative to the running mean (1; lower is better). The best setting in hindsight is the one "
        "with\nthe lowest loss on this stream, which is not known in advance; +ts: with a standardised target.\n\n"
    )
    head = ("method", "default", "best in hindsight", "its setting", "settings", "microseconds per row")
    lines = [_method_line(rows, task, method) for method in ordered_methods(rows, task)]
    advice = [*_conclusions(rows, task), *notes]
    return text + markdown_table(head, lines) + "".join(f"\n{sentence}\n" for sentence in advice)


def ordered_methods(rows: Iterable[Row], task: str) -> list[str]:
    """The methods with results, by the loss of the default; those whose default failed are last."""
    found = {row["method"]: standing(rows, task, row["method"]) for row in select(rows, task=task)}
    return sorted(found, key=lambda method: row["relative"] if (row := found[method].default) else math.inf)


def _method_line(rows: Iterable[Row], task: str, method: str) -> list[str]:
    own, stands = select(rows, task=task, method=method), standing(rows, task, method)
    time = default_microseconds(own, method)
    return [
        method,
        _relative(stands.default, stands.trouble),
        _relative(stands.best, stands.trouble),
        "" if stands.best is None else stands.best["setting"],
        str(len(own)),
        "" if math.isnan(time) else f"{time:,.0f}",
    ]


def _conclusions(rows: Iterable[Row], task: str) -> list[str]:
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
        sentences.append("Persistence is better than that: try --lagged, which adds the previous target as a feature.")
    return sentences


# --- several streams --------------------------------------------------------------------------------------------------


def leaderboard_summary(table: pyarrow.Table) -> str:
    """Several streams: the losses of all methods on each, our settings, and times per row.

    >>> import pyarrow
    >>> from streamlasso.bench.results import SCHEMA
    >>> values = ("elec2", "binomial", 99, 8, "river", "default", 0.5, 0.8, 90.0, 49, "ok", "0.26", "0")
    >>> table = pyarrow.Table.from_pylist([dict(zip(SCHEMA.names, values))], SCHEMA)
    >>> print(leaderboard_summary(table).splitlines()[7])
    | elec2 (b, 99 x 8) | 0.800 / 0.800 | river, default | 0.800 |
    """
    rows = table.to_pylist()
    shown = [method for method in METHODS if method != "running-mean" and select(rows, method=method)]
    parts = [_losses(rows, shown), _times(rows, shown)]
    if select(rows, method=OURS):
        parts.insert(1, _our_settings(rows))
    return "\n".join(parts)


def _losses(rows: list[Row], shown: list[str]) -> str:
    text = (
        "## Loss relative to the running mean\n\n"
        f"Half squared error, log loss or Poisson deviance over the rows after the {BURN_IN}th; default / best setting "
        'in hindsight.\n"fails": it overflowed or predicted no number. "too slow": over the time limit.\n\n'
    )
    lines = []
    for task in tasks_of(rows):
        first, peer = select(rows, task=task)[0], best_peer(rows, task)
        named = "-" if peer is None else f"{peer['method']}, {peer['setting']}"
        cells = [standing(rows, task, method).cell for method in shown]
        title = f"{task} ({first['family'][0]}, {first['rows']} x {first['features']})"
        lines.append([title, *cells, named, _relative(peer)])
    return text + markdown_table(["stream", *shown, "best peer", "its loss"], lines)


def _our_settings(rows: list[Row]) -> str:
    """Each of our settings on each task, and how far it is from the best peer in hindsight."""
    text = (
        "## Our settings\n\nThe last column is the geometric mean, over the streams, of the loss divided "
        "by that of the best peer in hindsight.\n\n"
    )
    tasks = tasks_of(rows)
    lines = []
    for setting in dict.fromkeys(row["setting"] for row in select(rows, method=OURS)):
        own = {row["task"]: row for row in select(rows, method=OURS, setting=setting)}
        finished = {task: row for task, row in own.items() if row["status"] == "ok"}
        cells = [_relative(finished.get(task), "fails" if task in own else "-") for task in tasks]
        lines.append([setting, *cells, _against_peers(rows, finished)])
    return text + markdown_table(["setting", *tasks, "against the best peer"], lines)


def _against_peers(rows: list[Row], ours: dict[str, Row]) -> str:
    peers = {task: best_peer(rows, task) for task in ours}
    ratios = [row["relative"] / peer["relative"] for task, row in ours.items() if (peer := peers[task])]
    return f"{math.exp(np.mean(np.log(ratios))):.3f}" if ratios else "-"


def _times(rows: list[Row], shown: list[str]) -> str:
    text = "## Time per row\n\nMicroseconds of CPU time, Python loop included, over the streams and settings.\n\n"
    lines = []
    for method in shown:
        times = microseconds(rows, method)
        if len(times):
            lines.append([method, *(f"{value:,.0f}" for value in (np.median(times), times.min(), times.max()))])
    return text + markdown_table(["method", "median", "least", "most"], lines)
