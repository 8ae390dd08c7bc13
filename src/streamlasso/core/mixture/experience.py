# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""No group of experts speaks far beyond what it has seen.

A memory of few rows in which a feature hardly moved may give it a large coefficient. Its predicted means are held
within the range of the responses that it has seen, widened by REACH, and widened to the prediction of the first group,
which has seen the most, and is not held: where that one follows, the others may. What is held is what an expert is
evaluated on.

Classes have no range to leave, but a group that has seen n_1 rows of class 1 knows little about what is certain to be
class 1. Had all these rows had the same features, and none of class 0 had, their odds would be 2 n_1 + 1 (the estimate
of Krichevsky and Trofimov). Features can say more together than one of them does; CONFIDENCE is how much:

    -CONFIDENCE log(2 n_0 + 1)  <=  eta  <=  CONFIDENCE log(2 n_1 + 1)

Without this, quadratics that have met one rare event predict the next with certainty: rows of the other class have next
to no curvature there, and do not resist. Here the first group is held too. Models of the exact likelihood do not
overshoot like that, and are not held.
"""

import cython
from cython.cimports.libc.math import log
from cython.cimports.streamlasso.core.base.buffers import Doubles
from cython.cimports.streamlasso.core.base.checks import FIRST_ROWS
from cython.cimports.streamlasso.core.base.state import Stateful
from cython.cimports.streamlasso.core.base.tape import FINITE, WEIGHT
from cython.cimports.streamlasso.core.mixture.bounds import Bounds

from streamlasso.core.base.state import array

#: How far beyond the responses that it has seen a group may predict, as a share of their range; with few rows further,
#: by 1/n^2 of the range of all.
REACH = cython.declare(cython.double, 0.2)
#: 1 serves streams where events are rare, and costs up to a fifth where classes have no noise or come in runs.
CONFIDENCE = cython.declare(cython.double, 2.0)


def _other_class(experience):
    """Of two classes: how often each was seen."""
    return experience[:, [HIGH, LOW, ROWS_SEEN]]


@cython.cclass
class Experience(Stateful):
    """What each group has seen of the responses, and its predictions held back to that."""

    STATE = (array("experience", "M", N_EXPERIENCE, exchanged=_other_class),)

    def __cinit__(self, groups, family, bounds: Bounds):
        m: cython.Py_ssize_t
        self.M = len(groups)
        self.family = family
        self.bounds = bounds
        self.scaled = family.has_scale
        self.linked = not family.quadratic
        self.room = Doubles((N_EXPERIENCE + 1) * self.M + (self.M + 7) // 8)
        self.seen = self.room.at
        self.fades = self.seen + N_EXPERIENCE * self.M
        self.free = cython.cast(cython.pointer[cython.schar], self.fades + self.M)
        for m in range(self.M):
            self.fades[m] = 1.0 - groups[m].memory.decay
            self.free[m] = m == 0 if self.scaled else groups[m].exact

    # --- what was seen ------------------------------------------------------------------------------------------

    def see(self, y):
        """A response, by all memories."""
        m: cython.Py_ssize_t
        for m in range(self.M):
            self._see(self.seen + m * N_EXPERIENCE, self.fades[m], y)

    def _see(self, seen, fade, y):
        """The range of the responses; where a group forgets, it shrinks towards the newest.

        Of classes, how often each was seen.
        """
        if seen[ROWS_SEEN] == 0.0:
            seen[LOW] = seen[HIGH] = y if self.scaled else 0.0
        if self.scaled:
            seen[LOW] = min(y, seen[LOW] + fade * (y - seen[LOW]))
            seen[HIGH] = max(y, seen[HIGH] + fade * (y - seen[HIGH]))
        else:
            seen[LOW] = (1.0 - fade) * seen[LOW] + 1.0 - y
            seen[HIGH] = (1.0 - fade) * seen[HIGH] + y
        seen[ROWS_SEEN] = (1.0 - fade) * seen[ROWS_SEEN] + 1.0

    def forget(self, m):
        """A group restarts."""
        self.seen[m * N_EXPERIENCE + ROWS_SEEN] = 0.0

    # --- holding back -------------------------------------------------------------------------------------------

    def reference(self, n, weight, etas):
        """The average prediction of the first group's n experts, each within the bounds: a mean, of classes eta."""
        k: cython.Py_ssize_t
        eta: cython.double = 0.0
        total: cython.double = 0.0
        for k in range(n):
            eta += weight[k] * self.bounds.clip_eta(etas[k])
            total += weight[k]
        eta = eta / total if total > 0.0 else self.bounds.clip_eta(etas[0])
        return self.family.mean_at(eta) if self.scaled else eta

    def hold_back(self, m, reference, n, etas):
        """The predictions of the m-th group's n experts, no further out than it has seen or than `reference`."""
        k: cython.Py_ssize_t
        low: cython.double = self.seen[m * N_EXPERIENCE + LOW]
        high: cython.double = self.seen[m * N_EXPERIENCE + HIGH]
        rows: cython.double = self.seen[m * N_EXPERIENCE + ROWS_SEEN]
        room: cython.double
        if rows == 0.0 or self.free[m] or (self.scaled and self.bounds.n < FIRST_ROWS):
            return 0
        if self.scaled:
            room = REACH * (high - low) + (self.bounds.y_high - self.bounds.y_low) / (rows * rows)
            low = self._eta_of(min(low, reference) - room)
            high = self._eta_of(max(high, reference) + room)
        else:
            low = min(-CONFIDENCE * log(2.0 * low + 1.0), reference)
            high = max(CONFIDENCE * log(2.0 * high + 1.0), reference)
        for k in range(n):
            # What is no number stays so.
            if etas[k] < low:
                etas[k] = low
            elif etas[k] > high:
                etas[k] = high
        return 0

    def _eta_of(self, mean):
        """The eta of a mean; where there is a link, no mean beyond the bounds has one."""
        if not self.linked:
            return mean
        mean = max(mean, self.family.mean_at(self.bounds.eta_low))
        mean = min(mean, self.family.mean_at(self.bounds.eta_high))
        return self.family.best_eta(mean, self.bounds.eta_low, self.bounds.eta_high)

    def travel(self, tape):
        tape.doubles(self.seen, self.M * N_EXPERIENCE, FINITE if self.scaled else WEIGHT)
