# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The minimiser for rows kept whole and a quadratic of the older ones (`likelihood.py`), from a warm start.

**The expansion.** At (b0, b) let G be minus the gradient of the smooth part, and expand all rows to weighted least
squares. With the intercept profiled out its Gram matrix is

    S = S_old + K_old (m_old - m)(m_old - m)' + sum_whole k_i (x_i - m)(x_i - m)',     k_i = w_i loss''(eta_i),
    K m = K_old m_old + sum_whole k_i x_i

G is taken about the running mean mu, so that large offsets of a feature do not drown it.

**Steps on the members.** From one row to the next the members and their signs mostly stay. Their conditions are then
smooth equations in e = b0 + m'b and b,

    F = (G_0,  G_A + (mu - m)_A G_0 - tau_A s_A) = 0,      with the Jacobian  - diag(K, S_AA)

where the rows were expanded. Newton steps take that curvature as it was when the row came in (the derivative of the
minimiser needs its factor anyway), corrected by the pairs (step, change of F) of the steps so far, as in L-BFGS: no
Gram matrix and no factor is made again. A step counts if it halves the largest violation, changes no sign, and leaves
the curvature about as it was.

**Exchanges.** Where a sign would change, or one of the other features violates its condition, a step of proximal Newton
follows: with `c = S b + G - m G_0` the lasso solution of the expansion (`active_set.py`) is the target. Only members
and features that violate their condition take part; S gets a row for each when it first does. The step counts if it
halves the largest violation. If not, or after CAREFUL of them, a line search on the true objective decides how far to
go, so that the loop ends, and the rows are expanded anew.

