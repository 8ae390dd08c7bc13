"""Ridges that began at different rows: posteriors in closed form, and by brute force how likely each beginning is."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import t as student

from oracles.mixtures import experts, is_ridge, mixture
from oracles.replay import Stream, run
from streamlasso import RAPRegressor, families, progressive
from streamlasso.core.base.state import n_pairs
from streamlasso.families import Binomial, Gamma, Gaussian, Poisson
from streamlasso.memories import Forgetting
from streamlasso.simulate import simulate
from streamlasso.tuners import Mixture

every_family = pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
SETTINGS = (
    {},
    {"standardize": False},
    {"fit_intercept": False},
    {"penalty_factor": np.array([1.0, 0.1, 2.0, 1.0])},
)
UNPENALISED = {"penalty_factor": np.array([1.0, 0.0, 2.0, 1.0])}
#: The first ridge exchanges its prior until so many rows have come.
RENEWED = 16


def tuner(runs):
    return Mixture(powers=(0.0, 0.5), factors=(), runs=runs, carry=False)


def boxed(family, n=90, p=4, seed=0):
    """Rows from a box, its corners and extreme responses first: nothing is ever clipped."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, p)) * np.arange(1, p + 1)
    X[0], X[1] = -np.arange(1, p + 1), np.arange(1, p + 1)
    y = family.sample(rng, 0.3 + X @ np.linspace(0.5, -0.5, p))
    y = np.clip(y, *np.quantile(y, [0.1, 0.9]))
    y[0], y[1] = y.min(), y.max()
    return Stream(X, y)


class Run:
    """One ridge in a state. A coefficient that is not there has no column."""

    def __init__(self, state, m, intercept=True):
        n = len(state[f"experts{m}/b"])
        P = np.zeros((n, n))
        P[np.tril_indices(n)] = state[f"experts{m}/P"]
        P += np.tril(P, -1).T
        self.there = np.diag(P) > 0
        self.P, self.b = P[np.ix_(self.there, self.there)], state[f"experts{m}/b"][self.there]
        assert (state[f"experts{m}/b"][~self.there] == 0).all()
        self.centre, self.intercept = state[f"experts{m}/centre"][1:], float(intercept)
        self.kappa, self.rows, self.shape, self.spread = state[f"experts{m}/prior"][:4]

    def design(self, X):
        return np.column_stack([np.full(len(X), self.intercept), X - self.centre])[:, self.there]

    def prior(self, X, y):
        """Of the rows since it began: the precision of what was known before, and that times its mean."""
        Z, A = self.design(X), np.linalg.inv(self.P)
        h = A @ self.b
        D, Dm = A - Z.T @ Z, h - Z.T @ y
        return D, Dm

    def squares(self, X, y, D, mean):
        """The sum that the posterior leaves, where this was known before."""
        errors, away = y - self.design(X) @ self.b, self.b - mean
        return errors @ errors + away @ D @ away

    def log_density(self, x, y):
        """Of the next response."""
        (z,) = self.design(x[None])
        scale = np.sqrt(self.spread / self.shape * (1 + z @ self.P @ z))
        return student.logpdf(y, 2 * self.shape, z @ self.b, scale)


def runs_of(model, state, intercept=True):
    """(place in the group, rows seen when it began, the ridge) of those that have begun."""
    (group,) = (g for g in model.groups if g.name == "restarting")
    first = next(m for m in range(len(model.experts)) if is_ridge(state, m))
    began = state["restarting/began"]
    return [(k, int(began[k]), Run(state, first + k, intercept)) for k in range(group.n) if began[k] >= 0]


def row_by_row(model, stream):
    for t in range(len(stream)):
        run(model, stream.part(t, t + 1))
        yield t, model.state()


