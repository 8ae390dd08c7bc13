"""A mixture that was saved, copied, made wider or turned round equals one that always was."""

import copy
import pickle
import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.mixtures import COMPETITIONS, mixture
from oracles.replay import Stream, run, same_bits
from streamlasso import RAPRegressor, families, penalties
from streamlasso.families import Binomial, Gaussian, Poisson
from streamlasso.memories import AdaptiveForgetting
from streamlasso.tuners import LogRMS, Mixture, Tuner
from support.plain import PlainPoisson
from support.streams import streams

every_family = pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
every_competition = pytest.mark.parametrize("memory,tuner", COMPETITIONS.values(), ids=COMPETITIONS)


def assert_same_run(one, other):
    """Everything that can be seen of a run, to the bit."""
    assert np.array_equal(one.coef, other.coef)
    assert one.status == other.status
    for name in one.columns:
        assert np.array_equal(one.columns[name], other.columns[name]), name
    assert same_bits(one.learner.state(), other.learner.state())


def restored(model, stream, **setting):
    other = mixture(stream, **setting)
    other.restore(model.state())
    return other


def assert_goes_on(stream, cut, **setting):
    """Saved at `cut` in three ways, and gone on with."""
    model = mixture(stream, **setting)
    run(model, stream.part(0, cut))
    copies = [restored(model, stream, **setting), pickle.loads(pickle.dumps(model)), copy.copy(model)]
    assert all(same_bits(other.state(), model.state()) for other in copies)
    rest = stream.part(cut, len(stream))
    through = run(model, rest)
    for other in copies:
        assert_same_run(run(other, rest), through)


@every_family
@every_competition
@pytest.mark.parametrize("cut", [0, 1, 7, 41])
def test_saved_and_continued_equals_never_interrupted(family, memory, tuner, cut, make_stream):
    stream = make_stream(family, n=60, p=5, weights=True)
    stream.X[:20, 3] = 0.0
    assert_goes_on(stream, cut, family=family, memory=memory, tuner=tuner, history=10)


@given(st.data())
def test_any_stream_survives(data):
    family = data.draw(st.sampled_from(families.EXAMPLES), "family")
    memory, tuner = data.draw(st.sampled_from(list(COMPETITIONS.values())), "competition")
    stream = data.draw(streams(family, max_rows=40), "stream")
    setting = dict(
        family=family,
        memory=memory,
        tuner=tuner,
        penalty=data.draw(st.sampled_from(penalties.EXAMPLES), "penalty"),
        fit_intercept=data.draw(st.booleans(), "fit_intercept"),
        standardize=data.draw(st.booleans(), "standardize"),
        batch_size=data.draw(st.sampled_from([1, 5]), "batch_size"),
    )
    cut = data.draw(st.integers(0, len(stream) - 1), "cut")
    assert_goes_on(stream, cut - cut % setting["batch_size"], **setting)


@every_family
def test_a_state_holds_only_what_the_next_row_needs(family, make_stream):
    """At every row: long runs, in which experts wait for their turn and memories come and go."""
    stream = make_stream(family, n=120, p=4)
    through = mixture(stream, family=family)
    for cut in range(0, 120, 7):
        other = restored(through, stream, family=family)
        rest = stream.part(cut, min(cut + 7, 120))
        assert_same_run(run(other, rest), run(through, rest))


@every_competition
def test_a_state_is_a_snapshot(memory, tuner, make_stream):
    stream = make_stream(Gaussian(), n=40)
    model = mixture(stream, family=Gaussian(), memory=memory, tuner=tuner)
    run(model, stream.part(0, 20))
    saved = model.state()
    kept = {name: array.copy() for name, array in saved.items()}
    first = run(model, stream.part(20, 40)).coef
    assert same_bits(saved, kept)
    model.restore(saved)
    assert np.array_equal(run(model, stream.part(20, 40)).coef, first)
    assert same_bits(saved, kept)


@every_competition
def test_a_state_of_another_mixture_is_refused_and_changes_nothing(memory, tuner, make_stream):
    stream = make_stream(Gaussian(), n=30)
    model = mixture(stream, family=Gaussian(), memory=memory, tuner=tuner)
    run(model, stream)
    before = model.state()
    spoilt = [
        {name: array for name, array in before.items() if name != "hedge/w"},
        {**before, "more": np.zeros(1)},
        {**before, "seen": np.array([30, 9])},
        {**before, "hedge/w": -before["hedge/w"]},
        {**before, "hedge/w": 0.9 * before["hedge/w"]},
        model.grown(6).state(),
    ]
    if "restarting/began" in before:
        spoilt += [
            {**before, "restarting/began": before["restarting/began"] - 100},
            {**before, "restarting/began": before["restarting/began"] + 1000},
            {**before, "restarting/hedge/w": 0.0 * before["restarting/hedge/w"]},
        ]
    for state in spoilt:
        with pytest.raises(ValueError):
            model.restore(state)
        assert same_bits(before, model.state())