All p conditions are looked at, with exact slopes, before it stops.
"""

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, fabs
from cython.cimports.libc.stdlib import calloc, free
from cython.cimports.libc.string import memcpy, memset
from cython.cimports.streamlasso.core.active_set import ActiveSet, Scratch
from cython.cimports.streamlasso.core.kernels import (
    add_rows,
    axpy,
    centred_column,
    centred_product,
    dot,
    dot_rows,
    long_dot,
    matrix_times,
    roots,
    subtract_centred,
    sum_of_sizes,
    weigh,
)
from cython.cimports.streamlasso.core.objective import Objective
from cython.cimports.streamlasso.core.pointers import Doubles
from cython.cimports.streamlasso.core.record import OK, SINGULAR, UNFINISHED

#: What rounding leaves of a sum, as a share of the sum of its absolute terms.
LOST_DIGITS = cython.declare(cython.double, 1e-14)
#: Steps on the members go on until the violation is this share of what is tolerated.
SETTLED_MEMBERS = cython.declare(cython.double, 0.9)
#: By which factor the curvature may change in a step that is not searched.
ALIKE = cython.declare(cython.double, 4.0)
#: Exchanges after which each is searched for the step that lowers the objective.
CAREFUL = cython.declare(cython.int, 10)

DOUBLE = cython.declare(cython.size_t, cython.sizeof(cython.double))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _worse(largest: cython.double, excess: cython.double, tol: cython.double) -> cython.double:
    """The larger of two violations in units of what is tolerated; what is not a number violates everything."""
    if excess <= largest * tol:
        return largest
    return excess / tol if excess == excess and tol > 0.0 else INFINITY


@cython.cclass
class WholeRows:
    """The rows kept whole, oldest first: responses, weights, and by feature x_j less `origin`, its running mean."""

    def __cinit__(self, objective: Objective):
        p: cython.Py_ssize_t = objective.p
        n: cython.Py_ssize_t = max(min(objective.history, objective.ring.capacity), 1)
        self.objective = objective
        self.ring = objective.ring
        self.y = np.zeros(n)
        self.weight = np.zeros(n)
        self.zeros = None if objective.fit_intercept else Doubles(p)
        self.origin = objective.scaler.mean if self.zeros is None else self.zeros.at
        self.level_of = np.zeros(n, dtype=np.intp)
        self.columns = np.zeros((p, n))
        self.there = np.zeros(p, dtype=np.int8)
        self.current = False

    def refresh(self):
        """The rows as they are now; columns are made when they are asked for."""
        i: cython.Py_ssize_t
        slot: cython.Py_ssize_t
        n: cython.Py_ssize_t = self.objective.n_whole
        if self.current:
            return
        self.first = self.ring.slot(self.ring.count - n) if n > 0 else 0
        for i in range(n):
            slot = self.first + i if self.first + i < self.ring.capacity else self.first + i - self.ring.capacity
            self.y[i] = self.ring.y[slot]
            self.weight[i] = self.ring.weight[slot]
        if not self._find_two_levels():
            self._find_levels()
        memset(cython.address(self.there[0]), 0, self.there.shape[0])
        self.current = True

    def _find_two_levels(self):
        """As `_find_levels`, where there are no more than two; without branches, as classes come at random."""
        i: cython.Py_ssize_t = 0
        level: cython.Py_ssize_t
        next_level: cython.Py_ssize_t
        more: cython.Py_ssize_t = 0
        n: cython.Py_ssize_t = self.objective.n_whole
        first: cython.double = self.y[0]
        second: cython.double
        even: cython.double = 0.0
        odd: cython.double = 0.0
        even_second: cython.double = 0.0
        odd_second: cython.double = 0.0
        while i < n and self.y[i] == first:
            i += 1
        second = self.y[i] if i < n else first
        for i in range(0, n - 1, 2):
            level = self.y[i] != first
            next_level = self.y[i + 1] != first
            more += level & (self.y[i] != second) | next_level & (self.y[i + 1] != second)
            self.level_of[i] = level
            self.level_of[i + 1] = next_level
            even += self.weight[i] * (1 - level)
            odd += self.weight[i + 1] * (1 - next_level)
            even_second += self.weight[i] * level
            odd_second += self.weight[i + 1] * next_level
        if n % 2 == 1:
            level = self.y[n - 1] != first
            more += level & (self.y[n - 1] != second)
            self.level_of[n - 1] = level
            even += self.weight[n - 1] * (1 - level)
            even_second += self.weight[n - 1] * level
        self.levels[0] = first
        self.levels[1] = second
        self.level_weight[1] = even_second + odd_second
        self.level_weight[0] = even + odd
        self.n_levels = 0 if n == 0 else 1 if second == first else 2
        return more == 0

    def _find_levels(self):
        """The different responses, and which of them each row has; none where they are more than a few."""
        i: cython.Py_ssize_t
        level: cython.Py_ssize_t
        self.n_levels = 0
        for level in range(MOST_LEVELS):
            self.level_weight[level] = 0.0
        for i in range(self.objective.n_whole):
            level = self.n_levels > 0 and self.levels[0] != self.y[i]
            while level < self.n_levels and self.levels[level] != self.y[i]:
                level += 1
            if level == MOST_LEVELS:
                self.n_levels = 0
                return
            self.levels[level] = self.y[i]
            self.level_of[i] = level
            self.level_weight[level] += self.weight[i]
            self.n_levels = max(self.n_levels, level + 1)

    def row(self, i):
        slot: cython.Py_ssize_t = self.first + i
        return self.ring.x + (slot if slot < self.ring.capacity else slot - self.ring.capacity) * self.objective.p

    def column(self, j):
        """x_j less its running mean, row by row."""
        out: cython.p_double = cython.address(self.columns[j, 0])
        if not self.there[j]:
            self._make_column(j, out)
        return out

    def before_end(self):
        """How many of the rows lie before the end of the ring; the others are at its beginning."""
        return min(self.objective.n_whole, self.ring.capacity - self.first)

    def _make_column(self, j, out):
        n: cython.Py_ssize_t = self.objective.n_whole
        p: cython.Py_ssize_t = self.objective.p
        first: cython.Py_ssize_t = self.before_end()
        centred_column(first, p, self.ring.x + self.first * p + j, self.origin[j], out)
        centred_column(n - first, p, self.ring.x + j, self.origin[j], out + first)
        self.there[j] = 1


@cython.cclass
class Newton:
    """The minimiser for one penalty on one objective; `rows` are current whenever it is asked for anything."""

    def __cinit__(self, objective: Objective, rows: WholeRows):
        p: cython.Py_ssize_t = objective.p
        n: cython.Py_ssize_t = rows.y.shape[0]
        self.objective = objective
        self.rows = rows
        self.p = p
        self.moments = objective.moments
        self.active = ActiveSet(p, Scratch(p), True)
        self.intercept = self.pull = 0.0
        self.evaluated = self.curved = self.posed = self.by_level = self.rooted = False
        by_feature: cython.double[:, ::1] = np.zeros((7, p))
        with_intercept: cython.double[:, ::1] = np.zeros((4 + 2 * MOST_STEPS, p + 1))
        by_row: cython.double[:, ::1] = np.zeros((p + 6, n))
        self.tau, self.g, self.folded_g = by_feature[0], by_feature[1], by_feature[2]
        self.centre, self.old, self.work, self.gram = by_feature[3], by_feature[4], by_feature[5], by_feature[6]
        self.tol, self.step = with_intercept[0], with_intercept[1]
        self.now, self.after = with_intercept[2], with_intercept[3]
        self.steps = with_intercept[4 : 4 + MOST_STEPS]
        self.changes = with_intercept[4 + MOST_STEPS :]
        self.eta, self.start_eta, self.eta_step = by_row[0], by_row[1], by_row[2]
        self.slope, self.curvature, self.root = by_row[3], by_row[4], by_row[5]
        self.z = by_row[6:]
        self.working = np.zeros(p, dtype=np.intp)
        self.expanded = np.zeros(p, dtype=np.intp)
        self.place = np.full(p, -1, dtype=np.intp)
        self.n_working = self.n_expanded = self.n_pairs = 0
        self.columns = cython.cast(
            cython.pointer[cython.pointer[cython.const[cython.double]]],
            calloc(max(p, 1), cython.sizeof(cython.p_double)),
        )
        if self.columns == cython.NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.columns)

    def solve_or_restart(self, local):
        """`solve`, and once more from zero where the warm start was no good: rows that were separable until now leave
        coefficients so large that all curvature is gone."""
        status: cython.int = self.solve(local)
        if status == UNFINISHED:
            self.active.reset()
            self.intercept = 0.0
            self.evaluated = self.curved = self.posed = False
            status = self.solve(local)
        self.curved = self.posed = False
        return status

    def solve(self, local):
        """Minimise for the current `tau`, until all conditions hold to `tol`."""
        turn: cython.int
        violation: cython.double
        settled: cython.bint
        status: cython.int = OK
        if not self.evaluated:
            self.evaluate()
        if not self.curved:
            self._prepare(local)
        for turn in range(100):
            violation = self._settle_members() if turn < CAREFUL and self.curved else INFINITY
            settled = not SETTLED_MEMBERS < violation < INFINITY
            if settled:
                self.look()
                violation = self._violation()
                if violation <= 1.0:
                    return status
            self._work_on(settled)
            if not self._exchange(local, violation, turn >= CAREFUL, cython.address(status)):
                break
        self.look()
        return status if self._violation() <= 1.0 else UNFINISHED

    def tolerate(self, share, most):
        """The largest violations that count as none."""
        j: cython.Py_ssize_t
        unit: cython.double
        for j in range(self.p):
            unit = self.objective.size[j] if self.objective.standardize else 1.0
            self.tol[j] = min(share * self.objective.size[j], most * unit)
        self.tol[self.p] = share

    # --- the point ----------------------------------------------------------------------------------------------

    def evaluate(self):
        """eta, loss' and loss'' on the whole rows, times their weights; G_0 (`pull`) and K (`mass`)."""
        n: cython.Py_ssize_t = self.objective.n_whole
        weight: cython.p_double = cython.address(self.rows.weight[0])
        slope: cython.double
        if self.active.k == 0 and self.rows.n_levels > 0:
            return self._evaluate_levels()
        self._slopes()
        slope = weigh(n, weight, cython.address(self.slope[0]))
        self.mass = self.moments.weight + weigh(n, weight, cython.address(self.curvature[0]))
        self.folded_pull = self.pull = 0.0
        if self.objective.fit_intercept:
            self.folded_pull = self.moments.weight * self._residual()
            self.pull = self.folded_pull - slope
        self.evaluated = True
        return 0

    def activity(self):
        """sum_i w_i |loss'_i|"""
        i: cython.Py_ssize_t
        total: cython.double = fabs(self.folded_pull)
        if self.by_level:
            for i in range(self.rows.n_levels):
                total += self.rows.level_weight[i] * fabs(self.level_slope[i])
            return total
        return total + sum_of_sizes(self.objective.n_whole, cython.address(self.slope[0]))

    def _slopes(self):
        self.by_level = False
        self._add_members()
        return self.objective.family.slopes(
            self.objective.n_whole,
            cython.address(self.rows.y[0]),
            cython.address(self.eta[0]),
            cython.address(self.slope[0]),
            cython.address(self.curvature[0]),
        )

    def _evaluate_levels(self):
        """In an empty model rows with the same response are all alike."""
        i: cython.Py_ssize_t
        slope: cython.double = 0.0
        self.by_level = True
        self.mass = self.moments.weight
        for i in range(self.rows.n_levels):
            self.objective.family.slopes_at(
                self.rows.levels[i],
                self.intercept,
                cython.address(self.level_slope[i]),
                cython.address(self.level_curvature[i]),
            )
            slope += self.rows.level_weight[i] * self.level_slope[i]
            self.mass += self.rows.level_weight[i] * self.level_curvature[i]
        self.folded_pull = self.pull = 0.0
        if self.objective.fit_intercept:
            self.folded_pull = self.moments.weight * self._residual()
            self.pull = self.folded_pull - slope
        self.evaluated = True
        return 0

    def _row_by_row(self):
        """What was evaluated by level, for each row."""
        i: cython.Py_ssize_t
        level: cython.Py_ssize_t
        if not self.by_level:
            return
        for i in range(self.objective.n_whole):
            level = self.rows.level_of[i]
            self.eta[i] = self.intercept
            self.slope[i] = self.rows.weight[i] * self.level_slope[level]
            self.curvature[i] = self.rows.weight[i] * self.level_curvature[level]
        self.by_level = False

    def _add_members(self):
        """eta = b0 + mu'b + (x - mu)'b on the whole rows."""
        i: cython.Py_ssize_t
        q: cython.Py_ssize_t
        n: cython.Py_ssize_t = self.objective.n_whole
        k: cython.Py_ssize_t = self.active.k
        eta: cython.p_double = cython.address(self.eta[0])
        b: cython.p_double = self.active.b
        level: cython.double = self.intercept
        for i in range(k):
            level += self.rows.origin[self.active.members[i]] * b[i]
        for i in range(n):
            eta[i] = level
        for q in range(k):
            self.columns[q] = self.rows.column(self.active.members[q])
        add_rows(n, k, self.columns, b, eta)

    def _residual(self):
        """target_mean - b0 - mean'b over the folded rows."""
        q: cython.Py_ssize_t
        r: cython.double = self.moments.target_mean - self.intercept
        for q in range(self.active.k):
            r -= self.moments.mean[self.active.members[q]] * self.active.b[q]
        return r

    def _fold_gradient(self):
        """What the folded rows add to G, but for their mean."""
        memcpy(cython.address(self.folded_g[0]), self.moments.c, self.p * DOUBLE)
        self.moments.times(
            self.active.members,
            self.active.k,
            self.active.b,
            cython.address(self.folded_g[0]),
        )

    def look(self):
        """G about the running mean, for all p features. `evaluate` comes before."""
        j: cython.Py_ssize_t
        q: cython.Py_ssize_t
        n: cython.Py_ssize_t = self.objective.n_whole
        first: cython.Py_ssize_t = self.rows.before_end()
        g: cython.p_double = cython.address(self.g[0])
        origin: cython.p_double = self.rows.origin
        slope: cython.p_double = cython.address(self.slope[0])
        self._row_by_row()
        self._fold_gradient()
        for j in range(self.p):
            g[j] = self.folded_g[j] + self.folded_pull * (self.moments.mean[j] - origin[j])
        subtract_centred(first, self.p, slope, self.rows.row(0), origin, g)
        subtract_centred(n - first, self.p, slope + first, self.rows.ring.x, origin, g)
        if self.active.has_ridge:
            for q in range(self.active.k):
                j = self.active.members[q]
                g[j] -= self.active.scratch.ridge[j] * self.active.b[q]

    def _violation(self):
        """The largest violation of a condition, in units of what is tolerated."""
        j: cython.Py_ssize_t
        q: cython.Py_ssize_t
        largest: cython.double = _worse(0.0, fabs(self.pull), self.tol[self.p])
        self.active.locate()
        for j in range(self.p):
            q = self.active.scratch.where[j]
            if q >= 0:
                largest = _worse(largest, fabs(self.g[j] - self.tau[j] * self.active.sign[q]), self.tol[j])
            elif self.tau[j] < INFINITY:
                largest = _worse(largest, fabs(self.g[j]) - self.tau[j], self.tol[j])
        return largest

    # --- the expansion ------------------------------------------------------------------------------------------

    def _work_on(self, with_violators):
        """List the members, and the features whose condition is violated."""
        j: cython.Py_ssize_t
        self.n_working = 0
        self.active.locate()
        for j in range(self.p):
            if self.active.scratch.where[j] >= 0 or (with_violators and fabs(self.g[j]) > self.tau[j] + self.tol[j]):
                self.working[self.n_working] = j
                self.n_working += 1

    def expand(self, local):
        """All rows as weighted least squares at the current point; S has no features yet."""
        a: cython.Py_ssize_t
        for a in range(self.n_expanded):
            self.place[self.expanded[a]] = -1
        self.n_expanded = 0
        self.rooted = False
        self._row_by_row()
        self.total = max(self.mass, 1e-300)
        local.n_pending = 0
        local.weight = self.total

    def _take_roots(self):
        """sqrt(k_i), for the first feature that is brought in."""
        roots(self.objective.n_whole, cython.address(self.curvature[0]), cython.address(self.root[0]))
        self.rooted = True

    def expand_members(self, local):
        q: cython.Py_ssize_t
        self.expand(local)
        for q in range(self.active.k):
            self.bring_in(local, self.active.members[q])

    def bring_in(self, local, j):
        """Feature j with m_j and its row of S: the folded rows moved to the common mean, plus the whole rows."""
        a: cython.Py_ssize_t
        k: cython.Py_ssize_t = self.n_expanded
        n: cython.Py_ssize_t = self.objective.n_whole
        d: cython.double = 0.0
        w: cython.pointer[cython.Py_ssize_t] = cython.address(self.expanded[0])
        row: cython.p_double = cython.address(self.work[0])
        z: cython.p_double = cython.address(self.z[k, 0])
        if self.place[j] >= 0:
            return
        if not self.rooted:
            self._take_roots()
        self.place[j] = k
        w[k] = j
        self.n_expanded = k + 1
        self._centre(j, z)
        local.mean[j] = self.centre[j]
        self.moments.column(j, w, k + 1, row)
        matrix_times(k + 1, n, self.z.shape[1], cython.address(self.z[0, 0]), z, cython.address(self.gram[0]))
        if self.objective.fit_intercept:
            d = self.moments.weight * (self.moments.mean[j] - self.centre[j])
        for a in range(k + 1):
            row[a] += self.gram[a] + d * (self.moments.mean[w[a]] - self.centre[w[a]])
            local.S[j * self.p + w[a]] = local.S[w[a] * self.p + j] = row[a]

    def _centre(self, j, z):
        """m_j, and z_i = sqrt(k_i) (x_ij - m_j)."""
        n: cython.Py_ssize_t = self.objective.n_whole
        shift: cython.double = 0.0
        x: cython.p_double = self.rows.column(j)
        if self.objective.fit_intercept:
            shift = self.moments.weight * (self.moments.mean[j] - self.rows.origin[j])
            shift += long_dot(n, cython.address(self.curvature[0]), x)
            shift /= self.total
        centred_product(n, cython.address(self.root[0]), x, shift, z)
        self.centre[j] = self.rows.origin[j] + shift

    def _prepare(self, local):
        """The curvature of the members at the current point, and its factor."""
        self.expand_members(local)
        self.active.remember()
        self.curved = self.active.refactor(local)
        if not self.curved:
            self.active.recall()

    # --- steps on the members -----------------------------------------------------------------------------------

    def _settle_members(self):
        """Steps on the members, for as long as each halves the violation, which is returned."""
        size: cython.double = self.size if self.posed else self._equations(cython.address(self.now[0]))
        next_size: cython.double
        self.n_pairs = 0
        self.posed = False
        while size > SETTLED_MEMBERS and self.n_pairs < MOST_STEPS:
            self._quasi_newton_step()
            if not self._keeps_signs():
                return size
            self._shift_members()
            next_size = self._equations(cython.address(self.after[0]))
            if not (next_size <= 0.5 * size and self._alike()):
                self._shift_back()
                self.curved = False
                return size
            self._remember_pair()
            size = next_size
        return size

    def _alike(self):
        """Whether the rows are curved about as they were where they were expanded. Where all are saturated slopes
        vanish, far from any minimum."""
        return self.total <= ALIKE * self.mass and self.mass <= ALIKE * self.total

    def _equations(self, out):
        """F, and G of the members; the largest violation among them, in units of what is tolerated."""
        j: cython.Py_ssize_t
        q: cython.Py_ssize_t
        r: cython.double
        largest: cython.double = _worse(0.0, fabs(self.pull), self.tol[self.p])
        n: cython.Py_ssize_t = self.objective.n_whole
        self._fold_gradient()
        for q in range(self.active.k):
            self.columns[q] = self.rows.column(self.active.members[q])
        dot_rows(n, self.active.k, self.columns, cython.address(self.slope[0]), out + 1)
        out[0] = self.pull
        for q in range(self.active.k):
            j = self.active.members[q]
            r = self.folded_g[j] + self.folded_pull * (self.moments.mean[j] - self.rows.origin[j]) - out[1 + q]
            if self.active.has_ridge:
                r -= self.active.scratch.ridge[j] * self.active.b[q]
            self.g[j] = r
            r -= self.tau[j] * self.active.sign[q]
            largest = _worse(largest, fabs(r), self.tol[j])
            out[1 + q] = r + (self.rows.origin[j] - self.centre[j]) * self.pull
        return largest

    def _quasi_newton_step(self):
        """The step in (e, b): diag(K, S_AA)^{-1} F, corrected by the pairs (the two loops of L-BFGS)."""
        i: cython.Py_ssize_t
        n: cython.Py_ssize_t = self.active.k + 1
        d: cython.p_double = cython.address(self.step[0])
        along: cython.double[MOST_STEPS]
        memcpy(d, cython.address(self.now[0]), n * DOUBLE)
        for i in range(self.n_pairs - 1, -1, -1):
            along[i] = self.rho[i] * dot(n, cython.address(self.steps[i, 0]), d)
            axpy(n, -along[i], cython.address(self.changes[i, 0]), d)
        d[0] /= self.total
        self.active.solve_block(d + 1)
        for i in range(self.n_pairs):
            along[i] -= self.rho[i] * dot(n, cython.address(self.changes[i, 0]), d)
            axpy(n, along[i], cython.address(self.steps[i, 0]), d)

    def _keeps_signs(self):
        """Whether no penalised member would change its sign."""
        q: cython.Py_ssize_t
        for q in range(self.active.k):
            if not (self.active.b[q] + self.step[1 + q]) * self.active.sign[q] > 0.0:
                if self.tau[self.active.members[q]] > 0.0:
                    return False
        return True

    def _shift_members(self):
        """By the step; b0 = e - m'b."""
        q: cython.Py_ssize_t
        b: cython.p_double = self.active.b
        if self.active.k > 0:
            memcpy(cython.address(self.old[0]), b, self.active.k * DOUBLE)
        self.start_intercept = self.intercept
        self.intercept += self.step[0]
        for q in range(self.active.k):
            b[q] += self.step[1 + q]
            self.intercept -= self.centre[self.active.members[q]] * self.step[1 + q]
            if self.tau[self.active.members[q]] == 0.0:
                self.active.sign[q] = -1.0 if b[q] < 0.0 else 1.0
        return self.evaluate()

    def _shift_back(self):
        q: cython.Py_ssize_t
        self.intercept = self.start_intercept
        for q in range(self.active.k):
            self.active.b[q] = self.old[q]
            if self.tau[self.active.members[q]] == 0.0:
                self.active.sign[q] = -1.0 if self.old[q] < 0.0 else 1.0
        return self.evaluate()

    def _remember_pair(self):
        """The step and the change of F, which `now` becomes."""
        i: cython.Py_ssize_t
        n: cython.Py_ssize_t = self.active.k + 1
        step: cython.p_double = cython.address(self.steps[self.n_pairs, 0])
        change: cython.p_double = cython.address(self.changes[self.n_pairs, 0])
        for i in range(n):
            step[i] = self.step[i]
            change[i] = self.now[i] - self.after[i]
            self.now[i] = self.after[i]
        self.rho[self.n_pairs] = dot(n, step, change)
        self.rho[self.n_pairs] = 1.0 / self.rho[self.n_pairs] if self.rho[self.n_pairs] > 0.0 else 0.0
        self.n_pairs += 1

    # --- exchanges ----------------------------------------------------------------------------------------------

    def _exchange(self, local, violation, careful, status):
        """A proximal Newton step among the features at work; 0 where it leads nowhere."""
        stale: cython.bint = self.curved
        self._row_by_row()
        if not self.curved:
            self.expand(local)
            self.active.broken = True
        self._pose(local)
        if self.active.solve(local) != OK:
            status[0] = SINGULAR
        self._step_to_target()
        self.curved = not self.active.broken
        self.size = self._equations(cython.address(self.now[0]))
        if not careful and self.size <= 0.5 * violation and self._alike():
            self.posed = True
            return 1
        self.curved = False
        return self._search() or stale

    def _pose(self, local):
        """The lasso on the expansion: c = S b + G - m G_0, for the features at work; and the point itself."""
        a: cython.Py_ssize_t
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        self.active.has_free = True
        for j in range(self.p):
            self.active.scratch.tau[j] = INFINITY
        for a in range(self.n_working):
            j = self.working[a]
            self.bring_in(local, j)
            self.active.scratch.tau[j] = self.tau[j]
            self.active.scratch.tol[j] = 0.01 * self.tol[j]
        self.active.locate()
        for a in range(self.n_working):
            j = self.working[a]
            local.c[j] = self.g[j] + self.pull * (self.rows.origin[j] - self.centre[j])
            for i in range(self.active.k):
                local.c[j] += local.S[j * self.p + self.active.members[i]] * self.active.b[i]
            i = self.active.scratch.where[j]
            self.old[j] = self.active.b[i] if i >= 0 else 0.0
            if self.active.has_ridge:
                local.c[j] += self.active.scratch.ridge[j] * self.old[j]

    def _step_to_target(self):
        """The step from the old point to the target, and everything at the target."""
        a: cython.Py_ssize_t
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        n: cython.Py_ssize_t = self.objective.n_whole
        place: cython.Py_ssize_t
        self.intercept_step = self.pull / self.total if self.objective.fit_intercept else 0.0
        self.active.locate()
        for a in range(self.n_working):
            j = self.working[a]
            place = self.active.scratch.where[j]
            self.step[j] = (self.active.b[place] if place >= 0 else 0.0) - self.old[j]
            self.intercept_step -= self.centre[j] * self.step[j]
        self.start_intercept = self.intercept
        self.intercept += self.intercept_step
        memcpy(cython.address(self.start_eta[0]), cython.address(self.eta[0]), n * DOUBLE)
        self._slopes_along()
        self.evaluate()
        self._row_by_row()
        for i in range(n):
            self.eta_step[i] = self.eta[i] - self.start_eta[i]
        return 0

    def _slopes_along(self):
        """What the expansion expects of the whole step, and the slope of the folded rows along it."""
        a: cython.Py_ssize_t
        j: cython.Py_ssize_t
        d: cython.double
        self.shift = self.intercept_step
        self.expected = -self.pull * (self.pull / self.total)
        self.linear = 0.0
        for a in range(self.n_working):
            j = self.working[a]
            d = self.step[j]
            self.shift += self.moments.mean[j] * d
            self.linear -= self.folded_g[j] * d
            self.expected += self.tau[j] * (fabs(self.old[j] + d) - fabs(self.old[j]))
            self.expected -= (self.g[j] + self.pull * (self.rows.origin[j] - self.centre[j])) * d
            if self.active.has_ridge:
                self.expected += 0.5 * self.active.scratch.ridge[j] * d * d
        self.linear -= self.folded_pull * self.shift

    def _search(self):
        """Walk towards the target as far as the true objective falls; 0 if nowhere."""
        turn: cython.int
        t: cython.double = 1.0
        self._folded_along()
        for turn in range(60):
            if self._change(t) <= 1e-4 * t * self.expected + LOST_DIGITS * self.magnitude:
                break
            t *= 0.25
        else:
            t = 0.0
        self._move(t)
        return 1 if t > 0.0 else 0

    def _folded_along(self):
        """The curvature of the folded rows along the step: d'S_old d, and what their mean adds."""
        a: cython.Py_ssize_t
        out: cython.p_double = cython.address(self.work[0])
        d: cython.p_double = cython.address(self.now[0])
        for a in range(self.n_working):
            d[a] = self.step[self.working[a]]
        memset(out, 0, self.p * DOUBLE)
        self.moments.times(cython.address(self.working[0]), self.n_working, d, out)
        self.quadratic = self.moments.weight * self.shift * self.shift if self.objective.fit_intercept else 0.0
        for a in range(self.n_working):
            self.quadratic -= d[a] * out[self.working[a]]

    def _change(self, t):
        """The objective at step t less the objective at the old point."""
        a: cython.Py_ssize_t
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        b: cython.double
        before: cython.double
        total: cython.double = t * self.linear + 0.5 * t * t * self.quadratic
        self.magnitude = fabs(t * self.linear)
        for i in range(self.objective.n_whole):
            before = self.objective.family.loss_at(self.rows.y[i], self.start_eta[i])
            total += self.rows.weight[i] * (
                self.objective.family.loss_at(self.rows.y[i], self.start_eta[i] + t * self.eta_step[i]) - before
            )
            self.magnitude += self.rows.weight[i] * fabs(before)
        for a in range(self.n_working):
            j = self.working[a]
            b = self.old[j] + t * self.step[j]
            total += self.tau[j] * (fabs(b) - fabs(self.old[j]))
            if self.active.has_ridge:
                total += 0.5 * self.active.scratch.ridge[j] * (b * b - self.old[j] * self.old[j])
        return total

    def _move(self, t):
        """To old + t step. At t = 1 the active set stands there already."""
        a: cython.Py_ssize_t
        j: cython.Py_ssize_t
        b: cython.double
        if t == 1.0:
            return 0
        self.intercept = self.start_intercept + t * self.intercept_step
        self.active.reset()
        for a in range(self.n_working):
            j = self.working[a]
            b = self.old[j] + t * self.step[j]
            if b != 0.0:
                self.active.hold_or_end(self.active.k + 1)
                self.active.k += 1
                self.active._join(j, 1.0 if b > 0.0 else -1.0, b)
        self.active.broken = True
        self.curved = False
        return self.evaluate()
