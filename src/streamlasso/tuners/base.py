# cython: language_level=3
"""How lam moves: what the step gives a tuner, and what it takes back."""

import cython
import numpy as np
from cython.cimports.streamlasso.core.base.buffers import copied, fill
from cython.cimports.streamlasso.core.base.part import Part


@cython.cclass
class Tuner(Part):
    """Moves lam once per step (equation (7) of the paper and its relatives).

    Write your own by subclassing and giving `update`; it gets the current `lam`, the derivative `slope` = dC/dlam,
    the length `norm` = sqrt(u'H^{-1}u) of the direction behind it, `lam_max`, and `state`, an array of `n_state`
    numbers that start at 0 and are yours to change (they are kept in checkpoints). It returns the new lam, which is
    then clamped to [0, lam_max].

    >>> from streamlasso.tuners import Tuner
    >>> class SignStep(Tuner):
    ...     def update(self, lam, slope, norm, lam_max, state):
    ...         return lam - 0.01 * lam_max * (1 if slope > 0 else -1)
    >>> SignStep().update(0.5, 2.0, 1.0, 1.0, [])
    0.49
    """

    compiled = False
    #: The word for the tuner in settings and on the command line.
    name = None
    #: Whether experts with different penalties compete, instead of one lam that moves; they choose the memory too.
    competes = False
    #: Whether the last residuals may move the next prediction.
    carry = False
    #: How many numbers the tuner remembers from step to step.
    n_state = 0
    #: Whether lam is kept within [0, lam_max]; only a tuner that never moves it does without.
    clamped = True

    @property
    def lambda_init(self):
        """The lam to start from, or None to leave it to the estimator."""
        return None

    def move(self, lam, slope, norm, lam_max, state, n):
        """`update`, for compiled code; built-in tuners have it the other way round. There are n numbers in `state`,
        whatever `n_state` is by now."""
        with cython.gil:
            numbers = copied(state, n)
            lam = self.update(lam, slope, norm, lam_max, numbers)
            fill(state, n, numbers)
            return lam

    def check(self):
        """Refuse a tuner that lacks a method."""
        cls = type(self)
        written = cls.update is not Tuner.update
        if cls.compiled and written:
            raise TypeError(f"{cls.__name__}: the rule of a built-in tuner cannot be replaced; subclass Tuner instead")
        if not cls.compiled and not written:
            raise TypeError(f"{cls.__name__}: a tuner gives update(lam, slope, norm, lam_max, state)")

    def update(self, lam, slope, norm, lam_max, state):
        """The new lam."""
        self.check()
        numbers: cython.double[::1] = np.asarray(state, dtype=float)
        n: cython.Py_ssize_t = numbers.shape[0]
        if n < self.n_state:
            raise ValueError(f"state has {n} numbers; {type(self).__name__} needs {self.n_state}")
        return self.move(lam, slope, norm, lam_max, cython.address(numbers[0]) if n > 0 else cython.NULL, n)
