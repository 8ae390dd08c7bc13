"""The leaderboard on twelve real streams: all methods, all settings, one line per stream.

    python benchmarks/streams.py --data ../shared/data [--tasks usenet1 elec2] [--methods streamlasso river] [--lagged]
    python benchmarks/streams.py --data ../shared/data --peers all --defaults-only [--whole --tasks elec2 bike_sharing]

The features of a row hold only what is known before its response. Writes leaderboard.csv, summary.md, leaderboard.png
and .svg; an interrupted run continues from leaderboard.csv.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow
from pyarrow import compute, csv

from common import RESULTS
from lags import with_lags
from streamlasso._files import write_whole
from streamlasso._text import markdown_table
from streamlasso.bench.entries import GROUPS, METHODS, OURS
from streamlasso.bench.figures import draw_streams
from streamlasso.bench.leaderboard import LIMIT, run_leaderboard
from streamlasso.bench.summary import above_ours, relative, select, standing, summary, tasks_of
from streamlasso.bench.task import Task
from streamlasso.report.page import write_figure

#: Rows of a stream that are used by default.
ROWS = 5000
SENSORS = ("PT08.S1(CO)", "PT08.S2(NMHC)", "PT08.S3(NOx)", "PT08.S4(NO2)", "PT08.S5(O3)", "T", "RH", "AH")
#: How many past rows of sensors, and of exchange rates, are features.
SENSOR_LAGS, RATE_LAGS = 3, 5
N_FIRMS = 100
#: For the order in which the genes of a time point are presented.
YEAST_SEED = 0


def load_task(name: str, data: Path, rows: int = ROWS, *, lagged: bool = False) -> Task:
    """The first rows of a stream in its folder under `data`, as a task.

    `lagged=True` adds the previous response as one more feature (its log1p for counts; 0 before the first row), unless
    the task has it already: part of a fast-forgetting learner's gain is autocorrelation.

    >>> from pathlib import Path
    >>> from streams import load_task
    >>> load_task("elec3", Path("data"))
    Traceback (most recent call last):
        ...
    ValueError: 'elec3' is unknown: the tasks are air_quality, bike_sharing, elec2, exchange_rate, flu_counts, \
frm_returns, hcp_rest, nyu_rest, ozone8h, senate_101_109, usenet1, yeast_cellcycle
    """
    if name not in BUILDERS:
        raise ValueError(f"{name!r} is unknown: the tasks are {', '.join(sorted(TASKS))}")
    if rows < 1:
        raise ValueError(f"rows={rows} is too few: at least one row is needed")
    family, build = BUILDERS[name]
    X, y, names = build(Path(data) / name)
    task = Task(name, family, np.ascontiguousarray(X[:rows]), y[:rows].astype(float), names)
    return _with_lag(task) if lagged and name not in AUTOREGRESSIVE else task


def _with_lag(task: Task) -> Task:
    return replace(with_lags(task, [1]), name=f"{task.name} lagged")


# --- reading ----------------------------------------------------------------------------------------------------------

Features = tuple[np.ndarray, np.ndarray, list[str]]


def _read(path: Path) -> pyarrow.Table:
    if not path.exists():
        raise ValueError(f"{path} is missing: name the directory with the streams' folders with --data")
    return csv.read_csv(path)


def _floats(table: pyarrow.Table, columns: Iterable[str]) -> np.ndarray:
    """(row, column); an empty cell is NaN."""
    return np.column_stack([table[name].cast("float64").to_numpy() for name in columns])


def _numbers(table: pyarrow.Table, name: str) -> np.ndarray:
    return _floats(table, [name])[:, 0]


def _carried_forward(X: np.ndarray) -> np.ndarray:
    """A missing value is the last one seen, 0 before there was any."""
    last = np.where(np.isnan(X), -1, np.arange(len(X))[:, None])
    last = np.maximum.accumulate(last, axis=0)
    return np.where(last < 0, 0.0, np.take_along_axis(X, np.maximum(last, 0), axis=0))


def _one_hot(values: np.ndarray, levels: Sequence[int], name: str) -> tuple[np.ndarray, list[str]]:
    """The levels are given, since those that will occur are not known in advance."""
    return (values[:, None] == np.array(levels)).astype(float), [f"{name}={level}" for level in levels]


def _lags(X: np.ndarray, lags: Iterable[int], names: Iterable[str]) -> tuple[np.ndarray, list[str]]:
    """X as it was so many rows before (0 is now), from the first row on that has them all."""
    lags, names, first = tuple(lags), tuple(names), max(lags)
    columns = [X[first - lag : len(X) - lag] for lag in lags]
    return np.hstack(columns), [f"{name}, {lag} before" if lag else name for lag in lags for name in names]


def _one_on_the_rest(path: Path, n_columns: int | None = None, skip: int = 0) -> Features:
    """The first column on all others, of the same row."""
    table = _read(path)
    names = table.column_names[skip : None if n_columns is None else skip + n_columns]
    values = _floats(table, names)
    return values[:, 1:], values[:, 0], names[1:]


# --- the tasks --------------------------------------------------------------------------------------------------------


def _elec2(folder: Path) -> Features:
    """Whether the price goes up; the market as given, half-hour and weekday one-hot. The date only counts rows."""
    table = _read(folder / "elec2.csv.gz")
    market = ["nswprice", "nswdemand", "vicprice", "vicdemand", "transfer"]
    half_hour, half_hours = _one_hot(np.rint(47 * _numbers(table, "period")), range(48), "period")
    day, days = _one_hot(_numbers(table, "day"), range(1, 8), "day")
    y = compute.equal(table["class"], "UP").cast("float64").to_numpy()
    return np.hstack([_floats(table, market), half_hour, day]), y, [*market, *half_hours, *days]


def _usenet1(folder: Path) -> Features:
    """Whether the reader is interested, on the words of a message."""
    table = _read(folder / "usenet1.csv.gz")
    words = [name for name in table.column_names if name != "class"]
    return _floats(table, words), _numbers(table, "class"), words


def _ozone8h(folder: Path) -> Features:
    """Whether it is an ozone day, on the day's weather."""
    table = _read(folder / "ozone8h.csv.gz")
    weather = [name for name in table.column_names if name not in ("Date", "ozone_day")]
    return _carried_forward(_floats(table, weather)), _numbers(table, "ozone_day"), weather


