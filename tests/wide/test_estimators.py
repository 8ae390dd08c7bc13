"""The scikit-learn face of the sparse engine: its checks, bytes, bad input."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from streamlasso import RAPClassifier, WideClassifier, WideRegressor
from streamlasso.wide.packed import pack, unpack
from support.wide import zipf_stream

# --- scikit-learn -----------------------------------------------------------------------------------------------------

ORDER = "rows are learnt in order, each once: a weight of 2 is not the row twice, nor are rows exchangeable"


def expected_failures(estimator):
    return {f"check_sample_weight_equivalence_on_{kind}_data": ORDER for kind in ("dense", "sparse")}


CHECKED = [
    WideClassifier(),
    WideClassifier(experts=8, memory="sparse", max_features=50),
    WideRegressor(),
    WideRegressor("poisson", memory="second_sight"),
]


@parametrize_with_checks(CHECKED, expected_failed_checks=expected_failures)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


def test_text_goes_through_a_pipeline():
    texts = ["cheap pills", "lunch today", "cheap watches", "lunch at noon"] * 20
    labels = ["spam", "ham"] * 40
    for words in (HashingVectorizer(n_features=2**18), HashingVectorizer(n_features=2**30, alternate_sign=False)):
        model = make_pipeline(words, WideClassifier()).fit(texts, labels)
        assert model.predict(["cheap lunch watches", "noon today"]).tolist() == ["spam", "ham"]
    rows = [dict.fromkeys(text.split(), 1) for text in texts]
    model = make_pipeline(FeatureHasher(2**20), WideClassifier()).fit(rows, labels)
    assert model.score(rows, labels) == 1


def test_dense_sparse_unsorted_and_doubled_are_the_same():
    X, y = zipf_stream(n=200, p=300, values=True)
    expected = WideClassifier().progressive(X, y)
    coo = X.tocoo()
    order = np.random.default_rng(0).permutation(coo.nnz)
    halves = np.concatenate([coo.data[order] / 2, coo.data / 2])
    rows = np.concatenate([coo.row[order], coo.row])
    columns = np.concatenate([coo.col[order], coo.col])
    doubled = sparse.csr_array((halves, (rows, columns)), shape=X.shape)
    backwards = X.copy()
    for i in range(X.shape[0]):
        part = slice(X.indptr[i], X.indptr[i + 1])
        backwards.indices[part] = backwards.indices[part][::-1]
        backwards.data[part] = backwards.data[part][::-1]
    backwards.has_sorted_indices = backwards.has_canonical_format = False
    for same in (X.toarray(), X.tocsc(), sparse.csr_matrix(X), doubled, backwards):
        assert np.array_equal(WideClassifier().progressive(same, y), expected)


def test_a_row_without_non_zeros_is_the_intercept():
    model = WideClassifier().partial_fit(sparse.csr_array((100, 5000)), np.arange(100) % 10 == 0)
    assert model.n_live_ == 0
    assert model.predict_proba(sparse.csr_array((1, 5000)))[0, 1] == pytest.approx(0.1, abs=0.08)
    assert model.coef_.nnz == 0


def test_several_classes():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    model = WideClassifier()
    for _ in range(10):
        model.partial_fit(X[order], np.array(["a", "b", "c"])[y[order]])
    assert model.coef_.shape == (3, 4)
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(np.ones(len(y)))
    assert model.score(X, np.array(["a", "b", "c"])[y]) > 0.9


def test_coefficients_are_about_what_the_prediction_moves_by():
    X, y = zipf_stream(n=3000, p=200, draws=8, values=True)
    model = WideClassifier().partial_fit(X, y)
    eta = model.decision_function(X[:500])
    linear = X[:500] @ model.coef_.toarray()[0] + model.intercept_[0]
    assert np.corrcoef(eta, linear)[0, 1] > 0.97
    assert np.median(np.abs(eta - linear)) < 0.2 * np.std(eta)


def test_a_weight_of_zero_is_no_row_and_small_ones_count_less():
    X, y = zipf_stream(n=300)
    weights = (np.arange(300) % 3 > 0).astype(float)
    model = WideClassifier().partial_fit(X, y, sample_weight=weights)
    kept = weights > 0
    assert model.to_bytes() == WideClassifier().partial_fit(X[kept], y[kept]).to_bytes()
    flipped = np.where(np.arange(300) < 150, 1 - y, y)
    light = WideClassifier().partial_fit(X, flipped, sample_weight=np.where(np.arange(300) < 150, 0.01, 1.0))
    assert light.score(X[150:], y[150:]) > WideClassifier().partial_fit(X, flipped).score(X[150:], y[150:])


# --- bytes ------------------------------------------------------------------------------------------------------------

MODELS = [
    WideClassifier(),
    WideClassifier(experts=8, max_features=300),
    WideClassifier(memory="second_sight"),
    WideClassifier(memory="sparse", max_features=100),
    WideRegressor(),
    WideRegressor("poisson"),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("way", ["bytes", "file", "pickle"])
def test_a_saved_model_continues_to_the_bit(model, way, tmp_path):
    X, y = zipf_stream()
    model = clone(model)
    model.partial_fit(X[:300], y[:300])
    if way == "bytes":
        copy = type(model).from_bytes(model.to_bytes())
    elif way == "file":
        model.save(tmp_path / "model.wide")
        copy = type(model).load(tmp_path / "model.wide")
    else:
        copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.progressive(X[300:], y[300:]), model.progressive(X[300:], y[300:]))
    assert copy.to_bytes() == model.to_bytes()
    assert copy.get_params() == model.get_params()


@pytest.mark.parametrize("labels", [["a", "b", "c"], [True, False], [3, 5], [1.0, 2.0]], ids=str)
def test_classes_are_saved(labels):
    X = zipf_stream(n=100)[0]
    model = WideClassifier().partial_fit(X, np.resize(labels, 100))
    copy = WideClassifier.from_bytes(model.to_bytes())
    assert copy.classes_.dtype == model.classes_.dtype
    assert np.array_equal(copy.predict(X), model.predict(X))


def test_bytes_hold_live_features_only():
    X = sparse.eye_array(1000, 2**30, format="csr")
    model = WideClassifier().partial_fit(X, np.arange(1000) % 2)
    assert len(model.to_bytes()) < 160 * 1000 + 20_000


def test_damaged_bytes_are_refused():
    X, y = zipf_stream(n=50)
    data = WideClassifier(experts=8).partial_fit(X, y).to_bytes()
    for cut in (0, 7, 16, 30, len(data) // 2, len(data) - 1):
        with pytest.raises(ValueError, match="intact copy"):
            WideClassifier.from_bytes(data[:cut])
    for place in range(0, len(data), 997):
        broken = bytearray(data)
        broken[place] ^= 0x40
        with pytest.raises(ValueError, match=r"intact copy|upgrade"):
            WideClassifier.from_bytes(bytes(broken))
    with pytest.raises(ValueError, match="hold a WideClassifier"):
        WideRegressor.from_bytes(data)


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "model.wide").write_bytes(b"SLWIDE\r\n")
    with pytest.raises(ValueError, match=r"model\.wide.*intact copy"):
        WideClassifier.load(tmp_path / "model.wide")


def test_forged_states_are_refused():
    X, y = zipf_stream(n=50)
    header, arrays = unpack(WideClassifier(memory="sparse").partial_fit(X, y).to_bytes())
    forged = [
        ("0/records", arrays["0/records"][:, :-1]),
        ("0/records", np.repeat(arrays["0/records"], 2, axis=0)),
        ("0/records", np.full_like(arrays["0/records"], np.nan)),
        ("0/counts", np.array([50, 10**6, 1024])),
        ("0/counts", np.array([50, 0, 1000])),
        ("0/counts", np.array([50, 0, 2**40])),
        ("0/blend", arrays["0/blend"][:-1]),
        ("0/sums", -arrays["0/sums"]),
        ("0/units", arrays["0/units"][:2]),
    ]
    for name, array in forged:
        with pytest.raises(ValueError, match=r"do not hold a WideClassifier: .*(settings|twice|no row|0 or larger)"):
            WideClassifier.from_bytes(pack(header, {**arrays, name: array}))
    with pytest.raises(ValueError, match="WideClassifier"):
        WideClassifier.from_bytes(pack({**header, "settings": {"nonsense": 1}}, arrays))
    with pytest.raises(ValueError, match="WideClassifier"):
        WideClassifier.from_bytes(pack(header, {}))


# --- bad input --------------------------------------------------------------------------------------------------------


def with_value(value):
    X, y = zipf_stream(n=20)
    X.data[7] = value
    return X, y


BAD = {
    "NaN": (*with_value(np.nan), "contains NaN: X\\["),
    "infinity": (*with_value(np.inf), "contains infinity: X\\["),
    "too large": (*with_value(1e31), "rescale"),
    "one column more": (zipf_stream(n=20, p=5001)[0], np.arange(20) % 2, "5001 features"),
    "unknown class": (zipf_stream(n=20)[0], np.full(20, 7), "not among the classes"),
    "one y less": (zipf_stream(n=20)[0], np.zeros(19), "inconsistent"),
}


@pytest.mark.parametrize("case", BAD)
def test_after_a_refusal_nothing_has_changed(case):
    X, y = zipf_stream()
    model = WideClassifier().partial_fit(X, y)
    before = model.to_bytes()
    bad_X, bad_y, words = BAD[case]
    with pytest.raises(ValueError, match=words):
        model.partial_fit(bad_X, bad_y)
    assert model.to_bytes() == before


def test_columns_beyond_31_bits_are_refused():
    X = sparse.csr_array((np.ones(1), np.array([2**31], dtype=np.int64), np.array([0, 1])), shape=(1, 2**31 + 1))
    with pytest.raises(ValueError, match="31 bits"):
        WideClassifier().partial_fit(X, [1], classes=[0, 1])


def forged(kind, name, value):
    """A matrix of scipy, one of whose arrays says what is not there."""
    X = kind(np.eye(4, 30))
    setattr(X, name, value(getattr(X, name)))
    return X


def put(place, value):
    def change(numbers):
        numbers[place] = value
        return numbers

    return change


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (sparse.csr_array, "indices", put(0, -1)),
        (sparse.csr_array, "indices", put(2, 30)),
        (sparse.csr_array, "indices", lambda columns: columns[:2]),
        (sparse.csr_array, "data", lambda values: values[:1]),
        (sparse.csr_array, "indptr", put(-1, 10**6)),
        (sparse.csr_array, "indptr", put(1, 10**6)),
        (sparse.csr_array, "indptr", put(0, -(10**6))),
        (sparse.csr_array, "indptr", lambda starts: starts[:-1]),
        (sparse.csr_matrix, "indptr", put(-1, 5)),
        (sparse.csc_array, "indices", put(1, 10**6)),
        (sparse.csc_array, "indptr", put(3, -5)),
        (sparse.coo_array, "row", put(0, 10**6)),
        (sparse.coo_array, "col", put(0, -1)),
        (sparse.coo_array, "data", lambda values: values[:1]),
    ],
)
@pytest.mark.parametrize("model", [WideClassifier(), RAPClassifier()], ids=["wide", "dense"])
def test_forged_matrices_are_refused(model, kind, name, value):
    """Compiled code would read and write what is not theirs."""
    model = clone(model).partial_fit(np.eye(2, 30), [0, 1])
    before = model.to_bytes()
    X = forged(kind, name, value)
    for call in (lambda: model.partial_fit(X, [0, 1, 0, 1]), lambda: model.predict(X)):
        with pytest.raises(ValueError, match="not a valid sparse matrix"):
            call()
    assert model.to_bytes() == before


def test_counts_are_not_negative():
    with pytest.raises(ValueError, match="count"):
        WideRegressor("poisson").partial_fit([[1.0]], [-1.0])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"experts": 12}, "experts=12"),
        ({"memory": "all"}, "memory='all'"),
        ({"max_features": 0}, "max_features=0"),
        ({"max_features": 1.5}, "max_features=1.5"),
    ],
)
def test_settings_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        WideClassifier(**settings).fit([[1.0], [0.0]], [0, 1])


def test_families_are_refused():
    with pytest.raises(ValueError, match="family='gamma'"):
        WideRegressor("gamma").fit([[1.0]], [1.0])


def test_very_small_and_very_large_values_do_no_harm():
    X = sparse.csr_array(np.array([[1e-300, 1e29, -1e-29], [1e29, 1e-29, 1.0]] * 50))
    proba = WideClassifier().progressive(X, [0, 1] * 50)
    assert np.all(np.isfinite(proba))
    assert proba[-1, 1] > 0.8


def test_heavy_weights_and_outliers_do_no_harm():
    X, y = zipf_stream(n=300)
    heavy = np.where(np.arange(300) == 100, 1e50, 1.0)
    assert np.all(np.isfinite(WideClassifier().progressive(X, y, sample_weight=heavy)))
    outlier = np.where(np.arange(300) == 100, 1e50, y)
    assert np.all(np.isfinite(WideRegressor().progressive(X, outlier)))
