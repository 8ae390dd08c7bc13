"""Ridge experts: the posterior of a Gaussian prior that the stream before their restart has made."""

import numpy as np
import pytest
from scipy.optimize import minimize

from oracles.mixtures import experts, mixture
from oracles.replay import Stream, run
from streamlasso import families
from streamlasso.core.state import n_pairs
from streamlasso.families import Binomial, Gaussian, Poisson
from streamlasso.tuners import Mixture

KAPPAS = (1.0, 0.01, 1.0)
TUNER = Mixture(powers=(0.0, 0.5), factors=(), starts=1, ridges=3, carry=False)
#: Of three ridges one restarts every so many rows.
EVERY = 8
every_family = pytest.mark.parametrize("family", families.EXAMPLES, ids=str)


def boxed(family, n=90, p=4, seed=0):
    """Rows from a box, its corners and extreme responses first: nothing is ever clipped."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, p)) * np.arange(1, p + 1)
    X[0], X[1] = -np.arange(1, p + 1), np.arange(1, p + 1)
    y = family.sample(rng, 0.3 + X @ np.linspace(0.5, -0.5, p))
    y = np.clip(y, *np.quantile(y, [0.1, 0.9]))
    y[0], y[1] = y.min(), y.max()
    return Stream(X, y)


def ridges(model):
    return [m for m, group in enumerate(model.experts) if group.kind == "ridge" and model.memories[m] is not None]


def averaged(model):
    """(b0, b) of the mixture, without experts of next to no weight."""
    weight, found = model.weights, np.nan_to_num(experts(model))
    weight = np.where(weight < 1e-3 * weight.max(), 0.0, weight)
    return np.tensordot(weight / weight.sum(), found[:, : weight.shape[1]], 2)


def posterior(stream, since, until, kappa, factor, start, standardize=True, intercept=True):
    """(b0, b) that minimises squares + prior, with means and deviations of the rows before `since`.

    The prior is around `start`, a model; None is the mean response.
    """
    before = stream.X[:since]
    centre = before.mean(axis=0) if intercept else np.zeros(stream.X.shape[1])
    deviation = before.std(axis=0)
    if not standardize:
        deviation = np.full_like(deviation, np.sqrt(np.mean(deviation[deviation > 0] ** 2)))
    Z = np.column_stack([np.full(until - since, float(intercept)), stream.X[since:until] - centre])
    D = kappa * np.append(1.0, np.maximum(factor, 1e-3) ** 2 * deviation**2)
    if start is None:
        start = np.append(stream.y[:since].mean() * intercept, np.zeros(stream.X.shape[1]))
    else:
        start = np.append((start[0] + start[1:] @ centre) * intercept, start[1:])
    b = start + np.linalg.solve(np.diag(D) + Z.T @ Z, Z.T @ (stream.y[since:until] - Z @ start))
    return np.append(b[0] - b[1:] @ centre, b[1:])


@pytest.mark.parametrize(
    "given_settings",
    [
        {},
        {"standardize": False},
        {"fit_intercept": False},
        {"penalty_factor": np.array([1.0, 0.0, 2.0, 1.0])},
    ],
    ids=str,
)
def test_it_is_the_posterior_of_the_rows_since_its_restart(given_settings):
    stream = boxed(Gaussian())
    model = mixture(stream, family=Gaussian(), tuner=TUNER, **given_settings)
    factor = given_settings.get("penalty_factor", np.ones(4))
    seen, starts = set(), {}
    for t in range(90):
        run(model, stream.part(t, t + 1))
        state, found = model.state(), experts(model)
        for m in ridges(model):
            since, kappa = model.memories[m][1], state[f"experts{m}/prior"][0]
            turn = since // EVERY % len(KAPPAS)
            if since == t + 1:
                starts[m] = averaged(model) if turn == 0 else None
            expected = posterior(
                stream,
                since,
                t + 1,
                kappa,
                factor,
                starts[m],
                given_settings.get("standardize", True),
                given_settings.get("fit_intercept", True),
            )
            assert found[m, 0] == pytest.approx(expected, rel=1e-7, abs=1e-9), f"row {t}"
            assert state[f"experts{m}/prior"][1] == t + 1 - since
            assert kappa == KAPPAS[turn]
            seen.add(turn)
    assert seen == {0, 1, 2}


@pytest.mark.parametrize("family", [Binomial(), Poisson()], ids=str)
def test_other_families_come_close_to_their_posterior_mode(family):
    """Each row is expanded once, where it was first fitted: the loss and prior together lose little."""
    stream = boxed(family, n=180)  # the last restart, at row 168, begins at the mean
    model = mixture(stream, family=family, tuner=Mixture(powers=(0.0, 0.5), factors=(), starts=1, ridges=1))
    run(model, stream)
    (m,) = ridges(model)
    since, state, found = model.memories[m][1], model.state(), experts(model)[m, 0]
    centre, deviation = stream.X[:since].mean(axis=0), stream.X[:since].std(axis=0)
    start, kappa = family.link(stream.y[:since].mean()), state[f"experts{m}/prior"][0]

    def objective(b):
        eta = b[0] + (stream.X[since:] - centre) @ b[1:]
        prior = (b[0] - start) ** 2 + np.sum((deviation * b[1:]) ** 2)
        return np.sum(family.loss(stream.y[since:], eta)) + 0.5 * kappa * prior

    ours = np.append(found[0] + centre @ found[1:], found[1:])
    empty = np.append(start, np.zeros(4))
    best = minimize(objective, empty, method="BFGS").fun
    assert best <= objective(ours) <= best + 0.1 * (objective(empty) - best)


@every_family
def test_the_inverse_stays_symmetric_and_positive(family):
    """After thousands of rows, duplicates and a feature that hardly moves."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 5))
    X[:, 1] = X[:, 0]
    X[:, 2] = 1e-6 * X[:, 2] + 5
    X[:200, 3] = 0.0
    y = np.maximum(family.sample(rng, 0.4 * X[:, 0]), 1e-9 if family.name == "gamma" else -np.inf)
    stream = Stream(X, y)
    model = mixture(stream, family=family)
    run(model, stream)
    for m in ridges(model):
        packed = model.state()[f"experts{m}/P"]
        assert len(packed) == n_pairs(5)
        P = np.zeros((6, 6))
        P[np.tril_indices(6)] = packed
        P += np.tril(P, -1).T
        scale = np.sqrt(np.maximum(np.diag(P), 1e-300))
        assert (np.diag(P) >= 0).all()
        assert np.linalg.eigvalsh(P / np.outer(scale, scale)).min() >= -1e-9


