"""The lemmas' pieces against scikit-learn's lasso, finite differences and the engine; the summary by hand."""

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Lasso

from oracles.replay import Stream, learner, run
from streamlasso.families import Gaussian
from streamlasso.memories import Forgetting
from streamlasso.penalties import L1
from streamlasso.reproduce.lasso_pieces import (
    DIAGONAL,
    EXACT,
    GRADIENTS,
    MEMORY,
    N_ROWS,
    ONE_KNOT,
    POINT,
    SEVERAL,
    UPDATED,
    Pieces,
    draw,
    iterated,
    lasso_path,
    outcome,
    pieces,
)
from streamlasso.reproduce.theory import Paths, as_markdown, breaking_step, summaries
from streamlasso.simulate import SPARSE, simulate
from streamlasso.tuners import Fixed

seeds, shares = st.integers(0, 10_000), st.floats(0.01, 0.99)


def solved(problem, lam):
    """The lasso on rows with the same moments: the rows of a root of S."""
    root = np.linalg.cholesky(problem.S).T
    n = len(root)
    y = np.linalg.solve(root.T, problem.c)
    model = Lasso(lam / n, fit_intercept=False, tol=1e-14, max_iter=1_000_000).fit(root, y)
    return model.coef_


def loss(problem, beta):
    return (problem.y - problem.x @ beta) ** 2 / 2


@settings(max_examples=15, deadline=None)
@given(seeds, shares)
def test_between_knots_the_coefficients_are_those_of_scikit_learn(seed, share):
    problem = draw(0, seed, "sparse")
    knots, beta = lasso_path(problem)
    lam = share * knots[-1]
    k = np.searchsorted(knots, lam) - 1
    part = (lam - knots[k]) / (knots[k + 1] - knots[k])
    np.testing.assert_allclose((1 - part) * beta[k] + part * beta[k + 1], solved(problem, lam), atol=1e-5)


@settings(max_examples=30, deadline=None)
@given(seeds, shares)
def test_the_exact_slope_is_the_derivative_of_the_loss(seed, share):
    problem = draw(1, seed, "dense")
    found = pieces(problem, EXACT)
    widths = np.diff(found.knots)
    k = int(np.argmax(widths * (np.arange(len(widths)) % 3 == seed % 3)))
    lam, h = found.knots[k] + share * widths[k], 1e-4 * widths[k] * min(share, 1 - share)
    beta = [
        found.beta[k] + (at - found.knots[k]) / widths[k] * np.diff(found.beta, axis=0)[k] for at in (lam - h, lam + h)
    ]
    expected = (loss(problem, beta[1]) - loss(problem, beta[0])) / (2 * h)
    assert found.slope(np.array([lam]))[0] == pytest.approx(expected, rel=1e-4, abs=1e-7)


@pytest.mark.parametrize(
    ("gradient", "setting"),
    [
        (EXACT, dict(curvature="previous")),
        (UPDATED, dict(curvature="updated")),
        (DIAGONAL, dict(curvature="previous", gradient="diagonal")),
    ],
)
@pytest.mark.parametrize("share", [0.03, 0.2, 0.7])
def test_the_slope_is_the_engines(gradient, setting, share):
    problem = draw(2, 5, "sparse")
    rng = np.random.default_rng(np.random.SeedSequence([5, 2]))
    rows = simulate(rng, lengths=[N_ROWS + 1], densities=[SPARSE])
    stream = Stream(rows.X, rows.y)
    found = pieces(problem, gradient)
    lam = share * found.lam_max
    setting = dict(family=Gaussian(), memory=Forgetting(MEMORY), penalty=L1(), tuner=Fixed(lam), **setting)
    ran = run(learner(stream, fit_intercept=False, standardize=False, **setting), stream)
    assert ran.slope[-1] == pytest.approx(found.slope(np.array([lam]))[0], rel=1e-6)


@settings(max_examples=40, deadline=None)
@given(seeds, st.sampled_from(GRADIENTS), st.floats(0.01, 3.0), shares, shares)
def test_two_lams_of_a_piece_come_nearer_if_and_only_if_the_step_is_below_the_limit(seed, gradient, part, one, other):
    found = pieces(draw(0, seed, "dense"), gradient)
    k = seed % len(found.rise)
    low, high = found.knots[k], found.knots[k + 1]
    a, b = low + min(one, other) * (high - low), low + max(one, other) * (high - low)
    rise = found.rise[k]
    if b - a < 1e-3 * (high - low) or high - low < 1e-6 or abs(rise) < 1e-6 or abs(part - 1) < 1e-3:
        return
    step = part * 2 / abs(rise)
    before, after = b - a, abs((b - a) - step * np.diff(found.slope(np.array([a, b])))[0])
    assert (after < before) == (rise > 0 and part < 1)


