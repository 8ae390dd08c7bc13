"""A mixture is an honest, linear, scale-free model: the contract of every competition."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.mixtures import COMPETITIONS, UNCARRIED, Row, experts, mixture
from oracles.problem import Problem
from oracles.replay import Stream, learner, run, same_bits
from streamlasso import families
from streamlasso.families import Binomial, Gaussian, Poisson
from streamlasso.memories import AdaptiveForgetting, Forgetting, Window
from streamlasso.penalties import L1, ElasticNet, Ridge
from streamlasso.tuners import LARS, SGD, Fixed, LogRMS, Mixture
from support.plain import PlainPoisson, PlainSGD
from support.streams import made, streams

every_family = pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
every_competition = pytest.mark.parametrize("memory,tuner", COMPETITIONS.values(), ids=COMPETITIONS)
every_rule = pytest.mark.parametrize("memory,tuner", UNCARRIED.values(), ids=UNCARRIED)


def calm(family, n=60, p=4, seed=0):
    """Rows from a box, its corners first: no feature is ever beyond its bounds."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, p))
    X[0], X[1] = -1.0, 1.0
    return Stream(X, family.sample(rng, 0.2 + X @ np.array([1.0, -0.7, 0.5, *[0.0] * (p - 3)])))


# --- honest and linear ------------------------------------------------------------------------------------------------


@every_family
@every_rule
def test_the_prediction_is_that_of_the_model_before_the_row(family, memory, tuner):
    """b0 + x'b, held within the bounds of eta; unless an expert is far outside these."""
    stream = calm(family)
    model = mixture(stream, family=family, memory=memory, tuner=tuner)
    linear = 0
    for t in range(60):
        row = Row(model, model.state(), stream.X[t], stream.y[t], 1.0)
        before = model.intercept + stream.X[t] @ model.coef
        assert model.decision(stream.X[t : t + 1])[0] == pytest.approx(row.eta, rel=1e-12, abs=1e-12)
        result = run(model, stream.part(t, t + 1))
        assert result.eta[0] == pytest.approx(row.eta, rel=1e-12, abs=1e-12)
        assert result.loss[0] == pytest.approx(family.loss(stream.y[t], row.eta), rel=1e-10, abs=1e-12)
        linear += result.eta[0] == pytest.approx(before, rel=1e-12, abs=1e-12)
    assert linear > 40


@every_family
@every_competition
def test_nothing_of_the_row_leaks_into_its_prediction(family, memory, tuner):
    stream, other = calm(family), calm(family)
    other.y[-1] = 1.0 - other.y[-1] if type(family) is Binomial else other.y[-1] + 3.0
    one, two = (run(mixture(s, family=family, memory=memory, tuner=tuner), s) for s in (stream, other))
    assert one.eta[-1] == two.eta[-1]
    assert one.loss[-1] != two.loss[-1]


@every_competition
def test_what_is_noted_is_what_the_model_says(memory, tuner):
    stream = calm(Gaussian())
    model = mixture(stream, family=Gaussian(), memory=memory, tuner=tuner)
    result = run(model, stream)
    for name in ("lam", "lam_max", "effective_size"):
        assert getattr(model, name) == getattr(result, name)[-1]
    assert model.status == result.status[-1]
    assert (model.n_seen, model.n_features) == (60, 4)
    assert np.array_equal(np.append(model.intercept, model.coef), result.coef[-1])
    assert result.n_active[-1] == np.count_nonzero(model.coef)
    assert 0 <= model.lam <= model.lam_max


@every_family
@every_competition
def test_one_call_or_many_give_the_same_bits(family, memory, tuner, make_stream):
    stream = make_stream(family, n=50, weights=True)
    whole, rows = (mixture(stream, family=family, memory=memory, tuner=tuner) for _ in range(2))
    run(whole, stream)
    for t in range(50):
        rows.learn(stream.X[t : t + 1], stream.y[t : t + 1], stream.a[t : t + 1])
    assert same_bits(whole.state(), rows.state())


