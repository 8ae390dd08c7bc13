"""What a run leaves behind, and how to read it again. Every file appears whole or not at all.

networks.parquet : an edge a row: subject, t, source, target, strength (signed); pairs that are not there are 0
nodes.parquet : a region at a time point a row: subject, t, seconds, condition, region, lam, lam_max, loss, n_active
lam.csv : the mean lam and its band; edges.csv : the networks that are drawn; run.json : the settings, regions, events
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
from pyarrow import csv, parquet

from streamlasso._files import write_whole
from streamlasso.network.report.group import Group
from streamlasso.network.results import NODE_COLUMNS, Followed
from streamlasso.network.subjects import RUN

NETWORKS, NODES, LAM, EDGES, REPORT = "networks.parquet", "nodes.parquet", "lam.csv", "edges.csv", "report.html"


def write_tables(out: Path, group: Group, lam: pyarrow.Table, edges: pyarrow.Table) -> None:
    """All tables, before anything is drawn. An earlier report would not be about them."""
    for name in (RUN, REPORT):
        (out / name).unlink(missing_ok=True)
    write_parquet(out / NETWORKS, pyarrow.concat_tables([network_table(subject) for subject in group.subjects]))
    write_parquet(out / NODES, pyarrow.concat_tables([node_table(group, subject) for subject in group.subjects]))
    write_csv(out / LAM, lam)
    write_csv(out / EDGES, edges)


def write_settings(out: Path, group: Group, settings: dict[str, Any]) -> None:
    """run.json, written last: a folder that has one is whole."""
    coords = group.coords
    run = {
        **settings,
        "subjects": {subject.subject: _of_subject(subject) for subject in group.subjects},
        "regions": group.regions,
        "coords": None if coords is None else coords.round(3).tolist(),
    }
    write_whole(out / RUN, (json.dumps(run, indent=1) + "\n").encode())


def _of_subject(subject: Followed) -> dict[str, Any]:
    return dict(
        time_points=len(subject.t),
        regions=list(subject.regions),
        events=[asdict(event) for event in subject.events],
        notes=list(subject.notes),
    )


def network_table(subject: Followed) -> pyarrow.Table:
    """The edges over time, a row each."""
    edges, names = subject.edges, pyarrow.array(subject.regions, pyarrow.string())

    def named(index: np.ndarray) -> pyarrow.Array:
        return pyarrow.DictionaryArray.from_arrays(pyarrow.array(index, pyarrow.int32()), names)

    return pyarrow.table(
        {
            "subject": _repeated(subject.subject, len(edges.t)),
            "t": subject.t[edges.t].astype(np.int32),
            "source": named(edges.i),
            "target": named(edges.j),
            "strength": edges.strength,
        }
    ).unify_dictionaries()


def node_table(group: Group, subject: Followed) -> pyarrow.Table:
    """lam and its company, a row a region and time point."""
    n, p = subject.lam.shape
    region = pyarrow.DictionaryArray.from_arrays(
        pyarrow.array(np.tile(np.arange(p, dtype=np.int32), n)), pyarrow.array(subject.regions, pyarrow.string())
    )
    seconds = np.full(n, np.nan) if subject.seconds is None else subject.seconds
    conditions = group.conditions(subject)
    return pyarrow.table(
        {
            "subject": _repeated(subject.subject, n * p),
            "t": np.repeat(subject.t, p).astype(np.int32),
            "seconds": pyarrow.array(np.repeat(seconds, p), from_pandas=True),
            "condition": pyarrow.array(np.repeat(conditions, p).tolist(), pyarrow.string()).dictionary_encode(),
            "region": region,
            **{name: np.ascontiguousarray(getattr(subject, name)).ravel() for name in NODE_COLUMNS},
        }
    )


def _repeated(word: str, n: int) -> pyarrow.Array:
    return pyarrow.DictionaryArray.from_arrays(pyarrow.array(np.zeros(n, np.int32)), pyarrow.array([word]))


def write_parquet(path: Path, table: pyarrow.Table) -> None:
    written = io.BytesIO()
    parquet.write_table(table, written, compression="zstd")
    write_whole(path, written.getvalue())


def write_csv(path: Path, table: pyarrow.Table) -> None:
    written = io.BytesIO()
    csv.write_csv(table, written)
    write_whole(path, written.getvalue())


def read_networks(folder: str | os.PathLike[str], subject: str | None = None) -> np.ndarray:
    """(time, p, p): a subject's networks, as `streamlasso network` wrote them; None is the first subject.

    >>> import tempfile
    >>> import numpy as np
    >>> from streamlasso.network.recorded import run_network
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/one.npy", np.random.default_rng(0).normal(size=(30, 4)))
    ...     _ = run_network([Path(folder, "one.npy")], Path(folder, "out"))
    ...     read_networks(f"{folder}/out").shape
    (30, 4, 4)
    """
    run = json.loads((Path(folder) / RUN).read_text())
    subject = next(iter(run["subjects"])) if subject is None else subject
    if subject not in run["subjects"]:
        raise ValueError(f"{subject}: the subjects in {folder} are {', '.join(run['subjects'])}")
    told = run["subjects"][subject]
    table = parquet.read_table(Path(folder) / NETWORKS, filters=[("subject", "=", subject)])
    times = parquet.read_table(Path(folder) / NODES, columns=["t"], filters=[("subject", "=", subject)])["t"]
    row = {t: k for k, t in enumerate(np.unique(times.to_numpy()).tolist())}
    place = {region: k for k, region in enumerate(told["regions"])}
    networks = np.zeros((told["time_points"], len(place), len(place)), dtype=np.float32)
    t = [row[value] for value in table["t"].to_pylist()]
    i, j = ([place[name] for name in table[side].to_pylist()] for side in ("source", "target"))
    networks[t, i, j] = networks[t, j, i] = table["strength"].to_numpy()
    return networks
