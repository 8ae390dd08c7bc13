# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""One memory, many penalties: the solutions at lam = lam_max / n^power, all on one Gram matrix.

**Views.** Columns may be there for some solutions only, as lagged responses or bent features: each view has solutions
of its own for all penalties, in which its columns and those of no view may enter. They share the Gram matrix, and
compete as groups.

Each solution starts from where it stood before the row, and, when it is first needed, from that of its neighbour. One
of little weight in the mixture, or whose memory is long, is solved again every few rows only. The path ends where the
lasso has spent two thirds of its rows on coefficients, and these are many: solutions at smaller penalties are copies of
the last.
Power 0 is the empty model: the mean of what the memory holds. A power, because the best lam falls like n^-1/2: the one
that suits a stream stays the same while the memory grows.

**Other families.** All solutions share one quadratic, so each row is expanded once, before it is fitted, at the eta
where its own fit will put it: at the implicit step e (`implicit.py`) from eta, the average over the solutions by their
weights in the mixture, with the leverage `a = w (1/K + z'S^{-1}z)`. The row enters S and c with weight `w loss''(e)`
and target `e - loss'(e)/loss''(e)`. e is held within the bounds once these have seen the first rows.
"""

import cython
import numpy as np
from cython.cimports.libc.math import pow
from cython.cimports.libc.string import memcpy, memset
from cython.cimports.streamlasso.core.base.buffers import Doubles, copied, fill
from cython.cimports.streamlasso.core.base.checks import FIRST_ROWS, weight_of
from cython.cimports.streamlasso.core.base.record import N_STATUSES, WAITING
from cython.cimports.streamlasso.core.base.tape import ANY, PENALTY, READ, WRITE
from cython.cimports.streamlasso.core.glm.implicit import implicit_step
from cython.cimports.streamlasso.core.lasso.active_set import ActiveSet, ActiveSets
from cython.cimports.streamlasso.core.lasso.members import Scratch
from cython.cimports.streamlasso.core.lasso.objective import LeastSquares
from cython.cimports.streamlasso.core.linalg.kernels import add_weighted, dot, matrix_times
from cython.cimports.streamlasso.core.mixture.groups.base import STALE_ROWS, Experts

from streamlasso.core.base.state import COLUMNS, Column, array, numbers, table
from streamlasso.core.lasso.objective import problem_of

#: A solution that is `age` rows old lacks a share age/n of what its memory knows, and so much of its part in the
#: mixture: it is solved again where weight * age / n exceeds STALE, where its weight is MATTERS, or after STALE_ROWS.
STALE = cython.declare(cython.double, 3e-4)
MATTERS = cython.declare(cython.double, 0.05)
#: A lasso with more active features than this share of its rows interpolates; no smaller penalty is tried, unless it
#: has so few of them that it is cheap.
MOST_ACTIVE = cython.declare(cython.double, 2.0 / 3.0)
CHEAP = cython.declare(cython.double, 50.0)
#: Where ages end.
MOST_ROWS = cython.declare(cython.Py_ssize_t, 2**62)


#: Of the group of all memories, and of that of the longest alone, before the first row.
PRIOR, LONGEST_PRIOR = 0.3, 0.3
#: That a view helps is half as likely as that it does not.
VIEW = 0.5


def join(parts):
    """A path for each memory; all of them are one group, for each view. Many streams change so little that the weights
    which follow a change cost more than they gain, so the longest memory is a group of its own too."""
    if not parts.tuner.competes:
        return
    p, views = parts.n_features, parts.views
    powers = parts.tuner.powers
    scratch = Scratch(p)
    paths = [Path(problem_of(parts.settings, memory), scratch, powers, views.masks()) for memory in parts.memories]
    for view, name in enumerate(views.names()):
        first = parts.n
        for path, memory in zip(paths, parts.memories, strict=True):
            parts.add(PathExperts(path, memory, view))
        likely = 1.0 if view == 0 else VIEW
        parts.group(f"steady{name}", first, parts.n - first, likely * PRIOR)
        if len(parts.memories) > 1:
            parts.group(f"longest{name}", first, len(powers), likely * LONGEST_PRIOR)


@cython.cclass
class Path(LeastSquares):
    """One memory, and a solution for each of `powers`, in each of the views, one after the other."""

    STATE = (
        *LeastSquares.STATE,
        table("solutions", ("n", COLUMNS), Column("lam"), Column("intercepts", np.negative)),
        array("codes", "n", attribute="code", dtype=np.int64),
        array("ages", "n", attribute="age", dtype=np.int64),
        numbers("place", Column("leader"), dtype=np.int64),
    )

    def __cinit__(self, problem, scratch, powers, masks):
        k: cython.Py_ssize_t
        v: cython.Py_ssize_t
        self.n_powers = len(powers)
        self.n_views = len(masks)
        n: cython.Py_ssize_t = self.n_powers * self.n_views
        self.n = n
        self.weights = Doubles(n + self.n_views + (self.n_views * self.p + 7) // 8)
        self.top = self.weights.at + n
        self.masks = cython.cast(cython.pointer[cython.schar], self.top + self.n_views)
        for v in range(self.n_views):
            for k in range(self.p):
                self.masks[v * self.p + k] = masks[v][k]
        self.each = Doubles(5 * n + n * self.p)
        self.quadratic = self.family.quadratic
        self.lam = self.each.at
        self.intercepts = self.lam + n
        self.power = self.intercepts + n
        fill(self.power, n, np.tile(powers, self.n_views))
        self.age = cython.cast(cython.pointer[cython.Py_ssize_t], self.power + n)
        self.code = self.age + n
        self.coef = self.power + 3 * n
        self.actives = ActiveSets(
            [self.active, *(ActiveSet(self.p, self.active.scratch, False) for _ in range(1, self.n))]
        )
        for k in range(self.n):
            self.code[k] = WAITING
            cython.cast(ActiveSet, self.actives.at[k]).has_ridge = self.l1_ratio < 1.0
        self.coming = cython.NULL
        self.none_due = False
        self.predicted = 0.0
        self.leader = 0

    def predict_from(self, first, x, eta):
        """eta of the solutions of a view."""
        k: cython.Py_ssize_t
        if self.n_seen < FIRST_ROWS:
            memcpy(eta, self.intercepts + first, self.n_powers * cython.sizeof(cython.double))
            return
        matrix_times(self.n_powers, self.p, self.p, self.coef + first * self.p, x, eta)
        for k in range(self.n_powers):
            eta[k] += self.intercepts[first + k]

    def add_from(self, first, weight, model):
        """model += sum_k weight_k (b0_k, b_k), for those of a view"""
        k: cython.Py_ssize_t
        for k in range(self.n_powers):
            if weight[k] > 0.0:
                model[0] += weight[k] * self.intercepts[first + k]
        add_weighted(self.n_powers, self.p, weight, self.coef + first * self.p, model + 1)

    def _spread_out(self, k):
        """The k-th solution with its zeros: predictions are made more often than solutions, and zeros cost less than
        to look up which are none."""
        row: cython.p_double = self.coef + k * self.p
        memset(row, 0, self.p * cython.sizeof(cython.double))
        cython.cast(ActiveSet, self.actives.at[k]).add_to(row, 1.0)

    def mark_from(self, first, weight, used):
        """Set `used` of all members of a view's solutions; how many were not set before."""
        k: cython.Py_ssize_t
        n: cython.Py_ssize_t = 0
        for k in range(self.n_powers):
            if weight[k] > 0.0:
                n += cython.cast(ActiveSet, self.actives.at[first + k]).mark(used)
        return n

    # --- the rows -----------------------------------------------------------------------------------------------

    def _admit(self, x, y, weight):
        e: cython.double
        slope: cython.double = 0.0
        curvature: cython.double = 0.0
        if self.coming != cython.NULL:
            self.none_due = self._none_due(self.coming)
            self._follow(self.moments.add(x, y, weight))
            return 0
        if self.quadratic:
            self._enter(x, y, weight, y, weight)
            return 0
        e = implicit_step(self.family, y, self.predicted, self._row_leverage(x, y, weight), self.eta_low, self.eta_high)
        self.slopes_at(y, e, cython.address(slope), cython.address(curvature))
        self._enter(x, y, weight, e - slope / curvature, weight * curvature)
        return 0

    def _follow(self, z):
        """S has become S + z z'. Solutions that are not due have no factor: they are not even looked at, since to fetch
        all of them from memory takes longer than to update the others."""
        k: cython.Py_ssize_t
        for k in range(self.n):
            if self.age[k] == 0:
                cython.cast(ActiveSet, self.actives.at[k]).absorb(z, 1.0)

    def _row_leverage(self, x, y, weight):
        """a of the implicit step; the very first row has no leverage yet, and takes a Newton step."""
        if self.moments.weight > 0.0:
            return weight * self._leverage(x)
        return 1.0 / self.curvature_at(y, self.predicted)

    def _leverage(self, x):
        """1/K + z'S^{-1}z, by the factor of the leading solution."""
        s: cython.double = 1.0 / self.moments.weight if self.fit_intercept else 0.0
        if cython.cast(ActiveSet, self.actives.at[self.leader]).broken:
            return s
        return s + cython.cast(ActiveSet, self.actives.at[self.leader]).spread(x, self.moments.mean)

    # --- the solutions ------------------------------------------------------------------------------------------

    def expect(self, weight):
        """The next row is the last before `settle` with these weights. Where it takes no factor to let a row in, those
        of solutions that will not be due need not follow it. (A full window has still to lose a row by then.)"""
        if self.quadratic and self.window == 0:
            self.coming = weight

    def settle(self, weight):
        """All solutions, after rows were taken in; the first rows have the empty one only, as has one response.

        A solution of little weight waits for its turn, which comes every STALE_ROWS rows.
        """
        k: cython.Py_ssize_t
        size: cython.double
        if self.coming == cython.NULL:
            self.none_due = self._none_due(weight)
        self.coming = cython.NULL
        if self.none_due:
            return 0
        if self.n_seen >= FIRST_ROWS:
            self.measure()
        if self.n_seen < FIRST_ROWS or not self.lam_max > 0.0 or not self.scaler.y_scatter > 0.0:
            self.actives.reset()
            for k in range(self.n):
                self.lam[k] = self.lam_max
                self.intercepts[k] = self.moments.target_mean if self.fit_intercept else 0.0
                self.code[k] = WAITING
            memset(self.coef, 0, self.n * self.p * cython.sizeof(cython.double))
            return 0
        size = max(self.effective_size(), 1.0)
        self._tolerate(self.active)
        self._look_at_views()
        for k in range(self.n):
            if self.age[k] > 0:
                continue
            if k % self.n_powers > 0 and self._saturated(k - 1):
                self._copy(k)
                continue
            self.lam[k] = self.top[k // self.n_powers] * pow(size, -self.power[k])
            self.allowed = self._mask(k // self.n_powers)
            if self.code[k] == WAITING and k % self.n_powers > 0:
                cython.cast(ActiveSet, self.actives.at[k]).follow(cython.cast(ActiveSet, self.actives.at[k - 1]))
            self.code[k] = self.solve_for(cython.cast(ActiveSet, self.actives.at[k]), self.lam[k])
            self.intercepts[k] = self.intercept_of(cython.cast(ActiveSet, self.actives.at[k]))
            self._spread_out(k)
        return 0

    def _mask(self, view):
        """The features of a view; where there is but one, all."""
        if self.n_views == 1:
            return cython.NULL
        return self.masks + view * self.p

    def _look_at_views(self):
        """lam_max of each view."""
        v: cython.Py_ssize_t
        for v in range(self.n_views):
            self.top[v] = self._lam_max(self.null.g if self.n_free > 0 else self.moments.c, self._mask(v))

    def look(self):
        """lam of a memory that has but its first rows, when it is asked for: no solution depends on it, nor on whether
        it was."""
        k: cython.Py_ssize_t
        if 0 < self.n_seen < FIRST_ROWS:
            self.measure()
            self._clear_null()
            for k in range(self.n):
                self.lam[k] = self.lam_max
        return 0

    def _clear_null(self):
        """The order in which features without penalty enter is one of the last digits, and begins with the first row
        that is solved."""
        if self.n_free > 0:
            self.null.reset()

    def _none_due(self, weight):
        """The age of a solution that has to be solved again becomes 0; whether there is none."""
        k: cython.Py_ssize_t
        none: cython.bint = True
        stale: cython.double = STALE * self.effective_size()
        for k in range(self.n):
            self.age[k] += 1
            if (
                weight[k] * self.age[k] > stale
                or weight[k] >= MATTERS
                or self.age[k] >= STALE_ROWS
                or self.code[k] == WAITING
            ):
                self.age[k] = 0
                none = False
            elif self.age[k] == 1:
                # It was solved after the last row. A new factor in the end costs less than one that follows every row.
                cython.cast(ActiveSet, self.actives.at[k]).abandon()
        return none

    def _saturated(self, k):
        """Has the lasso spent its rows? A ridge spreads few degrees of freedom over many features."""
        if cython.cast(ActiveSet, self.actives.at[k]).has_ridge:
            return False
        size: cython.double = cython.cast(ActiveSet, self.actives.at[k]).k
        return size > CHEAP and size > MOST_ACTIVE * self.effective_size()

    def _copy(self, k):
        """The k-th solution is that of its neighbour with the larger penalty."""
        cython.cast(ActiveSet, self.actives.at[k]).follow(cython.cast(ActiveSet, self.actives.at[k - 1]))
        self.lam[k] = self.lam[k - 1]
        self.intercepts[k] = self.intercepts[k - 1]
        self.code[k] = self.code[k - 1]
        self._spread_out(k)

    # --- for checkpoints ----------------------------------------------------------------------------------------

    def parts(self):
        return {**LeastSquares.parts(self), **{f"active{k}.": self.actives.objects[k] for k in range(1, self.n)}}

    def _numbers(self, tape):
        """A solution that overflows has no weight, and does no harm."""
        LeastSquares._numbers(self, tape)
        tape.doubles(self.lam, self.n, PENALTY)
        tape.doubles(self.intercepts, self.n, ANY)
        tape.indices(self.code, self.n, 0, N_STATUSES)
        tape.indices(self.age, self.n, 0, MOST_ROWS)
        tape.index(cython.address(self.leader), self.n)

    def travel(self, tape):
        k: cython.Py_ssize_t
        if tape.mode == WRITE:
            self.look()
        LeastSquares.travel(self, tape)
        for k in range(1, self.n):
            cython.cast(ActiveSet, self.actives.at[k]).travel(tape)
        if tape.mode == READ:
            memset(self.coef, 0, self.n * self.p * cython.sizeof(cython.double))
            for k in range(self.n):
                cython.cast(ActiveSet, self.actives.at[k]).add_to(self.coef + k * self.p, 1.0)


@cython.cclass
class PathExperts(Experts):
    """An expert for each power, in one view. The first of a path's views has its state, the last lets it learn."""

    kind = "lasso"

    @property
    def first_is_empty(self):
        return self.view == 0 and self.path.power[0] == 0.0

    def __cinit__(self, path: Path, memory, view: cython.Py_ssize_t):
        self.path = path
        self.memory = memory
        self.view = view
        self.n = path.n_powers
        self.first = view * self.n

    @property
    def powers(self):
        return copied(self.path.power, self.n)

    def predict(self, x, eta):
        self.path.predict_from(self.first, x, eta)
        return 0

    def learn(self, batch):
        """Rows are expanded at the predictions of the last view."""
        i: cython.Py_ssize_t
        weight: cython.p_double = self.path.weights.at
        expands: cython.bint = not self.path.quadratic
        memcpy(weight + self.first, batch.weight, self.n * cython.sizeof(cython.double))
        if self.view < self.path.n_views - 1:
            return 0
        if expands:
            self.path.leader = self.first + self._leader(batch.weight)
            self.path.eta_low = batch.eta_low
            self.path.eta_high = batch.eta_high
        for i in range(batch.n):
            if weight_of(batch.w, i) > 0.0:
                if i == batch.n - 1:
                    self.path.expect(weight)
                if expands:
                    self.path.predicted = self._average(batch.etas + i * batch.stride, batch.weight)
                self.path.absorb(batch.X + i * self.path.p, batch.y[i], weight_of(batch.w, i))
        self.path.settle(weight)
        return 0

    def _average(self, etas, weight):
        """The average prediction; that of the empty model where none has weight."""
        k: cython.Py_ssize_t
        total: cython.double = 0.0
        eta: cython.double = 0.0
        for k in range(self.n):
            if weight[k] > 0.0:
                eta += weight[k] * etas[k]
                total += weight[k]
        return eta / total if total > 0.0 else etas[0]

    def _leader(self, weight):
        k: cython.Py_ssize_t
        best: cython.Py_ssize_t = 0
        for k in range(1, self.n):
            if weight[k] > weight[best]:
                best = k
        return best

    def rest(self):
        self.path.actives.trim()

    def add_coef(self, weight, model):
        self.path.add_from(self.first, weight, model)
        return 0

    def mark(self, weight, used):
        return self.path.mark_from(self.first, weight, used)

    def lam_of(self, k):
        self.path.look()
        return self.path.lam[self.first + k]

    def sum_lam(self, weight):
        self.path.look()
        return dot(self.n, weight, self.path.lam + self.first)

    def lam_max_of(self):
        self.path.look()
        return self.path.lam_max

    def size_of(self):
        return self.path.effective_size()

    def keeps_sums(self):
        return self.path.keeps_sums()

    def write_sums(self, sums):
        self.path.write_sums(sums)

    def code_of(self, k):
        return self.path.code[self.first + k]

    def travel(self, tape):
        if self.view == 0:
            self.path.travel(tape)

    def parts(self):
        return {"": self.path} if self.view == 0 else {}
