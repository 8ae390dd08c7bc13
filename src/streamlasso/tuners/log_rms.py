# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Gradient descent on log lam, free of all scales: the rule for one model that has nothing to set."""

import cython
from cython.cimports.libc.math import exp, hypot, sqrt
from cython.cimports.streamlasso.tuners.base import Tuner

from streamlasso.core.base.part import is_number

#: How fast the running mean of squares forgets.
RMS_DECAY = cython.declare(cython.double, 0.99)
#: The smallest lam, as a share of lam_max: glmnet's.
LEAST_SHARE = cython.declare(cython.double, 1e-4)


@cython.cclass
class LogRMS(Tuner):
    """log lam -= step_size * d / rms(d), with d = dC/dlog lam = lam dC/dlam and rms its running root mean square.

    Multiplying y or X by any number changes nothing but the units of lam. The running mean forgets by .99 per step
    and is corrected for its start. lam moves no lower than 1e-4 of the lam_max before the row, glmnet's smallest, from
    where it can come back.

    >>> from streamlasso.tuners import LogRMS
    >>> LogRMS().settings()
    {'step_size': 0.05}
    """

    compiled = True
    name = "logrms"
    n_state = 2

    def __init__(self, step_size=0.05):
        if not is_number(step_size) or step_size <= 0:
            raise ValueError(f"LogRMS(step_size={step_size!r}): use a positive number")
        self.step_size = step_size

    def settings(self):
        return {"step_size": self.step_size}

    def move(self, lam, slope, norm, lam_max, state, n):
        d: cython.double = lam * slope
        state[0] = hypot(sqrt(RMS_DECAY) * state[0], sqrt(1.0 - RMS_DECAY) * d)
        state[1] = RMS_DECAY * state[1] + (1.0 - RMS_DECAY)
        if state[0] > 0.0:
            lam *= exp(-self.step_size * sqrt(state[1]) * (d / state[0]))
        return max(lam, LEAST_SHARE * lam_max)