# --- one of them ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given_settings", SETTINGS, ids=str)
def test_each_is_the_posterior_of_the_rows_since_it_began(given_settings):
    """Take the rows away, and what is left is a prior: a diagonal, positive precision around the mean response; for the
    first ridge around zero, whose prior changes with what is known of the stream."""
    stream = boxed(Gaussian())
    model = mixture(stream, family=Gaussian(), tuner=tuner(8), **given_settings)
    intercept = given_settings.get("fit_intercept", True)
    priors, left, starts, seen = {}, {}, {}, 0
    for t, state in row_by_row(model, stream):
        for k, since, ridge in runs_of(model, state, intercept):
            rows = slice(since, t + 1)
            D, Dm = ridge.prior(stream.X[rows], stream.y[rows])
            # What a prior that is worth a millionth of a row is, rows taken away again show to a few digits only.
            known = D, np.linalg.solve(D, Dm)
            if since:
                known = starts.setdefault((k, since), (np.linalg.inv(ridge.P), ridge.b))
            squares = ridge.squares(stream.X[rows], stream.y[rows], *known)
            unit = 1 / np.sqrt(np.diag(np.linalg.inv(ridge.P)))
            D, Dm = D * np.outer(unit, unit), Dm * unit
            assert D - np.diag(np.diag(D)) == pytest.approx(np.zeros_like(D), abs=1e-8), f"row {t}"
            assert (np.diag(D) > 0).all()
            mean = stream.y[:since].mean() if since and intercept else 0.0
            expected = np.zeros(len(Dm))
            expected[0] = mean * ridge.there[0]
            assert Dm == pytest.approx(D @ (expected / unit), abs=1e-8), f"row {t}"
            assert (ridge.rows, ridge.shape) == (t + 1 - since, 1 + (t + 1 - since) / 2)
            # The prior stays, and the squares that it leaves are the spread.
            if t + 1 >= max(since, RENEWED):
                key = k, since
                kept = np.diag(D) / unit**2
                prior = priors.setdefault(key, kept)
                assert (np.abs(kept - prior) <= 1e-5 * prior + 1e-8 / unit**2).all(), f"row {t}"
                before = left.setdefault(key, (ridge.spread, squares))
                assert ridge.spread - before[0] == pytest.approx((squares - before[1]) / 2, rel=1e-6, abs=1e-9)
            seen += 1
    assert seen > 500


@pytest.mark.parametrize("given_settings", [*SETTINGS[:2], UNPENALISED], ids=str)
def test_a_prior_is_worth_as_many_rows_for_each_feature(given_settings):
    """Of its deviation, or all of the common one; that of an unpenalised feature is worth next to none."""
    stream = boxed(Gaussian())
    model = mixture(stream, family=Gaussian(), tuner=tuner(8), **given_settings)
    factor, kinds = given_settings.get("penalty_factor", np.ones(4)), set()
    for t, state in row_by_row(model, stream):
        for _, since, ridge in runs_of(model, state):
            if since != t + 1 or since < 30:
                continue
            own = stream.X[:since].var(axis=0) if given_settings.get("standardize", True) else np.ones(4)
            rows = (1 / np.diag(ridge.P))[1:] / own
            used = factor > 0
            worth = rows[used] / factor[used] ** 2
            assert worth == pytest.approx(worth.mean(), rel=1e-9)
            assert (rows[~used] < 1e-5 * worth.mean()).all()
            kinds.add(round(ridge.kappa, 9))
    assert len(kinds) > 1


def test_between_two_rows_weights_move_by_students_densities():
    """And by nothing else, but that each start takes the same share from all."""
    stream = boxed(Gaussian(), n=120)
    model = mixture(stream, family=Gaussian(), tuner=tuner(8))
    before, compared = None, 0
    for t, state in row_by_row(model, stream):
        if before is not None:
            old = {(k, since): ridge for k, since, ridge in runs_of(model, before)}
            both = [key for k, since, _ in runs_of(model, state) if (key := (k, since)) in old]
            w, v = before["restarting/hedge/w"], state["restarting/hedge/w"]
            both = [key for key in both if w[key[0]] > 1e-200]
            gains = [np.log(v[k]) - np.log(w[k]) - old[k, s].log_density(stream.X[t], stream.y[t]) for k, s in both]
            assert gains == pytest.approx([gains[0]] * len(gains), abs=1e-7), f"row {t}"
            compared += len(both) - 1
        before = state
    assert compared > 400


