"""state(), restore(), grown(): a stream that was interrupted, or got wider, equals one that never was."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.replay import Stream, learner, run, same_bits
from streamlasso import families, memories, penalties, tuners
from streamlasso.core.lasso.learner import Learner
from streamlasso.families import Gaussian, Poisson
from streamlasso.memories import Forgetting, Window
from streamlasso.penalties import L1
from streamlasso.tuners import Fixed, LogRMS
from support.streams import streams

parts = pytest.mark.parametrize(
    "family,memory",
    [pytest.param(f, m, id=f"{f}-{m}") for f in families.EXAMPLES for m in memories.EXAMPLES],
)


def assert_same_run(one, other):
    """Everything that can be seen of a run, to the bit."""
    assert np.array_equal(one.coef, other.coef)
    assert one.status == other.status
    for name in one.columns:
        assert np.array_equal(one.columns[name], other.columns[name], equal_nan=True), name


def interrupted(stream, cut, **setting):
    """(the rest of a stream after saving and restoring at `cut`, the same part of one never interrupted)."""
    through, first, second = (learner(stream, **setting) for _ in range(3))
    run(through, stream.part(0, cut))
    run(first, stream.part(0, cut))
    second.restore(first.state())
    rest = stream.part(cut, len(stream))
    return run(second, rest), run(through, rest)


@parts
@pytest.mark.parametrize("cut", [0, 1, 7, 40])
def test_saved_and_continued_equals_never_interrupted(family, memory, cut, make_stream):
    stream = make_stream(family, n=60, p=6, weights=True)
    setting = dict(family=family, memory=memory, penalty=L1(), tuner=LogRMS(), history=10)
    assert_same_run(*interrupted(stream, cut, **setting))


@pytest.mark.parametrize("tuner", tuners.EXAMPLES, ids=str)
@pytest.mark.parametrize("penalty", penalties.EXAMPLES, ids=str)
@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_every_penalty_and_tuner_survives(family, penalty, tuner, make_stream):
    stream = make_stream(family, n=50)
    assert_same_run(*interrupted(stream, 25, family=family, memory=Window(30), penalty=penalty, tuner=tuner))


@given(st.data())
def test_any_stream_survives(data):
    family = data.draw(st.sampled_from(families.EXAMPLES), "family")
    stream = data.draw(streams(family), "stream")
    setting = dict(
        family=family,
        memory=data.draw(st.sampled_from(memories.EXAMPLES), "memory"),
        penalty=data.draw(st.sampled_from(penalties.EXAMPLES), "penalty"),
        tuner=data.draw(st.sampled_from([LogRMS(), Fixed(0.01)]), "tuner"),
        history=data.draw(st.sampled_from([1, 5, 64]), "history"),
    )
    assert_same_run(*interrupted(stream, data.draw(st.integers(0, len(stream) - 1), "cut"), **setting))


@parts
def test_a_state_holds_only_what_the_next_row_needs(family, memory, make_stream):
    """Two learners that will never differ again have the same state: no scratch is kept in it."""
    stream = make_stream(family, n=60, p=6, weights=True)
    for cut in range(5, 60, 5):
        restored, through = interrupted(stream, cut, family=family, memory=memory, penalty=L1(), tuner=Fixed(0.1))
        assert_same_run(restored, through)
        one, other = restored.learner.state(), through.learner.state()
        differing = [name for name in one if not same_bits({name: one[name]}, {name: other[name]})]
        assert not differing, f"cut at {cut}"


@parts
def test_a_state_is_a_snapshot(family, memory, make_stream):
    """What was saved does not change when the learner goes on, and can be gone back to."""
    stream = make_stream(family, n=40)
    model = learner(stream, family=family, memory=memory, penalty=L1(), tuner=LogRMS())
    run(model, stream.part(0, 20))
    saved = model.state()
    copy = {name: np.array(value) for name, value in saved.items()}
    first = run(model, stream.part(20, 40))
    assert same_bits(saved, copy)
    model.restore(saved)
    again = run(model, stream.part(20, 40))
    assert (first.coef == again.coef).all()
    assert same_bits(saved, copy)


def test_restoring_copies_every_public_number(make_stream):
    stream = make_stream(Gaussian(), n=30)
    first, second = (
        learner(stream, family=Gaussian(), memory=Window(9), penalty=L1(), tuner=LogRMS()) for _ in range(2)
    )
    run(first, stream)
    second.restore(first.state())
    for name in ("lam", "lam_max", "n_seen", "effective_size", "intercept", "status"):
        assert getattr(first, name) == getattr(second, name)
    assert (first.coef == second.coef).all()


@pytest.mark.parametrize("p", [3, 5])
def test_a_state_of_another_width_is_refused(p, make_stream):
    stream = make_stream(Gaussian(), n=10)
    setting = dict(family=Gaussian(), memory=Forgetting(0.9), penalty=L1(), tuner=LogRMS())
    saved = run(learner(stream, **setting), stream).learner.state()
    other = Learner(p, **setting)
    before = other.state()
    with pytest.raises(ValueError):
        other.restore(saved)
    assert same_bits(before, other.state())


def test_a_state_with_something_missing_is_refused(make_stream):
    stream = make_stream(Poisson(), n=20)
    setting = dict(family=Poisson(), memory=Forgetting(0.9), penalty=L1(), tuner=LogRMS())
    model = run(learner(stream, **setting), stream).learner
    before = model.state()
    for name in before:
        with pytest.raises((ValueError, KeyError)):
            model.restore({key: value for key, value in before.items() if key != name})
        assert same_bits(before, model.state()), name


# --- more features ----------------------------------------------------------------------------------------------


@parts
@pytest.mark.parametrize("standardize", [True, False])
def test_grown_equals_a_zero_column_from_the_start(family, memory, standardize, make_stream):
    late = make_stream(family, n=60, p=6, weights=True)
    late.X[:30, 4:] = 0.0
    narrow = Stream(np.ascontiguousarray(late.X[:30, :4]), late.y[:30], late.a[:30])
    setting = dict(family=family, memory=memory, penalty=L1(), tuner=LogRMS(), standardize=standardize, history=12)
    wide = run(learner(late, **setting), late)
    grown = run(learner(narrow, **setting), narrow).learner.grown(6)
    assert grown.n_features == 6
    assert (grown.coef[4:] == 0).all()
    rest = run(grown, late.part(30, 60))
    assert rest.coef == pytest.approx(wide.coef[30:], rel=1e-9, abs=1e-12)
    assert rest.lam == pytest.approx(wide.lam[30:], rel=1e-10)
    assert grown.n_seen == 60


def test_growing_leaves_the_old_learner_alone(make_stream):
    stream = make_stream(Gaussian(), n=20)
    model = run(learner(stream, family=Gaussian(), memory=Window(9), penalty=L1(), tuner=LogRMS()), stream).learner
    before = model.state()
    wider = model.grown(7)
    run(wider, Stream(np.zeros((3, 7)), np.ones(3)))
    assert same_bits(before, model.state())


def test_new_features_are_penalised_like_any_other(make_stream):
    late = make_stream(Gaussian(), n=40, p=5)
    late.X[:20, 4] = 0.0
    narrow = Stream(np.ascontiguousarray(late.X[:20, :4]), late.y[:20])
    setting = dict(family=Gaussian(), memory=Forgetting(0.95), penalty=L1(), tuner=Fixed(0.05))
    factor = np.array([0.0, 2.0, 1.0, 0.5])
    wide = run(learner(late, penalty_factor=np.append(factor, 1.0), **setting), late)
    grown = run(learner(narrow, penalty_factor=factor, **setting), narrow).learner.grown(5)
    assert run(grown, late.part(20, 40)).coef == pytest.approx(wide.coef[20:], rel=1e-9, abs=1e-12)


# --- the declaration --------------------------------------------------------------------------------------------


def test_named_arrays_are_the_numbers_of_the_learner(make_stream):
    """What is written down under a name is what the attribute of that name holds."""
    stream = make_stream(Gaussian(), n=30, p=3)
    model = run(
        learner(stream, family=Gaussian(), memory=Forgetting(0.9), penalty=L1(), tuner=Fixed(0.01)), stream
    ).learner
    state = model.state()
    weight = 0.9 ** np.arange(29, -1, -1)
    mean = weight @ stream.X / weight.sum()
    unit = state["unit"][0]
    S = (stream.X - mean).T * weight @ (stream.X - mean)
    waiting = state["moments.rows"].T @ state["moments.signed"]
    np.testing.assert_allclose((state["moments.S"] + waiting) / unit, S, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(state["moments.mean"], mean, rtol=1e-9, atol=1e-12)
    assert state["lam"][0] == model.lam == 0.01 * 1.0 or state["lam"][0] == model.lam
    assert state["seen"].tolist()[0] == state["counts"][0] == 30
    b = np.zeros(3)
    b[state["active.members"]] = state["active.solution"][:, 0]
    np.testing.assert_array_equal(b, model.coef)
    k = len(state["active.members"])
    assert state["active.factor"].shape == (k * (k + 1) // 2,)


@parts
def test_packed_and_named_are_the_same_numbers(family, memory, make_stream):
    stream = make_stream(family, n=40, p=6, weights=True)
    model = run(learner(stream, family=family, memory=memory, penalty=L1(), tuner=LogRMS(), history=10), stream).learner
    data = model.pack()
    named = b"".join(array.tobytes() for array in model.state().values())
    assert sorted(np.frombuffer(named, np.uint64)) == sorted(_without_counts(model, data))
    model.restore(model.state())
    assert model.pack() == data
    model.unpack(data)
    assert model.pack() == data


def _without_counts(model, data):
    """The numbers on a tape but for those that say how many rows follow."""
    found, ends = [], []
    for _, _, start, shape in model._layout(data, 0):
        ends.append(start)
        found.extend(np.frombuffer(data, np.uint64, int(np.prod(shape)), start))
    assert ends == sorted(ends)
    return found


@pytest.mark.parametrize(
    "name,value,complaint",
    [
        ("units.size", np.zeros(3), "shape"),
        ("units.size", np.zeros(4, dtype=np.float32), "type"),
        ("units.size", np.array([0.0, np.inf, 0.0, 0.0]), "units.size: size must be finite"),
        ("moments.signed", np.zeros((3, 1)), "shape"),
        ("scaler.sums", np.array([-1.0, 0.0, 0.0]), "scaler.sums: weight must be 0 or larger"),
        ("scaler.sums", np.array([1.0, np.nan, 0.0]), "scaler.sums: y_mean must be finite"),
        ("seen", np.array([-1, 0, 1]), "seen: n_seen is out of range"),
        ("seen", np.array([9, 99, 1]), "seen: code is out of range"),
        ("lam", np.array([np.nan]), "lam: lam must be 0 or larger"),
        ("unit", np.array([2.0**201]), "unit must be at most"),
        ("more", np.zeros(1), "another model: .'more'"),
    ],
)
def test_what_no_run_could_have_written_is_refused(name, value, complaint, make_stream):
    stream = make_stream(Gaussian(), n=30, p=4)
    setting = dict(family=Gaussian(), memory=Forgetting(0.9), penalty=L1(), tuner=LogRMS())
    model = run(learner(stream, **setting), stream).learner
    before = model.state()
    with pytest.raises(ValueError, match=complaint):
        model.restore({**before, name: value})
    assert same_bits(before, model.state())


@given(st.data())
def test_bytes_of_any_length_are_refused_or_whole(data):
    family = data.draw(st.sampled_from(families.EXAMPLES), "family")
    stream = data.draw(streams(family), "stream")
    setting = dict(family=family, memory=Window(8), penalty=L1(), tuner=LogRMS(), history=5)
    model = run(learner(stream, **setting), stream).learner
    packed = model.pack()
    cut = data.draw(st.integers(0, len(packed) - 1), "cut")
    for spoilt in (packed[:cut], packed + b"\0" * 8):
        with pytest.raises(ValueError, match=r"missing|more numbers"):
            model.unpack(spoilt)
        assert model.pack() == packed
