"""Rows whose values run Python, and Ctrl-C at every moment that there is."""

import dis
import functools
import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

import streamlasso
import streamlasso.river
from streamlasso import RAPClassifier, RAPRegressor
from streamlasso.keyed import KeyedRegressor
from streamlasso.network import StreamingNetwork
from streamlasso.tuners import LogRMS
from streamlasso.wide import WideClassifier

ROOT = str(Path(streamlasso.__file__).parent)
rng = np.random.default_rng(0)
X = rng.normal(size=(30, 3))
Y = X[:, 0] + 0.1 * rng.normal(size=30)
CLASSES = np.digitize(Y, [-0.5, 0.5])
NAMED = [dict(zip("abc", row, strict=True)) for row in X.tolist()]


class Curious:
    """A number that uses a model before it says what it is."""

    def __init__(self, value, use):
        self.value, self.use = value, use

    def __float__(self):
        self.use()
        return self.value


def named(model, n=20):
    for row, y in zip(NAMED[:n], Y.tolist(), strict=False):
        model.learn_one(row, y)
    return model


def test_a_value_that_uses_the_model_spoils_no_row():
    """The row was half that of the value's own call."""
    model = named(streamlasso.river.RAPRegressor(tuner=LogRMS()))
    expected = model.predict_one({"a": 1.0, "b": 2.0, "c": 3.0})
    before = model.to_bytes()
    use = lambda: model.predict_one({"a": -9.0, "b": -9.0, "c": -9.0})  # noqa: E731
    row = {"a": 1.0, "b": Curious(2.0, use), "c": 3.0}
    with pytest.raises(RuntimeError, match="used the model"):
        model.predict_one(row)
    with pytest.raises(RuntimeError, match="used the model"):
        model.learn_one(row, 1.0)
    assert model.to_bytes() == before
    assert model.predict_one({"a": 1.0, "b": Curious(2.0, lambda: None), "c": 3.0}) == expected


@pytest.mark.parametrize("place", ["y", "w"])
def test_a_target_or_weight_that_uses_the_model_spoils_no_row(place):
    model, again = (named(streamlasso.river.RAPRegressor(tuner=LogRMS())) for _ in range(2))
    use = lambda: model.predict_one({"a": -9.0, "b": -9.0, "c": -9.0})  # noqa: E731
    given = {"y": 2.0, "w": 2.0}
    again.learn_one(NAMED[20], **given)
    model.learn_one(NAMED[20], **{**given, place: Curious(2.0, use)})
    assert model.to_bytes() == again.to_bytes()


def test_values_that_learn():
    model = named(streamlasso.river.RAPRegressor(tuner=LogRMS()))
    row = {"a": Curious(1.0, lambda: model.learn_one(NAMED[21], 1.0)), "b": 1.0, "c": 1.0}
    with pytest.raises(RuntimeError):
        model.learn_one(row, 1.0)
    again = named(streamlasso.river.RAPRegressor(tuner=LogRMS()))
    again.learn_one(NAMED[21], 1.0)
    assert model.to_bytes() == again.to_bytes()


# --- Ctrl-C at every instruction --------------------------------------------------------------------------------------


@functools.cache
def signal_points(code):
    """Where Python looks for signals: after calls, at the start of functions and of loops; and where what is raised at
    the next instruction is handled by those who would handle it there."""
    handlers = dis._parse_exception_table(code)
    handler = lambda at: next((each.target for each in reversed(handlers) if each.start <= at < each.end), None)  # noqa: E731
    looks = ("CALL", "RESUME", "JUMP_BACKWARD")
    found = itertools.pairwise(dis.get_instructions(code))
    return {b.offset for a, b in found if a.opname.startswith(looks) and handler(a.offset) == handler(b.offset)}


class Interrupts:
    """Ctrl-C at the n-th of the moments in our Python code when it can come."""

    def __init__(self, n):
        self.left = n
        self.came = False

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self.call)

    def __exit__(self, *error):
        sys.settrace(self.before)

    def call(self, frame, event, arg):
        if not frame.f_code.co_filename.startswith(ROOT):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self.opcode

    def opcode(self, frame, event, arg):
        if event == "opcode" and not self.came and frame.f_lasti in signal_points(frame.f_code):
            self.left -= 1
            if self.left < 0:
                self.came = True
                raise KeyboardInterrupt
        return self.opcode


def every_interrupt(make, learn, step):
    """A new model after each of the interrupts that there can be."""
    n = 0
    while True:
        model, interrupts = make(), Interrupts(n)
        try:
            with interrupts:
                learn(model)
        except KeyboardInterrupt:
            pass
        if not interrupts.came:
            assert n > step
            return
        yield model
        n += step


def bits(model):
    return b"|".join(learner.pack() for learner in model.learners_)


KINDS = {
    "regressor": (
        lambda: RAPRegressor(tuner=LogRMS()).partial_fit(X[:10], Y[:10]),
        lambda model: model.partial_fit(X[10:15], Y[10:15]),
        bits,
    ),
    "classes": (
        lambda: RAPClassifier(tuner=LogRMS()).partial_fit(X[:20], CLASSES[:20]),
        lambda model: model.partial_fit(X[10:15], CLASSES[10:15]),
        bits,
    ),
    "networks": (
        lambda: StreamingNetwork(tuner=LogRMS(), n_jobs=1).partial_fit(X[:10]),
        lambda model: model.partial_fit(X[10:11]),
        bits,
    ),
    "rows with names": (
        lambda: named(streamlasso.river.RAPRegressor(tuner=LogRMS())),
        lambda model: model.learn_one({**NAMED[20], "new": 1.0}, 1.0),
        bits,
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_ctrl_c_at_any_moment_leaves_a_model_that_learns_on(kind):
    """Between two lines of Python it left a model that said for ever that it is learning in another thread."""
    make, learn, look = KINDS[kind]
    before, after = look(make()), look(learn_on(make(), learn))
    for model in every_interrupt(make, learn, 1):
        assert look(model) in (before, after)
        learn(model)


def learn_on(model, learn):
    learn(model)
    return model


def test_ctrl_c_at_any_moment_leaves_models_of_keys_that_learn_on():
    keys = np.arange(30) % 2
    make = lambda: KeyedRegressor(RAPRegressor(tuner=LogRMS()), max_keys=1).partial_fit(X, Y, keys)  # noqa: E731
    for model in every_interrupt(make, lambda model: model.partial_fit(X[:6], Y[:6], keys[:6]), 2):
        model.predict(X, keys)
        model.partial_fit(X, Y, keys)
        assert KeyedRegressor.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()


def seen(model):
    return [each.n_seen for each in model.learners_]


def test_ctrl_c_at_any_moment_keeps_the_models_of_wide_classes_in_step():
    make = lambda: WideClassifier().partial_fit(X, CLASSES)  # noqa: E731
    for model in every_interrupt(make, lambda model: model.partial_fit(X[:5], CLASSES[:5]), 1):
        assert seen(model) in ([30] * 3, [35] * 3)


def test_ctrl_c_at_any_moment_keeps_the_models_of_wide_classes_with_names_in_step():
    def make():
        model = streamlasso.river.WideClassifier()
        for row, y in zip(NAMED, CLASSES.tolist(), strict=True):
            model.learn_one(row, y)
        return model

    start = len(set(seen(make())))
    for model in every_interrupt(make, lambda model: model.learn_one(NAMED[0], 1), 1):
        assert len(set(seen(model))) == start