def test_where_none_is_replaced_weights_are_the_posterior_of_the_beginnings():
    """The forward recursion of Adams and MacKay in logarithms: the joint probability of all responses so far and of the
    row at which the present began, never normalised."""
    n = 70
    stream = boxed(Gaussian(), n=n, seed=3)
    stream.y[40:] = -stream.y[40:]
    stream.y[:2] = stream.y.min(), stream.y.max()
    model = mixture(stream, family=Gaussian(), tuner=tuner(60))
    joint, before, hazards = {0: 0.0}, None, []
    for t, state in row_by_row(model, stream):
        known = {since: (k, ridge) for k, since, ridge in runs_of(model, state)}
        if before is not None:
            for since, ridge in before.items():
                joint[since] += ridge.log_density(stream.X[t], stream.y[t])
        for since in set(known) - set(joint):
            assert since == t + 1
            hazards.append(state["restarting/hedge/w"][known[since][0]])
            evidence = logsumexp(list(joint.values()))
            joint = {other: value + np.log1p(-hazards[-1]) for other, value in joint.items()}
            joint[since] = evidence + np.log(hazards[-1])
        total = logsumexp(list(joint.values()))
        found = {since: state["restarting/hedge/w"][k] for since, (k, _) in known.items()}
        expected = {since: np.exp(value - total) for since, value in joint.items()}
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-12), f"row {t}"
        before = {since: ridge for since, (_, ridge) in known.items()}
    assert len(hazards) == n // 2
    assert hazards == pytest.approx([hazards[0]] * len(hazards))


# --- other families ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [Binomial(), Poisson(), Gamma()], ids=str)
def test_of_other_families_each_row_is_an_implicit_step(family):
    """b minimises the loss of the row and the distance from where b was, in units of the precision then; to the
    precision the row adds its curvature there."""
    stream = boxed(family, n=60)
    model = mixture(stream, family=family, tuner=tuner(4))
    before, steps = None, 0
    for t, state in row_by_row(model, stream):
        old = {(k, since): ridge for k, since, ridge in runs_of(model, before)} if before else {}
        low, high = before["bounds/response"][2:] if before else (0.0, 0.0)
        for k, since, ridge in runs_of(model, state):
            if (k, since) not in old or (since == 0 and t < RENEWED):
                continue
            was = old[k, since]
            (z,) = was.design(stream.X[t : t + 1])
            at = float(z @ ridge.b)
            if not (low < z @ was.b < high and low + 1e-6 < at < high - 1e-6):
                continue
            pull = -float(family.slope(stream.y[t], at)) * was.P @ z
            assert ridge.b - was.b == pytest.approx(pull, rel=1e-5, abs=1e-8), f"row {t}"
            added = np.linalg.inv(ridge.P) - np.linalg.inv(was.P)
            expected = float(family.curvature(stream.y[t], at)) * np.outer(z, z)
            assert added == pytest.approx(expected, rel=1e-5, abs=1e-6)
            steps += 1
        before = state
    assert steps > 60


