"""The paper's non-stationary simulation: online learners against what cross-validation offline can do.

Draws are saved in blocks, and what is saved is not run again. All that is shown comes from the saved tables.
"""

from __future__ import annotations

import csv
import io
import json
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyarrow import parquet
from rich.console import Console
from rich.progress import track
from scipy.stats import t as student

from streamlasso import RAPRegressor, progressive
from streamlasso.experiments.offline import Run, afresh, cross_validated, fixed, regimes, stepwise
from streamlasso.families import Gaussian
from streamlasso.report import write_whole
from streamlasso.settings import as_family
from streamlasso.simulate import DENSE, SPARSE, Stream, simulate
from streamlasso.tuners import LogRMS, Mixture

#: Rows that are learnt but not judged: a fixed lam has no start-up of its own, and would pay for them.
WARM_UP = 20
ORDERS = {"dense-sparse-dense": (DENSE, SPARSE, DENSE), "sparse-dense-sparse": (SPARSE, DENSE, SPARSE)}
FAMILIES = ("gaussian", "binomial")
N_REGIMES = 3
FIXED_LENGTH, RANDOM_LENGTHS = 100, (60, 150)
#: Draws that are saved together.
BLOCK = 20
CONFIDENCE = 0.95


def draw(i: int, seed: int, order: str, lengths: str, family: str) -> Stream:
    """The i-th stream of a study: all that is random in it comes from `SeedSequence([seed, i])`.

    `lengths` is "fixed" (three regimes of 100 rows) or "random" (each uniform in 60..150, drawn before all else).

    >>> from streamlasso.experiments.nonstationary import draw
    >>> draw(0, 0, "dense-sparse-dense", "fixed", "gaussian").changes
    array([100, 200])
    >>> draw(0, 0, "dense-sparse-dense", "random", "gaussian").changes
    array([137, 254])
    """
    rng = np.random.default_rng(np.random.SeedSequence([seed, i]))
    low, high = RANDOM_LENGTHS
    sizes = [FIXED_LENGTH] * N_REGIMES if lengths == "fixed" else rng.integers(low, high + 1, N_REGIMES).tolist()
    return simulate(rng, lengths=sizes, densities=ORDERS[order], family=as_family(family))


# --- the learners -----------------------------------------------------------------------------------------------------

#: Who ran, with what setting, and how it went.
Named = tuple[str, str, Run]
FLOOR, STEPWISE, FIXED, AFRESH = "noise floor", "Stepwise (CV)", "Fixed (CV)", "Told when to start afresh (CV)"
BEST_FIXED, BEST_STEPWISE = "Fixed (hindsight)", "Stepwise (hindsight)"
MEMORIES = (0.9, 0.93, 0.95, 0.97, 0.98, 0.99)
#: Where cross-validation also weighs the rows as the memory does: beside the best memory of each family.
WEIGHTED_MEMORIES = {True: (0.93, 0.95), False: (0.97, 0.98)}
LOOKS = 4
#: The memory of LogRMS where none is given.
LOG_RMS_MEMORY = 0.99
#: Told afresh: lam (n/t)^power.
POWERS = (0.0, 0.5, 1.0)
#: The lams of hindsight, for Gaussian and for binomial responses.
GRIDS = {True: np.geomspace(0.01, 1.0, 9), False: np.geomspace(0.01, 0.2, 7)}


def _truth(stream: Stream) -> Iterator[Named]:
    yield FLOOR, "", Run(stream.floor, np.zeros(len(stream.y)), stream.beta)


