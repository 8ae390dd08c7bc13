"""The selected expert: as by the obvious rule over dictionaries of weights and sets of features, row by row, and across
checkpoints."""

import numpy as np
import pytest

from streamlasso import RAPClassifier, RAPRegressor
from streamlasso.simulate import simulate
from streamlasso.tuners import Mixture


class Experts:
    """What the rule needs, from what a user of the learner sees."""

    def __init__(self, learner):
        self.learner = learner
        self.began = {m: memory[1] for m, memory in enumerate(learner.memories) if memory is not None}
        self.weight = {(m, k): learner.weights[m, k] for m in self.began for k in range(learner.experts[m].n)}
        self.is_sparse = {e: learner.experts[e[0]].sparse for e in self.weight}
        self.is_empty = {e: learner.experts[e[0]].first_is_empty and e[1] == 0 for e in self.weight}

    def support(self, e):
        return set(np.flatnonzero(self.learner.expert(*e)[2][1:]))

    def nothing_matters(self):
        if not any(self.is_empty.values()):
            return False
        paths = [m for m in self.began if self.is_empty[m, 0]]
        columns = [sum(self.weight[m, k] for m in paths) for k in range(self.learner.experts[paths[0]].n)]
        return columns[0] > 0.5 or all(columns[0] >= 3 * column for column in columns[1:])

    def matter(self, coef, deviations):
        effect = np.abs(coef) * deviations
        return set(np.flatnonzero((effect > 0) & (effect >= 0.2 * effect.max())))


def chosen(held, experts, coef, deviations):
    """One row of the rule, as its documentation says it."""
    weight = experts.weight
    all_sparse = sum(weight[e] for e in weight if experts.is_sparse[e])
    dense = [e for e in weight if not experts.is_sparse[e]]
    best_dense = max(dense, key=weight.get, default=None)
    if dense and weight[best_dense] > 1000 * all_sparse:
        stays = held is not None and not experts.is_sparse[held] and weight[best_dense] <= 5 * weight[held]
        return held if stays else best_dense
    if held is not None and not experts.is_sparse[held] and 3 * weight[held] > 1000 * all_sparse:
        return held
    nothing = experts.nothing_matters()
    among = [e for e in weight if experts.is_sparse[e] and experts.is_empty[e] == nothing]
    most = max(weight[e] for e in among)
    may_stay = held in among and most <= 5 * weight[held]
    if nothing:
        return held if may_stay else max(among, key=weight.get)
    matter = experts.matter(coef, deviations)

    def agreement(e):
        support = experts.support(e)
        return 2 * len(support & matter) / max(len(support) + len(matter), 1)

    best = max((e for e in among if 3 * weight[e] >= most), key=lambda e: (agreement(e), weight[e]))
    return held if may_stay and agreement(best) <= agreement(held) + 0.2 else best


def followed(model, X, y, **options):
    """After each row but the first: what is selected, and the experts; once on the way the model goes through bytes."""
    model.partial_fit(X[:1], y[:1], **options)
    for t in range(1, len(y)):
        if t == len(y) // 4:
            model = type(model).from_bytes(model.to_bytes())
        model.partial_fit(X[t : t + 1], y[t : t + 1])
        learner = model.learners_[0]
        yield learner.selected_expert()[:2], Experts(learner), learner


def outline(learner):
    """(b0, b) of the experts with a thousandth of the largest weight or more, which is looked at row by row."""
    weights = learner.weights
    kept = [tuple(e) for e in np.argwhere(weights >= 1e-3 * weights.max())]
    total = sum(weights[e] for e in kept)
    return sum(weights[e] / total * learner.expert(*e)[2] for e in kept)


def stream(p, n_matter, n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * np.arange(1, p + 1)
    beta = np.where(np.arange(p) < n_matter, 1.0, 0.0) / np.arange(1, p + 1)
    return X, X @ beta * np.where(np.arange(n) < n // 2, 1.0, -1.0), rng


@pytest.mark.parametrize(
    ("p", "n_matter", "n", "options"),
    [
        (6, 2, 500, {}),
        (3, 3, 400, {}),
        (4, 0, 300, {}),
        (6, 2, 200, {"powers": (0.4, 0.8)}),
        (3, 2, 100, {"powers": (0,)}),
    ],
)
def test_it_is_that_of_the_rule_after_every_row(p, n_matter, n, options):
    X, eta, rng = stream(p, n_matter, n, p)
    _compare(RAPRegressor(tuner=Mixture(**options)), X, eta + rng.normal(size=n))


def test_it_is_that_of_the_rule_for_classes():
    X, eta, rng = stream(5, 2, 400, 1)
    _compare(RAPClassifier(), X, (rng.random(400) < 1 / (1 + np.exp(-2 * eta))).astype(float), classes=[0.0, 1.0])


def _compare(model, X, y, **options):
    held, began = None, None
    for t, (selected, experts, learner) in enumerate(followed(model, X, y, **options)):
        if held is not None and experts.began.get(held[0]) != began:
            held = None
        held = chosen(held, experts, outline(learner)[1:], learner.feature_deviations()) if t > 0 else selected
        began = experts.began[held[0]]
        assert selected == held, t


def test_without_a_signal_it_has_no_features_and_with_one_it_has():
    """The last rows of each half: noise first, then one feature that matters."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 8))
    y = np.where(np.arange(400) < 200, 0.0, 3.0) * X[:, 3] + rng.normal(size=400)
    sizes = [len(experts.support(selected)) for selected, experts, _ in followed(RAPRegressor(), X, y)]
    assert np.mean(np.array(sizes[100:199]) == 0) > 0.9
    assert min(sizes[300:]) > 0


def test_after_a_change_to_few_features_it_is_less_often_the_model_without_any():
    """Ridges have the weight then, and of the lassos the one that predicts the mean may have lost the least."""
    n_empty = n_lead = 0
    for seed in range(60):
        stream = simulate(seed, lengths=(100, 40), densities=(0.8, 0.2))
        for selected, experts, _ in list(followed(RAPRegressor(), stream.X, stream.y))[110:]:
            lead = max((e for e in experts.weight if experts.is_sparse[e]), key=experts.weight.get)
            n_empty += experts.is_empty[selected]
            n_lead += experts.is_empty[lead]
    assert n_lead > 30
    assert n_empty < 0.8 * n_lead


def test_of_two_experts_that_predict_alike_the_first_stays():
    """Pure noise: the lead changes, the selected expert hardly."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 4)), rng.normal(size=400)
    choices = [selected for selected, _, _ in followed(RAPRegressor(), X, y)][100:]
    assert sum(a != b for a, b in zip(choices[1:], choices[:-1], strict=True)) < 15
