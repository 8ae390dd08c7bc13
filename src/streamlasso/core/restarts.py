# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""When groups of experts began, and which of them restarts next.

A memory that never forgets but began right after the last change is the best there is. When that was is unknown, so of
each kind one restarts every EVERY rows, or less often where few may: no more than half of them should be young. Each is
kept until it has had YOUNG rows; then the one with the lowest weight is the next to restart. Those that began just
after a change stay for as long as they predict well.
"""

import cython
import numpy as np
from cython.cimports.streamlasso.core.pointers import Doubles
from cython.cimports.streamlasso.core.shares import Shares
from cython.cimports.streamlasso.core.state import Stateful
from cython.cimports.streamlasso.core.values import FIRST_ROWS

from streamlasso.core.state import array

#: Rows from one restart to the next, at least.
EVERY = cython.declare(cython.Py_ssize_t, 4)
#: A group is young, and stays, until it has had this many rows: FIRST_ROWS to learn from and a few to be evaluated on.
YOUNG = cython.declare(cython.Py_ssize_t, FIRST_ROWS + 2)


def _pools(groups):
    """(first, end, rows between restarts) of the groups of each kind that restart."""
    kinds = [group.kind if group.restarts else None for group in groups]
    found = []
    for kind in dict.fromkeys(filter(None, kinds)):
        size = kinds.count(kind)
        found.append((kinds.index(kind), kinds.index(kind) + size, max(EVERY, -(-2 * YOUNG // size))))
    return found


@cython.cclass
class Restarts(Stateful):
    """The groups that stay, which come first and have begun, and those of each kind that restart."""

    STATE = (array("began", "M", dtype=np.int64),)

    def __cinit__(self, groups, shares: Shares):
        i: cython.Py_ssize_t
        m: cython.Py_ssize_t
        pools = _pools(groups)
        self.M = len(groups)
        self.shares = shares
        self.n_pools = len(pools)
        self.n_permanent = pools[0][0] if pools else self.M
        self.room = Doubles(self.M + 3 * self.n_pools)
        self.began = cython.cast(cython.pointer[cython.Py_ssize_t], self.room.at)
        self.pools = cython.cast(cython.pointer[Pool], self.began + self.M)
        for m in range(self.M):
            self.began[m] = 0 if m < self.n_permanent else -1
        for i in range(self.n_pools):
            self.pools[i].first, self.pools[i].end, self.pools[i].every = pools[i]

    def due(self, pool, n_seen):
        """The group that restarts after this row: one that is not there yet, or the one with the lowest weight of those
        that are not young any more; -1 where none does."""
        m: cython.Py_ssize_t
        chosen: cython.Py_ssize_t = -1
        if n_seen < FIRST_ROWS or n_seen % pool.every != 0:
            return -1
        for m in range(pool.first, pool.end):
            if self.began[m] < 0:
                return m
            if n_seen - self.began[m] > YOUNG and (
                chosen < 0 or self.shares.weight_of(m) < self.shares.weight_of(chosen)
            ):
                chosen = m
        return chosen

    def travel(self, tape):
        self.travelled(tape)

    def travelled(self, tape):
        """When groups began, as on the tape while that is checked. `tape.n_seen` comes before."""
        m: cython.Py_ssize_t
        began: cython.pointer[cython.const[cython.Py_ssize_t]]
        began = tape.indices(self.began, self.M, -1, tape.n_seen + 1)
        for m in range(self.n_permanent):
            tape.require(began[m] >= 0, b"a memory that stays is not there")
        return began
