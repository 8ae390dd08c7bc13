"""The authors' R package: the oracle reproduces its runs, and our solver agrees with the oracle's."""

import numpy as np
import pytest

from oracles.replay import learner, run
from oracles.rrap import lasso, trajectory
from oracles.weights import weighted_mean, weighted_scatter, weights
from streamlasso.families import Gaussian
from streamlasso.memories import Forgetting, Window
from streamlasso.penalties import L1
from streamlasso.tuners import Fixed


@pytest.mark.parametrize("step_size", ["0.01", "0.025"])
@pytest.mark.parametrize("mode", ["exact", "approx"])
@pytest.mark.parametrize("name", ["gauss_p20", "diabetes_std"])
def test_the_oracle_reproduces_the_package(name, mode, step_size, shared_reference):
    folder = shared_reference / "rrap"
    rows = np.loadtxt(folder / f"{name}.csv", delimiter=",", skiprows=1)
    text = (folder / f"{name}_{mode}_eps{step_size}_burn1_tight.csv").read_text().replace("NA", "nan")
    expected = np.loadtxt(text.splitlines(), delimiter=",", skiprows=1)
    steps = trajectory(rows[:, 1:], rows[:, 0], r=0.95, step_size=float(step_size), exact=mode == "exact")
    for (lam, lam_max, beta), row in zip(steps, expected, strict=True):
        assert lam == pytest.approx(row[1], rel=1e-10, abs=1e-11)
        assert lam_max == pytest.approx(row[2], rel=1e-10, nan_ok=True)
        assert beta == pytest.approx(row[3:], abs=1e-9)


@pytest.mark.parametrize("lam", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("memory", [Window(40), Forgetting(0.95)], ids=str)
def test_our_solver_agrees_with_the_packages_lasso(memory, lam, make_stream):
    """On a covariance made by hand: S of the rows the memory holds."""
    stream = make_stream(Gaussian(), n=80, p=6, seed=7)
    setting = dict(family=Gaussian(), memory=memory, penalty=L1(), standardize=False)
    result = run(learner(stream, tuner=Fixed(lam), **setting), stream)
    Z, beta = np.column_stack([stream.y, stream.X]), np.zeros(6)
    for t in range(10, 80, 7):
        w = weights(memory, np.ones(t + 1))
        S = weighted_scatter(Z[: t + 1], w) / w.sum()
        beta = lasso(S[1:, 1:], S[1:, 0], lam, beta)
        mean = weighted_mean(Z[: t + 1], w)
        assert result.b(t) == pytest.approx(beta, rel=1e-9, abs=1e-11)
        assert result.b0(t) == pytest.approx(mean[0] - mean[1:] @ beta, rel=1e-9, abs=1e-11)