def _cross_validated(stream: Stream) -> Iterator[Named]:
    """Told where the regimes are, and offline: the paper's benchmarks, as strong as we could make them."""
    X, y, family = stream.X, stream.y, stream.family
    lams = [cross_validated(X[rows], y[rows], family) for rows in regimes(stream)]
    lam = cross_validated(X, y, family)
    for r in MEMORIES:
        yield STEPWISE, f"r={r}", stepwise(stream, lams, r)
        yield FIXED, f"r={r}", fixed(stream, lam, r)
    for r in WEIGHTED_MEMORIES[_is_gaussian(stream)]:
        weighted = [cross_validated(X[rows], y[rows], family, r=r, looks=LOOKS) for rows in regimes(stream)]
        yield STEPWISE, f"r={r}, weighted", stepwise(stream, weighted, r)
        yield FIXED, f"r={r}, weighted", fixed(stream, cross_validated(X, y, family, r=r, looks=LOOKS), r)
    for power in POWERS:
        yield AFRESH, f"power={power}", afresh(stream, lams, power=power)


def _hindsight(stream: Stream) -> Iterator[Named]:
    """Every lam of a grid; and of each regime the one that did best in it, which nobody could have known."""
    for r in MEMORIES:
        runs = [fixed(stream, float(lam), r) for lam in GRIDS[_is_gaussian(stream)]]
        for run in runs:
            yield BEST_FIXED, f"r={r}, lam={run.lam[0]:.2g}", run
        yield BEST_STEPWISE, f"r={r}", _best_in_each_regime(stream, runs)


def _best_in_each_regime(stream: Stream, runs: Sequence[Run]) -> Run:
    chosen = [(_best_over(runs, max(rows.start, WARM_UP), rows.stop), rows) for rows in regimes(stream)]
    return Run(*(np.concatenate([run[k][rows] for run, rows in chosen]) for k in range(len(Run._fields))))


def _best_over(runs: Sequence[Run], start: int, stop: int) -> Run:
    return min(runs, key=lambda run: run.loss[start:stop].sum())


def _log_rms(stream: Stream) -> Iterator[Named]:
    for r in MEMORIES:
        run = online(stream, tuner=LogRMS(), memory=r)
        yield "LogRMS, best r", f"r={r}", run
        if r == LOG_RMS_MEMORY:
            yield "LogRMS, its default r", f"r={r}", run


def _mixture(stream: Stream) -> Iterator[Named]:
    """The averaged prediction, and the single model believed most, judged by the row after."""
    model = RAPRegressor(family=stream.family, tuner=Mixture())
    yield "Mixture", "", online(stream, tuner=Mixture())
    coef, eta, lam = np.zeros_like(stream.X), np.zeros(len(stream.y)), np.zeros(len(stream.y))
    for t, x in enumerate(stream.X):
        if t > 0:
            eta[t] = model.selected_.intercept + x @ model.selected_.coef
        model.partial_fit(x[None], stream.y[t : t + 1])
        coef[t], lam[t] = model.selected_.coef, model.selected_.lam
    yield "Mixture, its single model", "", Run(stream.family.loss(stream.y, eta), lam, coef)


def online(stream: Stream, **settings: Any) -> Run:
    """A RAPRegressor of these settings over the stream."""
    trace = progressive(RAPRegressor(family=stream.family, **settings), stream.X, stream.y, coef=True)
    return Run(trace.loss, trace["lam"], trace["coef"])


def _is_gaussian(stream: Stream) -> bool:
    return isinstance(stream.family, Gaussian)


#: Who takes part. A group is run and saved by itself: a new line here runs only what it adds.
GROUPS: dict[str, Callable[[Stream], Iterator[Named]]] = {
    "truth": _truth,
    "cross-validation": _cross_validated,
    "hindsight": _hindsight,
    "log-rms": _log_rms,
    "mixture": _mixture,
}


# --- running ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """One group over some draws: what is run in one go and saved as one part."""

    family: str
    order: str
    group: str
    lengths: str
    seed: int
    start: int
    stop: int

    @property
    def stem(self) -> str:
        return f"{self.family}-{self.order}-{self.group}-{self.start:05d}-{self.stop:05d}"


