"""The paper's simulated streams: correlated features, coefficients that change abruptly, and the true ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamlasso.families import Family, Gaussian

N_BLOCKS = 5
CORRELATION = 0.8
#: Shares of non-zero coefficients in the paper's two kinds of regime.
DENSE, SPARSE = 0.8, 0.2


@dataclass(frozen=True, eq=False)
class Stream:
    """Rows, and what generated them: `beta[t]` are the true coefficients of row t, `regime[t]` its regime."""

    X: np.ndarray
    y: np.ndarray
    beta: np.ndarray
    regime: np.ndarray
    family: Family

    @property
    def changes(self) -> np.ndarray:
        """The first row of every regime but the first."""
        return np.flatnonzero(np.diff(self.regime)) + 1

    @property
    def floor(self) -> np.ndarray:
        """The loss of each row under its true coefficients: a model can only do better by chance."""
        return self.family.losses(self.y, np.einsum("ij,ij->i", self.X, self.beta))


def simulate(
    seed: int | np.random.Generator,
    *,
    n_features: int = 20,
    lengths: Sequence[int] = (100, 100, 100),
    densities: Sequence[float] = (DENSE, SPARSE, DENSE),
    family: Family | None = None,
) -> Stream:
    """A piecewise stationary stream, as in the paper: regimes of given lengths and shares of non-zero coefficients.

    Within a regime rows are x ~ N(0, Sigma), where Sigma has five equal blocks with correlation 0.8; a share of the
    coefficients, chosen at random, is standard normal and the rest are 0; y comes from the family (None: Gaussian, unit
    noise) with eta = x'beta. Each regime assigns the features to the blocks at random. The default is the paper's
    dense-sparse-dense stream.

    >>> from streamlasso.simulate import simulate
    >>> stream = simulate(0)
    >>> stream.X.shape, stream.changes
    ((300, 20), array([100, 200]))
    >>> (stream.beta[[0, 100, 200]] != 0).sum(axis=1)
    array([16,  4, 16])
    """
    rng = np.random.default_rng(seed)
    family = Gaussian() if family is None else family
    X = np.ascontiguousarray(np.vstack([_features(rng, length, n_features) for length in lengths]))
    beta = np.vstack([_coefficients(rng, n_features, density) for density in densities])
    regime = np.repeat(np.arange(len(densities)), lengths)
    eta = np.einsum("ij,ij->i", X, beta[regime])
    return Stream(X, family.sample(rng, eta), beta[regime], regime, family)


def _features(rng: np.random.Generator, n_rows: int, n_features: int) -> np.ndarray:
    block = rng.permutation(np.arange(n_features) * N_BLOCKS // n_features)
    shared = rng.normal(size=(n_rows, N_BLOCKS))[:, block]
    own = rng.normal(size=(n_rows, n_features))
    return np.sqrt(CORRELATION) * shared + np.sqrt(1 - CORRELATION) * own


def _coefficients(rng: np.random.Generator, n_features: int, density: float) -> np.ndarray:
    beta = np.zeros(n_features)
    chosen = rng.choice(n_features, size=round(density * n_features), replace=False)
    beta[chosen] = rng.normal(size=len(chosen))
    return beta


def f_score(coef: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """F of the support after each row against that of the coefficients the row was drawn with; 0 for an empty model.

    >>> import numpy as np
    >>> from streamlasso.simulate import f_score
    >>> f_score(np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]]), np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]))
    array([0.66666667, 0.        ])
    """
    found, true = coef != 0, beta != 0
    return 2 * (found & true).sum(axis=1) / (found.sum(axis=1) + true.sum(axis=1))
