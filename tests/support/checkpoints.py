"""Models to save, and what the tests of checkpoints ask of a file."""

import numpy as np
import pytest

from streamlasso import RAPRegressor
from streamlasso.families import Gaussian
from streamlasso.tuners import LogRMS

N, P = 60, 4


def rows(n=N, p=P, seed=0):
    """One column is a copy, one wakes up late: the factor is rebuilt, and features wait outside."""
    X = np.random.default_rng(seed).normal(size=(n, p))
    X[:, 3] = X[:, 1]
    X[: n // 3, 2] = 0.0
    return X


def responses(family, X, seed=1):
    return np.maximum(family.sample(np.random.default_rng(seed), 0.3 + X[:, 0] - 0.7 * X[:, 1]), 1e-9)


def labels(X, classes):
    return np.array(classes)[
        np.argmax(X[:, : len(classes)] + np.random.default_rng(2).gumbel(size=(len(X), len(classes))), 1)
    ]


def bits(model):
    """All that the next row depends on."""
    states = [learner.state() for learner in model.learners_]
    return [{name: array.tobytes() for name, array in state.items()} for state in states]


def through(path, model):
    model.save(path)
    return type(model).load(path)


def small_model():
    X = rows()
    return RAPRegressor(memory=0.95, tuner=LogRMS()).fit(X, responses(Gaussian(), X))


def refusal(cls, path, data=None):
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(ValueError) as error:
        cls.load(path)
    assert repr(str(path)) in str(error.value)
    return str(error.value)
