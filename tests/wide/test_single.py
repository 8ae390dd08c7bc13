"""One model whose lam moves: its derivative is that of finite differences, and tuners move it."""

import pickle

import numpy as np
import pytest

from streamlasso import WideClassifier, WideRegressor
from streamlasso.tuners import LARS, SGD, Fixed, LogRMS, Tuner
from support.wide import zipf_stream

STEP = 1e-7


def stream(kind, seed=0):
    X, y = zipf_stream(n=300, p=300, values=True, seed=seed)
    return X, y if kind == "classes" else y + np.round(2 * np.random.default_rng(0).random(300))


def taught(kind, tuner, rows=slice(None), seed=0):
    X, y = stream(kind, seed)
    model = WideClassifier(tuner=tuner) if kind == "classes" else WideRegressor(kind, tuner=tuner)
    return model.partial_fit(X[rows], y[rows])


@pytest.mark.parametrize("lam", [0.2, 0.7, 1.3])
@pytest.mark.parametrize("kind", ["classes", "gaussian", "poisson"])
@pytest.mark.parametrize("seed", [0, 3])
def test_the_derivative_of_the_coefficients_is_exact(kind, lam, seed):
    """With seed 3 a prediction is held within the range of y before its row, and no longer after it."""
    slope = taught(kind, Fixed(lam), seed=seed).coef_slope_.toarray()
    above, below = (taught(kind, Fixed(lam + h), seed=seed).coef_.toarray() for h in (STEP, -STEP))
    assert np.count_nonzero(slope) > 30
    assert slope == pytest.approx((above - below) / (2 * STEP), abs=1e-6, rel=1e-6)


def test_lam_takes_the_step_of_its_tuner():
    """The first step is along the derivative of the loss of that row."""
    X, y = stream("classes")

    def loss_of_last(lam):
        proba = WideClassifier(tuner=Fixed(lam)).progressive(X[:200], y[:200])
        return -np.log(proba[-1, y[199]])

    slope = (loss_of_last(0.7 + STEP) - loss_of_last(0.7 - STEP)) / (2 * STEP)

    class Late(Tuner):
        """Starts from .7, and notes what it is told."""

        told = ()

        @property
        def lambda_init(self):
            return 0.7

        def update(self, lam, slope, norm, lam_max, state):
            Late.told = (lam, slope, lam_max)
            return lam

    WideClassifier(tuner=Late()).partial_fit(X[:200], y[:200])
    assert Late.told[0] == 0.7
    assert Late.told[1] == pytest.approx(slope, rel=1e-4)
    assert Late.told[2] > 0.7


@pytest.mark.parametrize("tuner", [SGD(0.05), LARS(0.01), LogRMS()], ids=str)
def test_lam_moves_and_stays_in_range(tuner):
    model = taught("classes", tuner)
    assert model.lambda_ != 0.6
    assert 0 <= model.lambda_ <= model.models_[0].lam_max


def test_lam_is_the_smallest_evidence_that_counts():
    assert taught("classes", Fixed(1e3)).coef_.nnz == 0
    fewer, more = (taught("classes", Fixed(lam)).coef_.nnz for lam in (1.5, 0.1))
    assert fewer < 0.5 * more


def test_it_predicts_as_it_would_have_before_learning():
    X, y = stream("classes")
    model = taught("classes", LogRMS(), slice(0, 200))
    told = model.predict_proba(X[[200]])
    assert model.progressive(X[[200]], y[[200]]) == pytest.approx(told, rel=1e-12)


@pytest.mark.parametrize("way", ["bytes", "pickle"])
def test_it_is_saved_to_the_bit(way):
    X, y = stream("classes")
    model = taught("classes", SGD(0.05), slice(0, 200))
    copy = WideClassifier.from_bytes(model.to_bytes()) if way == "bytes" else pickle.loads(pickle.dumps(model))
    assert copy.tuner == SGD(0.05)
    assert np.array_equal(copy.progressive(X[200:], y[200:]), model.progressive(X[200:], y[200:]))
    assert copy.to_bytes() == model.to_bytes()


def test_the_bound_holds():
    X, y = zipf_stream(n=500, p=5000)
    assert WideClassifier(tuner="logrms", max_features=50).partial_fit(X, y).n_live_ == 50


@pytest.mark.parametrize("settings", [{"tuner": "mixture"}, {"tuner": LogRMS(), "memory": "sparse"}, {"tuner": "adam"}])
def test_settings_are_refused(settings):
    with pytest.raises(ValueError, match="tuner="):
        WideClassifier(**settings).fit([[1.0], [0.0]], [0, 1])


def test_the_default_has_no_single_lam():
    with pytest.raises(AttributeError, match="tuner"):
        _ = WideClassifier().fit([[1.0], [0.0]], [0, 1]).lambda_
