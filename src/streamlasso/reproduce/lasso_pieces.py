"""G(lam) = lam - step dC/dlam on a lasso path, for one fixed new row: its pieces, and where it ends.

Between two knots of the path the coefficients are linear in lam, and so is dC/dlam, with slope `rise` = (x'db)^2 for
the exact derivative. There G brings two lams nearer if and only if 0 < step * rise < 2. At a knot dC/dlam jumps, and if
it jumps from below to above zero, G alternates across the knot.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lars_path_gram

from streamlasso.simulate import DENSE, SPARSE, simulate

N_ROWS, MEMORY = 100, 0.95
REGIMES = {"dense": DENSE, "sparse": SPARSE}
#: The derivative that moves lam: the paper's, ours (with the new row in the Hessian), the paper's approximation.
EXACT, UPDATED, DIAGONAL = "exact", "exact, with the new row", "diagonal"
GRADIENTS = (EXACT, UPDATED, DIAGONAL)
#: How often G is applied, how many of the last lams are looked at, and the share of lam_max that is no movement.
N_ITERATIONS, N_LAST, STILL = 2000, 64, 1e-9
#: Where G may end: at a point, or on the way there; to and fro across one knot; over several.
POINT, ONE_KNOT, SEVERAL = OUTCOMES = ("point", "one_knot", "several")


@dataclass(frozen=True, eq=False)
class Problem:
    """The lasso on the rows so far, by their weighted moments S and c, and the new row x, y; no intercept."""

    S: np.ndarray
    c: np.ndarray
    omega: float
    x: np.ndarray
    y: float


def draw(i: int, seed: int, regime: str) -> Problem:
    """100 rows of one regime, faded by r = .95, and one more; from `SeedSequence([seed, i])`.

    >>> from streamlasso.reproduce.lasso_pieces import draw
    >>> draw(0, 0, "sparse").S.shape
    (20, 20)
    """
    rng = np.random.default_rng(np.random.SeedSequence([seed, i]))
    stream = simulate(rng, lengths=[N_ROWS + 1], densities=[REGIMES[regime]])
    weight = MEMORY ** np.arange(N_ROWS - 1.0, -1.0, -1.0)
    X, y, omega = stream.X[:N_ROWS], stream.y[:N_ROWS], weight.sum()
    S, c = (weight * X.T) @ X / omega, (weight * X.T) @ y / omega
    return Problem(S, c, float(omega), stream.X[N_ROWS], float(stream.y[N_ROWS]))


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


def pieces(problem: Problem, gradient: str) -> Pieces:
    """The pieces of dC/dlam under one of the `GRADIENTS`.

    >>> from streamlasso.reproduce.lasso_pieces import EXACT, draw, pieces
    >>> bool((pieces(draw(0, 0, "sparse"), EXACT).rise >= 0).all())
    True
    """
    knots, beta = lasso_path(problem)
    at_low, rise = np.empty(len(knots) - 1), np.empty(len(knots) - 1)
    for k in range(len(rise)):
        active, sign = _active(beta[k] + beta[k + 1])
        moves = problem.x[active] @ _derivative(problem, EXACT, active, sign)
        assumed = problem.x[active] @ _derivative(problem, gradient, active, sign)
        at_low[k] = -(problem.y - problem.x @ beta[k]) * assumed
        rise[k] = moves * assumed
    return Pieces(knots, at_low, rise, beta)


def lasso_path(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """The knots from 0 to lam_max, and the coefficients at each: the solutions between them are linear in lam."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        lams, _, coefs = lars_path_gram(problem.c, problem.S, n_samples=1, method="lasso")
    lams, beta = lams[::-1], coefs.T[::-1]
    # Two features may change at knots that are the same up to rounding.
    kept = np.concatenate([[True], np.diff(lams) > STILL * lams[-1]])
    return lams[kept], beta[kept]


def _active(beta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The active features in the middle of a piece, and their signs; rounding is not active."""
    active = np.flatnonzero(np.abs(beta) > STILL * np.abs(beta).max())
    return active, np.sign(beta[active])


def _derivative(problem: Problem, gradient: str, active: np.ndarray, sign: np.ndarray) -> np.ndarray:
    """db/dlam on the active set, under this gradient."""
    S = problem.S[np.ix_(active, active)]
    if gradient == DIAGONAL:
        return -sign / np.diag(S)
    if gradient == UPDATED:
        x, faded = problem.x[active], MEMORY * problem.omega
        S = (faded * S + np.outer(x, x)) / (faded + 1)
    return -np.linalg.solve(S, sign)


# --- applications of G ------------------------------------------------------------------------------------------------


def iterated(found: Pieces, steps: np.ndarray, start: float, n: int = N_ITERATIONS) -> np.ndarray:
    """(lam, step): the last lams of n applications of G, clamped into [0, lam_max], for each step size.

    >>> import numpy as np
    >>> from streamlasso.reproduce.lasso_pieces import EXACT, draw, iterated, pieces
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
    moves, pieces_visited = np.diff(last), np.ptp(found.where(last))
    still = abs(moves[-1]) <= STILL * found.lam_max
    slowing = pieces_visited == 0 and abs(moves[-1]) < abs(moves[0])
    if still or slowing or (moves > 0).all() or (moves < 0).all():
        return POINT
    return ONE_KNOT if pieces_visited == 1 else SEVERAL
