"""Penalties that are asked for value, prox and dual norm, as a user writes them: they go through every face."""

import pickle
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from streamlasso import RAPClassifier, RAPRegressor, progressive
from streamlasso.network import StreamingNetwork
from streamlasso.penalties import Penalty
from streamlasso.river import RAPRegressor as RiverRegressor
from streamlasso.tuners import SGD, Fixed, LogRMS

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "extend"))

from group_penalty import GroupLasso


@dataclass(frozen=True)
class AskedL1(Penalty):
    """The lasso, which the active-set solver knows, in its own words."""

    def value(self, u):
        return np.abs(u).sum()

    def prox(self, u, step):
        return np.sign(u) * np.maximum(np.abs(u) - step, 0)

    def dual_norm(self, g):
        return np.abs(g).max()


GROUPS = GroupLasso(((0, 1, 2), (3, 4)))


@pytest.fixture
def stream():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6)) @ (np.eye(6) + 0.3)
    return X, X[:, :3] @ [1.0, -0.5, 0.2] + 0.5 * X[:, 5] + rng.normal(size=120)


@pytest.mark.parametrize("lam", [0.02, 0.2, 0.4])
def test_it_is_skglms_group_lasso(stream, lam, skglm):
    X, y = stream
    model = RAPRegressor(penalty=GROUPS, tuner=Fixed(lam), memory=1.0, standardize=False).fit(X, y)
    groups = [[0, 1, 2], [3, 4], [5]]
    peer = skglm.GroupLasso(groups, alpha=lam, weights=np.sqrt([3.0, 2.0, 1.0]), tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-7)
    assert model.intercept_ == pytest.approx(peer.intercept_, abs=1e-7)
    assert lam < 0.2 or not model.coef_[3:5].any()


def test_above_lam_max_it_is_empty_and_below_it_is_not(stream):
    top = RAPRegressor(penalty=GROUPS, tuner=Fixed(10.0), memory=1.0).fit(*stream).lambda_max_
    for share, empty in ((1.0001, True), (0.999, False)):
        model = RAPRegressor(penalty=GROUPS, tuner=Fixed(share * top), memory=1.0).fit(*stream)
        assert (not model.coef_.any()) == empty


@pytest.mark.parametrize("family", ["gaussian", "binomial", "poisson", "gamma"])
@pytest.mark.parametrize(("memory", "tuner"), [(0.97, LogRMS()), (40, SGD(0.01))], ids=str)
def test_the_lasso_asked_is_the_lasso(stream, family, memory, tuner):
    """Coefficients, lam as its derivative moved it, and lam_max: by two solvers."""
    X, y = (values[:80] for values in stream)
    count = np.round(np.exp(y / 2))
    y = {"gaussian": y, "binomial": (y > 0).astype(float), "poisson": count, "gamma": np.exp(y / 2)}[family]
    factors = [1, 1, 0, 2, 1, 1]
    settings = dict(family=family, memory=memory, tuner=tuner, penalty_factor=factors, history=20, curvature="previous")
    one, other = (
        progressive(RAPRegressor(penalty=penalty, **settings), X, y, coef=True) for penalty in ("l1", AskedL1())
    )
    # Until there are more rows than features, several models are best.
    for name in ("lam_max", "lam"):
        np.testing.assert_allclose(other[name][8:], one[name][8:], rtol=1e-3)
    np.testing.assert_allclose(other.coef[8:], one.coef[8:], atol=1e-3 * np.abs(one.coef).max())


def test_classes_are_scikit_learns_logistic_lasso(stream):
    X, y = stream
    lam, labels = 0.05, y > 0.2
    model = RAPClassifier(penalty=AskedL1(), tuner=Fixed(lam), memory=1.0, standardize=False, history=200).fit(
        X, labels
    )
    peer = LogisticRegression(l1_ratio=1, solver="saga", C=1 / (lam * len(y)), tol=1e-10, max_iter=100_000)
    np.testing.assert_allclose(model.coef_, peer.fit(X, labels).coef_, atol=1e-5)


def whole_group_or_nothing(coef):
    return all(coef[list(group)].all() or not coef[list(group)].any() for group in GROUPS.groups)


def test_it_goes_through_every_face(stream):
    X, y = stream
    settings = dict(penalty=GROUPS, tuner="logrms", memory=0.98)
    model = RAPRegressor(**settings).fit(X[:60], y[:60])
    model = pickle.loads(pickle.dumps(model)).partial_fit(X[60:], y[60:])
    river = RiverRegressor(**settings)
    for x, target in zip(X, y, strict=True):
        river.learn_one(dict(zip("abcdef", x, strict=True)), target)
    assert list(river.coef_.values()) == model.coef_.tolist()
    X, labels = X[:50], np.digitize(y[:50], [-0.5, 0.5])
    assert RAPClassifier(**settings).fit(X, labels).score(X, labels) > 0.6
    network = StreamingNetwork(penalty=GROUPS).fit(X[:30])
    assert network.adjacency_.any() and not np.diag(network.coef_).any()
    assert whole_group_or_nothing(model.coef_)


def test_where_it_cannot_go_says_so(stream):
    with pytest.raises(ValueError, match="tuner='logrms'"):
        RAPRegressor(penalty=GROUPS).fit(*stream)
    with pytest.raises(ValueError, match="gradient='exact'"):
        RAPRegressor(penalty=GROUPS, tuner="logrms", gradient="diagonal").fit(*stream)

    class Half(Penalty):
        def value(self, u):
            return 0.0

    with pytest.raises(TypeError, match="missing: prox, dual_norm"):
        RAPRegressor(penalty=Half(), tuner="logrms").fit(*stream)
