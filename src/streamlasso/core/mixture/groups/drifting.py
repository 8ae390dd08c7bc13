# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Coefficients that move all the time: a ridge regression of which each row makes what is known a little less certain.

The lassos that forget fast have few rows, and so need a large penalty. A ridge that drifts (`ridge.py`) keeps what it
knows and loses certainty only; the level moves faster than the other coefficients.
"""

import cython
from cython.cimports.streamlasso.core.mixture.groups.base import Group
from cython.cimports.streamlasso.core.mixture.groups.ridge import RENEWED, Ridge

from streamlasso.core.mixture.groups.ridge import ridges_of

#: Of the group before the first row.
PRIOR = 0.3
#: What the coefficients lose per row, and the level: all but 50 and 10 rows.
LOST = cython.declare(cython.double, 0.02)
OF_LEVEL = cython.declare(cython.double, 0.1)


def join(parts):
    """Where experts may restart, and ridges are wanted; a class says too little of coefficients that move."""
    if parts.restarts and parts.tuner.competes and parts.tuner.runs > 0 and not parts.family.binary:
        first, ridges = parts.n, ridges_of(parts, 1)
        parts.groups.append(Drifting("drifting", first, 1, PRIOR, parts.carry(), *ridges))


@cython.cclass
class Drifting(Group):
    """One ridge. In the first rows, which show the scales of the features, it is the mean response."""

    def __cinit__(self, name, first, n, prior, carry, ridge: Ridge):
        self.waits = True
        self.ridge = ridge
        ridge.drifts = True

    def see(self, stream, eta, n_seen):
        if n_seen <= RENEWED:
            self.ridge.begin(stream, eta, False)
        else:
            self.ridge.drift(stream, LOST, OF_LEVEL)
        return 0