@every_family
@every_competition
def test_rows_of_weight_zero_might_as_well_not_be_there(family, memory, tuner, make_stream):
    stream = make_stream(family, n=50, weights=True)
    stream.a[::3] = 0.0
    there = stream.a > 0
    fewer = Stream(stream.X[there], stream.y[there], stream.a[there])
    one, other = (mixture(stream, family=family, memory=memory, tuner=tuner) for _ in range(2))
    run(one, stream)
    run(other, fewer)
    assert same_bits(one.state(), other.state())


@every_family
@pytest.mark.parametrize("batch_size", [3, 8])
def test_a_mini_batch_is_predicted_from_the_state_before_it(family, batch_size):
    stream = calm(family, n=61)
    model = mixture(stream, family=family, batch_size=batch_size)
    for start in range(0, 61, batch_size):
        part = stream.part(start, min(start + batch_size, 61))
        eta = model.decision(part.X)
        result = run(model, part)
        assert np.array_equal(result.eta, eta)
        assert (result.coef == result.coef[0]).all()
    assert model.n_seen == 61
    assert model.weights.sum() == pytest.approx(1.0)


@every_competition
def test_the_input_is_left_alone(memory, tuner, make_stream):
    stream = make_stream(Gaussian(), weights=True)
    copies = stream.X.copy(), stream.y.copy(), stream.a.copy()
    run(mixture(stream, family=Gaussian(), memory=memory, tuner=tuner), stream)
    assert all(np.array_equal(a, b) for a, b in zip(copies, (stream.X, stream.y, stream.a), strict=True))


# --- units do not matter ----------------------------------------------------------------------------------------------


@every_competition
@pytest.mark.parametrize("unit", [1e6, 1e-6, -3.0])
def test_the_unit_of_the_response_does_not_matter(memory, tuner, unit, make_stream):
    stream = make_stream(Gaussian(), n=80, seed=3)
    other = Stream(stream.X, unit * stream.y)
    one, two = (run(mixture(s, family=Gaussian(), memory=memory, tuner=tuner), s) for s in (stream, other))
    assert two.eta == pytest.approx(unit * one.eta, rel=1e-6, abs=1e-7 * abs(unit))
    assert two.learner.weights == pytest.approx(one.learner.weights, rel=1e-4, abs=1e-9)


def assert_same_but_for_units(stream, units, **setting):
    other = Stream(stream.X * units, stream.y)
    one, two = (run(mixture(s, **setting), s) for s in (stream, other))
    assert two.eta == pytest.approx(one.eta, rel=1e-5, abs=1e-5)
    assert two.learner.weights == pytest.approx(one.learner.weights, rel=1e-3, abs=1e-7)
    assert two.coef[-1, 1:] * units == pytest.approx(one.coef[-1, 1:], rel=1e-4, abs=1e-6)


def has_ridges(memory, tuner):
    return memory is None and tuner.runs > 0


@pytest.mark.parametrize("level", [0.0, 5.0])
@pytest.mark.parametrize("unit", [1e6, 1e-6])
def test_the_unit_of_the_response_does_not_matter_where_it_was_constant(level, unit):
    stream = calm(Gaussian(), n=100)
    stream.y[:20] = level
    one, two = (run(mixture(s, family=Gaussian()), s) for s in (stream, Stream(stream.X, unit * stream.y)))
    assert two.eta == pytest.approx(unit * one.eta, rel=1e-6, abs=1e-7 * unit)
    assert two.learner.weights == pytest.approx(one.learner.weights, rel=1e-4, abs=1e-9)


@every_family
@every_competition
@pytest.mark.parametrize("unit", [1e5, 1e-5, -30.0])
def test_the_unit_of_all_features_does_not_matter(family, memory, tuner, unit, make_stream):
    stream = make_stream(family, n=80, seed=3)
    assert_same_but_for_units(stream, np.full(4, unit), family=family, memory=memory, tuner=tuner)


@every_family
@pytest.mark.parametrize("memory,tuner", [c for c in COMPETITIONS.values() if not has_ridges(*c)], ids=str)
def test_the_units_of_the_features_do_not_matter(family, memory, tuner, make_stream):
    """Those of ridges do, in the first rows, when no feature's own scale is known."""
    stream = make_stream(family, n=80, seed=3)
    assert_same_but_for_units(stream, np.array([1e5, 1e-5, 30.0, -1.0]), family=family, memory=memory, tuner=tuner)


