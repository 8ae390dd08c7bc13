"""Streams as files, and runs without the figure and the report, which take longer than a small stream."""

import datetime

import numpy as np
import pyarrow
import pytest
from pyarrow import csv, parquet

from streamlasso.run.options import Options
from streamlasso.run.run import Run


@pytest.fixture
def go(tmp_path):
    """Run to the end; the run, its predictions and its trace as tables."""

    def run(data, target="y", out="out", **options):
        made = Run(Options(str(data), target, tmp_path / out, **options))
        assert made.go()
        for file in (made.predictions, made.trace):
            getattr(file, "write_parquet", file.sync)()
        return made, read(made.options.predictions_path), parquet.read_table(tmp_path / out / "trace.parquet")

    return run


@pytest.fixture
def undrawn(monkeypatch):
    """Figures take longer than all else; where they are not the point, any bytes will do."""
    monkeypatch.setattr("streamlasso.run.results.drawn", lambda figure, form: b"a picture")
    monkeypatch.setattr("streamlasso.report.run.history.drawn", lambda figure, form: b"a picture")


def read(path):
    """Predictions, whatever their format."""
    if path.suffix == ".parquet":
        return parquet.read_table(path)
    if path.suffix == ".jsonl":
        from pyarrow import json

        return json.read_json(path)
    return csv.read_csv(path, parse_options=csv.ParseOptions(delimiter="\t" if path.suffix == ".tsv" else ","))


@pytest.fixture(scope="session")
def mixed():
    """A table with dates, numbers with holes, text with levels that come late, and a response that changes its mind."""

    def make(n=600, seed=0):
        rng = np.random.default_rng(seed)
        start = datetime.datetime(2024, 1, 1)
        x, z = rng.normal(size=(2, n))
        early, late = np.array(["Rome", "Oslo"]), np.array(["Rome", "Oslo", "Lima", "Pisa"])
        city = np.where(np.arange(n) < n // 2, early[rng.integers(2, size=n)], late[rng.integers(4, size=n)])
        y = x * np.where(np.arange(n) < 2 * n // 3, 1, -1) + 2.0 * (city == "Lima") + rng.normal(size=n)
        holes = (rng.random(n) < 0.05) & (np.arange(n) > n // 4)
        return pyarrow.table(
            {
                "when": [str(start + datetime.timedelta(hours=i)) for i in range(n)],
                "x": x,
                "z": pyarrow.array(z, mask=holes),
                "city": city,
                "y": y,
            }
        )

    return make


@pytest.fixture
def mixed_csv(mixed, tmp_path):
    csv.write_csv(mixed(), tmp_path / "mixed.csv")
    return tmp_path / "mixed.csv"
