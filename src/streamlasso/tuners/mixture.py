# cython: language_level=3
"""Penalties and memories that compete."""

from itertools import pairwise

import cython
from cython.cimports.streamlasso.tuners.base import Tuner

from streamlasso.core.base.part import is_number

#: The best penalty falls about like n^-1/2, so the powers are densest around that. At lam_max / n a penalty weighs as
#: much as one row, and for nearly exact responses even that is too large.
POWERS = (0.0, 0.3, 0.6, 1.0, 1.6)
#: Memories of 20, 100 and 500 rows, beside the one that never forgets.
FACTORS = (0.95, 0.99, 0.998)
#: With fewer, none would grow old.
LEAST_RUNS = 4


@cython.cclass
class Mixture(Tuner):
    """Experts with different penalties and memories, averaged by how well they have predicted; no step size.

    A `memory` given to the estimator is obeyed, and the experts then differ by their penalty alone. For families other
    than the Gaussian one or two models of the exact likelihood, with `LogRMS`, compete as well. docs/mixture.md has the
    rule.

    Parameters
    ----------
    powers : tuple of float, default=(0.0, 0.3, 0.6, 1.0, 1.6)
        With n rows in its memory an expert has lam = lam_max / n^power; 0 is the mean of the response.
    factors : tuple of float, default=(0.95, 0.99, 0.998)
        A memory with each of these forgetting factors, beside one that never forgets.
    runs : int, default=8
        How many ridge regressions are kept that began at different rows, for streams that change at once; 0 for none,
        and none that drifts.
    views : dict of str to list of int, default=None
        Columns that compete, by the name of their view: {"lags": [8, 9]} has experts with columns 8 and 9, and others
        without. Columns in no view are there for all. Their Gram matrix is shared, so it costs what its columns cost.
    carry : bool, default=True
        Whether the last residuals and responses may move the next prediction, where they have helped.
        Not where there is no intercept.

    Examples
    --------
    >>> from streamlasso.tuners import Mixture
    >>> Mixture(powers=(0.0, 0.5))
    Mixture(powers=(0.0, 0.5), factors=(0.95, 0.99, 0.998), runs=8, views=None, carry=True)
    """

    compiled = True
    name = "mixture"
    competes = True

    def __init__(self, powers=POWERS, factors=FACTORS, runs=8, views=None, carry=True):
        if not _are_powers(powers):
            raise ValueError(f"Mixture(powers={powers!r}): use one number or more, each in [0, 2]")
        if any(a >= b for a, b in pairwise(powers)):
            raise ValueError(f"Mixture(powers={powers!r}): they must be increasing")
        if not isinstance(factors, (tuple, list)) or not all(0 < r <= 1 for r in _numbers(factors)):
            raise ValueError(f"Mixture(factors={factors!r}): use forgetting factors, each in (0, 1]")
        if isinstance(runs, bool) or not isinstance(runs, int) or not (runs == 0 or LEAST_RUNS <= runs <= 1000):
            raise ValueError(f"Mixture(runs={runs!r}): use 0, or a whole number from {LEAST_RUNS} to 1000")
        self.powers = tuple(powers)
        self.factors = tuple(factors)
        if not isinstance(carry, bool):
            raise ValueError(f"Mixture(carry={carry!r}): use True or False")
        self.runs = runs
        self.views = _checked_views(views)
        self.carry = carry

    def settings(self):
        return {
            "powers": self.powers,
            "factors": self.factors,
            "runs": self.runs,
            "views": self.views,
            "carry": self.carry,
        }

    def move(self, lam, slope, norm, lam_max, state, n):
        return lam


def _checked_views(views):
    if views is None:
        return None
    for name, columns in views.items() if isinstance(views, dict) else [(views, None)]:
        if not isinstance(name, str) or not isinstance(columns, (list, tuple)) or not columns:
            raise ValueError(f"Mixture(views={views!r}): use a dict of names to lists of columns")
        if not all(isinstance(j, int) and not isinstance(j, bool) and j >= 0 for j in columns):
            raise ValueError(f"Mixture(views={views!r}): columns are whole numbers, counted from 0")
    return {name: list(columns) for name, columns in views.items()}


def _are_powers(values):
    return isinstance(values, (tuple, list)) and len(values) > 0 and all(0 <= x <= 2 for x in _numbers(values))


def _numbers(values):
    """The values; what is not a number becomes -1, which no check accepts."""
    return [value if is_number(value) else -1 for value in values]