def _senate(folder: Path) -> Features:
    """Yea or nay of the senator who cast most votes (Grassley, Iowa), on the same vote of all others: +1, -1, 0."""
    table = _read(folder / "votes.csv.gz")
    senators = table.column_names[3:]
    votes = _floats(table, senators)
    chosen = int(np.count_nonzero(votes, axis=0).argmax())
    votes = votes[votes[:, chosen] != 0]
    return np.delete(votes, chosen, axis=1), votes[:, chosen] > 0, [*senators[:chosen], *senators[chosen + 1 :]]


def _bike_sharing(folder: Path) -> Features:
    """Bicycles hired in an hour, on the calendar and the weather."""
    table = _read(folder / "bike_hour.csv.gz")
    plain = ["yr", "holiday", "workingday", "temp", "atemp", "hum", "windspeed"]
    levels = {
        "season": range(1, 5),
        "mnth": range(1, 13),
        "hr": range(24),
        "weekday": range(7),
        "weathersit": range(1, 5),
    }
    coded = [_one_hot(_numbers(table, name), values, name) for name, values in levels.items()]
    X = np.hstack([_floats(table, plain), *(columns for columns, _ in coded)])
    return X, _numbers(table, "cnt"), [*plain, *(name for _, names in coded for name in names)]


def _flu_counts(folder: Path) -> Features:
    """Weekly cases in the district with most of them, on last week's log1p of all districts."""
    table = _read(folder / "flu_counts.csv.gz")
    districts = table.column_names[2:]
    counts = _floats(table, districts)
    y = counts[:, counts.sum(axis=0).argmax()]
    return np.log1p(counts[:-1]), y[1:], [f"log1p {name}, 1 before" for name in districts]


def _air_quality(folder: Path) -> Features:
    """Benzene, on cheap sensors now and in the last hours; hours without a benzene value are left out."""
    table = _read(folder / "air_quality.csv.gz")
    X, names = _lags(_carried_forward(_floats(table, SENSORS)), range(SENSOR_LAGS + 1), SENSORS)
    y = _numbers(table, "C6H6(GT)")[SENSOR_LAGS:]
    known = ~np.isnan(y)
    return X[known], y[known], names


def _frm_returns(folder: Path) -> Features:
    """A firm's daily return on the other firms' of the same day."""
    return _one_on_the_rest(folder / "frm_returns.csv.gz", N_FIRMS, skip=1)


def _yeast(folder: Path) -> Features:
    """Expression of 542 genes, time point by time point, on transcription factor binding, which stays."""
    binding, expression = _read(folder / "x_tf_binding.csv.gz"), _read(folder / "y_expression.csv.gz")
    X, Y = _floats(binding, binding.column_names), _floats(expression, expression.column_names)
    rng = np.random.default_rng(YEAST_SEED)
    orders = [rng.permutation(len(X)) for _ in Y.T]
    y = np.concatenate([column[order] for column, order in zip(Y.T, orders, strict=True)])
    return X[np.concatenate(orders)], y, binding.column_names


