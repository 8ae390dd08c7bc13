"""The tuners on the paper's non-stationary simulation: mean half squared error of each next row, from row 20 on.

The first rows are left out for all, since a fixed penalty is at a disadvantage there.
"""

import argparse

import numpy as np
from sklearn.base import clone

from common import report
from streamlasso import RAPRegressor, progressive
from streamlasso.simulate import DENSE, SPARSE, simulate
from streamlasso.tuners import LARS, SGD, Fixed, LogRMS

WARM_UP = 20
ORDERS = {"dense-sparse-dense": (DENSE, SPARSE, DENSE), "sparse-dense-sparse": (SPARSE, DENSE, SPARSE)}
MOVING = (SGD(0.001), SGD(0.005), SGD(0.01), LARS(0.005), LARS(0.01), LARS(0.025), LogRMS(0.05), LogRMS(0.1))
GRID = tuple(Fixed(float(f"{lam:.2g}")) for lam in np.geomspace(0.01, 1, 9))


def mean_loss(tuner, densities, n_draws, curvature="updated"):
    model = RAPRegressor(memory=0.95, tuner=tuner, curvature=curvature)
    streams = (simulate(seed, densities=densities) for seed in range(n_draws))
    return np.mean([progressive(clone(model), s.X, s.y).loss[WARM_UP:].mean() for s in streams])


def rows(order, densities, n_draws):
    """One row of the table per moving tuner, then the best fixed penalty and the noise floor."""
    for tuner in MOVING:
        losses = (mean_loss(tuner, densities, n_draws, curvature) for curvature in ("updated", "previous"))
        yield order, repr(tuner), *(f"{loss:.3f}" for loss in losses)
    fixed = {tuner: mean_loss(tuner, densities, n_draws) for tuner in GRID}
    best = min(fixed, key=fixed.get)
    yield order, f"best of {len(GRID)} fixed lams, in hindsight: {best!r}", f"{fixed[best]:.3f}", ""
    floor = np.mean([simulate(seed, densities=densities).floor[WARM_UP:].mean() for seed in range(n_draws)])
    yield order, "noise floor", f"{floor:.3f}", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=200)
    n_draws = parser.parse_args().draws
    columns = ("order", "tuner", "curvature updated", "curvature previous (Algorithm 1)")
    table = [row for order, densities in ORDERS.items() for row in rows(order, densities, n_draws)]
    report("tuners", [dict(zip(columns, row, strict=True)) for row in table])


if __name__ == "__main__":
    main()