def run_nonstationary(
    n: int,
    seed: int,
    jobs: int,
    out: Path,
    lengths: str = "fixed",
    families: Sequence[str] = FAMILIES,
    groups: Sequence[str] | None = None,
    progress: bool | None = None,
) -> list[Line]:
    """Every learner on n draws of each family and order; the lines of the summary.

    In `out`: parts/ (what is done already, and not run again), draws.parquet (loss and F of every draw), curves.parquet
    (their means, and that of lam, by regime and row of the regime), summary.csv and summary.md. The numbers do not
    depend on `jobs`, nor on where a run was stopped.

    Parameters
    ----------
    n : int
        Draws; 2 or more.
    seed : int
        Draw i comes from `SeedSequence([seed, i])`; see `draw`.
    jobs : int
        Processes at a time.
    out : Path
        The directory for the results; made if it is not there. One directory holds one seed and one kind of lengths.
    lengths : {"fixed", "random"}
        Regimes of 100 rows, or of 60 to 150.
    families : sequence of {"gaussian", "binomial"}
    groups : sequence of str, default=None
        Some of `GROUPS`; None is all. Cross-validation is always among them: differences are against it.
    progress : bool, default=None
        A progress bar on standard error; None is one if that is a terminal.
    """
    _refuse(n, jobs, lengths, families, groups)
    _claim(out, seed, lengths)
    chosen = [group for group in GROUPS if groups is None or group in groups or group == "cross-validation"]
    planned = list(_jobs(n, seed, lengths, families, chosen))
    left = [job for job in planned if not _part(out, job, "curves").exists()]
    for job, tables in _watched(_results(left, jobs), len(left), progress):
        for kind, table in tables.items():
            _write_table(_part(out, job, kind), table)
    for kind in ("draws", "curves"):
        parts = [parquet.read_table(_part(out, job, kind)) for job in planned]
        _write_table(out / f"{kind}.parquet", pyarrow.concat_tables(parts))
    return write_summary(out)


def _refuse(n: int, jobs: int, lengths: str, families: Sequence[str], groups: Sequence[str] | None) -> None:
    if n < 2:
        raise ValueError(f"n={n}: two draws or more are needed for a standard error")
    if jobs < 1:
        raise ValueError(f"jobs={jobs}: at least one process is needed")
    if lengths not in ("fixed", "random"):
        raise ValueError(f"lengths={lengths!r}: 'fixed' or 'random'")
    for what, asked, known in (("families", families, FAMILIES), ("groups", groups or (), tuple(GROUPS))):
        unknown = [name for name in asked if name not in known]
        if unknown:
            raise ValueError(f"{', '.join(unknown)}: the {what} are {', '.join(known)}")


def _claim(out: Path, seed: int, lengths: str) -> None:
    """A directory holds one study: parts of two would be mixed up."""
    (out / "parts").mkdir(parents=True, exist_ok=True)
    path, study = out / "study.json", {"seed": seed, "lengths": lengths}
    if path.exists() and json.loads(path.read_text()) != study:
        raise ValueError(f"{path}: another study, {path.read_text().strip()}; name another directory")
    write_whole(path, (json.dumps(study) + "\n").encode())


def _jobs(n: int, seed: int, lengths: str, families: Sequence[str], groups: Sequence[str]) -> Iterator[Job]:
    for start in range(0, n, BLOCK):
        for family in families:
            for order in ORDERS:
                for group in groups:
                    yield Job(family, order, group, lengths, seed, start, min(start + BLOCK, n))


def _part(out: Path, job: Job, kind: str) -> Path:
    return out / "parts" / f"{job.stem}.{kind}.parquet"


def _write_table(path: Path, table: pyarrow.Table) -> None:
    written = io.BytesIO()
    parquet.write_table(table, written)
    write_whole(path, written.getvalue())


Tables = dict[str, pyarrow.Table]


def _results(left: list[Job], jobs: int) -> Iterator[tuple[Job, Tables]]:
    if jobs == 1:
        yield from ((job, _run(job)) for job in left)
        return
    # A fresh interpreter each: a fork of one that has threads can hang.
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(_run, job): job for job in left}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            for future in futures:
                future.cancel()