def test_the_exact_gradient_always_rises_and_the_diagonal_one_does_not():
    found = {gradient: [pieces(draw(i, 0, "sparse"), gradient).rise for i in range(10)] for gradient in GRADIENTS}
    for gradient in (EXACT, UPDATED):
        assert min(rise.min() for rise in found[gradient]) >= 0
    assert min(rise.min() for rise in found[DIAGONAL]) < 0
    # With the new row in the Hessian the leverage is bounded, so larger steps contract.
    limits = [[breaking_step(rise) for rise in found[gradient]] for gradient in (EXACT, UPDATED)]
    assert (np.array(limits[0]) <= np.array(limits[1])).all()


def kink(below, above, rise=0.0):
    """dC/dlam jumps from `below` to `above` at lam = 1 of 2."""
    return Pieces(np.array([0.0, 1.0, 2.0]), np.array([below, above]), np.array([rise, rise]), np.zeros((3, 1)))


@pytest.mark.parametrize(
    ("found", "step", "start", "expected"),
    [
        (Pieces(np.array([0.0, 2.0]), np.array([-1.0]), np.array([1.0]), np.zeros((2, 1))), 0.5, 0.3, POINT),
        (Pieces(np.array([0.0, 2.0]), np.array([-1.0]), np.array([1.0]), np.zeros((2, 1))), 1e-4, 0.3, POINT),
        (Pieces(np.array([0.0, 2.0]), np.array([-1.0]), np.array([1.0]), np.zeros((2, 1))), 2.5, 0.3, SEVERAL),
        (kink(-1.0, 1.0), 0.25, 0.4, ONE_KNOT),
        (kink(-1.0, 2.0), 0.125, 0.4, ONE_KNOT),
        (kink(1.0, 1.0), 0.125, 1.9, POINT),
    ],
)
def test_where_g_ends(found, step, start, expected):
    assert outcome(found, iterated(found, np.array([step]), start)[:, 0]) == expected


def test_near_a_knot_where_the_slope_jumps_up_through_zero_every_step_drives_lams_apart():
    """Why Lemma 2 does not give a contraction of the whole: |G(a) - G(b)| tends to step times the jump, not to 0."""
    found = kink(-1.0, 1.0, rise=0.5)
    for step in (1e-6, 1e-3, 1.0):
        a, b = np.array([1 - step / 100]), np.array([1 + step / 100])
        apart = abs((b - step * found.slope(b)) - (a - step * found.slope(a)))[0]
        assert apart > (b - a)[0]


def test_summary_is_counted_from_the_tables():
    pieces_of = [("a", 0, [4.0, 1.0]), ("a", 1, [40.0, 1.0]), ("a", 2, [4.0, -1.0])]
    rows = [
        dict(regime="r", gradient=g, draw=i, piece=k, low=0.0, high=1.0, rise=rise, slope_low=0.5 - k, slope_high=-0.1)
        for g, i, rises in pieces_of
        for k, rise in enumerate(rises)
    ]
    rows[1]["slope_low"] = 0.2
    ends = [
        dict(regime="r", gradient="a", draw=i, step=0.1, outcome=name, width=0.3)
        for i, name in enumerate([POINT, ONE_KNOT, ONE_KNOT])
    ]
    (line,) = summaries(pyarrow.Table.from_pylist(rows), pyarrow.Table.from_pylist(ends))
    assert line.contracts == pytest.approx(1 / 3)
    assert line.of_pieces == pytest.approx(4 / 6)
    assert line.expands == pytest.approx(1 / 6)
    assert line.turns == pytest.approx(1 / 3)
    assert (line.limit, line.limit_low) == (0.05, 0.0)
    assert (line.point, line.one_knot, line.width) == (pytest.approx(1 / 3), pytest.approx(2 / 3), 0.3)
    assert "| 0.1 | 33.3 % | 66.7 % | 33.3 % | 66.7 % | 0.3 | 0 % |" in as_markdown([line], 3, 0)


def test_a_part_has_every_draw_under_every_gradient():
    tables = Paths(0, 3, 5).run()
    ends = tables["ends"].to_pylist()
    assert {end["draw"] for end in ends} == {3, 4}
    assert {end["gradient"] for end in ends} == set(GRADIENTS)
    rows = [
        row
        for row in tables["pieces"].to_pylist()
        if (row["draw"], row["regime"], row["gradient"]) == (3, "dense", EXACT)
    ]
    found = pieces(draw(3, 0, "dense"), EXACT)
    np.testing.assert_array_equal([row["rise"] for row in rows], found.rise)
    np.testing.assert_allclose([row["slope_high"] for row in rows], found.at_high)
