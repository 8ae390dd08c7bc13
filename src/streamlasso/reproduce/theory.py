"""The paper's lemmas on real lasso paths: where G(lam) = lam - step dC/dlam, for one fixed new row, contracts.

The path of the lasso is a polygon: between two of its knots the coefficients are linear in lam, and so is dC/dlam, with
slope `rise` = (x'db)^2 for the exact derivative. There G brings two lams nearer if and only if 0 < step * rise < 2. At
a knot dC/dlam jumps, and if it jumps from below to above zero, G goes back and forth over the knot.
All that is shown comes from the saved tables.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lars_path_gram

from streamlasso._files import write_whole
from streamlasso.reproduce.parts import Job, Tables, as_csv, blocks, gathered, write_table
from streamlasso.simulate import DENSE, SPARSE, simulate

N_ROWS, MEMORY = 100, 0.95
REGIMES = {"dense": DENSE, "sparse": SPARSE}
#: The derivative that moves lam: the paper's, ours (the new row is in the Hessian), the paper's approximation.
EXACT, UPDATED, DIAGONAL = "exact", "exact, with the new row", "diagonal"
GRADIENTS = (EXACT, UPDATED, DIAGONAL)
STEPS = (0.0001, 0.0003, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
#: How often G is applied, how many of the last lams are looked at, and what is standing still, as a share of lam_max.
N_ITERATIONS, N_LAST, STILL = 2000, 64, 1e-9
#: Where G may end: at a point, or still under way there; to and fro over one knot, between two lams or more; elsewhere.
POINT, UNDER_WAY, PAIR, ONE_KNOT, RESTLESS = "point", "under_way", "pair", "one_knot", "restless"
OUTCOMES = (POINT, UNDER_WAY, PAIR, ONE_KNOT, RESTLESS)


@dataclass(frozen=True, eq=False)
class Known:
    """The moments of the rows so far, as a memory holds them, and a row to come; no intercept, as in the paper."""

    S: np.ndarray
    c: np.ndarray
    omega: float
    x: np.ndarray
    y: float


def draw(i: int, seed: int, regime: str) -> Known:
    """100 rows of one regime, faded by r = .95, and one more; from `SeedSequence([seed, i])`.

    >>> from streamlasso.reproduce.theory import draw
    >>> draw(0, 0, "sparse").S.shape
    (20, 20)
    """
    rng = np.random.default_rng(np.random.SeedSequence([seed, i]))
    stream = simulate(rng, lengths=[N_ROWS + 1], densities=[REGIMES[regime]])
    weight = MEMORY ** np.arange(N_ROWS - 1.0, -1.0, -1.0)
    X, y, omega = stream.X[:N_ROWS], stream.y[:N_ROWS], weight.sum()
    S, c = (weight * X.T) @ X / omega, (weight * X.T) @ y / omega
    return Known(S, c, float(omega), stream.X[N_ROWS], float(stream.y[N_ROWS]))


@dataclass(frozen=True, eq=False)
class Pieces:
    """dC/dlam on [0, lam_max]: in piece k, knots[k] <= lam < knots[k + 1], it is at_low[k] + rise[k] (lam - knots[k]).

    `beta` (knot, feature) are the coefficients at the knots, between which they are linear.
    """

    knots: np.ndarray
    at_low: np.ndarray
    rise: np.ndarray
    beta: np.ndarray

    @property
    def lam_max(self) -> float:
        return float(self.knots[-1])

    @property
    def at_high(self) -> np.ndarray:
        return self.at_low + self.rise * np.diff(self.knots)

    def where(self, lam: np.ndarray) -> np.ndarray:
        """The piece of each lam; lam_max belongs to the last."""
        return np.searchsorted(self.knots[1:-1], lam, side="right")

    def slope(self, lam: np.ndarray) -> np.ndarray:
        """dC/dlam."""
        k = self.where(lam)
        return self.at_low[k] + self.rise[k] * (lam - self.knots[k])


def pieces(known: Known, gradient: str) -> Pieces:
    """The pieces of dC/dlam under one of the `GRADIENTS`.

    >>> from streamlasso.reproduce.theory import EXACT, draw, pieces
    >>> bool((pieces(draw(0, 0, "sparse"), EXACT).rise >= 0).all())
    True
    """
    knots, beta = lasso_path(known)
    at_low, rise = np.empty(len(knots) - 1), np.empty(len(knots) - 1)
    for k in range(len(rise)):
        active, sign = _active(beta[k] + beta[k + 1])
        moves = known.x[active] @ _derivative(known, EXACT, active, sign)
        assumed = known.x[active] @ _derivative(known, gradient, active, sign)
        at_low[k] = -(known.y - known.x @ beta[k]) * assumed
        rise[k] = moves * assumed
    return Pieces(knots, at_low, rise, beta)


def lasso_path(known: Known) -> tuple[np.ndarray, np.ndarray]:
    """The knots from 0 to lam_max, and the coefficients at each: the solutions between them are linear in lam."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        lams, _, coefs = lars_path_gram(known.c, known.S, n_samples=1, method="lasso")
    lams, beta = lams[::-1], coefs.T[::-1]
    # Two features may come and go at what is one knot in floating point.
    kept = np.concatenate([[True], np.diff(lams) > STILL * lams[-1]])
    return lams[kept], beta[kept]


