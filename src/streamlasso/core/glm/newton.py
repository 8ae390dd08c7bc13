# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The minimiser for rows kept whole and a quadratic of the older ones (`likelihood.py`), from a warm start.

1. all rows are expanded to weighted least squares at the point (`gradient.py`, `irls.py`)
2. steps on the members (`quasi_newton.py`), for as long as each halves the largest violation
3. where that does not do: an exchange (`prox_newton.py`), in which features join and leave. It counts if it halves the
   largest violation; if not, or after CAREFUL of them, a line search on the true objective decides how far to go, so
   that the loop ends, and the rows are expanded anew

All p conditions are looked at, with exact slopes, before it stops.
"""

import cython
from cython.cimports.libc.math import INFINITY
from cython.cimports.streamlasso.core.base.record import OK, SINGULAR, UNFINISHED
from cython.cimports.streamlasso.core.glm.gradient import Point
from cython.cimports.streamlasso.core.glm.irls import Expansion
from cython.cimports.streamlasso.core.glm.prox_newton import Exchange
from cython.cimports.streamlasso.core.glm.quasi_newton import MemberSteps, is_settled
from cython.cimports.streamlasso.core.glm.recent_rows import WholeRows
from cython.cimports.streamlasso.core.lasso.objective import Objective

#: Exchanges after which each is searched for the step that lowers the objective.
CAREFUL = cython.declare(cython.int, 10)


@cython.cclass
class Newton:
    """The minimiser for one penalty on one objective; `rows` are current whenever it is asked for anything."""

    def __cinit__(self, objective: Objective, rows: WholeRows):
        self.point = Point(objective, rows)
        self.active = self.point.active
        self.expansion = Expansion(self.point)
        self.members = MemberSteps(self.expansion)
        self.exchange = Exchange(self.expansion)

    def solve_or_restart(self, local):
        """`solve`, and once more from zero where the warm start was no good: rows that were separable until now leave
        coefficients so large that all curvature is gone."""
        status: cython.int = self.solve(local)
        if status == UNFINISHED:
            self.point.restart()
            self.expansion.curved = self.members.posed = False
            status = self.solve(local)
        self.expansion.curved = self.members.posed = False
        return status

    def solve(self, local):
        """Minimise for the current `tau`, until all conditions hold to `tol`."""
        turn: cython.int
        violation: cython.double
        settled: cython.bint
        status: cython.int = OK
        if not self.point.evaluated:
            self.point.evaluate()
        if not self.expansion.curved:
            self._prepare(local)
        for turn in range(100):
            violation = self.members.settle() if turn < CAREFUL and self.expansion.curved else INFINITY
            settled = is_settled(violation) or violation == INFINITY
            if settled:
                self.point.look()
                violation = self.point.violation()
                if violation <= 1.0:
                    return status
            self.exchange.work_on(settled)
            if not self._exchange(local, violation, turn >= CAREFUL, cython.address(status)):
                break
        self.point.look()
        return status if self.point.violation() <= 1.0 else UNFINISHED

    def _prepare(self, local):
        """The curvature of the members at the current point, and its factor."""
        self.expansion.expand_members(local)
        self.active.remember()
        self.expansion.curved = self.active.refactor(local)
        if not self.expansion.curved:
            self.active.recall()

    def _exchange(self, local, violation, careful, status):
        """One exchange. It is kept if it halves the violation or lowers the objective; 0 if it does neither."""
        stale: cython.bint = self.expansion.curved
        self.point.row_by_row()
        if not self.expansion.curved:
            self.expansion.expand(local)
            self.active.broken = True
        self.exchange.pose(local)
        if self.active.solve(local) != OK:
            status[0] = SINGULAR
        self.exchange.step_to_target()
        self.expansion.curved = not self.active.broken
        self.members.pose()
        if not careful and self.members.size <= 0.5 * violation and self.expansion.alike():
            return 1
        self.members.posed = self.expansion.curved = False
        return self.exchange.search() or stale
