"""Forged checkpoints: no file can do harm, whatever it holds."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamlasso
from streamlasso import RAPRegressor, checkpoint, compact, families, river
from streamlasso.memories import Window
from streamlasso.penalties import ElasticNet
from streamlasso.tuners import LogRMS
from support.checkpoints import P, refusal, responses, rows, small_model
from support.forgery import forged_file, loaded, numbers, reshape, set_at, words


@pytest.fixture
def saved(path):
    small_model().save(path)
    return path


def drop(name):
    def edit(record, tensors):
        del tensors[name]

    return edit


def put(*keys_and_value):
    def edit(record, tensors):
        *keys, last, value = keys_and_value
        for key in keys:
            record = record[key]
        record[last] = value

    return edit


FORGERIES = {
    "part of Python": put("settings", "tuner", {"type": "eval", "source": "1"}),
    "half a part": put("settings", "tuner", {"type": "Fixed"}),
    "bad part": put("engine", "memory", {"type": "Forgetting", "r": 2.0}),
    "base class": put("engine", "tuner", {"type": "Tuner"}),
    "unknown setting": put("settings", "shell", "rm"),
    "unknown label": put("labels", "predict", 1),
    "no labels": put("labels", {}),
    "labels of another width": put("labels", "n_features_in_", 3),
    "names of another width": put("labels", "feature_names_in_", {"type": "array", "dtype": "O", "items": ["a"]}),
    "records for labels": put("labels", "feature_names_in_", {"type": "array", "dtype": "i4,i4", "items": [1]}),
    "endless labels": put("labels", "feature_names_in_", {"type": "array", "dtype": "<U999999999", "items": ["a"] * 4}),
    "no learners": put("states", []),
    "many learners": put("states", [8, 8, 8]),
    "a learner of less than nothing": put("states", [10**6, -(10**6)]),
    "uncountable learners": put("states", 10**18),
    "labels that are a bomb": put(
        "labels", "feature_names_in_", {"type": "array", "dtype": "<U262144", "items": [""] * 3000}
    ),
    "another family": put("engine", "family", {"type": "Poisson"}),
    "another memory": put("engine", "memory", {"type": "Window", "n": 10}),
    "endless memory": put("engine", "memory", {"type": "Window", "n": 10**17}),
    "no history": put("engine", "history", 0),
    "wide": reshape("penalty_factor", 10**6),
    "flat": reshape("penalty_factor", ()),
    "empty": reshape("penalty_factor", 0),
    "negative factor": set_at("penalty_factor", -1.0, 0),
    "another array": reshape("0/more", 3),
    "array of no learner": reshape("7/lam", 2),
    "array without owner": reshape("lam", 2),
    "no sums": drop("0/moments.S"),
    "square": reshape("0/moments.S", (3, 3)),
    "row": reshape("0/moments.S", (1, P)),
    "single precision": reshape("0/moments.S", (P, P), np.float32),
    "sums that are no number": set_at("0/moments.S", np.nan, 0, 0),
    "too many pending": lambda r, t: t.update({f"0/moments.{name}": np.zeros((9, P)) for name in ("rows", "signed")}),
    "pending without sign": reshape("0/moments.signed", (1, P)),
    "rows that a Gaussian forgets": lambda r, t: t.update(
        {"0/ring.x": np.zeros((64, P)), "0/ring.rest": np.zeros((64, 4))}
    ),
    "member that is not there": set_at("0/active.members", P, 0),
    "member before the first": set_at("0/active.members", -1, 0),
    "member twice": set_at("0/active.members", 0),
    "members without coefficients": reshape("0/active.solution", (0, 2)),
    "sign other than 1 and -1": set_at("0/active.solution", 0.5, 0, 1),
    "factor of zero": set_at("0/active.factor", 0.0),
    "whole rows": set_at("0/counts", 1, 1),
    "fewer than no rows": set_at("0/counts", -1, 1),
    "removed rows": set_at("0/counts", 1, 2),
    "fewer than no rows taken in": set_at("0/counts", -1, 0),
    "unknown status": set_at("0/seen", 4, 1),
    "status before the first": set_at("0/seen", -1, 1),
    "fewer than no rows seen": set_at("0/seen", -1, 0),
    "too many rows seen": set_at("0/seen", 2**63 - 1, 0),
    "infinite unit": set_at("0/unit", np.inf, 0),
    "no unit": set_at("0/unit", 0.0, 0),
    "unit that never comes back": set_at("0/unit", 1e300, 0),
    "negative lam": set_at("0/lam", -1.0, 0),
    "negative weight": set_at("0/scaler.sums", -1.0, 0),
    "two memories of a tuner": reshape("0/tuner", 3),
    "penalty that is no number": set_at("0/units.v", np.nan, 0),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_file_is_refused(saved, name):
    refusal(RAPRegressor, saved, forged_file(saved.read_bytes(), FORGERIES[name]))


@pytest.mark.parametrize(
    "version,advice", [(1, "Save the model again"), (checkpoint.VERSION + 1, "pip install --upgrade streamlasso")]
)
def test_a_file_of_another_format_says_what_to_do(saved, monkeypatch, version, advice):
    model = checkpoint._tensors(saved.read_bytes())["model"].tobytes()
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "VERSION", version)
        data = checkpoint.as_file(model, "streamlasso.RAPRegressor")
    message = refusal(RAPRegressor, saved, data)
    assert f"format {version}, written by streamlasso {streamlasso.__version__}" in message
    assert advice in message


@pytest.mark.parametrize("edit", [{"format": "x"}, {"version": "one"}, {"notes": 3}], ids=str)
def test_a_file_with_another_record_is_refused(saved, monkeypatch, edit):
    model = checkpoint._tensors(saved.read_bytes())["model"].tobytes()
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint.json, "dumps", lambda record, **_: json.JSONEncoder().encode({**record, **edit}))
        data = checkpoint.as_file(model, "streamlasso.RAPRegressor")
    assert "not a streamlasso checkpoint" in refusal(RAPRegressor, saved, data)


@pytest.mark.parametrize(
    "edit",
    [
        put("labels", "columns_", {"type": "columns", "names": ["a", "a"], "width": 4}),
        put("labels", "columns_", {"type": "columns", "names": ["a"], "width": 400}),
        put("labels", "columns_", {"type": "columns", "names": [["a"]], "width": 4}),
        put("labels", "columns_", {"type": "columns", "names": ["a"], "width": 2**62}),
        put("labels", "columns_", 3),
        put("labels", "classes_", ["x", "y", "z"]),
        put("labels", "classes_", ["x", "x"]),
        put("labels", "classes_", 3),
        lambda record, tensors: record["labels"].pop("columns_"),
    ],
)
def test_forged_names_and_classes_are_refused(path, edit):
    model = river.RAPClassifier()
    for x in rows(12).tolist():
        model.learn_one(dict(zip("abcd", x, strict=True)), x[0] > 0)
    model.save(path)
    refusal(river.RAPClassifier, path, forged_file(path.read_bytes(), edit))


def fuzzed():
    """Models of all shapes, as bytes."""
    X = rows()
    for family in families.EXAMPLES:
        y = responses(family, X)
        for memory, factor in [(0.9, None), (Window(10), None), (0.9, [0, 1, 1, 1]), (Window(10), [0, 1, 1, 1])]:
            model = RAPRegressor(family, memory, ElasticNet(0.9), LogRMS(), penalty_factor=factor, history=6)
            yield compact.to_bytes(model.fit(X, y))


FUZZED = list(fuzzed())


@settings(max_examples=400)
@given(st.data())
def test_no_number_in_a_file_can_crash_the_process(data):
    """A ValueError, or a model that learns and predicts something."""
    model = loaded(data, FUZZED, numbers(data))
    if model is None:
        return
    X = rows(5)
    with np.errstate(all="ignore"):
        assert model.partial_fit(X, np.ones(5)).predict(X).shape == (5,)


@settings(max_examples=200)
@given(st.data())
def test_no_word_in_a_file_can_crash_the_process(data):
    model = loaded(data, FUZZED, words(data, ["type", "items", "r", "n"]))
    assert model is None or model.predict(rows(5)).shape == (5,)
