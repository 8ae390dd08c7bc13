"""The river face of the sparse engine: names at any time, in any order, kept or not; bytes; bad rows."""

import copy
import pickle
from collections import Counter, OrderedDict
from collections.abc import Mapping

import numpy as np
import pytest
from river import checks, compose, feature_extraction

from streamlasso import WideClassifier as ByNumber
from streamlasso.core.sparse.table import hash_of
from streamlasso.river import WideClassifier, WideRegressor
from support.wide import zipf_stream

MODELS = [WideClassifier(), WideClassifier(experts=8, keep_names=True), WideRegressor(), WideRegressor("poisson")]


@pytest.mark.parametrize(
    ("model", "check"),
    [
        pytest.param(model, check, id=f"{i}-{j}")
        for i, model in enumerate(MODELS)
        for j, check in enumerate(checks.yield_checks(model))
    ],
)
def test_rivers_checks_pass(model, check):
    check(model.clone())


def named_rows(n=300, p=500):
    X, y = zipf_stream(n=n, p=p, values=True)
    rows = []
    for i in range(n):
        part = slice(X.indptr[i], X.indptr[i + 1])
        rows.append({f"f{j}": x for j, x in zip(X.indices[part].tolist(), X.data[part].tolist(), strict=True)})
    return X, rows, y.tolist()


def taught(model, rows, y):
    for x, label in zip(rows, y, strict=True):
        model.learn_one(x, label)
    return model


def test_names_predict_what_numbers_predict():
    X, rows, y = named_rows()
    model = taught(WideClassifier(), rows[:250], y[:250])
    # The first class is the one that came first.
    expected = ByNumber().partial_fit(X[:250], y[:250]).predict_proba(X[250:])[:, 1]
    assert [model.predict_proba_one(x)[1] for x in rows[250:]] == pytest.approx(expected, rel=1e-3)


def test_the_order_of_names_changes_no_bit():
    _, rows, y = named_rows()
    model = WideClassifier()
    other = copy.deepcopy(model)
    taught(model, rows, y)
    taught(other, [dict(reversed(x.items())) for x in rows], y)
    assert model.to_bytes() == other.to_bytes()


def test_text_is_a_feature_of_its_own():
    model = WideClassifier(keep_names=True)
    for _ in range(30):
        model.learn_one({"city": "Rome", "sun": 2.0}, True)
        model.learn_one({"city": "Oslo", "sun": 1.0}, False)
    coef = model.coef_[False] if model.classes_[1] is False else model.coef_[True]
    assert set(coef) == {"city=Rome", "city=Oslo", "sun"}
    assert np.sign(coef["city=Rome"]) == -np.sign(coef["city=Oslo"])
    assert model.predict_one({"city": "Rome"}) is True


def test_names_that_were_not_kept_are_asked_for():
    with pytest.raises(AttributeError, match="keep_names=True"):
        _ = taught(WideClassifier(), [{"a": 1}, {"b": 1}], [0, 1]).coef_


def test_names_of_features_that_are_gone_are_forgotten():
    model = WideClassifier(keep_names=True, max_features=20)
    for i in range(5000):
        model.learn_one({f"new{i}": 1.0, "old": 1.0}, i % 2)
    assert model.n_live_ == 20
    assert len(model.learners_[0].names) < 1100
    assert len(model.coef_[1]) <= 20


