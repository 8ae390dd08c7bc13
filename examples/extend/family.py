"""A family of your own. Copy this file and change the class.

This one is robust regression, with the pseudo-Huber loss: quadratic near 0, linear far out.
"""

from math import sqrt

import numpy as np

from streamlasso.families import Family


class Robust(Family):
    """A number, with the loss scale^2 (sqrt(1 + (e/scale)^2) - 1) of the error e = eta - y."""

    # Needed: the loss, its first two derivatives in eta, and the mean of y, all of plain floats.
    # The loss has to be convex in eta.

    def __init__(self, scale=1.0):
        self.scale = scale

    def loss(self, y, eta):
        return self.scale**2 * (sqrt(1 + ((eta - y) / self.scale) ** 2) - 1)

    def slope(self, y, eta):
        return (eta - y) / sqrt(1 + ((eta - y) / self.scale) ** 2)

    def curvature(self, y, eta):
        return (1 + ((eta - y) / self.scale) ** 2) ** -1.5

    def mean(self, eta):
        return eta

    # Everything below may be left out. Names are for settings and reports, the methods take arrays.

    name = "robust"
    response = "a number, with outliers"
    loss_name = "pseudo-Huber loss"

    def link(self, mean):
        """The eta whose mean this is: `persistence`, which predicts the last response, uses it."""
        return np.asarray(mean)

    def least_loss(self, y):
        """The loss of a perfect prediction: traces then show how much loss is saved."""
        return np.zeros(len(y))

    def running_mean(self, n, total):
        """eta of the mean of n responses: the baseline. Without it the engine fits an intercept."""
        return np.where(n > 0, total / np.maximum(n, 1), 0)

    def sample(self, rng, eta):
        """Draw responses, for `simulate`."""
        return eta + self.scale * rng.standard_t(3, size=np.shape(eta))

    def check_target(self, y):
        """What is wrong with the responses y, in words; None if nothing is."""
        return None