def test_the_units_of_the_features_do_not_matter_to_ridges_after_the_first_rows():
    """The first one, whose prior is that of sixteen rows by then, and all that have begun since."""
    stream = calm(Gaussian(), n=120)
    units = np.array([1e5, 1e-5, 30.0, -1.0])
    one, two = (mixture(s, family=Gaussian()) for s in (stream, Stream(stream.X * units, stream.y)))
    compared = 0
    for t in range(120):
        run(one, stream.part(t, t + 1))
        run(two, Stream(stream.X[t : t + 1] * units, stream.y[t : t + 1]))
        found = [
            {since: model.expert(m, 0)[2] for m, (_, since) in ridges_of(model).items() if since == 0 or since >= 16}
            for model in (one, two)
        ]
        kappas = [
            {since: model.state()[f"experts{m}/prior"][0] for m, (_, since) in ridges_of(model).items()}
            for model in (one, two)
        ]
        for since in set(found[0]) & set(found[1]) if t >= 16 else ():
            if kappas[0][since] == kappas[1][since]:
                assert found[1][since][1:] * units == pytest.approx(found[0][since][1:], rel=1e-5, abs=1e-6)
                compared += 1
    assert compared > 50


def ridges_of(model):
    return {m: there for m, there in enumerate(model.memories) if there and model.experts[m].kind == "ridge"}


@every_family
def test_the_order_of_the_features_does_not_matter(family, make_stream):
    stream = make_stream(family, n=80, seed=3)
    other = Stream(stream.X[:, ::-1], stream.y)
    one, two = (run(mixture(s, family=family), s) for s in (stream, other))
    assert two.eta == pytest.approx(one.eta, rel=1e-6, abs=1e-7)


# --- no worse than its experts ----------------------------------------------------------------------------------------


