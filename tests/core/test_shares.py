"""The weights of a mixture against the rules of shares.py, noise.py and restarts.py written out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.mixtures import (
    ALPHA,
    COMPETITIONS,
    FIRST_ROWS,
    UNCARRIED,
    YOUNG,
    Row,
    every,
    experts,
    mixture,
    pools,
    spread_out,
    there,
    updated_shares,
    with_new,
    with_nothing,
    without,
)
from oracles.replay import Stream, run
from streamlasso import RAPClassifier, families, progressive
from streamlasso.families import Gaussian
from streamlasso.simulate import simulate
from streamlasso.tuners import Mixture

every_family = pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
every_competition = pytest.mark.parametrize("memory,tuner", COMPETITIONS.values(), ids=COMPETITIONS)


def row_by_row(model, stream):
    """(row, state before, state after)"""
    before = model.state()
    for t in range(len(stream)):
        run(model, stream.part(t, t + 1))
        after = model.state()
        yield t, before, after
        before = after


def assert_weights(model, state):
    w = np.tensordot(state["shares/pi"], spread_out(model, state["shares/w"]), 1)
    total = with_nothing(w, *state["shares/nothing"])
    assert model.weights == pytest.approx(total, rel=1e-9, abs=1e-300)
    assert model.weights.min() >= 0
    assert model.weights.sum() == pytest.approx(1.0, abs=1e-12)


# --- row by row -----------------------------------------------------------------------------------------------------


@every_family
def test_all_experts_begin_with_equal_parts_of_the_weight_of_their_group(family):
    model = mixture(Stream(np.zeros((1, 2)), np.zeros(1)), family=family, tuner=Mixture(factors=(0.9,)))
    stay = [not group.restarts for group in model.experts]
    for m, group in enumerate(model.experts):
        assert model.weights[m, : group.n] == pytest.approx(stay[m] / sum(stay) / group.n)


@every_family
@every_competition
def test_every_row_moves_the_weights_as_the_rule_says(family, memory, tuner, make_stream):
    """Losses, noise, shares, and which memory restarts: all from the experts' coefficients before the row."""
    stream = make_stream(family, n=60, weights=True, seed=1)
    stream.a[::7] = 0.0
    model = mixture(stream, family=family, memory=memory, tuner=tuner)
    for t, before, after in row_by_row(model, stream):
        if stream.a[t] == 0:
            assert np.array_equal(before["shares/w"], after["shares/w"])
            continue
        row = Row(model, before, stream.X[t], stream.y[t], stream.a[t])
        assert after["dispersion"] == pytest.approx(row.dispersion(), rel=1e-7, abs=1e-12), f"row {t}"
        pi, w = row.shares()
        w = restarted(model, before, after, pi, w)
        assert after["shares/pi"] == pytest.approx(pi, rel=1e-6, abs=1e-190), f"row {t}"
        assert spread_out(model, after["shares/w"]) == pytest.approx(w, rel=1e-6, abs=1e-14), f"row {t}"
        assert after["shares/nothing"] == pytest.approx(row.nothing(), rel=1e-6, abs=1e-9), f"row {t}"
        assert_weights(model, after)


def restarted(model, before, after, pi, w):
    """The weights once groups have restarted, if some have: one of each kind every few rows, where the rule allows."""
    n = int(after["seen"][0])
    alive = (before["began"] >= 0).astype(float)
    changed = after["began"] != before["began"]
    for members, rows in pools(model):
        new = np.flatnonzero(changed & members)
        may_start = np.any(after["began"][members] < 0) or len(new)
        if not len(new):
            assert not may_start or n % rows or n < FIRST_ROWS
            continue
        assert len(new) == 1 and n % rows == 0 and n >= FIRST_ROWS
        (m,) = new
        assert after["began"][m] == n
        if before["began"][m] >= 0:
            weight = np.tensordot(pi, w, 1).sum(axis=1)
            old = members & (before["began"] > 0) & (n - before["began"] > YOUNG)
            assert old[m] and weight[m] <= weight[old].min() * (1 + 1e-9)
            alive[m] = 0.0
            w = without(w, alive, m, there(model))
        alive[m] = 1.0
        if model.experts[m].kind == "ridge" and n // rows % 3:
            w = with_new(w, m, rows)
    return w


def test_a_memory_starts_every_few_rows_and_the_first_one_stays(make_stream):
    stream = make_stream(Gaussian(), n=200, p=3)
    model = mixture(stream, family=Gaussian(), tuner=Mixture(starts=4, factors=(0.9,), ridges=0))
    starts = set()
    for t in range(200):
        run(model, stream.part(t, t + 1))
        now = [memory for memory in model.memories if memory is not None]
        starts |= {since for _, since in now}
        assert [since for _, since in now[:2]] == [0, 0]
    assert all(since % every(4) == 0 for since in starts)
    assert len(starts) > 20


