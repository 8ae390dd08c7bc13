"""A network is p regressions: each node agrees with a separate model, and edges follow the rule."""

import multiprocessing
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

from streamlasso import RAPRegressor
from streamlasso.memories import AdaptiveForgetting, Forgetting, Window
from streamlasso.network import StreamingNetwork
from streamlasso.penalties import L1, ElasticNet, Ridge
from streamlasso.tuners import LARS, SGD, Fixed, LogRMS, Mixture, Tuner

SETTINGS = [
    {},
    {"memory": Window(40)},
    {"memory": 1.0, "tuner": SGD(0.01)},
    {"memory": 0.7, "tuner": LARS(0.02)},
    {"curvature": "previous"},
    {"gradient": "diagonal", "penalty": ElasticNet(0.5)},
    {"penalty": Ridge(), "tuner": Fixed(0.1)},
    {"fit_intercept": False},
    {"standardize": False, "lambda_init": 0.05},
    {"tuner": Mixture(), "memory": 0.97},
    {"memory": AdaptiveForgetting()},
]
every_setting = pytest.mark.parametrize("setting", SETTINGS, ids=str)


def correlated(n=150, p=6, seed=0):
    """A chain whose signs flip half-way, with a different offset and scale for each node."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    for j in range(1, p):
        X[:, j] += np.where(np.arange(n) < n // 2, 0.8, -0.8) * X[:, j - 1]
    return X * rng.uniform(0.1, 10, p) + rng.normal(size=p)


def votes(n=150, p=5):
    return (correlated(n, p) > correlated(n, p).mean(axis=0)).astype(float)


def separate(X, i, setting):
    """The regression of node i on all others, as a model of its own."""
    given_settings = {"memory": 0.95, "tuner": LogRMS(), **setting}
    return RAPRegressor(**given_settings).fit(np.delete(X, i, axis=1), X[:, i])


def same(a, b):
    return all((np.asarray(getattr(a, name)) == np.asarray(getattr(b, name))).all() for name in ("coef_", "lambda_"))


def frozen(model):
    """Everything that the next time point depends on, for comparison."""
    return model.learners_[0].pack(), model.n_features_in_, model.get_params()


# --- exactness --------------------------------------------------------------------------------------------------------


@every_setting
def test_each_node_is_a_regression_on_all_others(setting):
    X = correlated()
    model = StreamingNetwork(**setting).fit(X)
    for i in range(X.shape[1]):
        node = separate(X, i, setting)
        scale = 1 + np.abs(node.coef_).max()
        assert np.delete(model.coef_[i], i) == pytest.approx(node.coef_, abs=1e-9 * scale)
        assert model.intercept_[i] == pytest.approx(node.intercept_, rel=1e-9, abs=1e-9)
        assert model.lambda_[i] == pytest.approx(node.lambda_, rel=1e-9)
        assert model.lambda_max_[i] == pytest.approx(node.lambda_max_, rel=1e-9)
        assert model.coef_[i, i] == 0


@pytest.mark.parametrize("setting", [{}, {"tuner": Mixture(), "memory": None}], ids=str)
def test_binary_nodes_are_logistic_regressions(setting):
    X = votes()
    model = StreamingNetwork(family="binomial", **setting).fit(X)
    for i in range(X.shape[1]):
        node = separate(X, i, {"family": "binomial", **setting})
        assert np.delete(model.coef_[i], i) == pytest.approx(node.coef_, abs=1e-7)
        assert model.lambda_[i] == pytest.approx(node.lambda_, rel=1e-7)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 9), st.integers(1, 40), st.sampled_from([0.5, 0.9, 0.99, 1.0]))
def test_any_stream_gives_the_same_as_separate_models(seed, p, n, memory):
    """More nodes than time points, copies of a node, constants."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)).round(int(rng.integers(0, 3)))
    if seed % 3 == 0:
        X[:, 0] = X[:, -1]
    if seed % 5 == 0:
        X[:, 0] = 3.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("streamlasso.network.estimator.warnings.warn", lambda *args, **kwargs: None)
        model = StreamingNetwork(memory=memory, rule="or").fit(X)
    for i in range(p):
        node = separate(X, i, {"memory": memory})
        ours = model.coef_[i]
        fit, fit_separate = X @ ours + model.intercept_[i], np.delete(X, i, axis=1) @ node.coef_ + node.intercept_
        assert model.lambda_[i] == pytest.approx(node.lambda_, rel=1e-6, abs=1e-9)
        assert fit == pytest.approx(fit_separate, abs=1e-6)  # copies may share a coefficient in more than one way


@every_setting
def test_one_by_one_equals_all_at_once(setting):
    X = correlated(60)
    whole = StreamingNetwork(**setting).fit(X)
    parts = StreamingNetwork(**setting)
    for x in X[:30]:
        parts.partial_fit(x)
    assert same(parts.partial_fit(X[30:]), whole)


