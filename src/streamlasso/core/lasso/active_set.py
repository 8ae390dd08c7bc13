# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The exact solver of one quadratic problem, warm from the last one:

    minimise over b    (1/2) b'Hb - c'b + sum_j tau_j |b_j|,        H = S + diag(ridge)

With `g = c - Hb`, the optimality conditions are  g_j = tau_j sign(b_j)  where b_j != 0  and  |g_j| <= tau_j  elsewhere.

1. Solve: with the signs of the members held, the optimum is one linear system away. Members that come out with the
   wrong sign leave, and the others are solved for again.
2. Look at all p conditions: features that violate theirs by more than `tol_j` enter, all at once. Stop when there is
   none.

This settles in two or three turns of a warm start. But such block exchanges can cycle, and where many features would
enter or leave at once most of them come back: at p = 100 a row took 130 changes of the factor where 1 to 9 are needed.
So after TURNS of them, or where more than FEW + FEW_SHARE of the members would change in one, the solver
walks instead: from where it stands towards the optimum, letting the first coefficient that reaches zero on the way
leave, then the worst violator enter. Each walk lowers the objective, so no set of signs comes back and the loop ends.

A feature that is a combination of the members (more features than rows, duplicates) cannot be factored. Along the
direction that leaves the fit unchanged the penalty is linear, so the walk goes on until some member reaches zero, and
the feature takes its place.

Conventions: `tau_j = inf` bars a feature, `tau_j = 0` leaves it unpenalised. `members`, `b`, `sign` and `target` are
indexed by position among the members, all else by feature.
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs, isinf
from cython.cimports.libc.stdlib import abort, calloc, free, malloc
from cython.cimports.libc.string import memcpy
from cython.cimports.streamlasso.core.base.buffers import Pointers
from cython.cimports.streamlasso.core.base.record import OK, SINGULAR
from cython.cimports.streamlasso.core.base.tape import CHECK, FINITE, READ, SIGN, WIDTH
from cython.cimports.streamlasso.core.linalg.cholesky import Factor
from cython.cimports.streamlasso.core.linalg.kernels import any_beyond, axpy, factor_block

from streamlasso.core.base.state import COLUMNS, ROWS, TRIANGLE, Column, array, numbers, table

#: Block exchanges before the solver walks.
TURNS = cython.declare(cython.int, 6)
#: Beyond this many members that change sign, or features that enter, at once, exchanges undo one another.
FEW = cython.declare(cython.double, 4.0)
FEW_SHARE = cython.declare(cython.double, 0.3)
#: Solutions that rounding spoilt before the fallback is taken.
MOST_UNSETTLED = cython.declare(cython.int, 10)
#: A feature whose pivot falls below this share of its variance is a combination of the members.
DEPENDENT = cython.declare(cython.double, 1e-12)

#: Where refinement stalls, rounding errors larger by this factor are accepted; beyond it the block is singular.
ILL_CONDITIONED = cython.declare(cython.double, 100.0)

#: Up to as many features, models have scratch space in common: it would be a good part of their memory.
MOST_SHARED = 64
#: Scratch spaces that nobody uses now, by their number of features; one for each thread that learns is enough.
MOST_SPARE = 8
_spare = cython.declare(dict, {})

#: So many features fit one integer, a bit for each.
BITS = cython.declare(cython.Py_ssize_t, 64)

#: The bits of 1.0; -1.0 differs in the first of them.
ONE = cython.declare(cython.ulonglong, 0x3FF0000000000000)

DOUBLE = cython.declare(cython.size_t, cython.sizeof(cython.double))
INDEX = cython.declare(cython.size_t, cython.sizeof(cython.Py_ssize_t))


@cython.cclass
class Scratch:
    """Space for p features that is used while a problem is solved, by one active set after the other."""

    def __cinit__(self, p: cython.Py_ssize_t):
        self.tau = cython.cast(cython.p_double, calloc(10 * p * DOUBLE + 4 * p * INDEX + p + 1, 1))
        if self.tau == cython.NULL:
            raise MemoryError
        self.p = p
        self.tol = self.tau + p
        self.ridge = self.tol + p
        self.g = self.ridge + p
        self.target = self.g + p
        self.work = self.target + p
        self.kept_b = self.work + p
        self.kept_sign = self.kept_b + p
        self.slope_b = self.kept_sign + p
        self.slope_mean = self.slope_b + p
        self.where = cython.cast(cython.pointer[cython.Py_ssize_t], self.slope_mean + p)
        self.slope_members = self.where + p
        self.kept_members = self.slope_members + p
        self.candidates = self.kept_members + p
        self.resting = cython.cast(cython.pointer[cython.schar], self.candidates + p)
        self.kept = self.n_resting = self.n_candidates = 0

    def __dealloc__(self):
        free(self.tau)


