# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Losses in units of the noise.

An expert's excess D_e is its loss less the least loss that any eta could have had. In units of the dispersion phi, a
fading mean of 2D for the mixture itself, it is a log-likelihood, so there is no learning rate to set, and multiplying y
by a million changes nothing. Real noise has heavy tails, and one outlier must not decide everything, so no row moves
the odds between two experts, or phi, by more than ODDS_CAP allows:

    l_e = min(D_e / phi, ODDS_CAP),        phi <- fading mean of 2 min(D, ODDS_CAP phi)

A class has no scale and no tails (`Family.has_scale`): there phi is 1, and there is no cap. The loss of a row counts
with the row's weight.
"""

import cython
from cython.cimports.libc.math import INFINITY, isfinite, sqrt
from cython.cimports.streamlasso.core.base.state import Stateful
from cython.cimports.streamlasso.core.base.tape import WEIGHT
from cython.cimports.streamlasso.core.linalg.kernels import in_units

from streamlasso.core.base.state import Column, numbers

#: The most that one row can change the log odds between two experts.
ODDS_CAP = cython.declare(cython.double, 6.0)
#: The deviations beyond which a residual says nothing more.
OUTLIER = cython.declare(cython.double, 6.0)
#: The forgetting factor of the dispersion.
DISPERSION_DECAY = cython.declare(cython.double, 0.98)
#: No error is known to a smaller share of the response: without noise, experts would compete in their last digits.
ROUNDING = cython.declare(cython.double, 1e-14)
#: The first rows are predicted from next to nothing: of n rows so far the i-th weighs about i^2.
YOUNG = cython.declare(cython.double, 2.0 / 3.0)


@cython.cclass
class Noise(Stateful):
    """The dispersion of the responses, 0 until it is known, and losses in units of it."""

    STATE = (numbers("dispersion", Column("dispersion"), Column("dispersion_weight")),)

    def __cinit__(self, family):
        self.family = family
        self.scaled = family.has_scale
        self.cap = ODDS_CAP if self.scaled else INFINITY
        self.rounding = ROUNDING * ROUNDING if family.quadratic else 0.0
        self.dispersion = 0.0 if self.scaled else 1.0
        self.dispersion_weight = 0.0

    def measure(self, y, eta, least):
        """The mixture predicted eta; `least` is the smallest loss that it could have had."""
        deviance: cython.double
        if not self.scaled:
            return 0
        deviance = 2.0 * max(self.family.loss_at(y, eta) - least, 0.0)
        if self.dispersion > 0.0:
            deviance = max(min(deviance, 2.0 * self.cap * self.dispersion), self.rounding * y * y)
        decay: cython.double = min(DISPERSION_DECAY, self.dispersion_weight / (self.dispersion_weight + YOUNG))
        self.dispersion_weight = decay * self.dispersion_weight + 1.0
        self.dispersion += (deviance - self.dispersion) / self.dispersion_weight
        return 0

    def loss_of(self, y, eta, weight, least):
        """Infinite where eta is not finite."""
        if not isfinite(eta):
            return INFINITY
        return weight * min((self.family.loss_at(y, eta) - least) / self.dispersion, self.cap)

    def trust(self, y, eta, least):
        """1, or for an outlier what its residual has to be multiplied by to count as one of OUTLIER deviations."""
        excess: cython.double
        if not self.scaled or not self.dispersion > 0.0:
            return 1.0
        excess = 2.0 * (self.family.loss_at(y, eta) - least) / self.dispersion
        return OUTLIER / sqrt(excess) if excess > OUTLIER * OUTLIER else 1.0

    def slope_of(self, y, eta, weight):
        """The derivative of the loss by eta."""
        return weight * self.family.slope_at(y, eta) / self.dispersion

    def losses_of(self, n, y, etas, weight, least, loss):
        """`loss_of` n predictions."""
        self.family.losses_of(n, y, etas, loss)
        in_units(n, etas, least, self.dispersion, self.cap, weight, loss)
        return 0

    def travel(self, tape):
        tape.number(cython.address(self.dispersion), WEIGHT)
        tape.number(cython.address(self.dispersion_weight), WEIGHT)
