"""The selected expert: as by the obvious rule over dictionaries of weights, row by row, and across checkpoints."""

import numpy as np
import pytest

from streamlasso import RAPRegressor


def candidate(weights, sparse):
    """Its (group, place), the largest weight of its kind, and the weight of all sparse ones."""
    all_sparse = sum(weights[m].sum() for m in weights if sparse[m])
    kinds = {kind: [m for m in weights if sparse[m] == kind] for kind in (True, False)}
    most = {kind: max((weights[m].max() for m in groups), default=-1.0) for kind, groups in kinds.items()}
    kind = most[False] <= 100 * all_sparse
    m = next(m for m in kinds[kind] if weights[m].max() == most[kind])
    k = next(k for k, weight in enumerate(weights[m]) if weight >= 0.5 * most[kind])
    return (m, k), most[kind], all_sparse


def chosen(held, weights, sparse):
    """One row of the rule, as its documentation says it."""
    new, most, all_sparse = candidate(weights, sparse)
    if held is None:
        return new
    mine = weights[held[0]][held[1]]
    if sparse[held[0]] and not sparse[new[0]]:
        return new
    if not sparse[held[0]] and sparse[new[0]]:
        return held if 3 * mine > 100 * all_sparse else new
    if new[0] == held[0] and new[1] < held[1] and weights[new[0]][new[1]] >= mine:
        return new
    return new if most > 3 * mine else held


@pytest.mark.parametrize(("p", "dense", "n"), [(6, False, 500), (3, True, 400)])
def test_it_is_that_of_the_rule_after_every_row(p, dense, n):
    rng = np.random.default_rng(p)
    X = rng.normal(size=(n, p))
    beta = np.where(np.arange(p) < (p if dense else 2), 1.0, 0.0)
    y = X @ beta * np.where(np.arange(n) < n // 2, 1.0, -1.0) + rng.normal(size=n)
    model = RAPRegressor().partial_fit(X[:1], y[:1])
    learner = model.learners_[0]
    sparse = [group.sparse for group in learner.experts]
    held, began, n_choices, n_leads = None, None, 0, 0
    last = None
    for t in range(1, n):
        if t == 100:
            model = RAPRegressor.from_bytes(model.to_bytes())
            learner = model.learners_[0]
        model.partial_fit(X[t : t + 1], y[t : t + 1])
        there = {m: memory[1] for m, memory in enumerate(learner.memories) if memory is not None}
        weights = {m: learner.weights[m][: learner.experts[m].n] for m in there}
        if held is not None and there.get(held[0]) != began:
            held = None
        before, held = held, chosen(held, weights, sparse) if t > 1 else learner.selected_expert()[:2]
        began = there[held[0]]
        assert learner.selected_expert()[:2] == held
        n_choices += held != before
        lead = candidate(weights, sparse)[0]
        n_leads += lead != last
        last = lead
    assert n_choices < 0.5 * n_leads


def test_of_two_experts_that_predict_alike_the_first_stays():
    """Pure noise: the lead changes, the selected expert hardly."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 4)), rng.normal(size=400)
    model = RAPRegressor().partial_fit(X[:100], y[:100])
    choices = []
    for t in range(100, 400):
        model.partial_fit(X[t : t + 1], y[t : t + 1])
        choices.append(model.learners_[0].selected_expert()[:2])
    assert sum(a != b for a, b in zip(choices[1:], choices[:-1], strict=True)) < 15
