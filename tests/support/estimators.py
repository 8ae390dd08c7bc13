"""Rows, responses and classes for the scikit-learn face, and all that its models are, to compare."""

import pickle

import numpy as np

N, P = 60, 4


def rows(n=N, p=P, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


def responses(family, X, seed=1):
    return np.maximum(family.sample(np.random.default_rng(seed), 0.3 + X[:, 0] - 0.7 * X[:, 1]), 1e-9)


def labels(X, classes, seed=1):
    return np.array(classes)[
        np.argmax(X[:, : len(classes)] + np.random.default_rng(seed).gumbel(size=(len(X), len(classes))), 1)
    ]


def bits(model):
    """All that the next row and the next prediction depend on."""
    states = [learner.state() for learner in getattr(model, "learners_", [])]
    state = [{name: array.tobytes() for name, array in state.items()} for state in states]
    return state, {name: pickle.dumps(value) for name, value in vars(model).items() if name != "learners_"}


#: A batch that nothing is wrong with: two classes, positive whole numbers, weights.
GOOD = rows()
ANSWERS = (GOOD[:, 0] > 0).astype(float) + 1
WEIGHTS = np.ones(N)
