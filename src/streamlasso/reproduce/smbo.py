"""Fixed (SMBO): one lam for the stream, found by Bayesian optimisation of its cross-validated loss.

As in the paper: a Gaussian process with a squared exponential kernel, and expected improvement. The criterion is that
of `offline.cross_validated_lam`, so that the two differ only in how they search.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from streamlasso.families import Family
from streamlasso.reproduce.offline import LEAST_SHARE, criterion

#: Evaluations: first a coarse grid over the whole range, then by expected improvement.
N_FIRST, N_SEARCHED = 4, 6
#: How expected improvement is maximised: so many random lams, then a local search from the best of them.
N_RANDOM, N_LOCAL = 200, 1
#: The kernel's length, in units of the whole range of log lam.
LENGTH, LENGTHS = 0.2, (0.02, 2.0)
PACKAGE = "bayes_opt"


def refuse_without_package() -> None:
    """An error that names the extra, if the optimiser is not installed."""
    if find_spec(PACKAGE) is None:
        raise ImportError(
            'the SMBO baseline needs the package bayesian-optimization: pip install "streamlasso[reproduce]"'
        )


def smbo_lam(X: np.ndarray, y: np.ndarray, family: Family, *, r: float = 1.0, looks: int = 1) -> float:
    """The lam of the smallest 10-fold cross-validated loss found in ten evaluations; `r` and `looks` as there.

    >>> import numpy as np
    >>> from streamlasso.reproduce.offline import cross_validated_lam
    >>> from streamlasso.reproduce.smbo import smbo_lam
    >>> from streamlasso.families import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 20))
    >>> y = X[:, 0] + rng.normal(size=100)
    >>> 0.7 < smbo_lam(X, y, Gaussian()) / cross_validated_lam(X, y, Gaussian()) < 1.4
    True
    """
    refuse_without_package()
    from bayes_opt import BayesianOptimization

    lam_max, losses = criterion(X, y, family, r=r, looks=looks)

    def gain(share: float) -> float:
        """`share` runs from lam_max, at 0, to the end of the grid of cross-validation, at 1, on a log scale."""
        return -float(losses(np.array([lam_max * LEAST_SHARE**share]))[0])

    search = BayesianOptimization(gain, {"share": (0.0, 1.0)}, _expected_improvement(), random_state=0, verbose=0)
    search.set_gp_params(kernel=RBF(LENGTH, LENGTHS), n_restarts_optimizer=0)
    for share in np.linspace(0.0, 1.0, N_FIRST):
        search.probe({"share": float(share)}, lazy=True)
    search.maximize(init_points=0, n_iter=N_SEARCHED)
    assert search.max is not None
    return float(lam_max * LEAST_SHARE ** search.max["params"]["share"])


def _expected_improvement() -> Any:
    from bayes_opt.acquisition import ExpectedImprovement

    class Quick(ExpectedImprovement):
        """One dimension needs few random points."""

        def suggest(self, *args: Any, **settings: Any) -> Any:
            return super().suggest(*args, **{**settings, "n_random": N_RANDOM, "n_smart": N_LOCAL})

    return Quick(xi=0.0)