def _exchange_rate(folder: Path) -> Features:
    """The next log difference of one currency on the last ones of all: there is nothing to learn."""
    table = _read(folder / "exchange_rate.csv.gz")
    moves = np.diff(np.log(_floats(table, table.column_names)), axis=0)
    X, names = _lags(moves, range(1, RATE_LAGS + 1), table.column_names)
    return X, moves[RATE_LAGS:, 0], names


def _hcp_rest(folder: Path) -> Features:
    """A brain region's signal on the other regions', one subject."""
    return _one_on_the_rest(folder / "101309.csv.gz")


def _nyu_rest(folder: Path) -> Features:
    """The same at another site: few rows."""
    return _one_on_the_rest(folder / "nyu_aal90.csv.gz")


BUILDERS: dict[str, tuple[str, Callable[[Path], Features]]] = {
    "elec2": ("binomial", _elec2),
    "usenet1": ("binomial", _usenet1),
    "ozone8h": ("binomial", _ozone8h),
    "senate_101_109": ("binomial", _senate),
    "bike_sharing": ("poisson", _bike_sharing),
    "flu_counts": ("poisson", _flu_counts),
    "air_quality": ("gaussian", _air_quality),
    "frm_returns": ("gaussian", _frm_returns),
    "yeast_cellcycle": ("gaussian", _yeast),
    "exchange_rate": ("gaussian", _exchange_rate),
    "hcp_rest": ("gaussian", _hcp_rest),
    "nyu_rest": ("gaussian", _nyu_rest),
}
TASKS: tuple[str, ...] = tuple(BUILDERS)
#: Tasks that have the previous response among their features.
AUTOREGRESSIVE = ("flu_counts", "exchange_rate")


# --- the leaderboard --------------------------------------------------------------------------------------------------


def write_leaderboard(table: pyarrow.Table, out: Path) -> str:
    """summary.md, leaderboard.png and .svg from the table; the summary is returned."""
    write_figure(out / "leaderboard", draw_streams(table))
    text = f"{losses_by_stream(table)}\n{summary(table)}"
    write_whole(out / "summary.md", text.encode())
    return text


def losses_by_stream(table: pyarrow.Table) -> str:
    """One line per method, one column per stream: its default, the best setting in hindsight, and how far ours is."""
    rows = table.to_pylist()
    tasks = tasks_of(rows)
    shown = [method for method in METHODS if method != "running-mean" and select(rows, method=method)]
    lines = [[method, *(_cell(rows, task, method) for task in tasks)] for method in shown]
    note = (
        "Loss relative to the running mean: default / best setting in hindsight; then by what share of the loss of our "
        "default the best setting is above it, in percent.\n\n"
    )
    return f"# All streams\n\n{note}{markdown_table(['method', *tasks], lines)}"


def _cell(rows: list, task: str, method: str) -> str:
    stands, ours = standing(rows, task, method), standing(rows, task, OURS).default
    best, default = (relative(row, stands.trouble) for row in (stands.best, stands.default))
    losses = default if stands.best is stands.default else f"{default} / {best}"
    above = None if stands.best is ours else above_ours(ours, stands.best)
    return losses if above is None else f"{losses}, {100 * above[0]:+.0f} ± {100 * above[1]:.0f}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the directory with the streams' folders")
    parser.add_argument("--out", type=Path, default=RESULTS / "streams", help="the directory for the results")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--methods", nargs="+", choices=METHODS, help="default: those of --peers that are installed")
    parser.add_argument("--peers", choices=GROUPS, default="quick", help="all: trees too")
    parser.add_argument("--defaults-only", action="store_true", help="each method with its default: no grids")
    parser.add_argument("--rows", type=int, default=ROWS, help="the first rows of each stream")
    parser.add_argument("--whole", action="store_true", help="all rows of each stream")
    parser.add_argument("--limit", type=float, default=LIMIT, help="CPU seconds for one setting on one stream")
    parser.add_argument("--lagged", action="store_true", help="the previous response as one more feature")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    given = parser.parse_args(arguments)
    rows = sys.maxsize if given.whole else given.rows
    tasks = [load_task(name, given.data, rows, lagged=given.lagged) for name in given.tasks]
    chosen = dict(methods=given.methods, peers=given.peers, defaults_only=given.defaults_only)
    table = run_leaderboard(tasks, given.out, limit=given.limit, jobs=given.jobs, progress=True, **chosen)
    print(write_leaderboard(table, given.out))


if __name__ == "__main__":
    main()