@pytest.mark.parametrize("n_jobs", [2, 3, 6])
def test_threads_change_nothing(n_jobs):
    X = correlated()
    assert same(StreamingNetwork(n_jobs=n_jobs).fit(X), StreamingNetwork(n_jobs=1).fit(X))


def _fitted(X):
    return StreamingNetwork(n_jobs=2).fit(X).coef_


def test_a_forked_process_can_learn():
    X = correlated(50)
    here = _fitted(X)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert (pool.apply_async(_fitted, (X,)).get(timeout=60) == here).all()


# --- edges ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["or", "and"])
def test_without_a_penalty_these_are_the_partial_correlations(rule):
    """Those of the inverse covariance, whichever rule: both estimates of a pair are then equal."""
    X = correlated(200)
    precision = np.linalg.inv(np.cov(X.T))
    d = np.sqrt(np.diag(precision))
    expected = -precision / np.outer(d, d) * (1 - np.eye(len(d)))
    model = StreamingNetwork(memory=1.0, tuner=Fixed(0.0), rule=rule).fit(X)
    assert model.partial_correlation_ == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    "setting", [{}, {"tuner": Mixture(), "memory": 0.97}, {"memory": AdaptiveForgetting()}], ids=str
)
def test_units_do_not_matter(setting):
    X = correlated(200)
    model, other = StreamingNetwork(**setting).fit(X), StreamingNetwork(**setting).fit(X * 8.0 ** np.arange(-3, 3))
    assert model.partial_correlation_ == pytest.approx(other.partial_correlation_, abs=1e-6)
    assert np.abs(model.partial_correlation_).max() < 1


def test_a_mixture_finds_the_partial_correlations_too():
    X = correlated(400)[200:]
    precision = np.linalg.inv(np.cov(X.T))
    d = np.sqrt(np.diag(precision))
    model = StreamingNetwork(tuner=Mixture(), memory=1.0).fit(X)
    assert np.diag(model.partial_correlation_, 1) == pytest.approx(np.diag(-precision / np.outer(d, d), 1), abs=0.1)


@pytest.mark.parametrize("rule", ["or", "and"])
@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_edges_follow_the_rule(rule, family):
    X = votes() if family == "binomial" else correlated(seed=3)
    model = StreamingNetwork(rule=rule, family=family).fit(X)
    there = model.coef_ != 0
    expected = there | there.T if rule == "or" else there & there.T
    assert (model.adjacency_ == expected).all()
    assert 0 < expected.sum() < expected.size - len(expected), "the two rules must differ here"
    assert (model.partial_correlation_ == model.partial_correlation_.T).all()


def test_edges_are_listed_by_name_and_strength():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(correlated(), columns=list("abcdef"))
    model = StreamingNetwork().fit(X)
    edges = model.edges_.to_pylist()
    strengths = [edge["strength"] for edge in edges]
    assert strengths == sorted(strengths, reverse=True) and len(edges) == model.adjacency_.sum() // 2
    for edge in edges:
        i, j = "abcdef".index(edge["source"]), "abcdef".index(edge["target"])
        assert edge["strength"] * {"+": 1, "-": -1}[edge["sign"]] == model.partial_correlation_[i, j]


@pytest.mark.parametrize("setting", [{}, {"family": "binomial"}, {"rule": "or", "memory": Window(30)}], ids=str)
def test_networks_over_time_are_those_after_each_time_point(setting):
    X = votes(70) if "family" in setting else correlated(70)
    networks = StreamingNetwork(**setting).fit_transform(X)
    model = StreamingNetwork(**setting)
    trace = StreamingNetwork(**setting).follow(X)
    assert networks.shape == (70, X.shape[1], X.shape[1])
    for t, x in enumerate(X):
        model.partial_fit(x)
        assert networks[t] == pytest.approx(model.partial_correlation_, abs=1e-12)
        assert (trace.lam[t] == model.lambda_).all()
    assert (trace.networks == networks).all()


def test_a_changing_graph_is_tracked():
    """The signs of the chain flip half-way; so do those of the edges."""
    networks = StreamingNetwork().fit_transform(correlated(400))
    chain = np.array([networks[:, j, j + 1] for j in range(5)])
    assert (chain[:, 190:200] > 0).all() and (chain[:, 390:] < 0).all()


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1.0, 2.0, np.nan]], "NaN"),
        ([[1.0, 2.0, np.inf]], "infinity"),
        ([[1.0, 2.0]], "2 features"),
        ([["a", "b", "c"]], "could not convert"),
        (np.zeros((0, 3)), "0 sample"),
    ],
)
def test_a_refused_batch_changes_nothing(X, message):
    model = StreamingNetwork().fit(correlated(50, 3))
    before = frozen(model)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X)
    assert frozen(model) == before


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"rule": "xor"}, "rule='xor'"),
        ({"memory": 1.5}, "forgetting factor"),
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"n_jobs": True}, "n_jobs=True"),
        ({"family": "binomial"}, "X: "),
        ({"tuner": "sgd"}, "tuner='sgd'"),
    ],
)
def test_wrong_settings_are_named(setting, message):
    model = StreamingNetwork(**setting)
    with pytest.raises(ValueError, match=message):
        model.fit(correlated(20, 3))
    assert not hasattr(model, "n_features_in_")