@cython.cfunc
def spare_scratch(p: cython.Py_ssize_t) -> Scratch:
    """For p features: one that nobody uses now, or a new one."""
    unused = _spare.get(p)
    return unused.pop() if unused else Scratch(p)


@cython.cfunc
@cython.exceptval(-1, check=False)
def spare(scratch: Scratch) -> cython.int:
    """Nobody uses it from now on. It is as good as new: no feature rests, and there is no ridge."""
    if scratch.p <= MOST_SHARED:
        unused = _spare.setdefault(scratch.p, [])
        if len(unused) < MOST_SPARE:
            unused.append(scratch)
    return 0


@cython.no_gc
@cython.cclass
class ActiveSet(Factor):
    """The members, their signs and coefficients, and the factor of their block.

    Active sets that are solved in turn share their scratch space. Where it is asked for (`keeps_g`), one keeps its g.
    """

    STATE = (
        array("members", ROWS, dtype=np.int64),
        table("solution", (ROWS, COLUMNS), Column("b", np.negative), Column("sign", np.negative)),
        numbers("age", Column("broken"), Column("age"), dtype=np.int64),
        array("factor", TRIANGLE),
    )

    def __cinit__(self, p: cython.Py_ssize_t, scratch: Scratch, keeps_g: cython.bint):
        self.scratch = scratch
        self.g = scratch.g
        if keeps_g:
            self.g = cython.cast(cython.p_double, calloc(max(p, 1), DOUBLE))
            if self.g == cython.NULL:
                raise MemoryError
        self.keeps_g = keeps_g
        self.has_ridge = self.has_free = False
        self.age = self.held = 0

    def __dealloc__(self):
        free(self.members)
        if self.keeps_g:
            free(self.g)

    def use(self, scratch):
        """This scratch space from now on; without one, no rows and no problems come."""
        self.scratch = scratch
        if not self.keeps_g:
            self.g = cython.NULL if scratch is None else scratch.g

    def hold(self, k):
        """Room for a list of k members, and for a few more; False where there is no memory."""
        return k <= self.held or self._list(min(self.p, k + max(k // 4, 4)))

    def _list(self, room):
        """Room for a list of so many members, and not more."""
        kept: cython.Py_ssize_t = min(self.k, self.held)
        if room == 0:
            free(self.members)
            self.members = cython.NULL
            self.b = self.sign = cython.NULL
            self.held = 0
            return True
        members: cython.pointer[cython.Py_ssize_t] = cython.cast(
            cython.pointer[cython.Py_ssize_t], malloc(room * (INDEX + 2 * DOUBLE))
        )
        if members == cython.NULL:
            return False
        b: cython.p_double = cython.cast(cython.p_double, members + room)
        if kept > 0:
            memcpy(members, self.members, kept * INDEX)
            memcpy(b, self.b, kept * DOUBLE)
            memcpy(b + room, self.sign, kept * DOUBLE)
        free(self.members)
        self.members = members
        self.b = b
        self.sign = b + room
        self.held = room
        return True

    def hold_or_end(self, k):
        """The same where there is no way back."""
        if not self.hold(k):
            abort()

    def locate(self):
        """The place of each feature among the members, -1 where it is none, in the scratch space."""
        q: cython.Py_ssize_t
        j: cython.Py_ssize_t
        for j in range(self.p):
            self.scratch.where[j] = -1
        for q in range(self.k):
            self.scratch.where[self.members[q]] = q

    def solve(self, m):
        """Solve for the current m, tau, ridge; SINGULAR where it took the fallback."""
        turn: cython.Py_ssize_t
        wakes: cython.int = 0
        unsettled: cython.int = 0
        walking: cython.bint = False
        self._drop_barred()
        if self.has_ridge or self.broken:
            self.refactor(m)
        if self.has_free:
            self._enter_free(m)
        for turn in range(100 + 10 * self.p):
            walking = walking or turn >= TURNS or not self._hold_signs(m)
            if walking:
                self._walk(m)
            self.gradient(m)
            if not self._settled(1.0) and not self._settle(m):
                unsettled += 1
                if unsettled == MOST_UNSETTLED:
                    break
                continue
            if self._violators() == 0:
                if self._wake() == 0:
                    self._sign_free()
                    return OK
                wakes += 1
                if wakes == 3:
                    break
            walking = walking or self.scratch.n_candidates > self._few()
            if not walking:
                self._enter_all(m)
            else:
                self._enter_worst(m)
        self._wake()
        return self._coordinate_descent(m)

    def reset(self):
        """Everything at zero."""
        self.k = 0
        self.broken = False

    def remember(self):
        """Keep a copy of the solution."""
        self.scratch.kept = self.k
        if self.k > 0:
            memcpy(self.scratch.kept_members, self.members, self.k * INDEX)
            memcpy(self.scratch.kept_b, self.b, self.k * DOUBLE)
            memcpy(self.scratch.kept_sign, self.sign, self.k * DOUBLE)

    def recall(self):
        """The solution as it was remembered; the factor is not kept."""
        self.reset()
        self.hold_or_end(self.scratch.kept)
        self.k = self.scratch.kept
        if self.k > 0:
            memcpy(self.members, self.scratch.kept_members, self.k * INDEX)
            memcpy(self.b, self.scratch.kept_b, self.k * DOUBLE)
            memcpy(self.sign, self.scratch.kept_sign, self.k * DOUBLE)
        self.broken = True

    def follow(self, other):
        """Start from the solution of another active set on the same problem."""
        other.remember()
        self.recall()

    def times(self, x):
        """x'b"""
        i: cython.Py_ssize_t = 0
        k: cython.Py_ssize_t = self.k
        b: cython.p_double = self.b
        members: cython.pointer[cython.Py_ssize_t] = self.members
        even: cython.double = 0.0
        odd: cython.double = 0.0
        while i + 1 < k:
            even += x[members[i]] * b[i]
            odd += x[members[i + 1]] * b[i + 1]
            i += 2
        if i < k:
            even += x[members[i]] * b[i]
        return even + odd

    def add_to(self, coef, weight):
        """coef += weight b"""
        i: cython.Py_ssize_t
        b: cython.p_double = self.b
        members: cython.pointer[cython.Py_ssize_t] = self.members
        for i in range(self.k):
            coef[members[i]] += weight * b[i]

    def mark(self, used):
        """Set `used` of the features with coefficients; how many were not set before."""
        i: cython.Py_ssize_t
        n: cython.Py_ssize_t = 0
        for i in range(self.k):
            if self.b[i] != 0.0 and not used[self.members[i]]:
                used[self.members[i]] = True
                n += 1
        return n

    def spread(self, x, mean):
        """z_A' H_A^{-1} z_A, for a row z = x - mean."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        total: cython.double = 0.0
        target: cython.p_double = self.scratch.target
        for i in range(self.k):
            j = self.members[i]
            target[i] = x[j] - mean[j]
        self.solve_block(target)
        for i in range(self.k):
            j = self.members[i]
            total += target[i] * (x[j] - mean[j])
        return total

    # --- the rows of the stream ---------------------------------------------------------------------------------

    def absorb(self, z):
        """S has become S + z z'."""
        i: cython.Py_ssize_t
        if self.has_ridge or self.broken:
            return
        for i in range(self.k):
            self.scratch.target[i] = z[self.members[i]]
        self.update(self.scratch.target)
        self.age += 1

    def expel(self, z):
        """S has become S - z z'."""
        i: cython.Py_ssize_t
        if self.has_ridge or self.broken:
            return
        for i in range(self.k):
            self.scratch.target[i] = z[self.members[i]]
        self.broken = not self.downdate(self.scratch.target)
        self.age += 1

    def abandon(self):
        """No row is followed until the next solve; there is no room to spare for members either."""
        self.broken = True
        self.give_back()
        if self.held != self.k:
            self._list(self.k)

    def trim(self):
        """No room for more members than there are; it is made again where some enter. Without memory for less room it
        stays."""
        if self.broken or self.k == 0:
            self.give_back()
        elif self.room > self.k:
            self._change_room(self.k)
        if self.held != self.k:
            self._list(self.k)

    # --- members come and go ------------------------------------------------------------------------------------

    def _join(self, j, sign, b):
        """List j as the member that the factor has just taken in, or last."""
        q: cython.Py_ssize_t = self.k - 1
        self.members[q] = j
        self.sign[q] = sign
        self.b[q] = b

    def leave(self, q):
        """Take the q-th member out."""
        i: cython.Py_ssize_t
        for i in range(q + 1, self.k):
            self.members[i - 1] = self.members[i]
            self.sign[i - 1] = self.sign[i]
            self.b[i - 1] = self.b[i]
        if self.broken or self.k > self.room:
            self.k -= 1
        else:
            self._drop_column(q, self.scratch.work)

    def append(self, m, j):
        """Take j into the factor; False where it is a combination of the members."""
        diagonal: cython.double = m.diagonal(j) + self.scratch.ridge[j]
        column: cython.p_double = self.scratch.target
        if not self.hold(self.k + 1):
            return False
        m.column(j, self.members, self.k, column)
        return self._append_column(column, diagonal, DEPENDENT) > DEPENDENT * diagonal

    def enter(self, m, j, direction):
        """Let j in at zero, or, where it is a combination of the members, in exchange for one of them.

        The exchange: with `S_AA d = S_Aj`, moving b_j by t and b_A by -t d changes no prediction, only the penalty.
        """
        i: cython.Py_ssize_t
        q: cython.Py_ssize_t
        t: cython.double
        step: cython.double
        b: cython.double = 0.0
        d: cython.p_double = self.scratch.target
        while True:
            if self.append(m, j):
                self._join(j, direction, b)
                return True
            m.column(j, self.members, self.k, d)
            self.solve_block(d)
            q = -1
            step = 0.0
            for i in range(self.k):
                if self.scratch.tau[self.members[i]] > 0.0 and self.sign[i] * direction * d[i] > 0.0:
                    t = self.b[i] / (direction * d[i])
                    if q < 0 or t < step:
                        q = i
                        step = t
            if q < 0:
                return False
            for i in range(self.k):
                self.b[i] -= step * direction * d[i]
            b += step * direction
            self.leave(q)

    def refactor(self, m):
        """The factor anew from S; members that turn out to be combinations of others leave. True if all stayed."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t = self.k
        whole: cython.bint = True
        self.k = 0
        self._make_room(k + 2)
        self.broken = False
        self.age = 0
        if self._factor_block(m, k):
            return True
        for i in range(k):
            j = self.members[i]
            if self.append(m, j):
                self._join(j, self.sign[i], self.b[i])
            else:
                whole = False
        return whole

    def _factor_block(self, m, k):
        """The factor of the first k members at once; False, and no factor, where one is a combination of others."""
        n: cython.Py_ssize_t
        if k + 2 > self.room:
            return False
        n = factor_block(
            k,
            self.members,
            self.p,
            m.S,
            m.n_pending,
            m.rows,
            m.signed,
            self.scratch.ridge,
            DEPENDENT,
            self.room,
            self.row(0),
            self.d,
            self.d + self.room,
        )
        if n == k:
            self.k = k
        return n == k

    def _drop_barred(self):
        i: cython.Py_ssize_t
        for i in range(self.k - 1, -1, -1):
            if isinf(self.scratch.tau[self.members[i]]):
                self.leave(i)

    def _enter_free(self, m):
        """Unpenalised features are members from the start, unless combinations of others."""
        j: cython.Py_ssize_t
        resting: cython.pointer[cython.schar] = self.scratch.resting
        self._bar_members(True)
        for j in range(self.p):
            if self.scratch.tau[j] == 0.0 and (resting[j] & MEMBER) == 0 and self.append(m, j):
                self._join(j, 1.0, 0.0)
                resting[j] |= MEMBER
        self._bar_members(False)

    def _sign_free(self):
        """An unpenalised member takes whatever sign it came out with."""
        i: cython.Py_ssize_t
        if self.has_free:
            for i in range(self.k):
                if self.scratch.tau[self.members[i]] == 0.0:
                    self.sign[i] = -1.0 if self.b[i] < 0.0 else 1.0

    # --- 1. solve with the signs held ---------------------------------------------------------------------------

    def _solve_for_target(self, m):
        """target = H_A^{-1} (c_A - tau_A s_A)"""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        for i in range(self.k):
            j = self.members[i]
            self.scratch.target[i] = m.c[j] - self.scratch.tau[j] * self.sign[i]
        self.solve_block(self.scratch.target)

    def _wrong(self, i):
        """Would the i-th member change its sign?"""
        return self.scratch.target[i] * self.sign[i] < 0.0 and self.scratch.tau[self.members[i]] > 0.0

    def _few(self):
        """How many members may come or go at once."""
        return FEW + FEW_SHARE * self.k

    def _hold_signs(self, m):
        """To the optimum of those members that keep their signs; False, and no step, where too many would not."""
        i: cython.Py_ssize_t
        k: cython.Py_ssize_t = -1
        n_wrong: cython.Py_ssize_t
        while self.k != k:
            self._solve_for_target(m)
            k = self.k
            n_wrong = 0
            for i in range(k):
                n_wrong += self._wrong(i)
            if n_wrong > self._few():
                return False
            for i in range(k - 1, -1, -1):
                if self._wrong(i):
                    self.leave(i)
        for i in range(k):
            self.b[i] = self.scratch.target[i]
        return True

    def _walk(self, m):
        """Towards the optimum; the first to reach zero leaves, and the walk turns to the optimum of those left."""
        i: cython.Py_ssize_t
        q: cython.Py_ssize_t
        t: cython.double
        step: cython.double
        while self.k > 0:
            self._solve_for_target(m)
            q = -1
            step = 1.0
            for i in range(self.k):
                if self._wrong(i):
                    t = self.b[i] / (self.b[i] - self.scratch.target[i]) if self.b[i] * self.sign[i] > 0.0 else 0.0
                    if q < 0 or t < step:
                        q = i
                        step = t
            for i in range(self.k):
                self.b[i] += (
                    step * (self.scratch.target[i] - self.b[i]) if q >= 0 else self.scratch.target[i] - self.b[i]
                )
            if q < 0:
                return
            if step == 0.0:
                self._rest(self.members[q])
            self.leave(q)

    # --- 2. look at the conditions, and enter what violates them ------------------------------------------------

    def gradient(self, m):
        """g = c - Hb for all p features."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        g: cython.p_double = self.g
        memcpy(g, m.c, self.p * DOUBLE)
        m.times(self.members, self.k, self.b, g)
        if self.has_ridge:
            for i in range(self.k):
                j = self.members[i]
                g[j] -= self.scratch.ridge[j] * self.b[i]

    def _settled(self, slack):
        """Do the members meet their conditions? What a factor that is updated by rank one loses, shows here."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        for i in range(self.k):
            j = self.members[i]
            if not fabs(self.g[j] - self.scratch.tau[j] * self.sign[i]) <= slack * self.scratch.tol[j]:
                return False
        return True

    def _settle(self, m):
        """Iterative refinement with the factor at hand, then with a new one. False: solve again, with other members."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        turn: cython.int
        for turn in range(6):
            if turn == 2 and (self.age > 0 or self.has_ridge) and not self.refactor(m):
                return False
            for i in range(self.k):
                j = self.members[i]
                self.scratch.target[i] = self.g[j] - self.scratch.tau[j] * self.sign[i]
            self.solve_block(self.scratch.target)
            for i in range(self.k):
                self.b[i] += self.scratch.target[i]
            for i in range(self.k - 1, -1, -1):
                if self.b[i] * self.sign[i] < 0.0 and self.scratch.tau[self.members[i]] > 0.0:
                    self._rest(self.members[i])
                    self.leave(i)
                    return False
            self.gradient(m)
            if self._settled(1.0):
                return True
        return self._settled(ILL_CONDITIONED)

    def _violators(self):
        """List the features whose condition is violated; returns how many."""
        j: cython.Py_ssize_t
        n: cython.Py_ssize_t = 0
        g: cython.p_double = self.g
        tau: cython.p_double = self.scratch.tau
        tol: cython.p_double = self.scratch.tol
        resting: cython.pointer[cython.schar] = self.scratch.resting
        candidates: cython.pointer[cython.Py_ssize_t] = self.scratch.candidates
        self.scratch.n_candidates = 0
        if not any_beyond(self.p, g, tau, tol):
            return 0
        self._bar_members(True)
        # Without a branch: which feature is the next, no processor can foresee.
        for j in range(self.p):
            candidates[n] = j
            n += (fabs(g[j]) > tau[j] + tol[j]) & (resting[j] == 0)
        self._bar_members(False)
        self.scratch.n_candidates = n
        return n

    def _bar_members(self, bar):
        """Members are no candidates; whether they rest is another matter."""
        i: cython.Py_ssize_t
        resting: cython.pointer[cython.schar] = self.scratch.resting
        for i in range(self.k):
            if bar:
                resting[self.members[i]] |= MEMBER
            else:
                resting[self.members[i]] &= RESTING

    def _enter_all(self, m):
        """All candidates enter that are not combinations; the first may do so in exchange, b being an optimum."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        for i in range(self.scratch.n_candidates):
            j = self.scratch.candidates[i]
            if i == 0:
                if not self.enter(m, j, 1.0 if self.g[j] > 0.0 else -1.0):
                    self._rest(j)
            elif self.append(m, j):
                self._join(j, 1.0 if self.g[j] > 0.0 else -1.0, 0.0)

    def _enter_worst(self, m):
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        worst: cython.Py_ssize_t = self.scratch.candidates[0]
        excess: cython.double
        largest: cython.double = 0.0
        for i in range(self.scratch.n_candidates):
            j = self.scratch.candidates[i]
            excess = (fabs(self.g[j]) - self.scratch.tau[j]) / self.scratch.tol[j]
            if excess > largest:
                largest = excess
                worst = j
        if not self.enter(m, worst, 1.0 if self.g[worst] > 0.0 else -1.0):
            self._rest(worst)

    def _rest(self, j):
        """Rounding alone would let j in: leave it out until nothing else is left to do."""
        resting: cython.pointer[cython.schar] = self.scratch.resting
        resting[j] |= RESTING
        self.scratch.n_resting = self.scratch.n_resting + 1

    def _wake(self):
        """No feature rests any more; returns how many of them still violate their condition."""
        j: cython.Py_ssize_t
        if self.scratch.n_resting == 0:
            return 0
        for j in range(self.p):
            self.scratch.resting[j] = 0
        self.scratch.n_resting = 0
        return self._violators()

    # --- the fallback -------------------------------------------------------------------------------------------

    def _coordinate_descent(self, m):
        """Cyclic coordinate descent from where the active set stood, 200 sweeps at most."""
        j: cython.Py_ssize_t
        sweep: cython.Py_ssize_t
        h: cython.double
        b: cython.double
        new: cython.double
        z: cython.double
        beta: cython.p_double = self.scratch.target
        solved: cython.bint = False
        m.flush()
        self.locate()
        for j in range(self.p):
            beta[j] = self.b[self.scratch.where[j]] if self.scratch.where[j] >= 0 else 0.0
        self.gradient(m)
        for sweep in range(200):
            solved = True
            for j in range(self.p):
                h = m.S[j * self.p + j] + self.scratch.ridge[j]
                if isinf(self.scratch.tau[j]) or not h > 0.0:
                    continue
                b = beta[j]
                z = self.g[j] + h * b
                new = 0.0
                if z > self.scratch.tau[j]:
                    new = (z - self.scratch.tau[j]) / h
                elif z < -self.scratch.tau[j]:
                    new = (z + self.scratch.tau[j]) / h
                if fabs(h * (new - b)) > self.scratch.tol[j]:
                    solved = False
                if new != b:
                    beta[j] = new
                    axpy(self.p, b - new, m.S + j * self.p, self.g)
                    self.g[j] -= self.scratch.ridge[j] * (new - b)
            if solved:
                break
        self.reset()
        for j in range(self.p):
            if beta[j] != 0.0:
                self.hold_or_end(self.k + 1)
                self.k += 1
                self._join(j, 1.0 if beta[j] > 0.0 else -1.0, beta[j])
        self.broken = True
        return SINGULAR

    # --- for checkpoints ----------------------------------------------------------------------------------------

    def travel(self, tape):
        """A factor that is broken is made anew before it is used, and is not kept."""
        k: cython.Py_ssize_t = tape.rows(cython.address(self.k), self.p)
        if tape.mode == READ and not self.hold(k):
            k = self.k = 0
            tape.lack()
        if tape.mode == CHECK:
            self._check_list(tape, k)
        elif k == self.held:
            tape.indices(self.members, 3 * k, 0, self.p)
        else:
            tape.indices(self.members, k, 0, self.p)
            tape.doubles(self.b, k, FINITE)
            tape.doubles(self.sign, k, SIGN)
        broken: cython.bint = tape.flag(cython.address(self.broken))
        tape.count(cython.address(self.age))
        if not broken:
            self._travel_factor(tape)

    def _check_list(self, tape, k):
        """The members, which are k different features, their coefficients and signs."""
        i: cython.Py_ssize_t
        if self._is_list(tape, k):
            if not self.hold(k):
                tape.lack()
            return
        twice: cython.ulonglong = 0
        seen: cython.ulonglong = 0
        bit: cython.ulonglong
        resting: cython.pointer[cython.schar]
        members: cython.pointer[cython.const[cython.Py_ssize_t]] = tape.indices(self.members, k, 0, self.p)
        tape.doubles(self.b, k, FINITE)
        tape.doubles(self.sign, k, SIGN)
        if tape.wrong != cython.NULL:
            return
        if not self.hold(k):
            tape.lack()
        if self.p <= BITS:
            for i in range(k):
                bit = cython.cast(cython.ulonglong, 1) << members[i]
                twice |= seen & bit
                seen |= bit
        else:
            # With so many features the scratch space is never with others.
            resting = self.scratch.resting
            for i in range(k):
                twice |= resting[members[i]]
                resting[members[i]] = True
            for i in range(k):
                resting[members[i]] = False
        tape.require(twice == 0, b"the active set names a feature twice")

    def _is_list(self, tape, k):
        """Whether it is one, at one look: most are. Otherwise the tape stays where it is, to find out what is wrong."""
        i: cython.Py_ssize_t
        wrong: cython.ulonglong = 0
        seen: cython.ulonglong = 0
        bit: cython.ulonglong
        p: cython.ulonglong = self.p
        members: cython.pointer[cython.ulonglong] = cython.cast(cython.pointer[cython.ulonglong], tape.start + tape.at)
        if self.p > BITS or not tape.clean or tape.at + 3 * k * cython.cast(cython.Py_ssize_t, WIDTH) > tape.end:
            return False
        for i in range(k):
            bit = cython.cast(cython.ulonglong, 1) << (members[i] & 63)
            wrong |= (members[i] >= p) | (seen & bit) | ((members[2 * k + i] ^ ONE) << 1)
            seen |= bit
        if wrong == 0:
            tape.at += 3 * k * WIDTH
        return wrong == 0

    def _keeps_triangle(self, known):
        return not known["age"][0]


@cython.cclass
class ActiveSets(Pointers):
    """The active sets that follow one S."""

    def absorb(self, z):
        """S has become S + z z'."""
        i: cython.Py_ssize_t
        for i in range(self.n):
            if not cython.cast(ActiveSet, self.at[i]).broken:
                cython.cast(ActiveSet, self.at[i]).absorb(z)

    def expel(self, z):
        """S has become S - z z'."""
        i: cython.Py_ssize_t
        for i in range(self.n):
            cython.cast(ActiveSet, self.at[i]).expel(z)

    def lose_track(self):
        """S is new: the factors have to be."""
        i: cython.Py_ssize_t
        for i in range(self.n):
            cython.cast(ActiveSet, self.at[i]).broken = True

    def trim(self):
        """No room to spare."""
        i: cython.Py_ssize_t
        for i in range(self.n):
            cython.cast(ActiveSet, self.at[i]).trim()

    def scale(self, factor):
        """S times factor."""
        i: cython.Py_ssize_t
        for i in range(self.n):
            cython.cast(ActiveSet, self.at[i]).scale(factor)

    def reset(self):
        """Everything at zero."""
        i: cython.Py_ssize_t
        for i in range(self.n):
            cython.cast(ActiveSet, self.at[i]).reset()
