"""The one rule of weights: against all sequences of experts, its bound, and what it does in a mixture."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.mixtures import UNCARRIED, Row, mixture
from oracles.replay import Stream, run
from streamlasso import RAPClassifier, families, progressive
from streamlasso.core.base.hedge import Hedge
from streamlasso.families import Binomial, Gaussian, Poisson

every_rule = pytest.mark.parametrize("memory,tuner", UNCARRIED.values(), ids=UNCARRIED)


def simplex(rng, n):
    w = rng.uniform(0.05, 1.0, size=n)
    return w / w.sum()


# --- the rule ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate,share", [(1.0, 0.0), (1.0, 0.2), (0.3, 0.05), (0.5, 0.7)])
def test_weights_are_the_posterior_of_a_chain_that_draws_anew(rate, share):
    """The probability of each expert in the next row, over all sequences of experts so far."""
    rng = np.random.default_rng(0)
    n, rows = 3, 6
    prior, start = simplex(rng, n), simplex(rng, n)
    losses = rng.exponential(2.0, size=(rows, n))
    losses[2, 1], losses[4, 0] = np.inf, 0.0
    hedge = Hedge(prior, rate, share, start)
    assert hedge.weights == pytest.approx(start)
    move = (1 - share) * np.eye(n) + share * prior
    for t in range(rows):
        hedge.learn(losses[t])
        found = np.zeros(n)
        for path in product(range(n), repeat=t + 2):
            steps = np.prod([move[a, b] for a, b in pairwise(path)])
            found[path[-1]] += start[path[0]] * steps * np.exp(-rate * sum(losses[i, path[i]] for i in range(t + 1)))
        assert hedge.weights == pytest.approx(found / found.sum(), rel=1e-12)


@settings(max_examples=200)
@given(st.data())
def test_regret_against_any_sequence_of_experts(data):
    """The bound of the docstring, for sequences at random and for the best of each stretch of rows."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), "seed"))
    n, rows = data.draw(st.integers(1, 5), "experts"), data.draw(st.integers(1, 60), "rows")
    rate, share = data.draw(st.floats(0.05, 3.0), "rate"), data.draw(st.floats(0.001, 0.9), "share")
    prior = simplex(rng, n)
    losses = rng.exponential(data.draw(st.sampled_from([0.1, 1.0, 30.0]), "size"), size=(rows, n))
    changes = np.sort(rng.choice(np.arange(1, rows), size=min(data.draw(st.integers(0, 6)), rows - 1), replace=False))
    ends = [0, *changes, rows]
    if data.draw(st.booleans(), "best"):
        each = [int(losses[a:b].sum(axis=0).argmin()) for a, b in pairwise(ends)]
    else:
        each = [int(rng.integers(n)) for _ in ends[1:]]
    experts = np.repeat(each, np.diff(ends))
    hedge, mix = Hedge(prior, rate, share), 0.0
    for loss in losses:
        least = loss.min()
        mix += least - np.log(hedge.weights @ np.exp(-rate * (loss - least))) / rate
        hedge.learn(loss)
    moved = experts[1:][experts[1:] != experts[:-1]]
    cost = -np.log(prior[experts[0]]) - np.log(share * prior[moved]).sum()
    cost -= (rows - len(moved)) * np.log1p(-share)
    assert mix <= losses[np.arange(rows), experts].sum() + cost / rate + 1e-9


@settings(max_examples=100)
@given(st.data())
def test_weights_stay_a_distribution_whatever_the_losses(data):
    """Infinite and huge ones, weights of 0, thousands of rows after which all but one have underflown."""
    n = data.draw(st.integers(1, 12), "experts")
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), "seed"))
    prior = simplex(rng, n)
    start = prior * (rng.random(n) < 0.7)
    start = start / start.sum() if start.sum() > 0 else prior
    share = data.draw(st.sampled_from([0.0, 1e-6, 0.5]), "share")
    hedge = Hedge(prior, data.draw(st.sampled_from([0.2, 1.0, 5.0]), "rate"), share, start)
    wild = st.floats(-50, 50) | st.sampled_from([np.inf, 1e300, 700.0, 745.0, 0.0])
    for _ in range(5):
        loss = np.array(data.draw(st.lists(wild, min_size=n, max_size=n), "losses"))
        for _ in range(data.draw(st.sampled_from([1, 3000]), "times")):
            before = hedge.weights
            hedge.learn(loss)
        w = hedge.weights
        assert np.isfinite(w).all() and (w >= 0).all()
        assert w.sum() == pytest.approx(1.0, abs=1e-12)
        assert (w >= share * prior * (1 - 1e-12)).all() or np.array_equal(w, before)
        if not np.isfinite(loss[before > 0]).any():
            assert np.array_equal(w, before)


