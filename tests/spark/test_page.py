"""A page without Spark: every row comes out once, nothing is learnt from a refused one, and the rest goes on."""

import json
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("pyspark", reason='needs pyspark: pip install "streamlasso[spark]"')
pytest.importorskip("google.protobuf", reason='needs protobuf: pip install "streamlasso[spark]"')

from streamlasso import RAPClassifier, RAPRegressor, families
from streamlasso.keyed import KeyedClassifier, KeyedRegressor
from streamlasso.spark.job import FORMAT, Job
from streamlasso.spark.page import Events, Pages
from streamlasso.tuners import LogRMS, Mixture

P, KEYS, N = 3, 5, 120
SMALL = Mixture(powers=(0.5, 1.0), factors=(0.9,), runs=4)
MODEL = RAPRegressor(tuner=LogRMS())
NAMES = ("a", "b", "c")


def table(family=None, n=N, seed=0):
    rng = np.random.default_rng(seed)
    X, keys = rng.normal(size=(n, P)), [f"shop {key}" for key in rng.integers(KEYS, size=n)]
    return X, (family or families.Gaussian()).sample(rng, 0.6 * X[:, 0]), keys


def events(keys, ids, X, y, time=None, has_time=None):
    n = len(keys)
    numbers = [name if isinstance(name, int) else 0 for name in ids]
    texts = [None if name is None else str(name) for name in ids]
    return Events(
        list(keys), texts, numbers, list(time or [0] * n), has_time or [True] * n, np.asarray(X, dtype=float), y
    )


def states(keyed):
    return {key: keyed._models.packed(key) for key in keyed}


def learnt(state, kind=KeyedRegressor):
    return states(kind.from_bytes(state.models))


def run(job, batches, now=0):
    """The last state, and the results of each batch."""
    pages, state, results = Pages(job), None, []
    for batch in batches:
        state, result = pages.learn(state, batch, now)
        results.append(result)
    return state, results


# --- the same models ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tuner", [LogRMS(), SMALL], ids=["one model", "mixture"])
@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_same_bits_as_in_one_process(family, tuner):
    X, y, keys = table(family)
    model = RAPRegressor(family, tuner=tuner)
    shuffled = np.random.default_rng(1).permutation(N)
    batches = [
        events([keys[i] for i in part], part.tolist(), X[part], y[part])
        for part in (shuffled[shuffled < 50], shuffled[shuffled >= 50])
    ]
    state, results = run(Job(model, NAMES), batches)
    keyed = KeyedRegressor(model, pooled=False)
    expected = keyed.progressive(X, y, keys)
    predicted = {int(name): value for r in results for name, value in zip(r.ids, r.prediction, strict=True)}
    assert [predicted[i] for i in range(N)] == expected.tolist()
    assert learnt(state) == states(keyed)


@pytest.mark.parametrize("values", [(False, True), (9, 10), ("a", "b", "c")], ids=str)
def test_classes(values):
    """Also those whose texts sort otherwise."""
    X, eta, keys = table()
    y = np.array(values)[np.digitize(eta, np.quantile(eta, np.linspace(0, 1, len(values) + 1)[1:-1]))]
    text = {str(v).lower() if isinstance(v, bool) else str(v): v for v in values}
    texts = {v: t for t, v in text.items()}
    model = RAPClassifier(tuner=LogRMS())
    state, (result,) = run(Job(model, NAMES, text), [events(keys, list(range(N)), X, [texts[v] for v in y.tolist()])])
    keyed = KeyedClassifier(model, pooled=False)
    expected = keyed.progressive(X, y, keys, classes=list(values))
    np.testing.assert_array_equal(result.probabilities, expected)
    own = expected[np.arange(N), np.searchsorted(np.unique(values), y)]
    np.testing.assert_allclose(result.loss, -np.log(own), rtol=1e-9)
    assert set(result.prediction) <= set(text)
    assert learnt(state, KeyedClassifier) == states(keyed)


def test_loss_and_baseline():
    """Half the squared error, of the prediction and of the mean of the key's earlier rows, over two batches."""
    X, y, keys = table()
    _, results = run(Job(MODEL, NAMES), [events(keys[a:b], range(a, b), X[a:b], y[a:b]) for a, b in ((0, 40), (40, N))])
    loss, baseline, predicted = (
        np.concatenate([getattr(r, name) for r in results]) for name in ("loss", "baseline", "prediction")
    )
    np.testing.assert_allclose(loss, 0.5 * (y - predicted) ** 2)
    for i in range(N):
        before = [y[j] for j in range(i) if keys[j] == keys[i]]
        assert baseline[i] == pytest.approx(0.5 * (y[i] - (np.mean(before) if before else 0.0)) ** 2)


