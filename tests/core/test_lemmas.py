"""The paper's lemmas: G(lam) = lam - step_size dC/dlam, iterated on one unseen row, is a contraction piece by piece."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from oracles.replay import learner, run
from streamlasso.families import Gaussian
from streamlasso.memories import Forgetting
from streamlasso.penalties import L1
from streamlasso.tuners import Fixed
from support.streams import made

N = 25
seeds = st.integers(0, 10_000)
shares = st.floats(0.02, 0.95)


class Unseen:
    """dC/dlam of unseen rows (their sum), as a function of lam: the learner's own, its Hessian without them."""

    def __init__(self, seed, rows=1):
        self.stream = made(Gaussian(), ["normal"] * 4, N + rows, np.random.default_rng(seed), gain=0.5)
        self.setting = dict(family=Gaussian(), memory=Forgetting(0.98), penalty=L1(), fit_intercept=False)
        self.setting |= dict(curvature="previous", batch_size=rows)
        self.lam_max = self._known(1.0).lam_max

    def _known(self, lam):
        return run(learner(self.stream, tuner=Fixed(lam), **self.setting), self.stream.part(0, N)).learner

    def slope(self, lam):
        return run(self._known(lam), self.stream.part(N, len(self.stream))).slope.sum()

    def piece(self, lam):
        """The active set with its signs: within one, the path is a straight line."""
        return tuple(np.sign(self._known(lam).coef))


@given(seeds, shares, st.floats(1e-3, 1.0))
def test_a_contraction_inside_one_active_set(seed, share, part):
    """Lemma 1. There dC/dlam is linear in lam with slope (x'db)^2 >= 0, so any step below 2 / (x'db)^2 contracts."""
    row = Unseen(seed)
    low, high = share * row.lam_max, (share + 0.02) * row.lam_max
    assume(row.piece(low) == row.piece(high))
    rise = (row.slope(high) - row.slope(low)) / (high - low)
    middle = (row.slope((low + high) / 2) - row.slope(low)) / ((high - low) / 2)
    assert rise >= -1e-9
    assert middle == pytest.approx(rise, rel=1e-6, abs=1e-8)
    step_size = part * 1.99 / max(rise, 1e-12)

    def G(lam):
        return lam - step_size * row.slope(lam)

    assert abs(G(high) - G(low)) <= (high - low) * (1 + 1e-6)
    if rise > 1e-6:
        assert abs(G(high) - G(low)) < high - low


@given(seeds, shares)
def test_a_contraction_for_a_mini_batch_too(seed, share):
    row = Unseen(seed, rows=5)
    low, high = share * row.lam_max, (share + 0.02) * row.lam_max
    assume(row.piece(low) == row.piece(high))
    assert row.slope(high) - row.slope(low) >= -1e-9 * (1 + abs(row.slope(low)))


@given(seeds)
def test_a_cycle_over_two_pieces_is_a_contraction(seed):
    """Lemma 2. If G goes up from the lower piece and down from the upper one, small steps bring the two nearer."""
    row = Unseen(seed)
    lams = np.linspace(0.02, 0.98, 15) * row.lam_max
    slopes = np.array([row.slope(lam) for lam in lams])
    pieces = [row.piece(lam) for lam in lams]
    turns = [i for i in range(14) if slopes[i] < 0 < slopes[i + 1] and pieces[i] != pieces[i + 1]]
    assume(turns)
    for i in turns:
        gap, jump = lams[i + 1] - lams[i], slopes[i + 1] - slopes[i]
        for share in (0.01, 0.5, 1.0, 1.9):
            step_size = share * gap / jump
            apart = abs((lams[i + 1] - step_size * slopes[i + 1]) - (lams[i] - step_size * slopes[i]))
            assert apart < gap


def test_above_lam_max_the_slope_is_one_constant():
    """The empty piece: that of the first feature to enter."""
    row = Unseen(3)
    assert row.slope(1.5 * row.lam_max) == pytest.approx(row.slope(3.0 * row.lam_max), rel=1e-9)