def test_it_predicts_from_the_third_row_after_a_change():
    """Few rows after every coefficient has turned round, of all groups that restarted ridges have the least error.

    Restarts at rows 208 and 212 begin at the mean; every third, as that at row 204, at the model of the mixture.
    """
    errors = {"lasso": [], "ridge": []}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(214, 8))
        beta = np.where(np.arange(214) < 208, 1.0, -1.0)[:, None] * np.ones(8)
        stream = Stream(X, np.sum(X * beta, axis=1) + 0.1 * rng.normal(size=214))
        model = mixture(stream, family=Gaussian())
        run(model, stream)
        found = experts(model)
        x = rng.normal(size=(200, 8))
        truth = -x.sum(axis=1)
        for kind, all_errors in errors.items():
            young = [
                m for m, g in enumerate(model.experts) if g.kind == kind and (model.memories[m] or (0, 0))[1] >= 208
            ]
            for b in (found[m, k] for m in young for k in range(model.experts[m].n)):
                all_errors.append(np.mean((b[0] + x @ b[1:] - truth) ** 2))
    assert np.mean(errors["ridge"]) < 0.7 * np.mean(errors["lasso"])


def test_a_feature_that_never_varied_waits_for_the_next_restart():
    stream = boxed(Gaussian())
    stream.X[:40, 2] = 0.0
    model = mixture(stream, family=Gaussian(), tuner=TUNER)
    run(model, stream)
    for m in ridges(model):
        assert (experts(model)[m, 0, 3] == 0) == (model.memories[m][1] <= 40)


def test_there_are_as_many_as_the_tuner_says_where_memories_restart(make_stream):
    stream = make_stream(Gaussian(), n=30)
    for memory, tuner, n in ((None, Mixture(), 8), (None, Mixture(ridges=2), 2), (None, Mixture(starts=0), 0)):
        kinds = [group.kind for group in mixture(stream, family=Gaussian(), memory=memory, tuner=tuner).experts]
        assert kinds.count("ridge") == n


@pytest.mark.parametrize("family", [Gaussian(), Binomial(), Poisson()], ids=str)
def test_of_classes_the_level_may_move_where_the_coefficients_stay(family):
    """The first number of P is the inverse of the precision of the intercept's prior, as long as no row has come."""
    stream = boxed(family, n=200)
    model = mixture(stream, family=family, tuner=TUNER)
    levels = {}
    for t in range(200):
        run(model, stream.part(t, t + 1))
        for m in ridges(model):
            if model.memories[m][1] == t + 1:
                state, turn = model.state(), (t + 1) // EVERY % 3
                levels.setdefault(turn, set()).add((1 / state[f"experts{m}/P"][0], state[f"experts{m}/prior"][0]))
    assert set(levels) == {0, 1, 2}
    free = type(family) is Binomial
    for turn, found in levels.items():
        for precision, kappa in found:
            assert precision == pytest.approx(0.1 if free and turn == 0 else kappa)
