"""Merged models: the sums of two are those of one that saw all rows."""

import numpy as np
import pytest

from streamlasso import RAPClassifier, RAPRegressor, families, merge, penalties
from streamlasso.families import Gaussian
from streamlasso.tuners import Fixed, LogRMS


def table(family=None, n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)) * [1, 2, 0.1, 1, 1] + [0, 50, 0, 0, 0]
    X[:, 4] = X[:, 3]
    return X, (family or Gaussian()).sample(rng, 0.5 * X[:, 0] - 0.1 * (X[:, 1] - 50))


def parts(X, y, cut, **settings):
    make = lambda: RAPRegressor(**settings)  # noqa: E731
    weight = np.random.default_rng(5).uniform(0.5, 1.5, size=len(y))
    whole = make().partial_fit(X, y, weight)
    return whole, make().partial_fit(X[:cut], y[:cut], weight[:cut]), make().partial_fit(X[cut:], y[cut:], weight[cut:])


@pytest.mark.parametrize("memory", [1.0, 0.99, 0.9])
@pytest.mark.parametrize("penalty", penalties.EXAMPLES, ids=str)
@pytest.mark.parametrize("cut", [1, 3, 200, 398])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_two_gaussian_models_are_one(memory, penalty, cut, fit_intercept):
    settings = dict(memory=memory, penalty=penalty, tuner=Fixed(0.05), fit_intercept=fit_intercept)
    whole, a, b = parts(*table(), cut, **settings)
    before = a.to_bytes(), b.to_bytes()
    merged = merge(a, b)
    np.testing.assert_allclose(merged.coef_, whole.coef_, rtol=1e-8, atol=1e-9)
    assert merged.intercept_ == pytest.approx(whole.intercept_, rel=1e-8, abs=1e-8)
    assert merged.lambda_max_ == pytest.approx(whole.lambda_max_, rel=1e-9)
    assert merged.effective_size_ == pytest.approx(whole.effective_size_, rel=1e-12)
    assert merged.n_seen_ == whole.n_seen_ == 400
    assert (a.to_bytes(), b.to_bytes()) == before
    X, y = table(seed=1)
    merged.partial_fit(X, y), whole.partial_fit(X, y)
    np.testing.assert_allclose(merged.coef_, whole.coef_, rtol=1e-7, atol=1e-8)


def test_the_order_does_not_matter_where_nothing_is_forgotten():
    X, y = table()
    pieces = [RAPRegressor(memory=1.0, tuner=Fixed(0.1)).fit(X[i::4], y[i::4]) for i in range(4)]
    tree = merge(merge(pieces[0], pieces[1]), merge(pieces[2], pieces[3]))
    line = merge(pieces[3], merge(pieces[2], merge(pieces[1], pieces[0])))
    whole = RAPRegressor(memory=1.0, tuner=Fixed(0.1)).fit(X, y)
    np.testing.assert_allclose(tree.coef_, whole.coef_, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(line.coef_, whole.coef_, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
@pytest.mark.parametrize("memory", [1.0, 0.995])
def test_other_families_are_close(family, memory):
    """The first half's rows are quadratics at its own minimiser: within a tenth of a standard error or so."""
    X, y = table(family, n=1200)
    whole, a, b = parts(X, np.maximum(y, 1e-9), 600, family=family, memory=memory, tuner=Fixed(0.01))
    merged = merge(a, b)
    scale = np.abs(whole.coef_).max()
    np.testing.assert_allclose(merged.coef_, whole.coef_, atol=0.1 * scale)
    assert np.abs(merged.coef_ - whole.coef_).max() <= np.abs(b.coef_ - whole.coef_).max() + 1e-6
    merged.partial_fit(X, np.maximum(y, 1e-9))


def test_tuned_models_and_classes():
    X, y = table(n=600)
    a, b = (RAPRegressor(memory=1.0, tuner=LogRMS()).fit(X[i::2], y[i::2]) for i in range(2))
    merged = merge(a, b)
    assert merged.lambda_ == b.lambda_ and merged.n_seen_ == 600
    labels = np.array(["a", "b", "c"])[np.digitize(y, np.quantile(y, [0.3, 0.7]))]
    one, other = (RAPClassifier(memory=1.0, tuner=LogRMS()).fit(X[i::2], labels[i::2]) for i in range(2))
    whole = RAPClassifier(memory=1.0, tuner=LogRMS()).fit(X, labels)
    np.testing.assert_allclose(merge(one, other).predict_proba(X), whole.predict_proba(X), atol=0.1)


def test_what_cannot_be_merged():
    X, y = table()
    fit = lambda **settings: RAPRegressor(**settings).fit(X, y)  # noqa: E731
    with pytest.raises(ValueError, match='tuner="logrms"'):
        merge(fit(), fit())
    with pytest.raises(ValueError, match="differ in tuner"):
        merge(fit(memory=1.0, tuner=Fixed(0.1)), fit(memory=1.0, tuner=Fixed(0.2)))
    with pytest.raises(ValueError, match="keeps the last rows"):
        merge(fit(memory=50, tuner=LogRMS()), fit(memory=50, tuner=LogRMS()))
    with pytest.raises(TypeError, match="two models of one class"):
        merge(fit(memory=1.0), RAPClassifier().fit(X, y > 0))
    with pytest.raises(ValueError, match="differ in penalty_factor"):
        merge(fit(memory=1.0, tuner=LogRMS()), RAPRegressor(memory=1.0, tuner=LogRMS()).fit(X[:, :3], y))
    few = RAPClassifier(memory=0.9, tuner=LogRMS()).fit(X[:20], y[:20] > 0)
    with pytest.raises(ValueError, match="keeps all of them whole"):
        merge(RAPClassifier(memory=0.9, tuner=LogRMS()).fit(X, y > 0), few)
