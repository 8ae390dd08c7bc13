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
from streamlasso.bench.entries import DEFAULT, LAGGED, METHODS, OURS, is_peer
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
        """Default / best in hindsight; one number where both are the same."""
        if self.default is self.best:
            return _relative(self.default, self.trouble)
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


def quarters(row: Row, running_mean: Row) -> list[str]:
    """The loss in each quarter of the rows, relative to that of the running mean in the same quarter.

    >>> blocks = [{"blocks": text} for text in ("1 1 1 3 2 2 5 5", "2 2 4 4 4 4 5 5")]
    >>> quarters(*blocks)
    ['0.500', '0.500', '0.500', '1.000']
    """
    if len(_blocks(row)) < 4 or len(_blocks(row)) != len(_blocks(running_mean)):
        return ["-"] * 4
    parts = zip(np.array_split(_blocks(row), 4), np.array_split(_blocks(running_mean), 4), strict=True)
    return [f"{own.sum() / mean.sum():.3f}" for own, mean in parts]


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
    >>> print(stream_summary(table).splitlines()[10])
    | river | 0.800 | - | 0.800 | - | default | 1 | 90 |
    """
    rows = table.to_pylist()
    task = rows[0]["task"]
    text = (
        f"# {task}: {rows[0]['rows']:,} rows, {rows[0]['features']:,} features\n\n"
        f"Mean {LOSS_NAMES[rows[0]['family']]} of predictions made before each row is learnt, rows after the "
        f"{BURN_IN}th,\nrelative to the running mean (1; lower is better). The best setting in hindsight is the one "
        "with\nthe lowest loss on this stream, which is not known in advance; +ts: with a standardised target;\n"
        f'{LAGGED}: with the last three targets as features. "Above": by what share of the loss of\n{OURS} at its '
        "default it is above that; paired, ± one standard error over 20 blocks of rows.\n\n"
    )
    head = ("method", "default", "above", "best in hindsight", "above", "its setting", "settings", "us per row")
    lines = [_method_line(rows, task, method) for method in ordered_methods(rows, task)]
    advice = [*_conclusions(rows, task), *notes]
    parts = [markdown_table(head, lines), *(f"\n{sentence}\n" for sentence in advice), "\n", _by_quarters(rows)]
    return text + "".join(parts)


def ordered_methods(rows: Iterable[Row], task: str) -> list[str]:
    """The methods with results, by the loss of the default; those whose default failed are last."""
    found = {row["method"]: standing(rows, task, row["method"]) for row in select(rows, task=task)}
    return sorted(found, key=lambda method: row["relative"] if (row := found[method].default) else math.inf)


def _method_line(rows: Iterable[Row], task: str, method: str) -> list[str]:
    own, stands = select(rows, task=task, method=method), standing(rows, task, method)
    time, ours = default_microseconds(own, method), standing(rows, task, OURS).default
    return [
        method,
        _relative(stands.default, stands.trouble),
        _above(ours, stands.default),
        _relative(stands.best, stands.trouble),
        _above(ours, stands.best),
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
    | river | 0.800 |
    """
    rows = table.to_pylist()
    shown = [method for method in METHODS if method != "running-mean" and select(rows, method=method)]
    parts = [_losses(rows, shown)]
    if select(rows, method=OURS):
        parts += [_best_peers(rows), _differences(rows, shown), _our_settings(rows)]
    return "\n".join([*parts, _by_quarters(rows), _times(rows, shown)])


def _losses(rows: list[Row], shown: list[str]) -> str:
    text = (
        "## Loss relative to the running mean\n\n"
        f"Half squared error, log loss or Poisson deviance over the rows after the {BURN_IN}th; default / best setting "
        f'in hindsight, where it is another.\n{LAGGED}: with the last three responses as features. "fails": it '
        'overflowed or predicted no number. "too slow": over the time limit.\n\n'
    )
    firsts = [select(rows, task=task)[0] for task in tasks_of(rows)]
    titles = [f"{row['task']} ({row['family'][0]}, {row['rows']} x {row['features']})" for row in firsts]
    lines = [[method, *(standing(rows, row["task"], method).cell for row in firsts)] for method in shown]
    return text + markdown_table(["method", *titles], lines)


def _best_peers(rows: list[Row]) -> str:
    """The best setting of the best peer against our default, among those without lagged responses and those with."""
    text = (
        "## The best peers in hindsight\n\nBy what share of the loss of our default theirs is above it; paired, ± one "
        "standard error over 20 blocks of rows.\n\n"
    )
    head = ["stream", OURS, f"{OURS}{LAGGED}", "best peer", "above ours", f"best peer{LAGGED}", "above ours"]
    lines = []
    for task in tasks_of(rows):
        ours, *peers = (standing(rows, task, OURS).default, *_best_by_kind(rows, task))
        named = [
            ["-", "-"] if peer is None else [f"{_relative(peer)} {peer['method']}", _above(ours, peer)]
            for peer in peers
        ]
        lagged = _above(ours, standing(rows, task, OURS + LAGGED).best)
        lines.append([task, _relative(ours), lagged, *named[0], *named[1]])
    return text + markdown_table(head, lines)


def _best_by_kind(rows: list[Row], task: str) -> list[Row | None]:
    """The best peer without lagged responses, and that with them."""
    kinds = ([row for row in rows if row["method"].endswith(LAGGED) is lagged] for lagged in (False, True))
    return [best_peer(kind, task) for kind in kinds]


def _differences(rows: list[Row], shown: list[str]) -> str:
    """The best setting of each method against our default."""
    text = (
        "## Each method against our default\n\nBy what share of the loss of our default that of its best setting in "
        "hindsight is above it, ± one standard error.\n\n"
    )
    tasks = tasks_of(rows)
    ours = {task: standing(rows, task, OURS).default for task in tasks}
    lines = []
    for method in shown:
        stands = {task: standing(rows, task, method) for task in tasks}
        cells = [_above(ours[task], each.best) if each.best else each.trouble for task, each in stands.items()]
        lines.append([method, *cells])
    return text + markdown_table(["method", *tasks], lines)


def _by_quarters(rows: list[Row]) -> str:
    """The loss over time of our default and of the best peers, without and with lagged responses."""
    text = "## By quarters\n\nLoss in each quarter of the rows, relative to the running mean in the same quarter.\n\n"
    lines = []
    for task in tasks_of(rows):
        mean = standing(rows, task, "running-mean").default
        ours = [standing(rows, task, method).default for method in (OURS, OURS + LAGGED)]
        for row in [*ours, *_best_by_kind(rows, task)]:
            if row is not None and mean is not None:
                lines.append([task, f"{row['method']}, {row['setting']}", _relative(row), *quarters(row, mean)])
    return text + markdown_table(["stream", "method", "all", "1", "2", "3", "4"], lines)


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
