# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The objective, stated once; everyone else points here.

    L_t(b0, b, lam) = (1/omega) sum_i w_i loss(y_i, b0 + x_i'b)
                      + lam sum_j [ l1_ratio v_j |b_j| + (1 - l1_ratio)/2 v_j^2 b_j^2 ]

`omega = sum_i w_i`; `v_j = penalty_factor_j scale_j`, with `scale_j` the running weighted standard deviation of
feature j (or 1); b0 is never penalised. This is glmnet's and scikit-learn's convention: `alpha` there is `lam` here.

`Objective` is what a stream has made of L_t: its rows (`moments`, `ring`), its units (`scaler`, `v`), its minimiser
(`active`, `intercept`) and the derivative of the minimiser with respect to lam. `LeastSquares` is the Gaussian family,
for which the moments are sufficient; `likelihood.py` is all others.

**The derivative.** On the active set A, with `s = sign(b_A)` and H_A the Hessian of L_t with the intercept profiled
out,

    db_A/dlam = - H_A^{-1} u,      u = l1_ratio v_A s + (1 - l1_ratio) v_A^2 b_A
    deta/dlam = (x - mean)' db_A/dlam,      norm^2 = u' H_A^{-1} u

where `mean` is the one that belongs to H. With no penalised feature active, it is the derivative of the first one to
enter. The sums carry a factor `omega` throughout (`S = omega H`), hence the `weight` in `_direction`.
"""

from typing import Any, NamedTuple

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, fabs, sqrt
from cython.cimports.streamlasso.core.base.buffers import Doubles
from cython.cimports.streamlasso.core.base.state import Stateful
from cython.cimports.streamlasso.core.base.tape import FINITE, PENALTY, POSITIVE
from cython.cimports.streamlasso.core.lasso.active_set import ActiveSet, ActiveSets
from cython.cimports.streamlasso.core.lasso.members import Scratch
from cython.cimports.streamlasso.core.lasso.moments import Moments, Ring, Scaler, room_for
from cython.cimports.streamlasso.core.linalg.kernels import largest_ratio

from streamlasso.core.base.state import FEATURES, Column, array, numbers

#: A condition of the Gaussian problem holds if it holds to this share of sd(x_j) sd(y).
TOLERANCE = cython.declare(cython.double, 1e-12)
#: A row that weighs less than this after one step weighs nothing in doubles.
LEAST_DECAY = cython.declare(cython.double, 1e-100)
#: The unit of weight is brought back by this factor, a power of four, when it has grown beyond its inverse.
SHRINK = cython.declare(cython.double, 2.0**-200)
#: Ridge has no finite lam_max; glmnet's convention is to take the one of this l1_ratio.
LEAST_L1_RATIO = cython.declare(cython.double, 1e-3)
#: What is left of the curvature of a row that is saturated.
LEAST_CURVATURE = cython.declare(cython.double, 1e-30)


class Problem(NamedTuple):
    """What is minimised, over which rows: the settings of an objective.

    diagonal : whether the derivative takes the Hessian for diagonal
    decay, window : what every weight is multiplied by when a row arrives, and how many rows count, 0 for all
    history : rows that are kept whole, 0 where sums are sufficient
    penalty : asked where it has no l1_ratio (`proximal.py`)
    """

    family: Any
    penalty_factor: np.ndarray
    l1_ratio: float
    fit_intercept: bool
    standardize: bool
    diagonal: bool
    decay: float
    window: int
    history: int
    penalty: Any


def problem_of(settings, memory, history=0):
    """The problem of an engine with these settings and this memory."""
    return Problem(
        settings["family"],
        settings["penalty_factor"],
        1.0 if settings["penalty"].l1_ratio is None else settings["penalty"].l1_ratio,
        settings["fit_intercept"],
        settings["standardize"],
        settings["gradient"] == "diagonal",
        memory.decay,
        memory.length,
        history,
        settings["penalty"],
    )


@cython.cclass
class Objective(Stateful):
    """The rows, the units, the minimiser and its derivative; `learner.py` joins them into the step."""

    STATE = (
        numbers("counts", Column("n_seen"), Column("n_whole"), Column("n_removed"), dtype=np.int64),
        array("units.v", FEATURES, new=np.inf),
        array("units.size", FEATURES),
        array("units.g", FEATURES, exchanged=np.negative),
        numbers("point", Column("intercept", np.negative), Column("lam_max")),
        numbers("unit", Column("unit")),
    )

    def __cinit__(self, problem, *args):
        p: cython.Py_ssize_t = len(problem.penalty_factor)
        self.p = p
        self.family = problem.family
        # Objectives with the same settings share the array.
        self.factors = np.ascontiguousarray(problem.penalty_factor, dtype=float)
        factors: cython.const[cython.double][::1] = self.factors
        self.penalty_factor = cython.address(factors[0])
        self.n_free = np.count_nonzero(self.factors == 0)
        self.l1_ratio = problem.l1_ratio
        self.fit_intercept = problem.fit_intercept
        self.standardize = problem.standardize
        self.diagonal = problem.diagonal
        self.decay = max(problem.decay, LEAST_DECAY)
        self.window = problem.window
        self.history = problem.history
        self.unit = 1.0
        self.tolerance = 0.0
        start: cython.Py_ssize_t = room_for(p, self.window > 0)
        self.room = Doubles(start + 5 * p)
        self.moments = Moments(p, self.fit_intercept, self.window > 0, self.room)
        self.scaler = Scaler(p, self.room, start)
        self.ring = Ring(self.window + 1 if self.window > 0 else self.history, p)
        self.v = self.room.at + start + 3 * p
        self.size = self.v + p
        self.intercept = self.norm = self.lam_max = 0.0
        self.n_seen = self.n_whole = self.n_removed = self.n_slope = 0

    def predict(self, x):
        """eta = b0 + x'b"""
        return self.intercept + self.active.times(x)

    # --- the rows -----------------------------------------------------------------------------------------------

    def absorb(self, x, y, weight):
        """Take a row in; if the window is full, take its oldest row out."""
        self._grow_unit()
        weight *= self.unit
        self.scaler.add(x, y, weight)
        self._admit(x, y, weight)
        self.n_seen += 1
        if self.window > 0 and self.ring.count > self.window:
            self._expel_oldest()
        return 0

    def _grow_unit(self):
        """Weigh the next row more, instead of all older ones less; scale all weights back before they overflow."""
        if self.n_seen == 0:
            return
        self.unit /= self.decay
        while self.unit > 1.0 / SHRINK:
            self.rescale(SHRINK)
            self.unit *= SHRINK

    def curvature_at(self, y, eta):
        """loss'' of a row, large enough to divide by."""
        return max(self.family.curvature_at(y, eta), LEAST_CURVATURE)

    def slopes_at(self, y, eta, slope, curvature):
        """loss' and loss'' of a row, the second large enough to divide by."""
        self.family.slopes_at(y, eta, slope, curvature)
        curvature[0] = max(curvature[0], LEAST_CURVATURE)
        return 0

    def effective_size(self):
        """omega, in units of the newest row."""
        return self.scaler.weight / self.unit

    def keeps_sums(self):
        """Whether all rows in memory are in the moments."""
        return False

    def write_sums(self, sums):
        """The moments, in units of the newest row."""
        self.moments.write_sums(1.0 / self.unit, sums)
        sums.rows = self.effective_size()

    def _admit(self, x, y, weight):
        return 0

    def fold_oldest(self):
        """The oldest row that is kept whole becomes part of the sums."""
        return 0

    def _expel_oldest(self):
        """Subtract the oldest row, or rebuild the sums without it if subtraction would leave rounding errors."""
        slot: cython.Py_ssize_t = self.ring.slot(0)
        folded: cython.bint = self.ring.count > self.n_whole
        weight: cython.double = self.ring.weight[slot]
        curvature: cython.double = self.ring.curvature[slot]
        x: cython.p_double = self.ring.x + slot * self.p
        self.ring.forget_oldest()
        self.n_removed += 1
        if not folded:
            self.n_whole -= 1
        if 2.0 * weight > self.scaler.weight or (folded and 2.0 * curvature > self.moments.weight):
            self._rebuild()
            return
        self.scaler.remove(x, self.ring.y[slot], weight)
        if folded:
            self.actives.absorb(self.moments.remove(x, self.ring.target[slot], curvature), -1.0)
        if self.scaler.stale or self.n_removed >= self.window:
            self._rebuild()

    def _rebuild(self):
        """Compute the sums again from the rows of the window, without the rounding errors of past rows."""
        i: cython.Py_ssize_t
        slot: cython.Py_ssize_t
        self.scaler.clear()
        self.moments.clear()
        for i in range(self.ring.count):
            slot = self.ring.slot(i)
            self.scaler.add(self.ring.x + slot * self.p, self.ring.y[slot], self.ring.weight[slot])
            if i < self.ring.count - self.n_whole:
                self.moments.add(self.ring.x + slot * self.p, self.ring.target[slot], self.ring.curvature[slot])
        self.actives.lose_track()
        self.n_removed = 0

    def join(self, older: Objective, factor: cython.double):
        """The rows of another one too, which are all sums, weighing this much more in these units. Solve after."""
        self.scaler.join(older.scaler, factor)
        self.moments.join(older.moments, factor)
        self.n_seen += older.n_seen
        self.actives.lose_track()

    def rescale(self, factor):
        """All weights times a power of four."""
        self.scaler.scale(factor)
        self.moments.scale(factor)
        self.ring.scale(factor)
        self.actives.scale(factor)

    # --- the units ----------------------------------------------------------------------------------------------

    def _penalty_units(self):
        """v_j, infinite for a feature that must stay out, and size_j, the unit of its condition."""
        j: cython.Py_ssize_t
        size: cython.p_double = self.size
        v: cython.p_double = self.v
        factor: cython.pointer[cython.const[cython.double]] = self.penalty_factor
        self.scaler.deviations(size)
        if self.standardize:
            for j in range(self.p):
                v[j] = factor[j] * size[j] if size[j] > 0.0 else INFINITY
        if not self.fit_intercept:
            for j in range(self.p):
                size[j] = sqrt(size[j] * size[j] + self.scaler.mean[j] * self.scaler.mean[j])
        if not self.standardize:
            for j in range(self.p):
                v[j] = factor[j] if size[j] > 0.0 else INFINITY

    def _ridge(self, active, lam):
        """The l2 part of the penalty as a diagonal added to S."""
        j: cython.Py_ssize_t
        share: cython.double = lam * self.scaler.weight * (1.0 - self.l1_ratio)
        for j in range(self.p):
            active.scratch.ridge[j] = share * self.v[j] * self.v[j] if self.v[j] < INFINITY else 0.0

    def _first_to_enter(self, g):
        """The penalised feature with the largest |g_j|/v_j; -1 if there is none."""
        j: cython.Py_ssize_t
        first: cython.Py_ssize_t = -1
        largest: cython.double = 0.0
        v: cython.p_double = self.v
        for j in range(self.p):
            if fabs(g[j]) > largest * v[j] and v[j] > 0.0:
                largest = fabs(g[j]) / v[j]
                first = j
        return first

    def _lam_max(self, g, allowed):
        """From the gradient of the model without penalised features; `allowed` may be NULL, for all features."""
        largest: cython.double = largest_ratio(self.p, g, self.v, allowed)
        return largest / (self.scaler.weight * max(self.l1_ratio, LEAST_L1_RATIO))

    # --- the derivative -----------------------------------------------------------------------------------------

    def differentiate(self, lam):
        """db/dlam at the current minimiser, with the curvature as it is now."""
        if self.active.has_ridge:
            self._ridge(self.active, lam)
            self.active.broken = True
        self._direction(self.moments)
        return 0

    def _direction(self, m):
        """db/dlam on the members, into slope_b. The solution itself is left alone, also where members turn out to be
        combinations of others: the derivative is then along those that remain."""
        whole: cython.bint = True
        entered: cython.bint = False
        self.norm = 0.0
        self.n_slope = 0
        if self.active.broken and not (self.diagonal and self._penalised()):
            self.active.remember()
            whole = self.active.refactor(m)
        if not self._penalised():
            entered = self._enter_first(m)
        if entered or self._penalised():
            self._solve_direction(m)
        if entered:
            self.active.pop()
        if not whole:
            self.active.recall()

    def _solve_direction(self, m):
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        u: cython.p_double = self.active.scratch.target
        d: cython.p_double = self.active.scratch.slope_b
        self.n_slope = self.active.k
        for i in range(self.n_slope):
            j = self.active.members[i]
            self.active.scratch.slope_members[i] = j
            self.active.scratch.slope_mean[i] = m.mean[j]
            u[i] = self.v[j] * (
                self.l1_ratio * self.active.sign[i] + (1.0 - self.l1_ratio) * self.v[j] * self.active.b[i]
            )
            d[i] = u[i]
        if self.diagonal:
            for i in range(self.n_slope):
                d[i] /= m.diagonal(self.active.members[i]) + self.active.scratch.ridge[self.active.members[i]]
        else:
            self.active.solve_block(d)
        for i in range(self.n_slope):
            self.norm += u[i] * d[i]
            d[i] *= -self.scaler.weight
        self.norm = sqrt(self.norm * self.scaler.weight)

    def _penalised(self):
        """Whether any penalised feature is active."""
        i: cython.Py_ssize_t
        for i in range(self.active.k):
            if self.v[self.active.members[i]] > 0.0:
                return True
        return False

    def _enter_first(self, m):
        """Add the first feature to enter as lam falls from lam_max to the factor, for the derivative only."""
        first: cython.Py_ssize_t = self._first_to_enter(self.active.g)
        if first < 0 or not self.active.append(m, first):
            return False
        self.active._join(first, 1.0 if self.active.g[first] > 0.0 else -1.0, 0.0)
        return True

    def slope_of(self, x):
        """deta/dlam at x."""
        i: cython.Py_ssize_t
        s: cython.double = 0.0
        members: cython.pointer[cython.Py_ssize_t] = self.active.scratch.slope_members
        mean: cython.p_double = self.active.scratch.slope_mean
        b: cython.p_double = self.active.scratch.slope_b
        for i in range(self.n_slope):
            s += (x[members[i]] - mean[i]) * b[i]
        return s

    # --- the minimiser ------------------------------------------------------------------------------------------

    def measure(self):
        """The units of the penalty, and lam_max."""
        return 0

    def solve(self, lam):
        """Find the minimiser at lam; returns the status."""
        return 0

    # --- for checkpoints ----------------------------------------------------------------------------------------

    def travel(self, tape):
        """The rows that are kept are those that the memory and the family would have kept."""
        n_seen: cython.Py_ssize_t = tape.count(cython.address(self.n_seen))
        n_whole: cython.Py_ssize_t = tape.count(cython.address(self.n_whole))
        n_removed: cython.Py_ssize_t = tape.count(cython.address(self.n_removed))
        self._numbers(tape)
        self.scaler.travel(tape)
        self.moments.travel(tape)
        self.ring.travel(tape)
        tape.require(
            tape.n_rows == min(n_seen, self.window if self.window > 0 else self.history)
            and n_whole <= min(tape.n_rows, self.history)
            and (self.window > 0 or n_whole == tape.n_rows)
            and n_removed <= self.window,
            b"the rows that are kept are not those of this memory",
        )
        self.active.travel(tape)
        tape.n_seen = n_seen

    def _numbers(self, tape):
        """Show the tape the arrays of STATE that follow the counts."""
        unit: cython.double
        tape.doubles(self.v, self.p, PENALTY)
        tape.doubles(self.size, self.p, FINITE)
        tape.doubles(self.active.g, self.p, FINITE)
        tape.number(cython.address(self.intercept), FINITE)
        tape.number(cython.address(self.lam_max), PENALTY)
        unit = tape.number(cython.address(self.unit), POSITIVE)
        tape.require(unit <= 1.0 / SHRINK, b"unit must be at most 2^200")

    def parts(self):
        return {"scaler.": self.scaler, "moments.": self.moments, "ring.": self.ring, "active.": self.active}


@cython.cclass
class LeastSquares(Objective):
    """The Gaussian family: S and c are sufficient, and the factor of the active block follows them row by row.

    scratch : that of objectives that are solved in turn; by default its own
    """

    def __cinit__(self, problem, scratch=None, *args):
        scratch = Scratch(self.p) if scratch is None else scratch
        self.active = ActiveSet(self.p, scratch, True)
        self.actives = ActiveSets([self.active])
        self.null = ActiveSet(self.p, scratch, False) if self.n_free > 0 else None
        self.active.has_ridge = self.l1_ratio < 1.0
        self.allowed = cython.NULL

    def keeps_sums(self):
        return True

    def _admit(self, x, y, weight):
        self._enter(x, y, weight, y, weight)
        return 0

    def _enter(self, x, y, weight, target, curvature):
        """Add a row to S and c with this target and curvature; a window keeps it to take it out later."""
        slot: cython.Py_ssize_t
        self.actives.absorb(self.moments.add(x, target, curvature), 1.0)
        if self.window > 0:
            slot = self.ring.push(x, y, weight)
            self.ring.curvature[slot] = curvature
            self.ring.target[slot] = target

    def measure(self):
        j: cython.Py_ssize_t
        g: cython.p_double = self.moments.c
        self._penalty_units()
        if self.n_free > 0:
            for j in range(self.p):
                self.null.scratch.tau[j] = 0.0 if self.penalty_factor[j] == 0.0 and self.v[j] == 0.0 else INFINITY
            self._tolerate(self.null)
            self.null.has_free = self.null.broken = True
            self.null.solve(self.moments)
            g = self.null.g
        self.lam_max = self._lam_max(g, cython.NULL)
        return 0

    def _tolerate(self, active):
        """Write the tolerance of each condition."""
        j: cython.Py_ssize_t
        share: cython.double = TOLERANCE * sqrt(max(self.moments.target_scatter, 0.0)) * sqrt(self.scaler.weight)
        for j in range(self.p):
            active.scratch.tol[j] = share * self.size[j]

    def solve(self, lam):
        status: cython.int
        self._tolerate(self.active)
        status = self.solve_for(self.active, lam)
        self.intercept = self.intercept_of(self.active)
        return status

    def solve_for(self, active, lam):
        """The minimiser at lam, into this active set; after `_tolerate`, once for all with the same scratch space."""
        j: cython.Py_ssize_t
        weight: cython.double = lam * self.scaler.weight * self.l1_ratio
        tau: cython.p_double = active.scratch.tau
        v: cython.p_double = self.v
        for j in range(self.p):
            tau[j] = weight * v[j] if v[j] < INFINITY else INFINITY
        for j in range(self.p if self.allowed != cython.NULL else 0):
            if not self.allowed[j]:
                tau[j] = INFINITY
        active.has_free = self.n_free > 0 or weight == 0.0
        if active.has_ridge:
            self._ridge(active, lam)
        return active.solve(self.moments)

    def intercept_of(self, active):
        """The profiled intercept b0."""
        i: cython.Py_ssize_t
        intercept: cython.double = self.moments.target_mean
        if not self.fit_intercept:
            return 0.0
        for i in range(active.k):
            intercept -= self.moments.mean[active.members[i]] * active.b[i]
        return intercept

    def travel(self, tape):
        Objective.travel(self, tape)
        if self.n_free > 0:
            self.null.travel(tape)

    def parts(self):
        parts = Objective.parts(self)
        return {**parts, "null.": self.null} if self.n_free > 0 else parts