# --- more features ----------------------------------------------------------------------------------------------------


@every_family
@every_competition
@pytest.mark.parametrize("standardize", [True, False])
def test_grown_equals_a_zero_column_from_the_start(family, memory, tuner, standardize, make_stream):
    late = make_stream(family, n=60, p=6, weights=True)
    late.X[:30, 4:] = 0.0
    narrow = Stream(np.ascontiguousarray(late.X[:30, :4]), late.y[:30], late.a[:30])
    setting = dict(family=family, memory=memory, tuner=tuner, standardize=standardize, history=12)
    wide = run(mixture(late, **setting), late)
    small = mixture(narrow, **setting)
    run(small, narrow)
    before = small.state()
    model = small.grown(6)
    assert model.n_features == 6 and (model.coef[4:] == 0).all()
    rest = run(model, late.part(30, 60))
    assert rest.eta == pytest.approx(wide.eta[30:], rel=1e-6, abs=1e-8)
    assert rest.coef == pytest.approx(wide.coef[30:], rel=1e-5, abs=1e-7)
    assert model.weights == pytest.approx(wide.learner.weights, rel=1e-4, abs=1e-8)
    assert same_bits(before, small.state())


# --- the other class --------------------------------------------------------------------------------------------------


@every_competition
@pytest.mark.parametrize("cut", [0, 3, 40])
def test_mirrored_equals_the_other_class_from_the_start(memory, tuner, cut, make_stream):
    stream = make_stream(Binomial(), n=80, p=4)
    turned = Stream(stream.X, 1.0 - stream.y)
    setting = dict(family=Binomial(), memory=memory, tuner=tuner, history=20)
    model = mixture(stream, **setting)
    run(model, stream.part(0, cut))
    rest = run(model.mirrored(), turned.part(cut, 80))
    whole = run(mixture(stream, **setting), turned)
    assert rest.eta == pytest.approx(whole.eta[cut:], rel=1e-7, abs=1e-8)
    assert rest.coef == pytest.approx(whole.coef[cut:], rel=1e-6, abs=1e-7)


def test_mirrored_twice_is_the_same_model(make_stream):
    stream = make_stream(Binomial(), n=60)
    model = mixture(stream, family=Binomial())
    run(model, stream.part(0, 40))
    again = model.mirrored().mirrored()
    rest = stream.part(40, 60)
    assert run(again, rest).coef == pytest.approx(run(model, rest).coef, rel=1e-12, abs=1e-14)


# --- errors half-way --------------------------------------------------------------------------------------------------


class Trouble(Exception):
    pass


def fragile(family):
    """The family whose methods raise from a given call on."""
    calls = [10**9]

    def counted(name):
        def method(self, *args):
            calls[0] -= 1
            if calls[0] < 0:
                raise Trouble
            return float(getattr(family, name)(*args))

        return method

    methods = {name: counted(name) for name in ("loss", "slope", "curvature", "mean")}
    return type("Fragile", (families.Family,), methods)(), calls


@pytest.mark.parametrize("after", [0, 3, 50, 500, 3000])
@pytest.mark.parametrize("memory,tuner", [COMPETITIONS["few"], COMPETITIONS["factors x tuner"]], ids=str)
def test_a_family_that_raises_leaves_no_trace(after, memory, tuner, make_stream):
    stream = make_stream(Poisson(), n=50)
    family, calls = fragile(Poisson())
    model = mixture(stream, family=family, memory=memory, tuner=tuner)
    run(model, stream.part(0, 20))
    calls[0] = after
    with pytest.raises(Trouble):
        while True:
            before = model.state()
            run(model, stream.part(20, 50))
    calls[0] = 10**9
    assert same_bits(before, model.state())
    run(model, stream.part(20, 50))


def test_a_tuner_that_raises_leaves_no_trace(make_stream):
    class Breaks(Tuner):
        n_state = 1

        def update(self, lam, slope, norm, lam_max, state):
            state[0] += 1
            if state[0] == 15:
                raise Trouble
            return lam

    stream = make_stream(Gaussian(), n=40)
    model = mixture(stream, family=Gaussian(), memory=AdaptiveForgetting((0.9, 1.0)), tuner=Breaks())
    run(model, stream.part(0, 20))
    before = model.state()
    with pytest.raises(Trouble):
        run(model, stream.part(20, 40))
    assert same_bits(before, model.state())


