"""The files of a run, and how to read them again. Each appears whole or not at all.

networks.parquet : one row per edge: subject, t, source, target, strength (signed); other pairs are 0
nodes.parquet : one row per region and time point: subject, t, seconds, condition, region, lam, lam_max, loss, n_active
lam.csv : the mean lam and its band; edges.csv : the networks that are drawn; run.json : settings, regions, events
"""

from __future__ import annotations

import io
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyarrow import parquet

from streamlasso._csv import csv_bytes
from streamlasso._files import write_whole
from streamlasso.network.report.group import Group
from streamlasso.network.report.tables import network_table, node_table
from streamlasso.network.results import SubjectResult
from streamlasso.network.subjects import RUN_FILE

NETWORKS, NODES, LAM, EDGES, REPORT = "networks.parquet", "nodes.parquet", "lam.csv", "edges.csv", "report.html"


def write_tables(out: Path, group: Group, lam: pyarrow.Table, edges: pyarrow.Table) -> None:
    """All tables, after deleting the report and settings of an earlier run, which would not be about them."""
    for name in (RUN_FILE, REPORT):
        (out / name).unlink(missing_ok=True)
    _write_parquet(out / NETWORKS, pyarrow.concat_tables([network_table(subject) for subject in group.subjects]))
    _write_parquet(out / NODES, pyarrow.concat_tables([node_table(group, subject) for subject in group.subjects]))
    _write_csv(out / LAM, lam)
    _write_csv(out / EDGES, edges)


def write_settings(out: Path, group: Group, settings: dict[str, Any]) -> None:
    """run.json, written last: a folder that has one is complete."""
    coords = group.coords
    run = {
        **settings,
        "subjects": {subject.subject: _described(subject) for subject in group.subjects},
        "regions": group.regions,
        "coords": None if coords is None else coords.round(3).tolist(),
    }
    write_whole(out / RUN_FILE, (json.dumps(run, indent=1) + "\n").encode())


def _described(subject: SubjectResult) -> dict[str, Any]:
    return dict(
        time_points=len(subject.t),
        regions=list(subject.regions),
        events=[asdict(event) for event in subject.events],
        notes=list(subject.notes),
    )


def _write_parquet(path: Path, table: pyarrow.Table) -> None:
    buffer = io.BytesIO()
    parquet.write_table(table, buffer, compression="zstd")
    write_whole(path, buffer.getvalue())


def _write_csv(path: Path, table: pyarrow.Table) -> None:
    write_whole(path, csv_bytes(table))


def read_networks(folder: str | os.PathLike[str], subject: str | None = None) -> np.ndarray:
    """(time, p, p): a subject's networks from the output of `streamlasso network`; None is the first subject.

    >>> import tempfile
    >>> import numpy as np
    >>> from streamlasso.network import read_networks
    >>> from streamlasso.network.recorded import run_network
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/one.npy", np.random.default_rng(0).normal(size=(30, 4)))
    ...     _ = run_network([Path(folder, "one.npy")], Path(folder, "out"))
    ...     read_networks(f"{folder}/out").shape
    (30, 4, 4)
    """
    subjects = json.loads((Path(folder) / RUN_FILE).read_text(encoding="utf-8"))["subjects"]
    subject = next(iter(subjects)) if subject is None else subject
    if subject not in subjects:
        raise ValueError(f"{folder} has no subject {subject}: use one of {', '.join(subjects)}")
    regions, n = subjects[subject]["regions"], subjects[subject]["time_points"]
    table = parquet.read_table(Path(folder) / NETWORKS, filters=[("subject", "=", subject)])
    times = parquet.read_table(Path(folder) / NODES, columns=["t"], filters=[("subject", "=", subject)])["t"]
    row = {t: k for k, t in enumerate(np.unique(times.to_numpy()).tolist())}
    place = {region: k for k, region in enumerate(regions)}
    networks = np.zeros((n, len(regions), len(regions)), dtype=np.float32)
    t = [row[value] for value in table["t"].to_pylist()]
    i, j = ([place[name] for name in table[side].to_pylist()] for side in ("source", "target"))
    networks[t, i, j] = networks[t, j, i] = table["strength"].to_numpy()
    return networks
