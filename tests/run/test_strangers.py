"""Files nobody here wrote, with no option but the target: as good as the best baseline (`benchmarks/strangers.py`)."""

from importlib.resources import files

import numpy as np
import pytest


@pytest.mark.parametrize(
    ("name", "target", "season"),
    [
        ("airline-passengers.csv", "passengers", 12),
        ("trump_approval.csv.gz", "five_thirty_eight", 7),
        ("chick-weights.csv", "weight", None),
    ],
)
def test_no_worse_than_the_best_baseline(name, target, season, go):
    run, _, trace = go(files("river.datasets").joinpath(name), target)
    assert run.model.encoder.season == season
    y = trace["y"].to_numpy()
    losses = [trace[column].to_numpy()[1:].mean() for column in ("baseline", "persistence")]
    if season:
        before = np.concatenate([[np.nan], y[: season - 1], y[:-season]])
        losses.append(np.mean((y - before)[1:] ** 2 / 2))
    assert trace["loss"].to_numpy()[1:].mean() <= 1.02 * min(losses)