def _watched(results: Iterator[tuple[Job, Tables]], n_jobs: int, progress: bool | None) -> Iterator[tuple[Job, Tables]]:
    hidden = not (sys.stderr.isatty() if progress is None else progress)
    yield from track(
        results, "non-stationary", total=n_jobs, console=Console(stderr=True), disable=hidden or not n_jobs
    )


def _run(job: Job) -> Tables:
    """The part's tables; draws are written before curves, so a part with curves is whole."""
    lines: list[dict[str, Any]] = []
    curves: dict[tuple[str, str], Curve] = {}
    for i in range(job.start, job.stop):
        stream = draw(i, job.seed, job.order, job.lengths, job.family)
        for learner, setting, run in GROUPS[job.group](stream):
            f = f_score(run.coef, stream.beta)
            score = dict(loss=float(run.loss[WARM_UP:].mean()), f=float(f[WARM_UP:].mean()))
            lines.append(dict(family=job.family, order=job.order, draw=i, learner=learner, setting=setting, **score))
            if learner != BEST_FIXED:
                curves.setdefault((learner, setting), Curve()).add(stream, run, f)
    who = dict(family=job.family, order=job.order)
    points = [dict(**who, learner=k[0], setting=k[1], **point) for k, curve in curves.items() for point in curve.points]
    return {"draws": pyarrow.Table.from_pylist(lines), "curves": pyarrow.Table.from_pylist(points)}


