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
from cython.cimports.libc.math import fabs, isinf
from cython.cimports.libc.string import memcpy
from cython.cimports.streamlasso.core.base.buffers import Pointers
from cython.cimports.streamlasso.core.base.record import OK, SINGULAR
from cython.cimports.streamlasso.core.lasso.members import Members
from cython.cimports.streamlasso.core.linalg.kernels import any_beyond, axpy

#: Block exchanges before the solver walks.
TURNS = cython.declare(cython.int, 6)
#: Beyond this many members that change sign, or features that enter, at once, exchanges undo one another.
FEW = cython.declare(cython.double, 4.0)
FEW_SHARE = cython.declare(cython.double, 0.3)
#: Solutions that rounding spoilt before the fallback is taken.
MOST_UNSETTLED = cython.declare(cython.int, 10)
#: Where refinement stalls, rounding errors larger by this factor are accepted; beyond it the block is singular.
ILL_CONDITIONED = cython.declare(cython.double, 100.0)

DOUBLE = cython.declare(cython.size_t, cython.sizeof(cython.double))


@cython.no_gc
@cython.cclass
class ActiveSet(Members):
    """The members that solve the problem, found from those of the last one."""

    def solve(self, m):
        """Solve for the current m, tau and ridge; returns SINGULAR if it took the fallback."""
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

    def _drop_barred(self):
        i: cython.Py_ssize_t
        for i in range(self.k - 1, -1, -1):
            if isinf(self.scratch.tau[self.members[i]]):
                self.leave(i)

    def _enter_free(self, m):
        """Unpenalised features are members from the start, unless they are combinations of others."""
        j: cython.Py_ssize_t
        resting: cython.pointer[cython.schar] = self.scratch.resting
        self._bar_members(True)
        for j in range(self.p):
            if self.scratch.tau[j] == 0.0 and (resting[j] & MEMBER) == 0 and self.append(m, j):
                self._join(j, 1.0, 0.0)
                resting[j] |= MEMBER
        self._bar_members(False)

    def _sign_free(self):
        """The sign of an unpenalised member is that of its coefficient."""
        i: cython.Py_ssize_t
        if self.has_free:
            for i in range(self.k):
                if self.scratch.tau[self.members[i]] == 0.0:
                    self.sign[i] = -1.0 if self.b[i] < 0.0 else 1.0

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
        """Whether the i-th member would change its sign."""
        return self.scratch.target[i] * self.sign[i] < 0.0 and self.scratch.tau[self.members[i]] > 0.0

    def _few(self):
        """How many members may come or go at once."""
        return FEW + FEW_SHARE * self.k

    def _hold_signs(self, m):
        """Step to the optimum of the members that keep their signs; False, and no step, if too many do not."""
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
        """Walk towards the optimum. The first coefficient to reach zero leaves, and the others walk on."""
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
        """Whether the members meet their conditions. The rounding errors of a factor that follows rows show here."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        for i in range(self.k):
            j = self.members[i]
            if not fabs(self.g[j] - self.scratch.tau[j] * self.sign[i]) <= slack * self.scratch.tol[j]:
                return False
        return True

    def _settle(self, m):
        """Refine with the factor at hand, then with a new one; False if the members changed, or it did not help."""
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
        """Mark the members, which are no candidates, or unmark them."""
        i: cython.Py_ssize_t
        resting: cython.pointer[cython.schar] = self.scratch.resting
        for i in range(self.k):
            if bar:
                resting[self.members[i]] |= MEMBER
            else:
                resting[self.members[i]] &= RESTING

    def _enter_all(self, m):
        """Enter all candidates that are not combinations. The first may replace a member: b is an optimum then."""
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
        """Leave j out until the others are settled: it would enter because of rounding errors alone."""
        resting: cython.pointer[cython.schar] = self.scratch.resting
        resting[j] |= RESTING
        self.scratch.n_resting = self.scratch.n_resting + 1

    def _wake(self):
        """End the rest of all features; returns how many of them violate their conditions."""
        j: cython.Py_ssize_t
        if self.scratch.n_resting == 0:
            return 0
        for j in range(self.p):
            self.scratch.resting[j] = 0
        self.scratch.n_resting = 0
        return self._violators()

    # --- the fallback -------------------------------------------------------------------------------------------

    def _coordinate_descent(self, m):
        """At most 200 sweeps of cyclic coordinate descent, from the current solution."""
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


@cython.cclass
class ActiveSets(Pointers):
    """The active sets that follow one S."""

    def absorb(self, z, sign):
        """S has become S + sign z z'."""
        i: cython.Py_ssize_t
        for i in range(self.n):
            if not cython.cast(ActiveSet, self.at[i]).broken:
                cython.cast(ActiveSet, self.at[i]).absorb(z, sign)

    def lose_track(self):
        """S was made anew, so the factors must be."""
        i: cython.Py_ssize_t
        for i in range(self.n):
            cython.cast(ActiveSet, self.at[i]).broken = True

    def trim(self):
        """Give back room that is not used."""
        i: cython.Py_ssize_t
        for i in range(self.n):
            cython.cast(ActiveSet, self.at[i]).trim()

    def scale(self, factor):
        """S times factor."""
        i: cython.Py_ssize_t
        for i in range(self.n):
            cython.cast(ActiveSet, self.at[i]).scale(factor)

    def reset(self):
        """Remove all members."""
        i: cython.Py_ssize_t
        for i in range(self.n):
            cython.cast(ActiveSet, self.at[i]).reset()
