"""The same window through other packages' solvers: lam is their alpha (or 1 / (C omega)), to the digits they reach."""

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet as SkElasticNet
from sklearn.linear_model import GammaRegressor, Lasso, LogisticRegression, PoissonRegressor
from sklearn.linear_model import Ridge as SkRidge

from oracles.replay import learner, problems, run
from oracles.solver import solve
from streamlasso import families
from streamlasso.families import Binomial, Gamma, Gaussian, Poisson
from streamlasso.memories import Forgetting, Window
from streamlasso.penalties import L1, ElasticNet, Ridge
from streamlasso.tuners import Fixed
from support.peers import sparse_logistic

LAM = 0.07
MEMORIES = [Window(60), Forgetting(0.97)]


def fitted(stream, family, memory, penalty, **setting):
    setting = dict(family=family, memory=memory, penalty=penalty, history=200, **setting)
    result = run(learner(stream, tuner=Fixed(LAM), **setting), stream)
    *_, problem = problems(stream, **{name: value for name, value in setting.items() if name != "history"})
    return result.coef[-1], problem


def theirs(model, problem, X=None, y=None):
    model.fit(problem.X if X is None else X, problem.y if y is None else y, sample_weight=problem.w)
    return np.append(model.intercept_, np.ravel(model.coef_))


@pytest.mark.parametrize("memory", MEMORIES, ids=str)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    "penalty,model",
    [
        (L1(), Lasso(alpha=LAM, tol=1e-14, max_iter=100_000)),
        (ElasticNet(0.4), SkElasticNet(alpha=LAM, l1_ratio=0.4, tol=1e-14, max_iter=100_000)),
    ],
    ids=["lasso", "elastic net"],
)
def test_gaussian_sparse(penalty, model, fit_intercept, memory, make_stream):
    stream = make_stream(Gaussian(), n=100, p=8, weights=True)
    ours, problem = fitted(stream, Gaussian(), memory, penalty, fit_intercept=fit_intercept, standardize=False)
    model.set_params(fit_intercept=fit_intercept)
    assert ours == pytest.approx(theirs(model, problem), rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("memory", MEMORIES, ids=str)
def test_gaussian_standardised(memory, make_stream):
    """Scaling the penalty is the same as standardising the data."""
    stream = make_stream(Gaussian(), n=100, p=8, weights=True)
    stream.X *= np.logspace(-4, 4, 8)
    ours, problem = fitted(stream, Gaussian(), memory, L1())
    model = Lasso(alpha=LAM, tol=1e-14, max_iter=100_000)
    scaled = theirs(model, problem, X=(problem.X - problem.mean) / problem.sd)
    assert ours[1:] * problem.sd == pytest.approx(scaled[1:], rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("memory", MEMORIES, ids=str)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_gaussian_ridge(fit_intercept, memory, make_stream):
    stream = make_stream(Gaussian(), n=100, p=8, weights=True)
    ours, problem = fitted(stream, Gaussian(), memory, Ridge(), fit_intercept=fit_intercept, standardize=False)
    model = SkRidge(alpha=LAM * problem.omega, fit_intercept=fit_intercept, solver="cholesky")
    assert ours == pytest.approx(theirs(model, problem), rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("memory", MEMORIES, ids=str)
def test_sparse_logistic_without_intercept(memory, make_stream):
    stream = make_stream(Binomial(), n=100, p=6, weights=True)
    ours, problem = fitted(stream, Binomial(), memory, L1(), fit_intercept=False, standardize=False)
    strength = 1 / (LAM * problem.omega)
    model = sparse_logistic(C=strength, solver="liblinear", fit_intercept=False, tol=1e-12, max_iter=10_000)
    assert ours == pytest.approx(theirs(model, problem), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("memory", MEMORIES, ids=str)
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_logistic_sparse(l1_ratio, memory, make_stream):
    stream = make_stream(Binomial(), n=100, p=6, weights=True)
    ours, problem = fitted(stream, Binomial(), memory, ElasticNet(l1_ratio), standardize=False)
    strength = 1 / (LAM * problem.omega)
    model = sparse_logistic(l1_ratio, C=strength, solver="saga", tol=1e-11, max_iter=100_000)
    assert ours == pytest.approx(theirs(model, problem), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("memory", MEMORIES, ids=str)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_logistic_ridge(fit_intercept, memory, make_stream):
    stream = make_stream(Binomial(), n=100, p=6, weights=True)
    ours, problem = fitted(stream, Binomial(), memory, Ridge(), fit_intercept=fit_intercept, standardize=False)
    strength = 1 / (LAM * problem.omega)
    model = LogisticRegression(C=strength, solver="newton-cholesky", tol=1e-12, fit_intercept=fit_intercept)
    assert ours == pytest.approx(theirs(model, problem), rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("memory", MEMORIES, ids=str)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("family,model", [(Poisson(), PoissonRegressor), (Gamma(), GammaRegressor)], ids=str)
def test_counts_and_durations_ridge(family, model, fit_intercept, memory, make_stream):
    stream = make_stream(family, n=100, p=6, weights=True)
    ours, problem = fitted(stream, family, memory, Ridge(), fit_intercept=fit_intercept, standardize=False)
    model = model(alpha=LAM, solver="newton-cholesky", tol=1e-12, max_iter=1000, fit_intercept=fit_intercept)
    assert ours == pytest.approx(theirs(model, problem), rel=1e-7, abs=1e-8)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("penalty", [L1(), ElasticNet(0.6)], ids=str)
@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_skglm(family, penalty, skglm, make_stream):
    stream = make_stream(family, n=100, p=6)
    ours, problem = fitted(stream, family, Window(60), penalty, standardize=False)
    name = {"Gaussian": "Quadratic", "Binomial": "Logistic"}.get(type(family).__name__, type(family).__name__)
    datafit = getattr(skglm.datafits, name)()
    y = 2 * problem.y - 1 if name == "Logistic" else problem.y
    solver = skglm.solvers.ProxNewton(tol=1e-12, fit_intercept=True, max_iter=200)
    cost = skglm.penalties.L1_plus_L2(LAM, penalty.l1_ratio)
    b = solver.solve(problem.X.copy(order="F"), y, datafit, cost)[0]
    assert ours == pytest.approx(np.append(b[-1], b[:-1]), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("penalty", [L1(), ElasticNet(0.6), Ridge()], ids=str)
@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_coordinate_descent(family, penalty, make_stream):
    """The slow solver of these tests, so that everything checked against it stands on the packages above."""
    stream = make_stream(family, n=60, p=6, weights=True)
    ours, problem = fitted(stream, family, Forgetting(0.97), penalty, penalty_factor=np.array([0.3, 2, 1, 1, 0.5, 1.0]))
    assert ours == pytest.approx(np.append(*solve(problem, LAM)), rel=1e-7, abs=1e-8)
