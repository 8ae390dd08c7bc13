# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""How a key's own model and the pooled one, which sees all rows, predict together.

Three predictions compete for each key, weighted as all that competes here is (`core/base/hedge.py`): that of its own
model, that of the pooled model, and that of the pooled model shifted to the level of this key,

    eta = w_own eta_own + w_pooled eta_pooled + w_shifted (eta_pooled + b)

The shift takes a Newton step on each row's loss, from a prior worth one row at 0, and forgets:

    H <- SHIFT_DECAY H + loss''(eta_pooled + b),        b <- b - loss'(eta_pooled + b) / (1 + H)

A key that has seen no row has the pooled model alone; its own model, which is empty for its first rows, competes after
them.
"""

import cython
from cython.cimports.libc.math import INFINITY, isfinite
from cython.cimports.streamlasso.core.base.checks import FIRST_ROWS
from cython.cimports.streamlasso.core.base.hedge import Hedge
from cython.cimports.streamlasso.core.base.state import Stateful
from cython.cimports.streamlasso.core.base.tape import FINITE, WEIGHT
from cython.cimports.streamlasso.core.mixture.dispersion import Noise

#: The weight of a key's own model when it enters, and what all share per row.
PRIOR = cython.declare(cython.double, 0.25)
SHARE = cython.declare(cython.double, 1e-4)
SHIFT_DECAY = cython.declare(cython.double, 0.99)
#: Beyond this the exponential of eta is not a number.
FARTHEST = cython.declare(cython.double, 700.0)


@cython.cclass
class Pooling(Stateful):
    """The weights, the noise that losses are measured in, and the shift of the pooled model to this key's level."""

    def __cinit__(self, family):
        self.family = family
        self.hedge = Hedge([1.0 / N_COMPETING] * N_COMPETING, 1.0, SHARE, [0.0, 0.5, 0.5])
        self.noise = Noise(family)
        self.shift = self.curvature = 0.0

    @property
    def own_weight(self):
        """That of the key's own model."""
        return self.hedge.used[OWN]

    def combined(self, own, pooled):
        """The average; of the pooled predictions alone where a key's own is no number."""
        used: cython.p_double = self.hedge.used
        eta: cython.double = pooled + used[SHIFTED] * self.shift
        if used[OWN] > 0.0 and isfinite(own):
            eta += used[OWN] * (own - pooled)
        return eta

    def see(self, n_seen, y, weight, own, pooled):
        """A row that the key's model has learnt, after n_seen others."""
        eta: cython.double = pooled + self.shift
        step: cython.double
        if n_seen > 0:
            self._judge(n_seen, y, weight, own, pooled)
        self.curvature = SHIFT_DECAY * self.curvature + weight * self.family.curvature_at(y, eta)
        step = weight * self.family.slope_at(y, eta) / (1.0 + self.curvature)
        if isfinite(step):
            self.shift -= step
        return 0

    def _judge(self, n_seen, y, weight, own, pooled):
        """The weights after a row."""
        c: cython.Py_ssize_t
        eta: cython.double[N_COMPETING]
        loss: cython.double[N_COMPETING]
        least: cython.double = self.family.loss_at(y, self.family.best_eta(y, -FARTHEST, FARTHEST))
        self.noise.measure(y, self.combined(own, pooled), least)
        if self.noise.dispersion > 0.0:
            eta[OWN] = own if n_seen > FIRST_ROWS else INFINITY
            eta[POOLED] = pooled
            eta[SHIFTED] = pooled + self.shift
            # After a change all are far out, and the cap is for what they differ by.
            least = INFINITY
            for c in range(N_COMPETING):
                if isfinite(eta[c]):
                    least = min(least, self.family.loss_at(y, eta[c]))
            for c in range(N_COMPETING):
                loss[c] = self.noise.loss_of(y, eta[c], weight, least)
            self.hedge.update(loss)
        if n_seen == FIRST_ROWS:
            self.hedge.admit(OWN, PRIOR)
        return 0

    def travel(self, tape):
        self.hedge.travel(tape)
        self.noise.travel(tape)
        tape.number(cython.address(self.shift), FINITE)
        tape.number(cython.address(self.curvature), WEIGHT)

    def parts(self):
        return {"hedge.": self.hedge, "noise.": self.noise}

    def exchange_classes(self):
        """What it has learnt, with the two classes exchanged."""
        self.shift = -self.shift
