"""The sparse engine: against a slow one, to the bit, within its memory, whatever the units and the order."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from oracles.wide import Model
from streamlasso import WideClassifier, WideRegressor
from streamlasso.core.sparse.experts import EXPERTS
from streamlasso.core.sparse.model import Wide, learn_each
from streamlasso.core.sparse.table import hash_of
from streamlasso.families import Binomial
from support.wide import zipf_rows, zipf_stream


def eta_of(proba):
    return np.log(proba[:, 1]) - np.log(proba[:, 0])


def log_loss(y, proba):
    return -np.mean(np.log(proba[np.arange(len(y)), y]))


# --- the slow one -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [False, True], ids=["binary", "values"])
def test_the_engine_does_what_the_slow_one_does(values):
    X, y = zipf_stream(n=700, p=400, values=values)
    slow = Model()
    rows = [dict(zip(X[[i]].indices.tolist(), X[[i]].data.tolist(), strict=True)) for i in range(X.shape[0])]
    expected = [slow.step(row, label) for row, label in zip(rows, y.tolist(), strict=True)]
    eta = eta_of(WideClassifier().progressive(X, y))
    assert eta == pytest.approx(expected, abs=2e-3)
    assert np.std(eta) > 0.5


# --- what it promises -------------------------------------------------------------------------------------------------


def plain_descent(X, y, rate):
    """The probabilities of 1 that stochastic gradient descent with one step size predicts."""
    b, b0, proba = np.zeros(X.shape[1]), 0.0, np.empty(len(y))
    for i in range(len(y)):
        part = slice(X.indptr[i], X.indptr[i + 1])
        columns, x = X.indices[part], X.data[part]
        proba[i] = 1 / (1 + np.exp(-np.clip(b0 + x @ b[columns], -30, 30)))
        b[columns] -= rate * (proba[i] - y[i]) * x
        b0 -= rate * (proba[i] - y[i])
    return proba


def test_it_beats_every_step_size_and_the_mean():
    X, y = zipf_stream(n=3000, p=50_000, draws=20)
    mean = np.append(0.5, (np.cumsum(y) + 0.5)[:-1] / np.arange(2, len(y) + 1))
    others = [mean, *(plain_descent(X, y, rate) for rate in 2.0 ** np.arange(-8, 1))]
    losses = [log_loss(y, np.column_stack([1 - p, p])) for p in others]
    assert log_loss(y, WideClassifier().progressive(X, y)) < 0.97 * min(losses)


def test_predict_is_what_the_row_would_have_been_predicted():
    X, y = zipf_stream(values=True)
    model = WideClassifier().partial_fit(X[:300], y[:300])
    told = [model.predict_proba(X[[i]]) for i in range(300, 310)]
    first = model.predict_proba(X[300:310])
    assert np.array_equal(np.vstack(told), first)
    assert np.array_equal(model.progressive(X[[300]], y[[300]]), first[:1])


def test_predicting_changes_nothing():
    X, y = zipf_stream()
    model, other = (WideClassifier().partial_fit(X[:300], y[:300]) for _ in range(2))
    model.predict_proba(X)
    assert model.to_bytes() == other.to_bytes()


@given(st.lists(st.integers(0, 600), max_size=5), st.sampled_from([8, 16]), st.sampled_from(["full", "sparse"]))
def test_any_chunks_give_the_same_bits(cuts, experts, memory):
    X, y = zipf_stream()
    settings = dict(experts=experts, memory=memory, max_features=400)
    whole = WideClassifier(**settings).partial_fit(X, y)
    pieces = WideClassifier(**settings)
    for i, j in zip([0, *sorted(cuts)], [*sorted(cuts), 600], strict=True):
        if i < j:
            pieces.partial_fit(X[i:j], y[i:j], classes=[0, 1])
    assert pieces.to_bytes() == whole.to_bytes()


def test_units_of_features_do_not_matter():
    X, y = zipf_stream(values=True)
    scale = 2.0 ** np.random.default_rng(3).integers(-20, 20, X.shape[1])
    assert np.array_equal(WideClassifier().progressive(X, y), WideClassifier().progressive(X * scale, y))


@pytest.mark.parametrize(("factor", "shift"), [(2.0**20, 0.0), (2.0**-20, 0.0), (1.0, 1e3)])
def test_units_of_the_response_do_not_matter(factor, shift):
    X, y = zipf_stream(values=True)
    y = X @ np.random.default_rng(2).normal(size=X.shape[1])
    plain = WideRegressor().progressive(X, y)
    other = WideRegressor().progressive(X, factor * y + shift)
    # In the first row nothing is known, not even the level.
    assert (other[1:] - shift) / factor == pytest.approx(plain[1:], rel=1e-4, abs=1e-4)


def test_classes_can_be_exchanged():
    X, y = zipf_stream()
    proba = WideClassifier().progressive(X, y)
    assert WideClassifier().progressive(X, 1 - y)[:, ::-1] == pytest.approx(proba, rel=1e-4)


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_numbers_and_counts_are_learnt(family):
    X, _ = zipf_stream(n=4000, draws=10)
    rng = np.random.default_rng(5)
    eta = X @ np.where(np.arange(X.shape[1]) < 100, 0.5 * rng.normal(size=X.shape[1]), 0.0)
    y = rng.poisson(np.exp(eta - eta.mean())) if family == "poisson" else eta + 0.3 * rng.normal(size=len(eta))
    predicted = WideRegressor(family).progressive(X, y)
    later = slice(1000, None)
    best = np.mean((y - (np.exp(eta - eta.mean()) if family == "poisson" else eta))[later] ** 2)
    left = (np.mean((y - predicted)[later] ** 2) - best) / (np.var(y[later]) - best)
    assert left < 0.35


def test_counts_never_predict_beyond_what_was_seen():
    rng = np.random.default_rng(0)
    X = sparse.random_array((3000, 50), density=0.3, random_state=rng, format="csr") * 1e3
    predicted = WideRegressor("poisson").progressive(X, rng.poisson(3, 3000))
    assert predicted[5:].max() <= rng.poisson(3, 10**6).max() + 3


# --- drift ------------------------------------------------------------------------------------------------------------


def losses_of_experts(experts, X, y):
    before = np.empty(len(y))
    rows = X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data
    learn_each([Wide(Binomial(), experts=experts)], rows, [y.astype(float)], None, [before])
    return np.logaddexp(0, before) - y * before


@pytest.mark.parametrize("experts", [8, 16])
@pytest.mark.parametrize("drifts", [True, False])
def test_experts_that_forget_earn_their_place_and_cost_next_to_nothing(drifts, experts):
    """Beside the same experts without half-lives: where weights are redrawn twice, and where they stay."""
    n, p = 9000, 300
    X = zipf_rows(n, p, 12)
    rng = np.random.default_rng(7)
    parts = [rng.normal(size=p) for _ in range(3)]
    eta = np.concatenate([X[k * 3000 : (k + 1) * 3000] @ parts[k if drifts else 0] for k in range(3)])
    y = (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(int)
    all_remember = [{**each, "half_life": None} for each in EXPERTS[experts]]
    ratio = losses_of_experts(experts, X, y).mean() / losses_of_experts(all_remember, X, y).mean()
    assert ratio < 0.99 if drifts else ratio < 1.004


# --- memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [5000, 7000, 9000, 20_000])
def test_bytes_per_feature(n):
    X = sparse.eye_array(n, format="csr")
    model = WideClassifier().partial_fit(X, np.arange(n) % 2)
    assert model.n_live_ == n
    assert model.nbytes_ <= 160 * n
    assert WideClassifier(experts=8).partial_fit(X, np.arange(n) % 2).nbytes_ <= 100 * n


def test_recurring_features_take_no_more_memory():
    X, y = zipf_stream()
    model = WideClassifier().partial_fit(X, y)
    before = model.nbytes_, model.n_live_
    for _ in range(20):
        model.partial_fit(X, y)
    assert (model.nbytes_, model.n_live_) == before


def test_the_bound_holds_and_the_useful_stay():
    X, y = zipf_stream(n=4000, p=100_000, draws=20)
    model = WideClassifier(max_features=500).partial_fit(X, y)
    assert model.n_live_ == 500
    live = model.coef_.indices
    counts = np.bincount(X.indices, minlength=X.shape[1])
    assert np.isin(np.argsort(-counts)[:100], live).mean() > 0.9
    unbounded = log_loss(y, WideClassifier().progressive(X, y))
    assert log_loss(y, WideClassifier(max_features=500).progressive(X, y)) < unbounded + 0.05


def test_more_new_features_in_a_row_than_there_is_room():
    X = sparse.csr_array(np.ones((2, 3000)))
    model = WideClassifier(max_features=10).partial_fit(X, [0, 1])
    assert model.n_live_ == 10
    assert np.all(np.isfinite(model.predict_proba(X)))


def test_a_million_new_features_in_one_row():
    X = sparse.csr_array(np.ones((1, 10**6)))
    model = WideClassifier(experts=8).partial_fit(X, [1], classes=[0, 1])
    assert model.n_live_ == 10**6
    assert 0.5 < model.predict_proba(X)[0, 1] <= 1


@pytest.mark.parametrize("memory", ["second_sight", "sparse"])
def test_rare_features_get_no_record(memory):
    X, y = zipf_stream(n=3000, p=10**6, draws=20)
    full = WideClassifier().partial_fit(X, y)
    model = WideClassifier(memory=memory)
    loss = log_loss(y, model.progressive(X, y))
    sights = np.bincount(X.indices)
    assert model.n_live_ <= np.count_nonzero(sights >= 2) < 0.7 * full.n_live_
    assert loss < 1.1 * log_loss(y, WideClassifier().progressive(X, y))


# --- the table --------------------------------------------------------------------------------------------------------


HOSTILE = {
    "in order": np.arange(20_000),
    "the same low bits": np.arange(20_000) << 16,
    "the same high bits": (1 << 31) - 2 - np.arange(20_000) * 3,
    "few bits": np.array([(1 << a) | (1 << b) | (1 << c) for a in range(31) for b in range(a) for c in range(b)]),
    "multiples of a prime": np.arange(1, 20_000) * 104_729 % (2**31 - 1),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_no_columns_collide_more_than_random_ones(case):
    """Linear probing at a load of .8: of 20,000 random keys the longest search is about 60 slots."""
    columns = np.unique(HOSTILE[case])
    X = sparse.csr_array((np.ones(len(columns)), columns, [0, len(columns)]), shape=(1, 2**31 - 1))
    model = WideClassifier(experts=8).partial_fit(X, [1], classes=[0, 1])
    assert model.n_live_ == len(columns)
    assert model.learners_[0].table.longest < 400


@given(st.integers(1, 60), st.integers(0, 10**6))
def test_the_table_knows_what_it_holds(most, seed):
    """Whatever came and went, each live feature is found: its coefficient is what a prediction changes by."""
    rng = np.random.default_rng(seed)
    columns = rng.integers(0, 120, 400)
    X = sparse.csr_array((np.ones(400), columns, np.arange(401)), shape=(400, 120))
    model = WideClassifier(max_features=most, experts=8).partial_fit(X, rng.integers(0, 2, 400), classes=[0, 1])
    keys = model.learners_[0].coef()[0]
    assert len(keys) == len(set(keys.tolist())) == model.n_live_ == min(most, len(set(columns.tolist())))
    again = pickle.loads(pickle.dumps(model))
    # Copies have tables with other secrets, filled in another way.
    assert np.array_equal(model.decision_function(np.eye(120)), again.decision_function(np.eye(120)))
    assert columns[-1] in keys


def test_names_are_hashed_as_python_does_with_the_same_key():
    """CPython hashes bytes by SipHash-1-3; with PYTHONHASHSEED=0 its key is 0."""
    names = [b"", b"a", b"seven b", b"eight by", b"nine byte", "Grüße".encode(), bytes(range(100))]
    code = "import sys; print(sys.hash_info.algorithm, [hash(n) % 2**64 for n in eval(sys.argv[1])])"
    command = [sys.executable, "-c", code, repr(names[1:])]
    printed = subprocess.run(command, env={"PYTHONHASHSEED": "0"}, capture_output=True, text=True, check=True).stdout
    algorithm, _, hashes = printed.partition(" ")
    if algorithm != "siphash13":
        pytest.skip(f"this Python hashes by {algorithm}")
    assert [hash_of(name, 0, 0) for name in names[1:]] == eval(hashes)
    assert hash_of(b"", 0x0706050403020100, 0x0F0E0D0C0B0A0908) == 0xABAC0158050FC4DC


def test_what_makes_room_is_never_in_the_row_that_needs_it():
    X = np.zeros((21, 40))
    X[:20, :20] = np.eye(20)
    X[20, [*range(10), *range(30, 40)]] = 1.0
    model = WideClassifier(max_features=20).partial_fit(X, np.arange(21) % 2)
    live = model.learners_[0].table.keys().tolist()
    assert set(range(10)) < set(live)
    assert set(live) == {*range(10), *range(30, 40)}