def test_classes_appear_as_they_come():
    rng = np.random.default_rng(0)
    model, right = WideClassifier(), 0
    for i in range(900):
        label = "abc"[rng.integers(0, 1 + min(i // 100, 2))]
        x = {label + str(rng.integers(0, 5)): 1.0, str(rng.integers(0, 50)): 1.0}
        right += i >= 500 and model.predict_one(x) == label
        model.learn_one(x, label)
    assert model.classes_ == ["a", "b", "c"]
    assert right > 390
    assert sum(model.predict_proba_one({"a1": 1.0}).values()) == pytest.approx(1)


def test_a_model_can_be_turned_around():
    _, rows, y = named_rows()
    model = taught(WideClassifier(memory="second_sight"), rows, y).learners_[0]
    turned = model.mirrored()
    for x, label in zip(rows, y, strict=True):
        assert turned.predict_named(x) == pytest.approx(1 - model.predict_named(x), rel=1e-5)
        model.learn_named(x, float(label), 1.0)
        turned.learn_named(x, 1.0 - label, 1.0)


@pytest.mark.parametrize("way", ["bytes", "file", "pickle"])
@pytest.mark.parametrize("keep_names", [False, True])
def test_a_saved_model_continues_to_the_bit(way, keep_names, tmp_path):
    _, rows, y = named_rows()
    model = taught(WideClassifier(keep_names=keep_names), rows[:200], y[:200])
    if way == "bytes":
        again = WideClassifier.from_bytes(model.to_bytes())
    elif way == "file":
        model.save(tmp_path / "model.wide")
        again = WideClassifier.load(tmp_path / "model.wide")
    else:
        again = pickle.loads(pickle.dumps(model))
    taught(model, rows[200:], y[200:])
    taught(again, rows[200:], y[200:])
    assert again.to_bytes() == model.to_bytes()
    if keep_names:
        assert again.coef_ == model.coef_


@pytest.mark.parametrize(
    ("x", "words"),
    [
        ({"a": float("nan")}, "x\\['a'\\]=nan"),
        ({"a": 1.0, "b": None}, "x\\['b'\\]=None"),
        ({"a": 1e40}, "within"),
        ({1: 1.0}, "key 1"),
        ({("a", "b"): 1.0}, "strings"),
        ({"\ud800": 1.0}, "Unicode"),
    ],
)
def test_after_a_refusal_nothing_has_changed(x, words):
    _, rows, y = named_rows()
    model = taught(WideClassifier(), rows, y)
    before = model.to_bytes()
    for label in (1, "new"):
        with pytest.raises(ValueError, match=words):
            model.learn_one({**rows[0], **x}, label)
    with pytest.raises(ValueError, match=words):
        model.predict_proba_one(x)
    for label in (None, float("nan")):
        with pytest.raises(ValueError, match="class label"):
            model.learn_one(rows[0], label)
    with pytest.raises(ValueError, match="weight"):
        model.learn_one(rows[0], 1, w=-1)
    model.learn_one(rows[0], 1, w=0)
    assert model.to_bytes() == before


@pytest.mark.parametrize("x", [None, "abc", 1.0, [("a", 1.0)]])
def test_a_row_is_a_dict(x):
    model = taught(WideClassifier(), [{"a": 1.0}, {"b": 1.0}], [0, 1])
    before = model.to_bytes()
    with pytest.raises(ValueError, match="a row is a dict"):
        model.learn_one(x, 1)
    with pytest.raises(ValueError, match="a row is a dict"):
        model.predict_one(x)
    assert model.to_bytes() == before


def test_labels_of_numpy_are_plain():
    model = taught(WideClassifier(), [{"a": 1.0}, {"b": 1.0}], [np.int64(3), np.str_("x")])
    assert [type(label) for label in WideClassifier.from_bytes(model.to_bytes()).classes_] == [int, str]


def test_counts_are_not_negative():
    with pytest.raises(ValueError, match="count"):
        WideRegressor("poisson").learn_one({"a": 1.0}, -1)


def test_names_of_any_length_have_their_hash():
    names = ["abcdefghij" * 4] + ["x" * n + "né" for n in range(20)]
    names += ["abcdefghijklmnopqrstuvwxyz0123456789"[:n] for n in range(37)]
    model = taught(WideClassifier(keep_names=True), [dict.fromkeys(names, 1.0), {"other": 1}], [0, 1])
    k0, k1 = model.learners_[0].name_key.tolist()
    assert model.learners_[0].names == {hash_of(name.encode(), k0, k1): name for name in [*names, "other"]}


class Row:
    pass


def test_all_kinds_of_dicts_are_read_alike():
    names = [f"n{j}" for j in range(40)]
    model = WideClassifier()
    others = [copy.deepcopy(model) for _ in range(3)]
    for i in range(60):
        x = {name: float(j % (i + 2)) for j, name in enumerate(names) if (i + j) % 3}
        thinned = {**dict.fromkeys(names[:9], 2.0), "gone": 1.0, **x}
        for name in ["gone", *names[:9]]:
            del thinned[name]
        thinned.update(x)
        row = Row()  # The dicts of objects of one class share their names.
        for name, value in x.items():
            setattr(row, name, value)
        mixed = {7: 1.0, **x}  # A dict that had another key has entries of another size.
        del mixed[7]
        model.learn_one(x, i % 2)
        for other, same in zip(others, (thinned, vars(row), mixed), strict=True):
            other.predict_proba_one(same)
            other.learn_one(same, i % 2)
    assert all(other.to_bytes() == model.to_bytes() for other in others)


def test_words_of_a_text():
    words = feature_extraction.BagOfWords(lowercase=True)
    model = compose.Pipeline(words, WideClassifier())
    for _ in range(20):
        model.learn_one("Cheap pills now", "spam")
        model.learn_one("Lunch at noon", "ham")
    assert model.predict_one("cheap lunch pills") == "spam"


# --- a row that is predicted, then learnt -----------------------------------------------------------------------------


def rows_that_differ(n=400):
    """Of 1 to 700 names, new and old, with growing values and text: all ways to sort, to grow and to forget."""
    rng = np.random.default_rng(2)
    for i in range(n):
        size = int(rng.choice([1, 5, 30, 90, 700], p=[0.2, 0.3, 0.3, 0.15, 0.05]))
        names = rng.zipf(1.3, size) % 3000
        x = {f"né{j}" if j % 5 == 0 else f"n{j}": float(rng.normal() * (1 + i / 50)) for j in names.tolist()}
        yield {**x, "one": 1, "flag": True, "city": str(rng.choice(["Rome", "Oslo"]))}, bool(rng.random() < 0.5)


@pytest.mark.parametrize("settings", [{}, {"experts": 8, "keep_names": True}, {"memory": "second_sight"}])
def test_predicting_a_row_first_changes_no_bit(settings):
    model = WideClassifier(**settings)
    other = copy.deepcopy(model)
    for x, y in rows_that_differ():
        model.learn_one(x, y)
        before = other.predict_proba_one(x)
        assert other.predict_proba_one(dict(reversed(x.items()))) == before == other.predict_proba_one(x)
        other.learn_one(x, y)
    assert model.to_bytes() == other.to_bytes()


def test_a_dict_that_changed_after_it_was_predicted_is_learnt_as_it_is_now():
    model = WideClassifier()
    other = copy.deepcopy(model)
    for x, y in rows_that_differ(100):
        changed = {**x, "one": 2, "late": 0.5}
        del changed["flag"]
        other.learn_one(changed, y)
        model.predict_proba_one(x)
        x["one"] = 2
        model.predict_proba_one(x)
        del x["flag"]
        x["late"] = 0.5
        model.learn_one(x, y)
    assert model.to_bytes() == other.to_bytes()


def test_a_number_that_changes_in_place_is_read_again():
    model = WideClassifier()
    other = copy.deepcopy(model)
    box = np.array(1.0)
    for i in range(30):
        box[()] = 1.0
        model.predict_proba_one({"a": box})
        box[()] = i
        model.learn_one({"a": box}, i % 3 == 0)
        other.learn_one({"a": float(i)}, i % 3 == 0)
    assert model.to_bytes() == other.to_bytes()


class Eraser:
    """A number that empties its row when it is asked for."""

    def __init__(self, row):
        self.row = row

    def __float__(self):
        self.row.clear()
        return 1.0


def test_a_row_that_is_emptied_while_it_is_read_is_learnt_as_it_was():
    model = taught(WideClassifier(keep_names=True), [{"a": 1.0}, {"b": 1.0}], [0, 1])
    other = copy.deepcopy(model)
    for i in range(40):
        row = {f"first {i + j}": 1.0 for j in range(50)}
        row["one"] = Eraser(row)
        row.update({f"last {i + j}": 2.5 for j in range(50)})
        other.learn_one({**row, "one": 1.0}, i % 2)
        model.learn_one(row, i % 2)
        assert row == {}
    assert model.to_bytes() == other.to_bytes()


def test_predictions_between_rows_of_other_models_and_looks_at_the_coefficients_change_no_bit():
    model = WideClassifier(keep_names=True)
    other = copy.deepcopy(model)
    for x, y in rows_that_differ(60):
        model.learn_one(x, y)
        other.predict_proba_one(x)
        _ = other.coef_
        other.learn_one(x, y)
    assert model.to_bytes() == other.to_bytes()


def test_a_refused_row_after_a_predicted_one_changes_nothing():
    model = taught(WideClassifier(), [{"a": 1.0}, {"b": 1.0}], [0, 1])
    before = model.to_bytes()
    x = {"a": 1.0, "b": 2.0}
    model.predict_proba_one(x)
    for bad in ({"a": float("nan")}, {"a": 1e31}, {1: 2.0}, {"\ud800": 1.0}, {"a": None}, {"a": [1]}):
        with pytest.raises(ValueError, match="nothing was learnt"):
            model.learn_one(bad, 0)
    model.predict_proba_one(x)
    assert model.to_bytes() == before


class Fresh(Mapping):
    """Names that are made when they are asked for, and that nobody else keeps."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __iter__(self):
        return (f"a name that is made anew {i}" for i in range(self.n))

    def __getitem__(self, name):
        return 1.0


@pytest.mark.parametrize("make", [Fresh, lambda n: Counter(Fresh(n)), lambda n: OrderedDict(Fresh(n))])
def test_rows_that_are_no_plain_dicts_are_learnt_as_one(make):
    model = WideRegressor(keep_names=True)
    other = copy.deepcopy(model)
    for n in (300, 1, 299):
        model.learn_one(make(n), 1.0)
        other.learn_one(dict(make(n)), 1.0)
    assert model.to_bytes() == other.to_bytes()