def test_losses_that_are_not_as_many_are_refused():
    with pytest.raises(ValueError, match="3 losses for 2 weights"):
        Hedge([0.5, 0.5]).learn(np.zeros(3))


# --- in a mixture -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
@every_rule
def test_every_row_moves_gate_and_groups_as_the_rule_says(family, memory, tuner, make_stream):
    """All from the experts' coefficients before the row: own losses, linearised ones, and those of the averages."""
    stream = make_stream(family, n=60, weights=True, seed=1)
    stream.a[::7] = 0.0
    model = mixture(stream, family=family, memory=memory, tuner=tuner)
    before = model.state()
    moved = 0
    for t in range(60):
        row = Row(model, before, stream.X[t], stream.y[t], stream.a[t]) if stream.a[t] else None
        run(model, stream.part(t, t + 1))
        after = model.state()
        names = ["hedge/w", *(f"{group.name}/hedge/w" for group in model.groups if group.name != "restarting")]
        phi = after["dispersion"][0]
        if row is None or row.n < 2 or not phi > 0:
            assert all(np.array_equal(before[name], after[name]) for name in names)
        else:
            assert after["dispersion"] == pytest.approx(row.dispersion(), rel=1e-7, abs=1e-12), f"row {t}"
            averages = row.averages
            gate = [row.loss(eta, phi) for eta in averages.values()]
            prior = np.array([group.prior for group in model.groups])
            assert after["hedge/w"] == pytest.approx(
                updated(model.hedge, before["hedge/w"], prior / prior.sum(), gate), rel=1e-6, abs=1e-12
            )
            for group in model.groups:
                if group.name == "restarting":
                    continue
                name, part = f"{group.name}/hedge/w", row.each[group.first : group.first + group.n]
                own = row.loss(part, phi) - row.loss(averages[group.name], phi)
                most = 6.0 if family.has_scale else np.inf
                pull = row.weight * float(family.slope(row.y, averages[group.name])) / phi
                change = np.clip(pull * (part - averages[group.name]), -most, most)
                expected = updated(group.hedge, before[name], np.ones(group.n) / group.n, (own + change) / 2)
                assert after[name] == pytest.approx(expected, rel=1e-6, abs=1e-12), f"row {t}, {group.name}"
                moved += np.abs(after[name] - before[name]).max() > 1e-3
        before = after
    assert moved > 20


def updated(hedge, w, prior, loss):
    loss = np.array(loss)
    w = w * np.exp(-hedge.rate * (loss - loss[w > 0].min()))
    return (1 - hedge.share) * w / w.sum() + hedge.share * prior