def _active(beta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Who is active in the middle of a piece, and with what sign; a feature that has left may leave rounding behind."""
    active = np.flatnonzero(np.abs(beta) > STILL * np.abs(beta).max())
    return active, np.sign(beta[active])


def _derivative(known: Known, gradient: str, active: np.ndarray, sign: np.ndarray) -> np.ndarray:
    """db/dlam on the active set, as the rule takes it to be."""
    S = known.S[np.ix_(active, active)]
    if gradient == DIAGONAL:
        return -sign / np.diag(S)
    if gradient == UPDATED:
        x, faded = known.x[active], MEMORY * known.omega
        S = (faded * S + np.outer(x, x)) / (faded + 1)
    return -np.linalg.solve(S, sign)


# --- G, again and again -----------------------------------------------------------------------------------------------


def iterated(found: Pieces, steps: np.ndarray, start: float, n: int = N_ITERATIONS) -> np.ndarray:
    """(lam, step): the last lams of n applications of G, clamped into [0, lam_max], for each step size.

    >>> import numpy as np
    >>> from streamlasso.reproduce.theory import EXACT, draw, iterated, pieces
    >>> iterated(pieces(draw(0, 0, "sparse"), EXACT), np.array([0.01]), 0.5).shape
    (64, 1)
    """
    lam, lam_max = np.full(len(steps), start), found.lam_max
    lams = np.empty((n, len(steps)))
    for i in range(n):
        lams[i] = lam = np.minimum(np.maximum(lam - steps * found.slope(lam), 0.0), lam_max)
    return lams[-N_LAST:]


def outcome(found: Pieces, last: np.ndarray) -> str:
    """One of the `OUTCOMES`, from the last lams."""
    moves = np.diff(last)
    if abs(moves[-1]) <= STILL * found.lam_max:
        return POINT
    where = found.where(last)
    if np.ptp(where) == 0:
        return UNDER_WAY if abs(moves[-1]) < abs(moves[0]) else RESTLESS
    if (moves > 0).all() or (moves < 0).all():
        return UNDER_WAY
    if np.ptp(where) > 1:
        return RESTLESS
    return PAIR if abs(last[-1] - last[-3]) <= STILL * found.lam_max else ONE_KNOT


@dataclass(frozen=True)
class Paths:
    """Some draws of both regimes under every gradient."""

    seed: int
    start: int
    stop: int

    kinds: ClassVar[tuple[str, ...]] = ("pieces", "ends")

    @property
    def stem(self) -> str:
        return f"paths-{self.start:05d}-{self.stop:05d}"

    def run(self) -> Tables:
        rows: list[dict[str, Any]] = []
        ends: list[dict[str, Any]] = []
        for i in range(self.start, self.stop):
            for regime in REGIMES:
                known = draw(i, self.seed, regime)
                for gradient in GRADIENTS:
                    found, who = pieces(known, gradient), dict(regime=regime, draw=i, gradient=gradient)
                    rows += [dict(**who, **row) for row in _piece_rows(found)]
                    ends += [dict(**who, **end) for end in _ends(found)]
        return {"pieces": pyarrow.Table.from_pylist(rows), "ends": pyarrow.Table.from_pylist(ends)}


def _piece_rows(found: Pieces) -> Iterator[dict[str, Any]]:
    for k, (rise, low, high) in enumerate(zip(found.rise, found.at_low, found.at_high, strict=True)):
        numbers = dict(low=found.knots[k], high=found.knots[k + 1], rise=rise, slope_low=low, slope_high=high)
        yield dict(piece=k, **{name: float(number) for name, number in numbers.items()})


def _ends(found: Pieces) -> Iterator[dict[str, Any]]:
    """From the middle of the path: where G ends for each step size, and how far its last lams are apart."""
    last = iterated(found, np.array(STEPS), found.lam_max / 2)
    for step, lams in zip(STEPS, last.T, strict=True):
        yield dict(step=step, outcome=outcome(found, lams), width=float(np.ptp(lams) / found.lam_max))


# --- two paths to look at ---------------------------------------------------------------------------------------------

#: The step size at which examples are looked for, and those they are drawn with.
EXAMPLE_STEP, EXAMPLE_STEPS, EXAMPLE_ITERATIONS = 0.025, (0.025, 0.1, 1.0), 60
EXAMPLES = {POINT: "ends at a point", ONE_KNOT: "to and fro over one knot"}


def examples(ends: pyarrow.Table, seed: int) -> Tables:
    """The first path of sparse regimes that ends in each way: coefficients at the knots, pieces, and the lams of G."""
    tables: dict[str, list[dict[str, Any]]] = {"coefficients": [], "pieces": [], "lams": []}
    for end, words in EXAMPLES.items():
        i = _first(ends, end)
        if i is None:
            continue
        found = pieces(draw(i, seed, "sparse"), EXACT)
        who = dict(example=words, draw=i)
        tables["coefficients"] += [
            dict(**who, lam=float(lam), feature=j, beta=float(beta[j]))
            for lam, beta in zip(found.knots, found.beta, strict=True)
            for j in range(len(beta))
        ]
        tables["pieces"] += [dict(**who, **row) for row in _piece_rows(found)]
        lams = iterated(found, np.array(EXAMPLE_STEPS), found.lam_max / 2, EXAMPLE_ITERATIONS)
        tables["lams"] += [
            dict(**who, step=step, k=k + 1, lam=float(lam))
            for step, column in zip(EXAMPLE_STEPS, lams.T, strict=True)
            for k, lam in enumerate(column)
        ]
    return {name: pyarrow.Table.from_pylist(rows) for name, rows in tables.items()}


def _first(ends: pyarrow.Table, end: str) -> int | None:
    sought = dict(regime="sparse", gradient=EXACT, step=EXAMPLE_STEP, outcome=end)
    return min((row["draw"] for row in ends.to_pylist() if sought.items() <= row.items()), default=None)


def planned_paths(n: int, seed: int) -> list[Job]:
    """What is to be run."""
    return [Paths(seed, start, stop) for start, stop in blocks(n)]


# --- the summary ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """One gradient in one regime at one step size, over paths.

    contracts, of_pieces : shares of paths on which G contracts in every piece, and of pieces in which it does
    expands : the share of pieces in which no step size contracts, for dC/dlam falls there
    limit, limit_low : the step size at which it breaks on a path (2 / the largest rise): median and 5 % quantile
    turns : the share of paths with a knot at which dC/dlam jumps from below zero to above it
    point, under_way, pair, one_knot, restless : shares of paths by where G ends
    width : where that is over one knot, the distance of its lams as a share of lam_max, median; nan if there is none
    """

    regime: str
    gradient: str
    step: float
    paths: int
    pieces: float
    contracts: float
    of_pieces: float
    expands: float
    limit: float
    limit_low: float
    turns: float
    point: float
    under_way: float
    pair: float
    one_knot: float
    restless: float
    width: float


def summarise(out: Path, planned: Sequence[Job], n: int, seed: int) -> list[Line]:
    """pieces.parquet, ends.parquet, two examples, summary.csv and summary.md from all parts."""
    tables = {kind: gathered(out, planned, kind) for kind in Paths.kinds}
    found = {f"example-{name}": table for name, table in examples(tables["ends"], seed).items()}
    for name, table in (tables | found).items():
        write_table(out / f"{name}.parquet", table)
    lines = summarised(tables["pieces"], tables["ends"])
    write_whole(out / "summary.csv", as_csv(lines).encode())
    write_whole(out / "summary.md", as_markdown(lines, n, seed).encode())
    return lines


def summarised(rows: pyarrow.Table, ends: pyarrow.Table) -> list[Line]:
    """A line for each regime, gradient and step size."""
    paths: dict[tuple[str, str], dict[int, list[tuple[float, ...]]]] = {}
    for row in rows.to_pylist():
        path = paths.setdefault((row["regime"], row["gradient"]), {}).setdefault(row["draw"], [])
        path.append((row["rise"], row["slope_low"], row["slope_high"]))
    found: dict[tuple[str, str, float], list[tuple[str, float]]] = {}
    for end in ends.to_pylist():
        found.setdefault((end["regime"], end["gradient"], end["step"]), []).append((end["outcome"], end["width"]))
    arrays = {who: [np.array(path).T for path in of.values()] for who, of in paths.items()}
    return [_line(*who, arrays[who[:2]], ended) for who, ended in found.items()]


def _line(
    regime: str, gradient: str, step: float, paths: Sequence[np.ndarray], ended: Sequence[tuple[str, float]]
) -> Line:
    whole = np.concatenate([rise for rise, _, _ in paths])
    limits = np.array([breaking_step(rise) for rise, _, _ in paths])
    turns = [np.any((at_high[:-1] < 0) & (at_low[1:] > 0)) for _, at_low, at_high in paths]
    shares = [np.mean([outcome == name for outcome, _ in ended]) for name in OUTCOMES]
    widths = [width for outcome, width in ended if outcome in (PAIR, ONE_KNOT)]
    numbers = (
        len(whole) / len(paths),
        np.mean(step < limits),
        np.mean((whole > 0) & (step * whole < 2)),
        np.mean(whole < 0),
        np.median(limits),
        np.quantile(limits, 0.05, method="lower"),
        np.mean(turns),
        *shares,
        np.median(widths) if widths else np.nan,
    )
    return Line(regime, gradient, step, len(paths), *map(float, numbers))


def breaking_step(rise: np.ndarray) -> float:
    """The least step size at which G no longer contracts in every piece; 0 if there is a piece where none does.

    >>> breaking_step(np.array([4.0, 0.5])), breaking_step(np.array([4.0, -1.0]))
    (0.5, 0.0)
    """
    return 0.0 if np.min(rise) < 0 else float(2 / np.max(rise))


def as_markdown(lines: Sequence[Line], n: int, seed: int) -> str:
    """What breaks at which step size, a table for each regime and gradient."""
    text = [
        f"# The lemmas on real paths: {N_ROWS} rows, r = {MEMORY}, p = 20, {n} draws, seed {seed}",
        "",
        "G(lam) = lam - step dC/dlam for one fixed new row. Contracts: on how many paths G brings any two lams of one",
        "piece nearer, in every piece (Lemma 1), and in what share of all pieces. Then where",
        f"{N_ITERATIONS:,} applications of G end, from lam_max / 2 on: at a point, or still under way there; to and",
        "fro over one knot, between two neighbouring pieces, taking two lams in turn (the cycle of Lemma 2) or more,",
        "with the median width of these as a share of lam_max; or none of this (over several knots).",
    ]
    for regime, gradient in dict.fromkeys((line.regime, line.gradient) for line in lines):
        of = [line for line in lines if (line.regime, line.gradient) == (regime, gradient)]
        first = of[0]
        text += [
            "",
            f"## {regime}: {gradient}",
            "",
            f"{first.pieces:.1f} pieces a path; dC/dlam falls, so that no step contracts, in {_percent(first.expands)}",
            f"of them. The step at which a path breaks: median {first.limit:.2g}, 5 % quantile {first.limit_low:.2g}.",
            f"{_percent(first.turns)} of paths have a knot at which dC/dlam jumps from below zero to above it.",
            "",
            "| step | contracts: paths | pieces | ends: point | under way | two lams | one knot | width | elsewhere |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        text += [_cells(line) for line in of]
    return "\n".join(text) + "\n"


def _cells(line: Line) -> str:
    before = (line.contracts, line.of_pieces, line.point, line.under_way, line.pair, line.one_knot)
    width = "" if np.isnan(line.width) else f"{line.width:.1g}"
    return f"| {' | '.join([f'{line.step:g}', *map(_percent, before), width, _percent(line.restless)])} |"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
