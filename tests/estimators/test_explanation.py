"""What matters, and why: against every expert's own model, and sums that add up."""

import numpy as np
import pytest

from streamlasso import RAPClassifier, RAPRegressor
from streamlasso.families import Gaussian, Poisson
from streamlasso.tuners import LogRMS


def table(family, n=200, p=5):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p)) + 3.0
    return X, family.sample(rng, 0.4 * (X[:, 0] - 3.0) - 0.3 * (X[:, 1] - 3.0))


def test_inclusion_is_low_for_features_without_an_effect():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 12))
    model = RAPRegressor().fit(X, X[:, 0] - X[:, 1] + rng.normal(size=300))
    assert model.inclusion_[:2].min() > 0.99 and model.inclusion_[2:].mean() < 0.5


def test_inclusion_of_one_model_is_its_support():
    X, y = table(Gaussian())
    model = RAPRegressor(memory=0.99, tuner=LogRMS()).fit(X, y)
    np.testing.assert_array_equal(model.inclusion_, model.coef_ != 0)


@pytest.mark.parametrize("settings", [{}, {"memory": 0.99, "tuner": LogRMS()}], ids=["default", "one model"])
@pytest.mark.parametrize("family", [Gaussian(), Poisson()], ids=str)
def test_contributions_add_up_to_the_prediction(family, settings):
    X, y = table(family)
    model = RAPRegressor(family, **settings).fit(X, y)
    # Rows near the mean: further out a memory may be held back, and no prediction moves with its coefficients.
    for x in X.mean(axis=0) + 0.1 * (X[:5] - X.mean(axis=0)):
        why = model.explain(x)
        assert why.baseline + why.contributions.sum() == pytest.approx(why.eta, rel=1e-12, abs=1e-12)
        assert family.mean(why.eta) == pytest.approx(model.predict(x[None])[0], rel=1e-12)
        if not settings and family != Gaussian():
            continue  # The same of counts, whose range is narrow.
        other = x.copy()
        other[0] += 0.1
        moved = model.explain(other)
        assert moved.eta - why.eta == pytest.approx(0.1 * model.coef_[0], abs=1e-9)
        assert moved.contributions[0] - why.contributions[0] == pytest.approx(0.1 * model.coef_[0], abs=1e-9)
        np.testing.assert_array_equal(moved.contributions[1:], why.contributions[1:])


def test_names_and_classes():
    pd = pytest.importorskip("pandas")
    X, y = table(Gaussian())
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = RAPRegressor(tuner=LogRMS()).fit(frame, y)
    assert model.explain(frame.iloc[[0]]).contributions["a"] == model.explain(frame.iloc[[0]]).contributions[0]
    assert model.inclusion_["a"] == 1.0
    labels = np.array(["x", "y", "z"])[np.digitize(y, np.quantile(y, [0.3, 0.6]))]
    three = RAPClassifier(tuner=LogRMS()).fit(X, labels)
    assert len(three.explain(X[0])) == len(three.inclusion_) == 3
    eta = [why.eta for why in three.explain(X[0])]
    np.testing.assert_allclose(eta, three.decision_function(X[:1])[0], rtol=1e-12)


def test_one_row_at_a_time():
    X, y = table(Gaussian())
    model = RAPRegressor(tuner=LogRMS()).fit(X, y)
    with pytest.raises(ValueError, match="x holds 2 rows"):
        model.explain(X[:2])
    with pytest.raises(ValueError, match="features"):
        model.explain(X[0, :3])