def test_sorted_by_time_then_id():
    """Ids that are whole numbers are sorted as such: 9 before 10."""
    X, y, _ = table(n=20)
    ids, time = [*range(9, 19), *range(10)], [7] * 10 + [8] * 10
    ids = [name + 100 * (t == 8) for name, t in zip(ids, time, strict=True)]
    shuffled = np.random.default_rng(0).permutation(20)
    batch = events(["k"] * 20, [ids[i] for i in shuffled], X[shuffled], y[shuffled], [time[i] for i in shuffled])
    state, _ = run(Job(MODEL, NAMES), [batch])
    assert learnt(state) == states(KeyedRegressor(MODEL, pooled=False).partial_fit(X, y, ["k"] * 20))


# --- rows that are not learnt -------------------------------------------------------------------------------------


def test_bad_rows_leave_with_their_error_and_change_nothing():
    X, y, keys = table()
    bad = {
        3: ("the key is missing", lambda row: row | {"key": None}),
        9: ("the id is missing", lambda row: row | {"id": None}),
        17: ("the time is missing", lambda row: row | {"has_time": False}),
        23: ("feature 'b' is missing", lambda row: row | {"x": [0.0, np.nan, 0.0]}),
        31: ("feature 'c' is inf", lambda row: row | {"x": [0.0, 0.0, np.inf]}),
        44: ("feature 'a' is 1e+80", lambda row: row | {"x": [1e80, 0.0, 0.0]}),
        58: ("the target is inf", lambda row: row | {"y": np.inf}),
        60: ("the target is missing", lambda row: row | {"y": np.nan}),
        71: ("features and target are missing", lambda row: row | {"x": [np.nan] * 3, "y": np.nan}),
        72: ("no row waits with id '72'", lambda row: row | {"x": [np.nan] * 3}),
        90: ("duplicate: id '30'", lambda row: row | {"id": 30, "key": keys[30]}),
        95: ("duplicate: id '94'", lambda row: row | {"id": 94, "key": keys[94]}),
    }
    rows = [{"key": keys[i], "id": i, "x": X[i], "y": y[i], "has_time": True} for i in range(N)]
    rows = [bad[i][1](row) if i in bad else row for i, row in enumerate(rows)]
    batches = [
        events(*([r[name] for r in part] for name in ("key", "id", "x", "y")), None, [r["has_time"] for r in part])
        for part in (rows[:50], rows[50:])
    ]
    # Repeated ids with other contents: which of the two is learnt does not depend on the order that they came in.
    state, results = run(Job(MODEL, NAMES), batches)
    status = [s for r in results for s in r.status]
    error = [e for r in results for e in r.error]
    expected_refused = set(bad)
    refused = {i for i, s in enumerate(status) if s == "refused"}
    assert refused ^ expected_refused <= {94, 95} and len(refused) == len(bad)
    for i in expected_refused - {95}:
        assert bad[i][0] in error[i]
    assert [e for e in error if e and "'94'" in e]
    assert all((e is None) == (s == "learnt") for e, s in zip(error, status, strict=True))
    good = [i for i in range(N) if i not in refused]
    # Id 94 is learnt once, in its place.
    alone = KeyedRegressor(MODEL, pooled=False)
    alone.partial_fit(X[good], y[good], [rows[i]["key"] for i in good])
    assert learnt(state) == states(alone)


@pytest.mark.parametrize("family,y,complaint", [("poisson", -1.0, "-1"), ("gamma", 0.0, "0")])
def test_a_target_that_the_family_does_not_have(family, y, complaint):
    state, (result,) = run(Job(RAPRegressor(family, tuner=LogRMS()), NAMES), [events("k", [1], np.ones((1, 3)), [y])])
    assert state is None and result.status == ["refused"] and complaint in result.error[0]


def test_an_unknown_class():
    job = Job(RAPClassifier(), NAMES, {"a": "a", "b": "b"})
    state, (result,) = run(job, [events("k", [1], np.ones((1, 3)), ["z"])])
    assert state is None and "'z', not among the classes ['a', 'b']" in result.error[0]


def test_a_clock_that_goes_backwards():
    X, y, _ = table(n=30)
    batches = [
        events(["k"] * 10, range(10), X[:10], y[:10], range(100, 110)),
        events(["k"] * 20, range(10, 30), X[10:], y[10:], [*range(50, 60), *range(200, 210)]),
    ]
    state, (_, result) = run(Job(MODEL, NAMES), batches)
    assert result.status == ["learnt"] * 20
    assert learnt(state) == states(KeyedRegressor(MODEL, pooled=False).partial_fit(X, y, ["k"] * 30))


def test_a_refused_row_may_come_again_repaired():
    X, y, _ = table(n=1)
    _, (first, second) = run(Job(MODEL, NAMES), [events("k", [1], X, [np.inf]), events("k", [1], X, y)])
    assert first.status == ["refused"] and second.status == ["learnt"]