@pytest.mark.parametrize("starts", [2, 4, 8])
def test_one_that_began_after_a_change_grows_old_however_little_room_there_is(starts):
    stream = simulate(0, n_features=5, lengths=(120, 200), densities=(0.8, 0.8))
    model = mixture(stream, family=Gaussian(), tuner=Mixture(starts=starts, factors=()))
    model.learn(stream.X, stream.y)
    oldest = [m for m, memory in enumerate(model.memories) if memory and 110 <= memory[1] <= 160]
    assert model.weights[oldest].sum() > 0.5


def test_without_starts_no_memory_restarts(make_stream):
    stream = make_stream(Gaussian(), n=50)
    model = mixture(stream, family=Gaussian(), tuner=Mixture(starts=0, factors=()))
    run(model, stream)
    assert [since for _, since in model.memories] == [0]


# --- any weights, any experts -----------------------------------------------------------------------------------------


def forged(model, intercepts, w, pi, alive):
    """The state of a model whose experts, but for the exact ones, are these intercepts, with these weights."""
    state = model.state()
    n_memories, n_penalties = alive.shape[0], intercepts.shape[1]
    state["shares/w"] = w[:, there(model)].T
    state["shares/pi"] = pi
    state["began"] = np.where(alive, np.maximum(state["began"], 0), -1)
    for m in range(n_memories):
        if f"experts{m}/solutions" not in state:
            continue
        state[f"experts{m}/solutions"][:, 1] = intercepts[m]
        for k in range(n_penalties):
            active = f"experts{m}/active{k or ''}"
            state[f"{active}.solution"] = np.zeros((0, 2))
            state[f"{active}.members"] = np.zeros(0, dtype=np.int64)
            state[f"{active}.factor"] = np.zeros(0)
    state["model"][:] = 0.0
    return state


ETAS = st.floats(-3, 3) | st.sampled_from([np.nan, np.inf, -np.inf, 1e300, -1e300, 40.0])


@settings(max_examples=150)
@given(st.data())
def test_weights_stay_weights_whatever_experts_say(data):
    """Infinite and absurd predictions, weights of 0 and next to 0, memories that are not there."""
    powers = data.draw(st.sampled_from([(0.5,), (0.0, 0.5), (0.0, 0.3, 0.6, 0.9)]), "powers")
    starts = data.draw(st.integers(0, 3), "starts")
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), "seed"))
    X = rng.normal(size=(21, 2))
    stream = Stream(X, X[:, 0] + rng.normal(size=21))
    family = data.draw(st.sampled_from([Gaussian(), families.Poisson(), families.Binomial()]), "family")
    stream.y = family.sample(rng, np.zeros(21))
    model = mixture(stream, family=family, tuner=Mixture(powers=powers, factors=(), starts=starts, ridges=2))
    run(model, stream.part(0, 20))
    restarts = [group.restarts for group in model.experts]
    n_restarts = sum(restarts)
    stay = [True] * (len(restarts) - n_restarts)
    alive = np.array([*stay, *data.draw(st.lists(st.booleans(), min_size=n_restarts, max_size=n_restarts), "alive")])
    shape = (len(alive), len(powers))
    n_experts = len(alive) * len(powers)
    intercepts = np.reshape(data.draw(st.lists(ETAS, min_size=n_experts, max_size=n_experts), "intercepts"), shape)
    w = rng.uniform(size=(len(ALPHA), *shape)) ** data.draw(st.sampled_from([1.0, 30.0, 3000.0]), "unevenness")
    w *= alive[:, None] * there(model)
    w[:, 0, 0] += 1e-9
    w /= w.sum(axis=(1, 2), keepdims=True)
    pi = rng.uniform(size=len(ALPHA)) + 1e-9
    before = forged(model, intercepts, w, pi / pi.sum(), alive)
    model.restore(before)
    row = Row(model, before, stream.X[20], stream.y[20], 1.0)
    model.learn(stream.X[20:], stream.y[20:])
    after = model.state()
    assert np.isfinite(model.weights).all() and (model.weights >= 0).all()
    assert model.weights.sum() == pytest.approx(1.0, abs=1e-9)
    assert (model.weights[~(after["began"] >= 0)] == 0).all()
    with np.errstate(all="ignore"):
        pi, expected = row.shares()
    expected = restarted(model, before, after, pi, expected)
    assert after["shares/pi"] == pytest.approx(pi, rel=1e-6, abs=1e-190)
    assert spread_out(model, after["shares/w"]) == pytest.approx(expected, rel=1e-6, abs=1e-14)