@every_family
@every_rule
def test_a_row_never_costs_more_than_its_worst_expert(family, memory, tuner):
    """eta is between the least and the largest of theirs, where these are in bounds; the loss is convex in eta."""
    stream = calm(family, n=80, seed=5)
    model = mixture(stream, family=family, memory=memory, tuner=tuner)
    run(model, stream.part(0, 20))
    for t in range(20, 80):
        row = Row(model, model.state(), stream.X[t], stream.y[t], 1.0)
        low, high = np.nanmin(row.etas), np.nanmax(row.etas)
        result = run(model, stream.part(t, t + 1))
        assert min(low, row.eta_high) - 1e-9 <= result.eta[0] <= max(high, row.eta_low) + 1e-9


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("family", [Gaussian(), Binomial(), Poisson()], ids=str)
def test_regret_against_the_best_of_fixed_memories(family, seed):
    """No worse than the best of its factors by more than 2 % of its loss, and the bound of the rule of weights with no
    change (`hedge.py`), in units of the noise."""
    factors, n = (0.9, 0.97, 1.0), 400
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 4))
    beta = np.repeat([[1.0, -1.0, 0.5, 0.0], [-1.0, 0.0, 0.5, 1.0]], [n // 2, n - n // 2], axis=0)
    stream = Stream(X, family.sample(rng, np.sum(X * beta, axis=1)))
    setting = dict(family=family, penalty=L1(), tuner=LogRMS())
    alone = [run(learner(stream, memory=Forgetting(r), **setting), stream).loss[10:].sum() for r in factors]
    together = run(mixture(stream, family=family, memory=AdaptiveForgetting(factors), tuner=LogRMS()), stream)
    (group,) = together.learner.groups
    promised = (math.log(len(factors)) - n * math.log1p(-group.hedge.share)) / group.hedge.rate
    phi = together.learner.state()["dispersion"][0]
    assert together.loss[10:].sum() <= 1.02 * min(alone) + promised * phi
    assert together.loss[10:].sum() <= max(alone)


# --- one model a factor: AdaptiveForgetting with a tuner ------------------------------------------------------------


@every_family
@pytest.mark.parametrize("tuner", [LogRMS(), SGD(0.01), LARS(0.01), Fixed(0.05)], ids=str)
def test_each_factor_is_a_model_of_its_own_to_the_bit(family, tuner):
    """And the model is their average, by their weights."""
    factors = (0.9, 0.97, 1.0)
    stream = calm(family)
    stream.y[:] = np.clip(stream.y, *np.quantile(stream.y, [0.1, 0.9]))
    stream.y[0], stream.y[1] = stream.y.min(), stream.y.max()
    model = mixture(stream, family=family, memory=AdaptiveForgetting(factors), tuner=tuner, history=10)
    run(model, stream)
    alone = [
        learner(stream, family=family, memory=Forgetting(r), penalty=L1(), tuner=tuner, history=10) for r in factors
    ]
    average = np.zeros(5)
    for m, one in enumerate(alone):
        run(one, stream)
        mine = {name: array for name, array in model.state().items() if name.startswith(f"experts{m}/")}
        own = {name: array for name, array in one.state().items() if not name.startswith("errors.")}
        assert same_bits({name.partition("/")[2]: array for name, array in mine.items()}, own)
        average += model.weights[m, 0] * np.append(one.intercept, one.coef)
    assert np.append(model.intercept, model.coef) == pytest.approx(average, rel=1e-12, abs=1e-14)
    assert model.lam == pytest.approx(model.weights[:, 0] @ [one.lam for one in alone], rel=1e-12)
    assert model.effective_size == pytest.approx(model.weights[:, 0] @ [one.effective_size for one in alone], rel=1e-12)


@every_family
@pytest.mark.parametrize("memory", [Forgetting(0.95), Window(30)], ids=str)
def test_one_power_and_one_memory_is_that_expert(family, memory):
    stream = calm(family)
    model = mixture(stream, family=family, memory=memory, tuner=Mixture(powers=(0.5,), carry=False))
    run(model, stream)
    assert model.weights == pytest.approx(np.ones((1, 1)), rel=1e-14)
    assert np.append(model.intercept, model.coef) == pytest.approx(experts(model)[0, 0], rel=1e-14)
    lam, lam_max, coef = model.expert(0, 0)
    assert (lam, lam_max) == pytest.approx((model.lam, model.lam_max), rel=1e-14)
    assert coef == pytest.approx(np.append(model.intercept, model.coef), rel=1e-14)


# --- no group speaks far beyond what it has seen ----------------------------------------------------------------------


def test_a_quiet_stretch_does_not_speak_for_the_rest():
    """A feature that hardly moves for 40 rows could have any coefficient in a memory that began there. When it moves
    again the mixture predicts about as the memory does that has seen all, not thousands."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    X[300:340, 0] = 2.0 + 1e-5 * rng.normal(size=40)
    stream = Stream(X, X[:, 0] + 0.3 * rng.normal(size=400))
    model = mixture(stream, family=Gaussian())
    run(model, stream.part(0, 340))
    rows = np.column_stack([np.linspace(-3, 3, 7), np.zeros((7, 2))])
    assert np.max(np.abs(model.decision(rows) - rows[:, 0])) < 1.0


# --- exact models beside the quadratics -------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [None, Forgetting(0.9), AdaptiveForgetting((0.9, 0.95, 1.0))], ids=str)
@pytest.mark.parametrize("family", [Binomial(), Poisson()], ids=str)
def test_an_exact_model_solves_its_problem_while_it_has_weight(family, memory):
    """And every 32 rows in any case; here none of its rows has become a quadratic yet."""
    stream = calm(family, n=64, seed=2)
    stream.y[:] = np.clip(stream.y, *np.quantile(stream.y, [0.1, 0.9]))
    stream.y[0], stream.y[1] = stream.y.min(), stream.y.max()
    model = mixture(stream, family=family, memory=memory, tuner=Mixture(factors=(0.95,), runs=0))
    exact = [m for m, group in enumerate(model.experts) if group.n == 1 and group.kind == "lasso"]
    assert [model.experts[m].memory for m in exact] == {
        type(None): [Forgetting(0.95), Forgetting(1.0)],
        Forgetting: [Forgetting(0.9)],
        AdaptiveForgetting: [Forgetting(0.95), Forgetting(1.0)],
    }[type(memory)]
    looked = 0
    for t in range(64):
        run(model, stream.part(t, t + 1))
        for m in exact:
            if t < 12 or (model.weights[m].sum() < 0.05 and (t + 1) % 32 > 0):
                continue
            w = model.experts[m].memory.decay ** np.arange(t, -1.0, -1.0)
            lam, lam_max, path = model.expert(m, 0)
            problem = Problem(stream.X[: t + 1], stream.y[: t + 1], w, family)
            assert problem.violation(path[0], path[1:], lam) <= 1e-6 * lam_max
            looked += 1
    assert looked > 20


@pytest.mark.parametrize("memory", [None, Forgetting(0.99)], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_classes_without_noise_are_learnt_as_by_the_likelihood_itself(seed, memory):
    """Quadratics alone, fitted when little was known, would cost ten times what one exact model does. It is found by
    the gate and in its group, for the logarithms of how many compete over their rates, and 2 for what shares cost."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(1000, 3)).astype(float)
    stream = Stream(X, ((X[:, 0] == 0) & (X[:, 2] == 0)).astype(float))
    alone = run(learner(stream, family=Binomial(), memory=Forgetting(0.99), penalty=L1(), tuner=LogRMS()), stream)
    together = run(mixture(stream, family=Binomial(), memory=memory), stream)
    model = together.learner
    (exact,) = (group for group in model.groups if group.name == "exact")
    promised = math.log(model.G) / model.hedge.rate + math.log(exact.n) / exact.hedge.rate
    assert together.loss[100:].sum() <= alone.loss[100:].sum() + promised + 2


# --- any stream -------------------------------------------------------------------------------------------------------


@given(st.data())
def test_any_stream_gives_numbers(data):
    """Duplicates, constants, tiny and huge features, zeros for weights: weights stay weights, predictions numbers."""
    family = data.draw(st.sampled_from(families.EXAMPLES), "family")
    memory, tuner = data.draw(st.sampled_from(list(COMPETITIONS.values())), "competition")
    penalty = data.draw(st.sampled_from([L1(), ElasticNet(0.5), Ridge()]), "penalty")
    stream = data.draw(streams(family, max_rows=60), "stream")
    setting = dict(
        fit_intercept=data.draw(st.booleans(), "fit_intercept"), standardize=data.draw(st.booleans(), "standardize")
    )
    model = mixture(stream, family=family, memory=memory, tuner=tuner, penalty=penalty, **setting)
    result = run(model, stream)
    assert np.isfinite(result.eta).all() and np.isfinite(result.coef).all()
    assert model.weights.sum() == pytest.approx(1.0, abs=1e-9) and (model.weights >= 0).all()
    low, high = model.state()["bounds/response"][2:]
    # Of classes it is what is calibrated that has bounds.
    assert (
        "calibration/theta" in model.state()
        or ((model.decision(stream.X) >= low) & (model.decision(stream.X) <= high)).all()
        or not model.n_seen
    )


@every_family
def test_more_features_than_rows(family):
    rng = np.random.default_rng(0)
    stream = made(family, ["normal"] * 80, 50, rng)
    result = run(mixture(stream, family=family), stream)
    assert np.isfinite(result.coef).all() and np.isfinite(result.eta).all()


# --- parts written in Python ------------------------------------------------------------------------------------------


class Namesake(PlainSGD):
    powers = fractions = (1.0, 0.5)  # a name that Mixture has too means nothing here


@every_rule
def test_a_plain_family_equals_the_built_in_one(memory, tuner):
    stream = calm(Poisson())
    ours, theirs = (
        run(mixture(stream, family=family, memory=memory, tuner=tuner), stream)
        for family in (PlainPoisson(), Poisson())
    )
    assert ours.eta == pytest.approx(theirs.eta, rel=1e-6, abs=1e-8)
    assert ours.learner.weights == pytest.approx(theirs.learner.weights, rel=1e-5, abs=1e-9)


def test_a_plain_tuner_competes_over_memories():
    stream = calm(Gaussian())
    ours, theirs = (
        run(mixture(stream, family=Gaussian(), memory=AdaptiveForgetting((0.9, 1.0)), tuner=tuner), stream)
        for tuner in (Namesake(0.01), SGD(0.01))
    )
    assert ours.eta == pytest.approx(theirs.eta, rel=1e-9)
