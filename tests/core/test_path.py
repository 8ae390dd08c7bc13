"""One memory, many penalties: each solves its problem; a row of another family enters where its own fit puts it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from oracles.mixtures import FIRST_ROWS, experts, mixture
from oracles.problem import Problem
from oracles.replay import problems, run
from oracles.weights import weights
from streamlasso import families, memories, penalties
from streamlasso.families import Gamma, Gaussian
from streamlasso.memories import Forgetting, Window
from streamlasso.penalties import L1, ElasticNet, Ridge
from streamlasso.tuners import Mixture
from support.streams import streams

every_memory = pytest.mark.parametrize("memory", memories.EXAMPLES, ids=str)
others = pytest.mark.parametrize("family", [f for f in families.EXAMPLES if type(f) is not Gaussian], ids=str)
POWERS = (0.0, 0.3, 0.6, 1.0, 1.5)
#: An expert with this weight, before a restart gave it more, is exact after every row.
MATTERS = 0.055


def alone(power):
    """A mixture of one expert."""
    return Mixture(powers=(power,), factors=(), runs=0, carry=False)


def within(stream):
    """The stream without tails, its extremes first: nothing is ever clipped."""
    stream.X[:] = np.clip(stream.X, -1.0, 1.0)
    stream.y[:] = np.clip(stream.y, *np.quantile(stream.y, [0.1, 0.9]))
    stream.X[0], stream.X[1] = -1.0, 1.0
    stream.y[0], stream.y[1] = stream.y.min(), stream.y.max()
    return stream


# --- the Gaussian family: exact ---------------------------------------------------------------------------------------


@every_memory
@pytest.mark.parametrize("penalty", penalties.EXAMPLES, ids=str)
@pytest.mark.parametrize("power", POWERS)
def test_an_expert_solves_its_problem(memory, penalty, power, make_stream):
    """The optimality conditions at lam = lam_max / n^power, n the weight in its memory; empty in the first rows."""
    stream = within(make_stream(Gaussian(), n=60, p=5, weights=True))
    setting = dict(family=Gaussian(), memory=memory, penalty=penalty)
    result = run(mixture(stream, tuner=alone(power), **setting), stream)
    for t, problem in enumerate(problems(stream, **setting)):
        if t < FIRST_ROWS - 1:
            assert (result.b(t) == 0).all()
            assert result.b0(t) == pytest.approx(problem.w @ problem.y / problem.omega, rel=1e-10)
            continue
        assert result.effective_size[t] == pytest.approx(problem.omega, rel=1e-11)
        assert result.lam_max[t] == pytest.approx(problem.lam_max, rel=1e-9)
        assert result.lam[t] == pytest.approx(problem.lam_max * max(problem.omega, 1.0) ** -power, rel=1e-9)
        assert problem.violation(result.b0(t), result.b(t), result.lam[t]) <= 1e-9, f"row {t}"


@pytest.mark.parametrize(
    "given_settings",
    [
        {"penalty_factor": np.array([0.0, 1.0, 2.5, 1.0, 0.0])},
        {"fit_intercept": False},
        {"standardize": False},
        {"fit_intercept": False, "standardize": False, "penalty": ElasticNet(0.5)},
        {"penalty_factor": np.array([0.0, 1.0, 2.5, 1.0, 3.0]), "penalty": Ridge()},
    ],
    ids=str,
)
def test_every_setting_is_solved(given_settings, make_stream):
    stream = within(make_stream(Gaussian(), n=60, p=5))
    setting = {"family": Gaussian(), "memory": Forgetting(0.95), "penalty": L1(), **given_settings}
    for power in POWERS:
        result = run(mixture(stream, tuner=alone(power), **setting), stream)
        for t, problem in enumerate(problems(stream, **setting)):
            if t >= FIRST_ROWS - 1:
                assert problem.violation(result.b0(t), result.b(t), result.lam[t]) <= 1e-9, f"row {t}"


@given(st.data())
def test_any_stream_is_solved(data):
    """Duplicates, constants, tiny and huge features; nothing is clipped in the first rows."""
    stream = data.draw(streams(Gaussian(), max_rows=FIRST_ROWS, weightings=("none", "some")), "stream")
    penalty = data.draw(st.sampled_from(penalties.EXAMPLES), "penalty")
    setting = dict(family=Gaussian(), memory=Forgetting(0.9), penalty=penalty)
    result = run(mixture(stream, tuner=alone(data.draw(st.sampled_from(POWERS), "power")), **setting), stream)
    *_, last = problems(stream, **setting)
    t = len(stream) - 1
    assert np.isfinite(result.coef).all()
    if t == FIRST_ROWS - 1 and not last.all_equal and result.status[t] == "ok" and last.lam_max > 0:
        assert last.violation(result.b0(t), result.b(t), result.lam[t]) <= 1e-7


# --- all experts of a mixture -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", [L1(), ElasticNet(0.5)], ids=str)
@pytest.mark.parametrize("memory", [None, Window(25)], ids=str)
def test_every_expert_of_a_mixture_solves_the_problem_of_its_memory(memory, penalty, make_stream):
    """Since its memory began. One with less than .05 of the weight may be a few rows old, which shows in its lam."""
    stream = within(make_stream(Gaussian(), n=90, p=4))
    tuner = Mixture(powers=(0.0, 0.4, 0.8, 1.2), factors=(0.9,), runs=0)
    model = mixture(stream, family=Gaussian(), memory=memory, tuner=tuner, penalty=penalty)
    solved = 0
    for t in range(90):
        run(model, stream.part(t, t + 1))
        state, found = model.state(), experts(model)
        for m, there in enumerate(model.memories):
            if there is None or t + 1 - there[1] < FIRST_ROWS:
                continue
            rows = slice(there[1], t + 1)
            w = weights(there[0], np.ones(t + 1 - there[1]))
            kept = w > 0
            problem = Problem(stream.X[rows][kept], stream.y[rows][kept], w[kept], Gaussian(), penalty.l1_ratio)
            lam = state[f"experts{m}/solutions"][:, 0]
            current = np.isclose(lam, problem.lam_max * problem.omega ** -np.array(tuner.powers), rtol=1e-9)
            assert (current | (model.weights[m] < MATTERS)).all()
            for k in np.flatnonzero(current):
                assert problem.violation(found[m, k, 0], found[m, k, 1:], lam[k]) <= 1e-8, f"row {t}, {m}, {k}"
                solved += 1
    assert solved > 200


def test_an_expert_of_little_weight_is_brought_up_to_date_in_the_end(make_stream):
    """Within 32 rows each expert has been solved anew: its lam is that of one of the last 32 problems."""
    stream = within(make_stream(Gaussian(), n=150, p=4))
    model = mixture(stream, family=Gaussian(), tuner=Mixture(powers=(0.0, 0.5, 1.5), factors=(), runs=0))
    run(model, stream)
    lam = model.state()["experts0/solutions"][:, 0]
    recent = list(problems(stream, family=Gaussian(), memory=Forgetting(1.0), penalty=L1()))[-33:]
    expected = np.array([[problem.lam_max * problem.omega**-power for power in (0.0, 0.5, 1.5)] for problem in recent])
    assert np.isclose(expected, lam, rtol=1e-9).any(axis=0).all()


@pytest.mark.parametrize("penalty", [L1(), Ridge()], ids=str)
def test_the_path_ends_where_the_lasso_has_spent_its_rows(penalty, make_stream):
    """With two thirds as many active features as rows, and 50, no smaller penalty is tried; a ridge has no such end."""
    stream = within(make_stream(Gaussian(), n=85, p=90))
    tuner = Mixture(powers=(0.0, 0.4, 0.8, 1.2, 1.6), factors=(), runs=0)
    model = mixture(stream, family=Gaussian(), tuner=tuner, penalty=penalty)
    ends = 0
    for t, problem in enumerate(problems(stream, family=Gaussian(), memory=Forgetting(1.0), penalty=penalty)):
        run(model, stream.part(t, t + 1))
        state = model.state()
        found, lam, solved = experts(model)[0], state["experts0/solutions"][:, 0], state["experts0/ages"] == 0
        for k in np.flatnonzero(solved[1:]) + 1 if t >= FIRST_ROWS else ():
            if penalty == L1() and np.count_nonzero(found[k - 1, 1:]) > max(50, 2 / 3 * (t + 1)):
                assert lam[k] == lam[k - 1] and (found[k] == found[k - 1]).all()
                ends += 1
            else:
                assert lam[k] == pytest.approx(problem.lam_max * (t + 1) ** -tuner.powers[k], rel=1e-9)
                assert problem.violation(found[k, 0], found[k, 1:], lam[k]) <= 1e-8
    assert (ends > 0) == (penalty == L1())


# --- other families: the implicit step ------------------------------------------------------------------------------


def fitted(family, x, y, weight, before, eta_range, b0, b):
    """Where a row is expanded: the root of e = eta - a loss'(e), a its leverage in the problem before it.

    The first rows are trusted whatever their values: their root is not held within the range.
    """
    eta = np.clip(b0 + x @ b, *eta_range)
    if before is None:
        a = 1 / family.curvature(y, eta)
    else:
        k = before.w * before.curvatures(before.expanded_at)
        centre = k @ before.X / k.sum()
        active = b != 0
        Z, z = (before.X - centre)[:, active], (x - centre)[active]
        a = weight * (1 / k.sum() + z @ np.linalg.solve(Z.T @ (Z * k[:, None]), z))
    if before is None or len(before.y) < FIRST_ROWS:
        eta_range = -np.inf, np.inf
    low, high = sorted([eta, eta - a * family.slope(y, eta)])
    low, high = max(low, eta_range[0]), min(high, eta_range[1])
    root = lambda e: e - eta + a * family.slope(y, e)  # noqa: E731
    if root(low) >= 0 or root(high) <= 0:
        return low if root(low) >= 0 else high
    return brentq(root, low, high, xtol=1e-14)


@others
@pytest.mark.parametrize("memory", [Forgetting(0.95), Forgetting(1.0)], ids=str)
@pytest.mark.parametrize("power", [0.4, 0.9])
def test_each_row_is_expanded_where_its_own_fit_puts_it(family, memory, power, make_stream):
    """The expert solves the problem in which every row counts as its quadratic there."""
    stream = within(make_stream(family, n=50, p=3, seed=4))
    model = mixture(stream, family=family, memory=memory, tuner=alone(power))
    at, problem = np.full(50, np.nan), None
    for t in range(50):
        b0, b, eta_range = model.intercept, model.coef, model.state()["bounds/response"][2:]
        decay = memory.decay if problem is not None else 1.0
        before = problem and Problem(problem.X, problem.y, problem.w * decay, family, expanded_at=at[:t])
        at[t] = fitted(family, stream.X[t], stream.y[t], 1.0, before, eta_range, b0, b)
        run(model, stream.part(t, t + 1))
        w = weights(memory, np.ones(t + 1))
        problem = Problem(stream.X[: t + 1], stream.y[: t + 1], w, family, expanded_at=at[: t + 1])
        if t >= FIRST_ROWS - 1:
            assert model.lam_max == pytest.approx(problem.lam_max, rel=1e-6)
            assert problem.violation(model.intercept, model.coef, model.lam) <= 1e-6, f"row {t}"


def share_lost(family, stream, model):
    """Of what the exact minimiser without a penalty gains over the mean, on all rows."""
    exact = Problem(stream.X, stream.y, np.ones(len(stream)), family)
    best, null, ours = (
        exact.w @ exact.losses(eta) / exact.omega
        for eta in (exact.newton(exact.present), exact.null, model.intercept + stream.X @ model.coef)
    )
    return (ours - best) / (null - best)


@others
@pytest.mark.parametrize("seed", range(5))
def test_the_quadratics_lose_little_against_the_exact_problem(family, seed, make_stream):
    stream = make_stream(family, n=400, p=3, seed=seed)
    model = mixture(stream, family=family, memory=Forgetting(1.0), tuner=alone(0.7))
    run(model, stream)
    assert share_lost(family, stream, model) <= 0.1


@pytest.mark.parametrize("first", [0.1, 1e-3, 1e-6])
def test_a_first_response_near_zero_is_one_row_among_many(first, make_stream):
    """Where few rows are seen the bounds of eta are narrow; no row may be expanded there for all time."""
    stream = make_stream(Gamma(), n=400, p=3, seed=0)
    plain, odd = (mixture(stream, family=Gamma(), memory=Forgetting(1.0), tuner=alone(0.7)) for _ in range(2))
    run(plain, stream)
    stream.y[0] = first
    run(odd, stream)
    assert odd.coef == pytest.approx(plain.coef, abs=0.1)