def hostile(family, n, rng):
    """Constants, spikes, jumps of scale and rows of huge values, with weights from next to nothing to a million."""
    X = rng.normal(size=(n, 3)) * 10.0 ** rng.integers(-9, 9, size=3)
    X[rng.random(n) < 0.05] *= 1e12
    X[n // 2 :, 0] = 7.0
    y = family.sample(rng, np.clip(rng.normal(size=n) * 2, -5, 5))
    if type(family) is Gaussian:
        y = y * 10.0 ** rng.integers(-9, 9) + np.where(np.arange(n) < n // 3, 0.0, 1e6)
        y[rng.random(n) < 0.03] *= 1e15
    return Stream(X, y, 10.0 ** rng.uniform(-6, 6, size=n))


@settings(max_examples=60)
@given(st.data())
def test_weights_stay_weights_on_hostile_streams(data):
    family = data.draw(st.sampled_from([Gaussian(), Poisson(), Binomial()]), "family")
    memory, tuner = data.draw(st.sampled_from(list(UNCARRIED.values())), "competition")
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), "seed"))
    stream = hostile(family, 80, rng)
    model = mixture(stream, family=family, memory=memory, tuner=tuner)
    for t in range(0, 80, 4):
        result = run(model, stream.part(t, t + 4))
        state = model.state()
        all_weights = [np.array(list(model.group_weights.values())), model.weights]
        all_weights += [state[name] for name in state if name.endswith("hedge/w")]
        for w in all_weights:
            assert np.isfinite(w).all() and (w >= 0).all()
            assert w.sum() == pytest.approx(1.0, abs=1e-9)
        assert np.isfinite(result.eta).all() and np.isfinite(result.coef).all()


@settings(max_examples=60)
@given(st.data())
def test_weights_stay_weights_whatever_experts_say(data):
    """Intercepts that are no number, infinite or absurd, with weights of 0 and next to 0."""
    family = data.draw(st.sampled_from([Gaussian(), Poisson(), Binomial()]), "family")
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), "seed"))
    X = rng.normal(size=(24, 2))
    stream = Stream(X, family.sample(rng, np.zeros(24)))
    model = mixture(stream, family=family)
    run(model, stream.part(0, 20))
    state = model.state()
    absurd = st.floats(-3, 3) | st.sampled_from([np.inf, -np.inf, 1e300, -1e300, 40.0])
    for name in state:
        if name.endswith("/solutions"):
            n = len(state[name])
            state[name][:, 1] = data.draw(st.lists(absurd, min_size=n, max_size=n), name)
        if name.endswith("hedge/w"):
            w = rng.uniform(size=len(state[name])) ** data.draw(st.sampled_from([1.0, 30.0, 3000.0]), "unevenness")
            w[0] += 1e-9
            state[name] = w / w.sum()
    model.restore(state)
    result = run(model, stream.part(20, 24))
    assert np.isfinite(result.eta).all()
    assert np.isfinite(model.weights).all() and (model.weights >= 0).all()
    assert model.weights.sum() == pytest.approx(1.0, abs=1e-9)
    assert sum(model.group_weights.values()) == pytest.approx(1.0, abs=1e-12)


# --- nothing to learn -------------------------------------------------------------------------------------------------


def test_rare_events_that_nothing_predicts_cost_next_to_nothing():
    """Loss over that of the running mean: streams in which events of 2 % meet fifteen flags of 5 %, 50 rows let alone.
    The mean ratio is not above 1.003 by more than two standard errors (40 such streams: 1.0025, error .0008)."""
    ratios = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        flags, y = (rng.random((2000, 15)) < 0.05).astype(float), (rng.random(2000) < 0.02).astype(float)
        mean = (np.cumsum(y) - y + 0.5) / (np.arange(2000) + 1)
        ours = progressive(RAPClassifier(), flags, y, progress=False).loss[50:].sum()
        ratios.append(ours / -(y * np.log(mean) + (1 - y) * np.log(1 - mean))[50:].sum())
    error = np.std(ratios, ddof=1) / np.sqrt(len(ratios))
    assert error < 0.003
    assert np.mean(ratios) - 2 * error <= 1.003, f"{np.mean(ratios):.4f} ({error:.4f})"


def test_what_begins_late_is_found():
    """Two thousand rows of nothing, then a feature that says all there is to say about rare events."""
    rng = np.random.default_rng(1)
    X, y = (rng.random((2400, 5)) < 0.05).astype(float), (rng.random(2400) < 0.02).astype(float)
    y[2000:] = X[2000:, 0]
    model = RAPClassifier()
    before = progressive(model, X[:2000], y[:2000], progress=False).loss
    nothing = model.learners_[0].group_weights["nothing"]
    after = progressive(model, X[2000:], y[2000:], progress=False).loss
    assert after[200:].mean() < 0.1 * before.mean()
    assert model.learners_[0].group_weights["nothing"] < 0.5 * nothing
