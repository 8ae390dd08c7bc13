# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The rule of the authors' R package."""

import cython
from cython.cimports.streamlasso.tuners.base import Tuner

from streamlasso.core.base.part import is_number


@cython.cclass
class LARS(Tuner):
    """lam -= step_size * (dC/dlam) / sqrt(u'H^{-1}u): the direction is taken at unit length, as the first step of
    LARS is; the rule that the paper's authors ship in their R package.

    >>> from streamlasso.tuners import LARS
    >>> LARS(step_size=0.01).update(0.5, 2.0, 4.0, 1.0, [])
    0.495
    """

    compiled = True
    name = "lars"

    def __init__(self, step_size):
        if not is_number(step_size) or step_size <= 0:
            raise ValueError(f"LARS(step_size={step_size!r}): use a positive number")
        self.step_size = step_size

    def settings(self):
        return {"step_size": self.step_size}

    def move(self, lam, slope, norm, lam_max, state, n):
        return lam - self.step_size * slope / norm if norm > 0.0 else lam
