# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The model and its baselines, averaged by how well they have predicted.

The rule is that of the mixture (`core/base/hedge.py`), with what a loss exceeds the least possible one by, in units
of its fading mean for the average itself:

    l_k = min(D_k / phi, CAP),      phi = S / n,      S <- DECAY S + 2 D,      n <- DECAY n + 1
"""

import cython
import numpy as np
from cython.cimports.streamlasso.core.base.hedge import Hedge
from cython.cimports.streamlasso.core.base.state import Stateful
from cython.cimports.streamlasso.core.base.tape import WEIGHT
from cython.cimports.streamlasso.core.linalg.kernels import in_units

from streamlasso.baselines import LAST, MEAN, SEASON
from streamlasso.core.base.state import Column, numbers

MODEL = "the model"
#: Weights before the first row. Many series stay close to their last value until the model knows better.
PRIOR = {MODEL: 0.4, LAST: 0.4, MEAN: 0.1, SEASON: 0.1}
#: No row changes the log odds of two predictions by more than RATE * CAP, so one outlier does not decide. Rates of 0.2
#: to 0.35 and caps of 10 to 20 are within 0.3 % of each other.
RATE, SHARE, CAP = 0.25, 0.001, 15.0
#: Slow, and without a cap: where a series jumps, rows in which nothing happens say little for a while.
DECAY = cython.declare(cython.double, 0.995)


@cython.cclass
class Competition(Stateful):
    """Weights of the model and of the baselines in `names`.

    >>> import numpy as np
    >>> from streamlasso.baselines import MEAN
    >>> from streamlasso.families import Gaussian
    >>> competition = Competition(Gaussian(), [MEAN])
    >>> y = np.arange(50) % 2 + 5.0
    >>> eta = competition.blend({MODEL: y, MEAN: np.full(50, 5.5)}, y, np.ones(50, bool))
    >>> np.abs(eta - y)[[0, 9, 49]].round(2).tolist()
    [0.1, 0.0, 0.0]
    """

    STATE = (numbers("losses", Column("total"), Column("n")),)

    def __cinit__(self, family, names):
        self.family = family
        self.competitors = [name for name in PRIOR if name == MODEL or name in names]
        prior = np.array([PRIOR[name] for name in self.competitors])
        self.hedge = Hedge(prior / prior.sum(), RATE, SHARE)
        self.total = self.n = 0.0

    @property
    def weights(self):
        """Those of the next row, by name."""
        return dict(zip(self.competitors, self.hedge.weights.tolist(), strict=True))

    def blend(self, etas, y, scored=None):
        """The average eta of each of the next rows. Those that are scored then change the weights; None scores none."""
        i: cython.Py_ssize_t
        by_row: cython.double[:, ::1] = np.column_stack([etas[name] for name in self.competitors])
        responses: cython.const[cython.double][::1] = np.ascontiguousarray(y)
        counts = np.zeros(len(y), np.uint8) if scored is None else scored.view(np.uint8)
        counted: cython.const[cython.uchar][::1] = np.ascontiguousarray(counts)
        least: cython.const[cython.double][::1] = self.family.least_loss(np.where(np.isnan(y), 1.0, y))
        loss: cython.double[::1] = np.empty(len(self.competitors))
        out = np.empty(by_row.shape[0])
        average: cython.double[::1] = out
        for i in range(by_row.shape[0]):
            average[i] = self.hedge.average(cython.address(by_row[i, 0]))
            if counted[i]:
                self._weigh(responses[i], cython.address(by_row[i, 0]), average[i], least[i], loss)
        return out

    def _weigh(self, y, etas, eta, least, loss):
        """Update the weights, then the dispersion."""
        n: cython.Py_ssize_t = loss.shape[0]
        if self.total > 0.0:
            self.family.losses_of(n, y, etas, cython.address(loss[0]))
            in_units(n, etas, least, self.total / self.n, CAP, 1.0, cython.address(loss[0]))
            self.hedge.update(cython.address(loss[0]))
        self.total = DECAY * self.total + 2.0 * max(self.family.loss_at(y, eta) - least, 0.0)
        self.n = DECAY * self.n + 1.0
        return 0

    def travel(self, tape):
        tape.number(cython.address(self.total), WEIGHT)
        tape.number(cython.address(self.n), WEIGHT)
        self.hedge.travel(tape)

    def parts(self):
        return {"hedge/": self.hedge}