def test_threads_may_predict_with_one_model(make_stream):
    """No row gets into the prediction of another, though the GIL is not held."""
    stream = make_stream(Gaussian(), n=60)
    model = mixture(stream, family=Gaussian())
    run(model, stream)
    rows = [np.full((20_000, 4), value) for value in (-0.5, 0.5)]
    expected = [model.decision(X[:1])[0] for X in rows]
    found = [None, None]

    def predict(i):
        found[i] = model.decision(rows[i])

    threads = [threading.Thread(target=predict, args=(i,)) for i in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((eta == value).all() for eta, value in zip(found, expected, strict=True))


def test_states_are_given_back_to_the_machine(make_stream):
    """No copy of a state stays behind: numpy 2.4.0 never frees what `np.diag` made."""
    stream = make_stream(Gaussian(), n=40, p=40)
    model = mixture(stream, family=Gaussian(), tuner=Mixture(powers=(0.0, 1.5), runs=4))
    run(model, stream)
    tracemalloc.start()
    try:
        model.restore(model.state())
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(20):
            model.restore(model.state())
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < sum(array.nbytes for array in model.state().values())


class Tired(PlainPoisson):
    """Raises once it is tired."""

    def __init__(self):
        self.tired = False

    def mean(self, eta):
        if self.tired:
            raise RuntimeError("tired")
        return super().mean(eta)


def test_a_prediction_that_raises_leaves_no_memory_behind(make_stream):
    stream = make_stream(Poisson(), n=40, p=40)
    family = Tired()
    model = mixture(stream, family=family, tuner=Mixture(powers=(0.0, 1.5), runs=4))
    run(model, stream)
    family.tired = True
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(200):
            with pytest.raises(RuntimeError, match="tired"):
                model.decision(stream.X[:1])
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 100 * stream.X[0].nbytes


def test_a_tuner_that_moves_one_lam_is_told_of_its_own_slope(make_stream):
    """Each factor's tuner has a memory of its own: two factors that are the same are twins."""
    stream = make_stream(Gaussian(), n=60)
    model = mixture(stream, family=Gaussian(), memory=AdaptiveForgetting((0.95, 0.95)), tuner=LogRMS())
    run(model, stream)
    state = model.state()
    one, other = (
        {name.partition("/")[2]: array for name, array in state.items() if name.startswith(f"experts{m}/")}
        for m in (0, 1)
    )
    assert same_bits(one, other)
    assert model.weights[0] == pytest.approx(model.weights[1])


# --- bytes ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def default():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    y = X[:, 0] - X[:, 1] + np.where(np.arange(400) < 200, 0.0, 3.0) * X[:, 2] + rng.normal(size=400)
    return RAPRegressor().partial_fit(X, y).learners_[0]


@pytest.mark.parametrize("clean", [True, False], ids=["finite elsewhere", "not finite elsewhere"])
def test_every_number_that_is_not_one_is_refused_by_the_name_of_its_array(default, clean):
    """Some numbers may be infinite; they must not hide others."""
    free = {"solutions": [0], "response": [0]}
    before = default.state()
    if not clean:
        before["bounds/response"][3] = np.inf
    names = [name for name, value in before.items() if value.dtype == float and value.size > 0]
    assert len(names) > 150
    for name in names:
        for place in free.get(name.rpartition("/")[2].rpartition(".")[2], [0, -1]):
            forged = {other: value.copy() for other, value in before.items()}
            forged[name].flat[place] = np.nan
            kept = default.pack()
            with pytest.raises(ValueError, match=f"^array {name}: "):
                default.restore(forged)
            assert default.pack() == kept


def test_bytes_do_not_depend_on_what_was_packed_before(default):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 3))
    models = [default, *(RAPRegressor(**s).partial_fit(X, X[:, 0]).learners_[0] for s in ({}, {"tuner": "logrms"}))]
    alone = [model.pack() for model in models for _ in range(2)][::2]
    assert len({len(data) for data in alone}) == 3
    for i in (0, 2, 1, 0, 1, 2, 0):
        assert models[i].pack() == alone[i]
        models[i].unpack(alone[i])
        assert models[i].pack() == alone[i]


def test_penalty_factors_are_those_of_the_beginning():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 4))
    y = X[:, 0] + rng.normal(size=80)
    factor = np.array([1.0, 2.0, 0.5, 1.0])
    one, other = (RAPRegressor(penalty_factor=f).partial_fit(X[:40], y[:40]) for f in (factor, factor.copy()))
    factor[:] = 0.0
    assert np.array_equal(one.partial_fit(X[40:], y[40:]).predict(X), other.partial_fit(X[40:], y[40:]).predict(X))
