"""A tuner of your own. Copy this file and change the class.

This one is gradient descent with momentum.
"""

from streamlasso.tuners import Tuner


class Momentum(Tuner):
    """velocity = friction velocity + dC/dlam; lam -= step_size velocity."""

    name = "momentum"
    #: How many numbers the tuner remembers from row to row; they start at 0.
    n_state = 1

    def __init__(self, step_size=0.001, friction=0.9):
        self.step_size = step_size
        self.friction = friction

    def update(self, lam, slope, norm, lam_max, state):
        """The new lam, which is then clamped to [0, lam_max].

        slope : dC/dlam, the derivative of the loss of the row just predicted
        norm : the length sqrt(u'H^{-1}u) of the direction behind it
        state : the `n_state` numbers; change them in place
        """
        state[0] = self.friction * state[0] + slope
        return lam - self.step_size * state[0]