def test_a_page_that_is_too_large_takes_no_new_keys():
    """Known ones go on, unless a row has to wait."""
    X, y, keys = table()
    one = ["shop 0"] * N
    job = Job(MODEL, NAMES, most_bytes=10, wait_ms=100)
    pages = Pages(job)
    state, _ = pages.learn(None, events(one[:40], range(40), X[:40], y[:40]))
    after, result = pages.learn(state, events(keys[40:], range(40, N), X[40:], y[40:]))
    assert result.status == ["learnt" if key == "shop 0" else "refused" for key in keys[40:]]
    error = next(e for e in result.error if e)
    assert "larger than" in error and "more pages (now 4096)" in error and "no new keys" in error
    own = [i for i in range(N) if i < 40 or keys[i] == "shop 0"]
    expected = KeyedRegressor(MODEL, pooled=False).partial_fit(X[own], y[own], ["shop 0"] * len(own))
    assert learnt(after) == states(expected)
    _, result = pages.learn(after, events(one[:1], [N], X[:1], [np.nan]))
    assert result.status == ["refused"]


# --- labels that come later ---------------------------------------------------------------------------------------


def test_late_labels_learn_the_row_that_waits():
    """Row by row in Python: predict when features come, learn when labels do."""
    X, y, keys = table()
    rng = np.random.default_rng(5)
    came = np.sort(rng.integers(0, 1000, size=N))
    labelled = came + rng.integers(1, 300, size=N)
    todo = sorted([(t, "x", i) for i, t in enumerate(came)] + [(t, "y", i) for i, t in enumerate(labelled)])
    # One instant, one id: `Events` sorts by time, then id.
    todo = [(2 * t + (what == "y"), what, i) for t, what, i in todo]
    todo.sort(key=lambda event: (event[0], event[2]))
    alone, served = {key: RAPRegressor(tuner=LogRMS()) for key in keys}, {}
    for _, what, i in todo:
        model = alone[keys[i]]
        if what == "x":
            served[i] = model.predict(X[i : i + 1])[0] if hasattr(model, "learners_") else 0.0
        else:
            model.partial_fit(X[i : i + 1], y[i : i + 1])
    nothing = np.full(P, np.nan)
    edges = [0, 33, 34, 150, len(todo)]
    batches = []
    for a, b in pairwise(edges):
        part = todo[a:b]
        batches.append(
            events(
                [keys[i] for _, _, i in part],
                [i for _, _, i in part],
                [X[i] if what == "x" else nothing for _, what, i in part],
                np.array([np.nan if what == "x" else y[i] for _, what, i in part]),
                [int(t) for t, _, _ in part],
            )
        )
    state, results = run(Job(MODEL, NAMES, wait_ms=1000), batches)
    kinds = [what for _, what, _ in todo]
    status = [s for r in results for s in r.status]
    assert status == [{"x": "waiting", "y": "learnt"}[what] for what in kinds]
    predicted = [p for r in results for p in r.prediction]
    loss = [v for r in results for v in r.loss]
    for (_, what, i), value, cost in zip(todo, predicted, loss, strict=True):
        assert value == pytest.approx(served[i], rel=1e-9, abs=1e-12)
        assert cost is None if what == "x" else cost == pytest.approx(0.5 * (y[i] - served[i]) ** 2)
    assert state.n_waiting == 0 and state.timer == 0
    got = KeyedRegressor.from_bytes(state.models)
    assert all(got.model(key).learners_[0].pack() == alone[key].learners_[0].pack() for key in alone)


def test_waiting_rows_expire_and_are_counted():
    X, y, keys = table(n=10)
    none, nan = np.full((10, P), np.nan), np.full(10, np.nan)
    job = Job(MODEL, NAMES, wait_ms=100)
    pages = Pages(job)
    state, first = pages.learn(None, events(keys[:6], range(6), X[:6], nan[:6]), 1000)
    state, second = pages.learn(state, events(keys[6:], range(6, 10), X[6:], nan[6:]), 1050)
    assert state.n_waiting == 10 and state.timer == 1100
    state, labels = pages.learn(state, events(keys[:4], range(2, 6), none[:4], y[:4]), 1060)
    pairs = [(key, name) for key, name in zip(keys[:4], range(2, 6), strict=True)]
    found = [keys[name] == key for key, name in pairs]
    assert labels.status == ["learnt" if f else "refused" for f in found]
    n_learnt = sum(found)
    state, expired = pages.expire(state, 1100)
    assert len(expired) == 6 - n_learnt and state.n_waiting == 4 and state.timer == 1150
    rows_in = 6 + 4 + 4
    counts = [s for r in (first, second, labels) for s in r.status]
    assert rows_in == len(counts) and counts.count("waiting") - n_learnt - len(expired) == state.n_waiting
    # A label after that is refused, and so is a second row of the same name.
    _, late = pages.learn(state, events(keys[:2], [0, 1], none[:2], y[:2]), 1110)
    assert late.status == ["refused"] * 2 and "was here before" in late.error[0]
    _, again = pages.learn(state, events(keys[6:8], [6, 7], X[6:8], nan[6:8]), 1110)
    assert again.status == ["refused"] * 2 and "duplicate" in again.error[0]


