# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""What a mixture is made of: experts that predict, and groups that average them.

`Experts` share a memory: `n` of them that differ by their penalty, or one. A `Group` is a range of experts with an
average of its own. Groups may share experts, since to average once more costs next to nothing.

A new kind is a file in this room with a function `join(parts)`, which adds experts and groups (`Parts`), and its name
in KINDS (`__init__.py`).
"""

import cython
from cython.cimports.libc.math import INFINITY
from cython.cimports.streamlasso.core.base.buffers import Doubles
from cython.cimports.streamlasso.core.base.hedge import Hedge
from cython.cimports.streamlasso.core.base.state import Stateful
from cython.cimports.streamlasso.core.linalg.kernels import dot
from cython.cimports.streamlasso.core.mixture.residuals import Carry

#: Experts of one group differ little, and all err where the stream is hard: a row is trusted this much.
RATE = 0.2
SHARE = 0.002
#: Of the loss by which an expert is weighed, the part that is its own. The rest is what a little more of it would have
#: changed in the average (the linearised loss): the first finds the best expert, the second the best combination.
OWN = cython.declare(cython.double, 0.5)


@cython.cclass
class Experts(Stateful):
    """`n` experts with one memory; `kind` is the word for users."""

    kind = None
    #: Whether many of their coefficients are 0.
    sparse = True
    #: Whether they fit the likelihood itself, and not quadratics in its place.
    exact = False
    #: Whether the first of them has no features.
    first_is_empty = False

    def predict(self, x, eta):
        """eta of each expert."""
        return self._missing(b"predict")

    def learn(self, batch):
        """Learn the rows of a batch; where family and tuner are compiled, without ever taking the GIL."""
        return self._missing(b"learn")

    def rest(self):
        """No more rows come for now: give back the room that is to spare."""
        return

    def add_coef(self, weight, model):
        """model += sum_k weight_k (b0_k, b_k)"""
        return self._missing(b"add_coef")

    def mark(self, weight, used):
        """Set `used` of each feature that an expert of some weight uses; how many were not set before."""
        return self._missing(b"mark")

    def lam_of(self, k):
        """The penalty of the k-th expert."""
        return self._missing(b"lam_of")

    def sum_lam(self, weight):
        """sum_k weight_k lam_k"""
        k: cython.Py_ssize_t
        total: cython.double = 0.0
        for k in range(self.n):
            total += weight[k] * self.lam_of(k)
        return total

    def lam_max_of(self):
        """The least penalty that leaves the model empty."""
        return self._missing(b"lam_max_of")

    def size_of(self):
        """The effective number of rows in the memory."""
        return self._missing(b"size_of")

    def keeps_sums(self):
        """Whether the memory is one of least squares, which `write_sums` can show."""
        return False

    def write_sums(self, sums):
        """Those of the memory, for the selection of features (`selection.py`)."""
        return

    def code_of(self, k):
        """How the last solve of the k-th expert went (`record.py`)."""
        return self._missing(b"code_of")

    def _missing(self, name):
        with cython.gil:
            raise NotImplementedError(f"{type(self).__name__} has no {name.decode()}")


@cython.cclass
class Group(Stateful):
    """Experts from `first` on, `n` of them, averaged by their weights `w`.

    prior, start : the weight that the gate leaks back to, and that before the first row, relative to other groups
    carry : what its last residuals say of the next row, or None
    waits : whether it counts for nothing while all responses are the same, by default not
    """

    def __cinit__(
        self,
        name: str,
        first: cython.Py_ssize_t,
        n: cython.Py_ssize_t,
        prior: cython.double,
        carry: Carry = None,
        *args,
    ):
        self.name = name
        self.first = first
        self.n = n
        self.prior = self.start = prior
        self.carry = carry
        self.hedge = Hedge([1.0 / n] * n, RATE, SHARE)
        self.w = self.hedge.used
        self.room = Doubles(n)
        self.regret = self.room.at

    def average(self, pulls):
        """Of the predictions of all experts of the mixture."""
        return dot(self.n, self.w, pulls + self.first)

    def evaluate(self, row, eta, noise):
        """Update the weights by a row for which the average was eta."""
        k: cython.Py_ssize_t
        own: cython.double
        change: cython.double
        slope: cython.double = noise.slope_of(row.y, eta, row.weight)
        average: cython.double = noise.loss_of(row.y, eta, row.weight, row.least)
        most: cython.double = noise.cap
        for k in range(self.n):
            own = row.loss[self.first + k]
            if own < INFINITY:
                change = min(max(slope * (row.etas[self.first + k] - eta), -most), most)
                own = OWN * (own - average) + (1.0 - OWN) * change
            self.regret[k] = own
        self.hedge.update(self.regret)
        return 0

    def begin_group(self, stream):
        """Before the first row is learnt, which `stream` has seen."""
        return 0

    def see(self, stream, eta, n_seen):
        """After a row is learnt, the n_seen-th; eta is that of the mean response."""
        return 0

    def beginnings(self):
        """Of experts that restart: the rows seen when each began, -1 where it has not."""
        return []

    def travel(self, tape):
        self.hedge.travel(tape)
        if self.carry is not None:
            self.carry.travel(tape)

    def parts(self):
        return {"hedge/": self.hedge, **({} if self.carry is None else {"carry/": self.carry})}