def f_score(coef: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """F of the support after each row against that of the coefficients the row was drawn with; 0 for an empty model.

    >>> import numpy as np
    >>> from streamlasso.experiments.nonstationary import f_score
    >>> f_score(np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]]), np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]))
    array([0.66666667, 0.        ])
    """
    found, true = coef != 0, beta != 0
    return 2 * (found & true).sum(axis=1) / (found.sum(axis=1) + true.sum(axis=1))


class Curve:
    """Sums over draws by regime and row of the regime: regimes of random length line up at their starts."""

    names = ("loss", "lam", "f")

    def __init__(self) -> None:
        longest = max(FIXED_LENGTH, *RANDOM_LENGTHS)
        self.draws = np.zeros((N_REGIMES, longest), dtype=int)
        self.sums = np.zeros((len(self.names), N_REGIMES, longest))

    def add(self, stream: Stream, run: Run, f: np.ndarray) -> None:
        for k, rows in enumerate(regimes(stream)):
            self.draws[k, : rows.stop - rows.start] += 1
            for total, values in zip(self.sums, (run.loss, run.lam, f), strict=True):
                total[k, : rows.stop - rows.start] += values[rows]

    @property
    def points(self) -> Iterator[dict[str, Any]]:
        for k, age in np.argwhere(self.draws):
            sums = dict(zip(self.names, self.sums[:, k, age].tolist(), strict=True))
            yield dict(regime=int(k), age=int(age), draws=int(self.draws[k, age]), **sums)


# --- the summary ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """A learner with a setting: means over draws, standard errors, and its loss less that of Stepwise, draw by draw.

    `best` says that no other setting of the learner has a smaller mean loss: chosen on these draws, in its favour.
    Stepwise is the best of its settings; `low` and `high` bound the mean difference with confidence .95.
    """

    family: str
    order: str
    learner: str
    setting: str
    best: bool
    draws: int
    loss: float
    loss_se: float
    f: float
    f_se: float
    difference: float
    low: float
    high: float


def write_summary(out: Path) -> list[Line]:
    """summary.csv, with every setting, and summary.md, with the best of each learner, from draws.parquet."""
    lines = summarised(parquet.read_table(out / "draws.parquet"))
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(field.name for field in fields(Line))
    writer.writerows(asdict(line).values() for line in lines)
    write_whole(out / "summary.csv", text.getvalue().encode())
    write_whole(out / "summary.md", _markdown(lines, **json.loads((out / "study.json").read_text())).encode())
    return lines


def summarised(draws: pyarrow.Table) -> list[Line]:
    """The lines of every family and order."""
    scores: dict[tuple[str, str], dict[tuple[str, str], dict[int, tuple[float, float]]]] = {}
    for row in draws.to_pylist():
        panel = scores.setdefault((row["family"], row["order"]), {})
        panel.setdefault((row["learner"], row["setting"]), {})[row["draw"]] = (row["loss"], row["f"])
    return [line for (family, order), panel in scores.items() for line in _panel(family, order, panel)]


def _panel(family: str, order: str, panel: dict[tuple[str, str], dict[int, tuple[float, float]]]) -> Iterator[Line]:
    table = {who: np.array([by_draw[i] for i in sorted(by_draw)]) for who, by_draw in panel.items()}
    best = _best_settings(table)
    reference = table[STEPWISE, best[STEPWISE]][:, 0]
    for (learner, setting), values in table.items():
        n = len(values)
        (loss, f), (loss_se, f_se) = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(n)
        gap = values[:, 0] - reference
        margin = student.ppf((1 + CONFIDENCE) / 2, n - 1) * gap.std(ddof=1) / np.sqrt(n)
        numbers = (loss, loss_se, f, f_se, gap.mean(), gap.mean() - margin, gap.mean() + margin)
        yield Line(family, order, learner, setting, best[learner] == setting, n, *map(float, numbers))


def _best_settings(table: dict[tuple[str, str], np.ndarray]) -> dict[str, str]:
    best: dict[str, str] = {}
    for learner, setting in sorted(table, key=lambda who: table[who][:, 0].mean()):
        best.setdefault(learner, setting)
    return best


def _markdown(lines: Sequence[Line], seed: int, lengths: str) -> str:
    sizes = f"{FIXED_LENGTH} rows" if lengths == "fixed" else "{} to {} rows at random".format(*RANDOM_LENGTHS)
    text = [
        f"# Non-stationary simulation: three regimes of {sizes}, {lines[0].draws} draws, seed {seed}",
        "",
        f"Mean prequential loss (half squared error; log loss) from row {WARM_UP} on, and F of the support after each",
        "row; standard errors in brackets. The last column is the loss less that of Stepwise on the same draws, with",
        "its 95 % interval. Each learner is shown at the setting of least mean loss on these very draws: that flatters",
        "those with many settings, Stepwise among them, and the intervals do not allow for it. summary.csv: all.",
        "CV and hindsight have seen the responses to come; Stepwise and Told also know the change points.",
        "Stepwise is shown at its setting of best F too, where that is another: compare supports with that one.",
    ]
    for family, order in dict.fromkeys((line.family, line.order) for line in lines):
        text += [
            "",
            f"## {family}, {order}",
            "",
            "| learner | setting | loss | F | loss - Stepwise |",
            "|---|---|---|---|---|",
        ]
        shown = _shown([line for line in lines if (line.family, line.order) == (family, order)])
        text += [_cells(line) for line in sorted(shown, key=lambda line: line.loss)]
    return "\n".join(text) + "\n"


def _shown(lines: Sequence[Line]) -> list[Line]:
    """The best settings; and Stepwise at its best F, for the lam of least loss is not the one of the best support."""
    best_support = max((line for line in lines if line.learner == STEPWISE), key=lambda line: line.f)
    return [line for line in lines if line.best or line is best_support]


def _cells(line: Line) -> str:
    against = (
        "" if line.learner == STEPWISE and line.best else f"{line.difference:+.3f} [{line.low:+.3f}, {line.high:+.3f}]"
    )
    f = "" if line.learner == FLOOR else f"{line.f:.3f} ({line.f_se:.3f})"
    return f"| {line.learner} | {line.setting} | {line.loss:.3f} ({line.loss_se:.3f}) | {f} | {against} |"
