"""The Gaussian process finds the minimum that a fine grid finds, and says what to install where it is missing."""

import numpy as np
import pytest

from streamlasso.cli import main
from streamlasso.reproduce import smbo
from streamlasso.reproduce.nonstationary import draw
from streamlasso.reproduce.offline import LEAST_SHARE, criterion
from streamlasso.reproduce.smbo import smbo_lam


@pytest.mark.parametrize("setting", [{}, {"r": 0.95, "looks": 4}])
@pytest.mark.parametrize("i", [0, 1])
def test_ten_evaluations_come_near_the_best_of_a_fine_grid(i, setting):
    stream = draw(i, 0, "dense-sparse-dense", "gaussian")
    lam_max, losses = criterion(stream.X, stream.y, stream.family, **setting)
    grid = losses(np.geomspace(1, LEAST_SHARE, 100) * lam_max)
    found = losses(np.array([smbo_lam(stream.X, stream.y, stream.family, **setting)]))[0]
    assert grid.min() * (1 - 1e-6) <= found * (1 + 1e-3)
    assert found - grid.min() < 0.005 * (grid.max() - grid.min())


def test_the_search_is_the_same_each_time():
    stream = draw(0, 0, "sparse-dense-sparse", "gaussian")
    one, same = (smbo_lam(stream.X, stream.y, stream.family) for _ in range(2))
    assert one == same


def test_without_the_package_the_extra_is_named_before_any_work(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(smbo, "find_spec", lambda name: None)
    for study in ("nonstationary", "all"):
        assert main(["reproduce", study, "--n", "2", "--out", str(tmp_path / "out")]) == 2
        printed = capsys.readouterr()
        assert not printed.out
        assert printed.err.count("\n") == 1
        assert 'pip install "streamlasso[reproduce]"' in printed.err
    assert not (tmp_path / "out").exists()
