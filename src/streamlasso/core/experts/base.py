# cython: language_level=3
"""What a kind of expert gives to a mixture.

A group of experts shares a memory: `n` of them that differ by their penalty, or one. A new kind is a file in this room
with a subclass of `Experts` and a function `groups`, and its name in KINDS (`__init__.py`).
"""

import cython
from cython.cimports.streamlasso.core.state import Stateful

from streamlasso.memories import Forgetting

#: The memory of all groups that restart.
ALWAYS = Forgetting(1.0)


@cython.cclass
class Experts(Stateful):
    """`n` experts with one memory, which `restarts` or stays; `kind` is the word for users."""

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
        """Learn the rows of a batch."""
        return self._missing(b"learn")

    def rest(self):
        """No more rows come for now: give back the room that is to spare."""
        return

    def exchange(self, scratch):
        """Solve in this space from now on; the one that was used so far, None where these experts use none."""
        return None

    def add_coef(self, weight, model):
        """model += sum_k weight_k (b0_k, b_k)"""
        return self._missing(b"add_coef")

    def mark(self, weight, used):
        """Set `used` of each feature that an expert of some weight uses; how many were not set before."""
        return self._missing(b"mark")

    def restart(self, seen, eta, model, turn):
        """Forget all rows. `seen` has the means and deviations of the stream so far, `eta` is that of its mean, `model`
        is (b0, b) of the mixture where it begins there, `turn` counts the restarts."""
        return self._missing(b"restart")

    def begins_at_model(self, turn):
        """Whether that restart needs `model`."""
        return False

    def begins_anew(self, turn):
        """Whether that restart predicts from the first row on, and something else than the mixture does: such a group
        has weight at once (`shares.py`)."""
        return False

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

    def code_of(self, k):
        """How the last solve of the k-th expert went (`record.py`)."""
        return self._missing(b"code_of")

    def _missing(self, name):
        with cython.gil:
            raise NotImplementedError(f"{type(self).__name__} has no {name.decode()}")
