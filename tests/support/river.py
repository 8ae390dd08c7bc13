"""Rows with names, responses, classes that appear one by one, and all that a river model is, to compare."""

import numpy as np

NAMES = ["a", "b", "c", "d"]


def bits(model):
    """All that the next row depends on."""
    states = [learner.state() for learner in model.learners_]
    state = [{name: array.tobytes() for name, array in state.items()} for state in states]
    recent = getattr(model, "_recent_rows", np.empty(0)).tobytes()
    return state, list(model.columns_.names), list(getattr(model, "classes_", [])), recent


def rows(n=80, p=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


def dicts(X, names=NAMES):
    return [dict(zip(names, row, strict=False)) for row in X.tolist()]


def responses(family, X, seed=1):
    eta = 0.3 + X[:, 0] - 0.7 * X[:, 1]
    return np.maximum(family.sample(np.random.default_rng(seed), eta), 1e-9)


def labels(X, classes, seed=1):
    """Classes that show up one after the other, ten rows apart, each more likely where its own feature is large."""
    rng = np.random.default_rng(seed)
    noisy = X[:, : len(classes)] + rng.gumbel(size=(len(X), len(classes)))
    rows, late = np.arange(len(X))[:, None], 10 * np.arange(len(classes))
    noisy[rows < late] = -np.inf
    noisy[rows == late] = np.inf
    return np.array(classes)[noisy.argmax(axis=1)]


def taught(model, xs, ys):
    for x, y in zip(xs, ys, strict=True):
        model.learn_one(x, y)
    return model