# --- nothing to learn -------------------------------------------------------------------------------------------------


def test_rare_events_that_nothing_predicts_cost_next_to_nothing():
    """Loss over that of the running mean: ten streams in which events of 2 % meet fifteen flags of 5 %."""
    ours = theirs = 0.0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        flags, y = (rng.random((2000, 15)) < 0.05).astype(float), (rng.random(2000) < 0.02).astype(float)
        mean = (np.cumsum(y) - y + 0.5) / (np.arange(2000) + 1)
        ours += progressive(RAPClassifier(), flags, y, progress=False).loss[50:].sum()
        theirs -= (y * np.log(mean) + (1 - y) * np.log(1 - mean))[50:].sum()
    assert ours <= 1.003 * theirs


def test_what_begins_late_is_found():
    """Two thousand rows of nothing, then a feature that says all there is to say about rare events."""
    rng = np.random.default_rng(1)
    X, y = (rng.random((2400, 5)) < 0.05).astype(float), (rng.random(2400) < 0.02).astype(float)
    y[2000:] = X[2000:, 0]
    model = RAPClassifier()
    loss = progressive(model, X, y, progress=False).loss
    assert loss[2200:].mean() < 0.1 * loss[:2000].mean()
    assert model.learners_[0].state()["shares/nothing"][1] < 0.0


def test_without_an_empty_model_there_is_no_doubt(make_stream):
    stream = make_stream(Gaussian(), n=60)
    model = mixture(stream, family=Gaussian(), tuner=Mixture(powers=(0.3, 0.6)))
    run(model, stream)
    assert list(model.state()["shares/nothing"]) == [0.0, 0.0]


def test_evidence_that_no_run_could_have_made_is_refused(make_stream):
    stream = make_stream(Gaussian(), n=60)
    model = mixture(stream, family=Gaussian())
    run(model, stream)
    state, before = model.state(), model.pack()
    state["shares/nothing"][1] = 3.5
    with pytest.raises(ValueError, match="more evidence of nothing to learn"):
        model.restore(state)
    assert model.pack() == before


# --- the rule itself --------------------------------------------------------------------------------------------------


def test_the_oracle_by_hand():
    """Two memories, two penalties; only the first expert is right, by a factor of e^2 against all."""
    w = np.full((len(ALPHA), 2, 2), 0.25)
    loss = np.array([[0.0, 2.0], [2.0, 2.0]])
    pi, new = updated_shares(np.full(8, 1 / 8), w, np.ones(2), loss, np.log([1, 2, 2, 2, 2, 2, 2, 2]))
    u = 1 / (1 + 3 * np.exp(-2))
    v = np.exp(-2) * u
    assert pi == pytest.approx([2 / 9] + [1 / 9] * 7)
    assert new[0] == pytest.approx(
        np.array(
            [
                [0.75 * u + (u + v) / 16 + (u + v) / 16, 0.75 * v + v / 8 + (u + v) / 16],
                [0.75 * v + (u + v) / 16 + v / 8, v],
            ]
        )
    )
    assert new.sum(axis=(1, 2)) == pytest.approx(1.0)


def test_a_share_that_predicts_better_gains():
    """Where one expert stays right small shares win, where it changes every few rows large ones do: one predicts 0 and
    one 1, and the prediction of a share is the weight of the latter."""

    def updated(pi, w, y):
        return updated_shares(pi, w, np.ones(2), 2.0 * np.array([[y], [1.0 - y]]), 2.0 * (y - w[:, 1, 0]) ** 2)

    pi = np.full(8, 1 / 8)
    w = np.full((8, 2, 1), 0.5)
    settled, restless = (pi, w), (pi, w)
    for t in range(400):
        settled = updated(*settled, 0.0)
        restless = updated(*restless, float(t // 5 % 2))
    assert settled[0].argmax() == 5
    assert restless[0].argmax() == 0


def test_the_experts_are_read_off_the_state_rightly(make_stream):
    """The oracle's own oracle: averaged by their weights, they are the model."""
    for family in families.EXAMPLES:
        stream = make_stream(family, n=50)
        for memory, tuner in UNCARRIED.values():
            model = mixture(stream, family=family, memory=memory, tuner=tuner)
            run(model, stream)
            average = np.nansum(model.weights[:, :, None] * experts(model), axis=(0, 1))
            assert np.append(model.intercept, model.coef) == pytest.approx(average, rel=1e-9, abs=1e-12)
