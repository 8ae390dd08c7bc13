# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The groups of a mixture learn, one after the other or divided between two threads (`two_cores.py`).

Groups share nothing that they write to: which thread learns which of them, and when, changes no bit. Those that take
the most time are taken first, from both ends of a list, and the threads meet at those that take the least.
"""

import cython
from cython.cimports.streamlasso.core.experts.base import Batch, Experts
from cython.cimports.streamlasso.core.pointers import Doubles, Pointers
from cython.cimports.streamlasso.core.shares import Shares
from cython.cimports.streamlasso.core.two_cores import Work, add, together

from streamlasso.core.active_set import MOST_SHARED

#: Groups times p^2 from which on two threads learn a row together: p = 100 for the default, where the groups take 59 of
#: 72 us. Where two begin to pay has not been measured on a quiet machine; it may be at fewer.
WORTH_TWO = cython.declare(cython.Py_ssize_t, 160_000)


def _from_both_ends(groups):
    """Places of the groups, for two threads that begin at either end and meet at those that take the least time."""
    by_time = sorted(range(len(groups)), key=lambda m: (not groups[m].exact, not groups[m].sparse))
    return by_time[::2] + by_time[1::2][::-1]


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def _learn_share_of(division: cython.p_void, second: cython.bint) -> cython.int:
    return cython.cast(Division, division)._learn_share(second)


@cython.cclass
class Division:
    """Groups of experts on p features. Two threads must be worth it, and may not be where families or tuners are
    written in Python, or where groups of few features share the space that they solve in."""

    def __cinit__(self, p: cython.Py_ssize_t, each: Pointers, shares: Shares, compiled: cython.bint):
        place: cython.Py_ssize_t
        self.each = each
        self.shares = shares
        self.divides = compiled and each.n > 1 and p > MOST_SHARED and each.n * p * p >= WORTH_TWO
        if self.divides:
            self.room = Doubles(each.n)
            self.order = cython.cast(cython.pointer[cython.Py_ssize_t], self.room.at)
            for place, m in enumerate(_from_both_ends(each.objects)):
                self.order[place] = m

    def learn(self, batch):
        """All groups that are there learn the rows; `batch.etas` are those of all experts."""
        m: cython.Py_ssize_t
        if self.divides:
            self.batch = batch
            self.taken = 0
            together(cython.cast(Work, _learn_share_of), cython.cast(cython.p_void, self))
        else:
            for m in range(self.each.n):
                self._learn_group(m, batch)
        return 0

    def _learn_share(self, second):
        """Groups from one end of their order, until this thread and the one at the other end have taken all."""
        place: cython.Py_ssize_t = self.each.n - 1 if second else 0
        while add(cython.address(self.taken), 1) < self.each.n:
            self._learn_group(self.order[place], self.batch)
            place += -1 if second else 1
        return 0

    def _learn_group(self, m, batch):
        """With the predictions and the weights of its own experts."""
        own: Batch = batch[0]
        if not self.shares.alive[m]:
            return 0
        own.etas += self.shares.first[m]
        own.weight = self.shares.total + self.shares.first[m]
        return cython.cast(Experts, self.each.at[m]).learn(cython.address(own))
