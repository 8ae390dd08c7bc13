# cython: language_level=3
"""What a family of responses gives: its loss as a function of eta = b0 + x'b, two derivatives, and its own words."""

import cython
import numpy as np
from cython.cimports.streamlasso.core.base.part import Part

REQUIRED = ("loss", "slope", "curvature", "mean")


@cython.cclass
class Family(Part):
    """A convex loss(y, eta) with its slope d/deta, its curvature d2/deta2 and the mean of y given eta.

    Write your own by subclassing and giving the four methods, for plain floats (see docs/extending.md); it runs
    everywhere a built-in one does, slower. The built-in ones give the compiled `*_at` methods instead.

    >>> from streamlasso.families import Family
    >>> class Quartic(Family):
    ...     def loss(self, y, eta):
    ...         return (y - eta) ** 4 / 4 + (y - eta) ** 2 / 2
    ...     def slope(self, y, eta):
    ...         return -((y - eta) ** 3) - (y - eta)
    ...     def curvature(self, y, eta):
    ...         return 3 * (y - eta) ** 2 + 1
    ...     def mean(self, eta):
    ...         return eta
    >>> Quartic().slope(1.0, 0.0)
    -2.0
    """

    def __cinit__(self, *args, **settings):
        # Most streams take any number: a row need not ask.
        self.checks_target = type(self).check_target is not Family.check_target

    def loss_at(self, y, eta):
        with cython.gil:
            return self.loss(y, eta)

    def slope_at(self, y, eta):
        with cython.gil:
            return self.slope(y, eta)

    def curvature_at(self, y, eta):
        with cython.gil:
            return self.curvature(y, eta)

    def losses_of(self, n, y, eta, loss):
        """The losses of n etas for one response."""
        i: cython.Py_ssize_t
        for i in range(n):
            loss[i] = self.loss_at(y, eta[i])
        return 0

    def slopes_at(self, y, eta, slope, curvature):
        """Both at once; built-in families take them from one exponential."""
        slope[0] = self.slope_at(y, eta)
        curvature[0] = self.curvature_at(y, eta)
        return 0

    def slopes(self, n, y, eta, slope, curvature):
        """Slope and curvature of n rows; built-in families take them from one exponential."""
        i: cython.Py_ssize_t
        for i in range(n):
            slope[i] = self.slope_at(y[i], eta[i])
            curvature[i] = self.curvature_at(y[i], eta[i])
        return 0

    def mean_at(self, eta):
        with cython.gil:
            return self.mean(eta)

    def means_of(self, n, eta, mean):
        """The means of n etas; they do not overlap."""
        i: cython.Py_ssize_t
        for i in range(n):
            mean[i] = self.mean_at(eta[i])
        return 0

    def spread_at(self, eta):
        """How far responses spread about their mean, up to a factor that the stream shows."""
        return 1.0

    def best_eta(self, y, low, high):
        """The eta in [low, high] with the least loss for y; built-in families have a closed form."""
        turn: cython.int
        middle: cython.double
        for turn in range(60):
            middle = 0.5 * (low + high)
            if self.slope_at(y, middle) < 0.0:
                low = middle
            else:
                high = middle
        return 0.5 * (low + high)

    def residual_at(self, y, eta):
        """How far a response is from its prediction, on a scale where errors of a stream can be compared."""
        return y - self.mean_at(eta)

    def level_at(self, y):
        """A response on that scale."""
        return y

    def check(self):
        """Refuse a family that lacks a method."""
        cls = type(self)
        written = [name for name in REQUIRED if getattr(cls, name) is not getattr(Family, name)]
        missing = [name for name in REQUIRED if name not in written]
        if cls.compiled and written:
            raise TypeError(
                f"{cls.__name__}: {written} of a built-in family cannot be replaced; subclass Family instead"
            )
        if not cls.compiled and missing:
            raise TypeError(f"{cls.__name__}: a family gives {', '.join(REQUIRED)}; missing: {', '.join(missing)}")

    compiled = False
    #: The word for the family in settings and on the command line, and the words for its responses.
    name = None
    response = "a number"
    #: What the loss is called. Where a perfect prediction does not have loss 0, reports show the loss less
    #: `least_loss`, half the deviance, under `deviance_name`.
    loss_name = "loss"
    deviance_name = None
    #: Whether the noise has a scale that has to be learnt.
    has_scale = True
    #: Whether responses are 0 or 1, so that their mean is a probability; all others have quantiles.
    binary = False
    #: Whether any number of sparse features can be learnt with it (`streamlasso.wide`).
    goes_wide = False
    #: No response is lower.
    lowest = -np.inf
    #: Whether responses are whole numbers.
    whole = False
    #: Whether the loss is (y - eta)^2 / 2, for which sums of squares and products are all that a model needs.
    quadratic = False

    def loss(self, y, eta):
        """loss(y, eta), element by element."""
        return self._each(0, y, eta)

    def losses(self, y, eta):
        """The same for arrays, also where a family of your own gives `loss` for plain floats only."""
        return self._each(0, y, eta)

    def slope(self, y, eta):
        """d loss/d eta, element by element."""
        return self._each(1, y, eta)

    def curvature(self, y, eta):
        """d2 loss/d eta2, element by element."""
        return self._each(2, y, eta)

    def derivatives(self, y, eta):
        """Slopes and curvatures of rows, also where a family of your own gives them for plain floats only."""
        slope, curvature = np.empty(len(y)), np.empty(len(y))
        ys: cython.const[cython.double][::1] = np.ascontiguousarray(y, dtype=float)
        etas: cython.const[cython.double][::1] = np.ascontiguousarray(eta, dtype=float)
        slopes: cython.double[::1] = slope
        curvatures: cython.double[::1] = curvature
        if len(y) > 0:
            self.slopes(
                len(y),
                cython.address(ys[0]),
                cython.address(etas[0]),
                cython.address(slopes[0]),
                cython.address(curvatures[0]),
            )
        return slope, curvature

    def mean(self, eta):
        """The mean of y given eta, element by element."""
        return self._each(3, eta, eta)

    def means(self, eta):
        """The same for arrays, also where a family of your own gives `mean` for plain floats only."""
        return self._each(3, eta, eta)

    def link(self, mean):
        """The eta whose mean this is, element by element."""
        raise TypeError(f"{type(self).__name__} has no link(mean)")

    def least_loss(self, y):
        """The loss of a perfect prediction of each y; nan where the family does not say."""
        return np.full(len(y), np.nan)

    def running_mean(self, n, total):
        """eta of the mean of n responses that add up to `total`; None where the family does not say."""
        return None

    def persistence(self, last):
        """The eta that predicts the last response again."""
        return self.link(last)

    def lagged(self, y):
        """Earlier responses as a feature: on the scale of eta."""
        return np.asarray(y)

    def lagged_name(self, name):
        """What that feature is called, of a response with this name."""
        return name

    def looks_like(self, y):
        """Would somebody who sees these responses take them for this family?"""
        return False

    def sample(self, rng, eta):
        """Draw responses with the given eta, from a numpy Generator."""
        raise TypeError(f"{type(self).__name__} does not say how to draw responses")

    def check_target(self, y):
        """What is wrong with the responses y, in words; None if nothing is."""
        return None

    def _each(self, which, y, eta):
        y, eta = np.broadcast_arrays(np.asarray(y, dtype=float), np.asarray(eta, dtype=float))
        out = np.empty(y.shape)
        ys: cython.const[cython.double][::1] = np.ascontiguousarray(y).reshape(-1)
        etas: cython.const[cython.double][::1] = np.ascontiguousarray(eta).reshape(-1)
        outs: cython.double[::1] = out.reshape(-1)
        i: cython.Py_ssize_t
        for i in range(outs.shape[0]):
            if which == 0:
                outs[i] = self.loss_at(ys[i], etas[i])
            elif which == 1:
                outs[i] = self.slope_at(ys[i], etas[i])
            elif which == 2:
                outs[i] = self.curvature_at(ys[i], etas[i])
            else:
                outs[i] = self.mean_at(etas[i])
        return out if out.ndim else float(out)