def test_an_unknown_rule_is_refused_after_fitting_too():
    model = StreamingNetwork().fit(correlated(20, 3)).set_params(rule="xor")
    with pytest.raises(ValueError, match="rule='xor'"):
        model.adjacency_  # noqa: B018


def test_a_time_point_may_be_a_list():
    X = correlated(30, 3)
    model = StreamingNetwork()
    for x in X:
        model.partial_fit(x.tolist())
    assert same(model, StreamingNetwork().fit(X))


def test_one_node_is_refused():
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        StreamingNetwork().fit(np.ones((5, 1)))


@pytest.mark.parametrize("setting", [{}, {"tuner": Mixture(), "memory": 0.97}], ids=str)
def test_a_constant_node_has_no_edges_and_is_named_once(setting):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(correlated(80, 4), columns=["V1", "M1", "dead", "S1"])
    X["dead"] = 7.0
    with pytest.warns(UserWarning, match="constant so far, and therefore without edges: dead"):
        model = StreamingNetwork(**setting).fit(X[:40])
    model.partial_fit(X[40:])
    assert not model.adjacency_[2].any() and model.adjacency_.any() and model.constant_ == ["dead"]
    others = StreamingNetwork(**setting).fit(X.drop(columns="dead"))
    assert np.delete(np.delete(model.coef_, 2, 0), 2, 1) == pytest.approx(others.coef_, abs=1e-9)


class Fails(Tuner):
    """A user-defined tuner that fails at the tenth update."""

    n_state = 1

    def update(self, lam, slope, norm, lam_max, state):
        state[0] += 1
        if state[0] == 10:
            raise ArithmeticError("no")
        return lam


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_tuner_that_fails_leaves_the_network_as_it_was(n_jobs):
    X = correlated(60)
    model = StreamingNetwork(tuner=Fails(), n_jobs=n_jobs).fit(X[:12])
    before = frozen(model)
    with pytest.raises(ArithmeticError):
        model.partial_fit(X[12:])
    assert frozen(model) == before


# --- files ------------------------------------------------------------------------------------------------------------


@every_setting
@pytest.mark.parametrize("how", ["save", "pickle"])
def test_a_saved_network_continues_exactly(setting, how, tmp_path):
    X = correlated(120)
    if how == "pickle":
        model = pickle.loads(pickle.dumps(StreamingNetwork(**setting).fit(X[:70])))
    else:
        StreamingNetwork(**setting).fit(X[:70]).save(tmp_path / "network.safetensors")
        model = StreamingNetwork.load(tmp_path / "network.safetensors")
    assert same(model.partial_fit(X[70:]), StreamingNetwork(**setting).fit(X))


def test_binary_networks_are_saved_too(tmp_path):
    X = votes()
    StreamingNetwork(family="binomial").fit(X[:100]).save(tmp_path / "votes")
    model = StreamingNetwork.load(tmp_path / "votes")
    assert same(model.partial_fit(X[100:]), StreamingNetwork(family="binomial").fit(X))


def test_a_file_of_another_kind_is_refused(tmp_path):
    RAPRegressor().fit(correlated()[:, 1:], correlated()[:, 0]).save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"it holds a streamlasso\.RAPRegressor"):
        StreamingNetwork.load(tmp_path / "model")
    StreamingNetwork().fit(correlated()).save(tmp_path / "network")
    with pytest.raises(ValueError, match=r"it holds a streamlasso\.network\.StreamingNetwork"):
        RAPRegressor.load(tmp_path / "network")


@pytest.mark.parametrize("share", [0.2, 0.6, 0.99])
def test_a_truncated_file_is_refused(share, tmp_path):
    path = tmp_path / "network"
    StreamingNetwork().fit(correlated()).save(path)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(ValueError, match="cut short"):
        StreamingNetwork.load(path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("node1/lam", lambda a: a - 1e9),
        ("covariance/unit", lambda a: a * np.nan),
        ("covariance/scaler.sums", lambda a: a + np.inf),
        ("node0/active.members", lambda a: a + 100),
        ("covariance/counts", lambda a: a + 10**6),
        ("node2/counts", lambda a: a + np.array([1, 0, 0])),
    ],
)
def test_a_forged_state_is_refused(name, change):
    """Everything that compiled code relies on is checked first."""
    model = StreamingNetwork(memory=Window(30)).fit(correlated())
    (group,) = model.learners_[0].groups
    state = group.state()
    before = group.pack()
    with pytest.raises(ValueError):
        group.restore({**state, name: change(state[name])})
    assert group.pack() == before


@parametrize_with_checks([StreamingNetwork(), StreamingNetwork(memory=Window(20), rule="or", penalty=L1())])
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


def test_memory_is_a_part_or_a_number():
    X = correlated(50)
    assert same(StreamingNetwork(memory=0.9).fit(X), StreamingNetwork(memory=Forgetting(0.9)).fit(X))