# --- other settings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other,complaint",
    [
        (Job(MODEL, NAMES, pages=8), r"pages=8, but the checkpoint was started with pages=4096"),
        (Job(MODEL, ("a", "c", "b")), r"features=\['a', 'c', 'b'\], but"),
        (Job(RAPRegressor(tuner=LogRMS(), memory=0.9), NAMES), "started with model=.RAPRegressor"),
        (Job(RAPRegressor("poisson", tuner=LogRMS()), NAMES), "started with model=.RAPRegressor"),
    ],
)
def test_a_checkpoint_of_other_settings_is_refused(other, complaint):
    X, y, keys = table()
    state, _ = run(Job(MODEL, NAMES), [events(keys, range(N), X, y)])
    with pytest.raises(ValueError, match=complaint):
        Pages(other).learn(state, events(keys, range(N, 2 * N), X, np.abs(y)))


def test_other_words_for_the_same_settings():
    X, y, keys = table()
    state, _ = run(Job(RAPRegressor(tuner="logrms"), NAMES), [events(keys, range(N), X, y)])
    _, result = Pages(Job(MODEL, NAMES)).learn(state, events(keys, range(N, 2 * N), X, y))
    assert set(result.status) == {"learnt"}


def test_a_newer_version_and_damage_are_refused():
    X, y, keys = table()
    job = Job(MODEL, NAMES)
    state, _ = run(job, [events(keys, range(N), X, y)])
    newer = json.dumps(json.loads(state.settings) | {"format": FORMAT + 1})
    with pytest.raises(ValueError, match="Upgrade it"):
        Pages(job).learn(state._replace(settings=newer), events(keys, range(N), X, y))
    other = b"?" if state.models[-9:-8] != b"?" else b"!"
    damaged = state.models[:-9] + other + state.models[-8:]
    with pytest.raises(ValueError, match="cut short or altered"):
        Pages(job).learn(state._replace(models=damaged), events(keys, range(N), X, y))


GOOD = ["k", "1", 5, [0.5], [0.0] * P]


@pytest.mark.parametrize(
    "rows",
    [
        "short",
        7,
        ["k"],
        [["k", "1"]],
        [["k", "1", 5, [0.5], [0.0] * (P - 1)]],
        [["k", "1", 5, [0.5, 0.5], [0.0] * P]],
        [["k", "1", 5, [0.5], [float("inf")] * P]],
        [["k", "1", float("inf"), [0.5], [0.0] * P]],
        [["k", 1, 5, [0.5], [0.0] * P]],
        [[["k"], "1", 5, [0.5], [0.0] * P]],
        [["k", "1", 5, [0.5], ["x"] * P]],
        [GOOD, GOOD],
        {"k": "1"},
    ],
    ids=str,
)
def test_forged_rows_that_wait_are_refused(rows):
    """A page with no number for its rows ended in an IndexError, one that expires at infinity in an OverflowError."""
    X, y, keys = table(n=10)
    pages = Pages(Job(MODEL, NAMES, wait_ms=100))
    state, _ = pages.learn(None, events(keys, range(10), X, y))
    assert pages.expire(state._replace(waiting=json.dumps([GOOD])), 10)[1][0][:2] == ("k", "1")
    for use in (lambda state: pages.expire(state, 10), lambda state: pages.learn(state, events([], [], X[:0], y[:0]))):
        for text in (json.dumps(rows), json.dumps(rows)[:-1]):
            with pytest.raises(ValueError):
                use(state._replace(waiting=text))


def test_models_that_another_version_wrote_are_taken(monkeypatch):
    """Its bytes name that version, and hold the same models."""
    X, y, keys = table()
    job = Job(MODEL, NAMES)
    monkeypatch.setattr("streamlasso.__version__", "0.0.1")
    state, _ = run(job, [events(keys[:60], range(60), X[:60], y[:60])])
    monkeypatch.undo()
    state, _ = Pages(Job(MODEL, NAMES)).learn(state, events(keys[60:], range(60, N), X[60:], y[60:]))
    assert learnt(state) == states(KeyedRegressor(MODEL, pooled=False).partial_fit(X, y, keys))
