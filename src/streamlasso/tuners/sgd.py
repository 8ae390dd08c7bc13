# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The paper's equation (7)."""

import cython
from cython.cimports.streamlasso.tuners.base import Tuner

from streamlasso.core.base.part import is_number


@cython.cclass
class SGD(Tuner):
    """lam -= step_size * dC/dlam: the paper's rule. The step is in the units of lam^2 / loss, so it has to be chosen
    for the data.

    >>> from streamlasso.tuners import SGD
    >>> SGD(step_size=0.01).update(0.5, 2.0, 1.0, 1.0, [])
    0.48
    """

    compiled = True
    name = "sgd"

    def __init__(self, step_size):
        if not is_number(step_size) or step_size <= 0:
            raise ValueError(f"SGD(step_size={step_size!r}): use a positive number")
        self.step_size = step_size

    def settings(self):
        return {"step_size": self.step_size}

    def move(self, lam, slope, norm, lam_max, state, n):
        return lam - self.step_size * slope
