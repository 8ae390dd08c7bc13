# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""A penalty that stays where it is put."""

import cython
from cython.cimports.streamlasso.tuners.base import Tuner

from streamlasso.core.base.part import is_number


@cython.cclass
class Fixed(Tuner):
    """lam stays where it is: the baseline everyone knows.

    >>> from streamlasso import RAPRegressor
    >>> from streamlasso.tuners import Fixed
    >>> RAPRegressor(tuner=Fixed(0.1)).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0]).lambda_
    0.1
    """

    compiled = True
    name = "fixed"
    clamped = False

    def __init__(self, lam):
        if not is_number(lam) or lam < 0:
            raise ValueError(f"Fixed(lam={lam!r}): use a number, 0 or larger")
        self.lam = lam

    @property
    def lambda_init(self):
        return self.lam

    def settings(self):
        return {"lam": self.lam}

    def move(self, lam, slope, norm, lam_max, state, n):
        return self.lam