@pytest.mark.parametrize("family", [Binomial(), Poisson()], ids=str)
def test_other_families_come_close_to_their_posterior_mode(family):
    """Each row is expanded once, where it was first fitted: the loss and prior together lose little."""
    stream = boxed(family, n=180)
    model = mixture(stream, family=family, tuner=tuner(12))
    starts, judged = {}, 0
    for t, state in row_by_row(model, stream):
        for k, since, ridge in runs_of(model, state):
            if since == t + 1:
                starts[k] = ridge
            if t + 1 < 180 or t + 1 - since < 12 or since == 0:
                continue
            judged += 1
            precision, empty = np.linalg.inv(starts[k].P), starts[k].b
            Z = ridge.design(stream.X[since:])

            def objective(b, Z=Z, precision=precision, empty=empty, since=since):
                return np.sum(family.loss(stream.y[since:], Z @ b)) + 0.5 * (b - empty) @ precision @ (b - empty)

            best = minimize(objective, empty, method="BFGS").fun
            assert best - 1e-6 <= objective(ridge.b) <= best + 0.1 * (objective(empty) - best)
    assert judged > 3


# --- any stream -------------------------------------------------------------------------------------------------------


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
    state = model.state()
    for _, _, ridge in runs_of(model, state):
        scale = np.sqrt(np.diag(ridge.P))
        assert np.linalg.eigvalsh(ridge.P / np.outer(scale, scale)).min() >= -1e-9
    assert all(len(state[name]) == n_pairs(5) for name in state if name.endswith("/P"))


@pytest.mark.parametrize("value", [0.0, 5.0])
def test_a_feature_that_never_varied_waits_for_the_next_to_begin(value):
    stream = boxed(Gaussian())
    stream.X[:40, 2] = value
    model = mixture(stream, family=Gaussian(), tuner=tuner(60))
    run(model, stream)
    state = model.state()
    for _, since, ridge in runs_of(model, state):
        assert ridge.there[3] == (since > 40)
    found = experts(model)
    assert np.isfinite(found[:, 0]).all(axis=1).sum() == 1 + 1 + 45 + 1, (
        "a memory, the first ridge, those since, and the one that drifts"
    )


def test_there_are_as_many_as_the_tuner_says_where_memories_may_restart(make_stream):
    stream = make_stream(Gaussian(), n=30)
    for memory, of, n in (
        (None, Mixture(), 8),
        (None, Mixture(runs=4), 4),
        (None, Mixture(runs=0), 0),
        (Forgetting(0.9), Mixture(), 0),
    ):
        model = mixture(stream, family=Gaussian(), memory=memory, tuner=of)
        assert [group.kind for group in model.experts].count("ridge") == (n + 1 if n else 0)
        assert ("restarting" in model.group_weights) == ("drifting" in model.group_weights) == (n > 0)


# --- what it is for ---------------------------------------------------------------------------------------------------


def test_one_that_began_after_a_change_leads_soon_after_it():
    """Of the weight of all, forty rows after an abrupt change: those that began within ten rows of it."""
    shares = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(240, 6))
        beta = np.where(np.arange(240) < 200, 1.0, -1.0)[:, None] * rng.normal(size=6)
        stream = Stream(X, np.sum(X * beta, axis=1) + 0.5 * rng.normal(size=240))
        model = mixture(stream, family=Gaussian())
        run(model, stream)
        state = model.state()
        shares.append(sum(state["restarting/hedge/w"][k] for k, s, _ in runs_of(model, state) if 190 <= s <= 210))
    error = np.std(shares, ddof=1) / np.sqrt(12)
    assert np.mean(shares) - 2 * error > 0.5, f"{np.mean(shares):.3f} ({error:.3f})"


def test_it_predicts_from_the_fifth_row_on():
    """On the simulation of the paper rows 5 to 9 cost less than the running mean would, by three standard errors."""
    gains = []
    for seed in range(30):
        stream = simulate(seed, lengths=(12,), densities=(0.2,))
        ours = progressive(RAPRegressor(), stream.X, stream.y, progress=False).loss[4:9]
        mean = (np.cumsum(stream.y) - stream.y)[4:9] / np.arange(4, 9)
        gains.append(np.mean(0.5 * (stream.y[4:9] - mean) ** 2) - np.mean(ours))
    error = np.std(gains, ddof=1) / np.sqrt(30)
    assert np.mean(gains) > 3 * error, f"{np.mean(gains):.3f} ({error:.3f})"
