"""The files of a run, and how to read them again. Each appears whole or not at all.

networks.parquet : one row per edge: subject, t, source, target, strength (signed); other pairs are 0
nodes.parquet : one row per region and time point: subject, t, seconds, condition, region, lam, lam_max, loss, n_active
lam.csv : the mean lam and its band; edges.csv : the networks that are drawn; run.json : settings, regions, events
lam and networks (.png, .svg) : the figures of these two; report.html : the page
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyarrow import parquet

from streamlasso import __version__
from streamlasso._csv import csv_bytes
from streamlasso._files import remove_leftovers_in, write_whole
from streamlasso.network.estimator import sorted_edges
from streamlasso.network.group import Group, nan_mean
from streamlasso.network.options import Model
from streamlasso.network.page import write_page_of
from streamlasso.network.results import NODE_COLUMNS, SubjectResult
from streamlasso.network.subjects import RUN_FILE
from streamlasso.report.network.figures import draw_lam, draw_networks
from streamlasso.report.page import write_figure

NETWORKS, NODES, LAM, EDGES, REPORT = "networks.parquet", "nodes.parquet", "lam.csv", "edges.csv", "report.html"
EDGE_SCHEMA = pyarrow.schema(
    [*((name, pyarrow.string()) for name in ("picture", "source", "target", "sign")), ("strength", pyarrow.float64())]
)


def write_run(out: Path, group: Group, model: Model, sources: dict[str, Any]) -> None:
    """Write the run of a group to `out`, which is created if needed: tables, figures, the page, the settings.

    sources : where the data came from, for run.json and the page
    """
    out.mkdir(parents=True, exist_ok=True)
    remove_leftovers_in(out)
    # The report and settings of an earlier run would not be about these tables. run.json is written last: a folder
    # that has one is complete.
    for name in (RUN_FILE, REPORT):
        (out / name).unlink(missing_ok=True)
    lam, pictures = lam_table(group), group.mean_pictures()
    edges = edge_table(pictures, group.regions)
    for path, tables in ((NETWORKS, map(network_table, group.subjects)), (NODES, node_tables(group))):
        _write_parquet(out / path, pyarrow.concat_tables(tables))
    write_whole(out / LAM, csv_bytes(lam))
    write_whole(out / EDGES, csv_bytes(edges))
    figures = {
        "lam": draw_lam(lam, group.events, len(group.subjects)),
        "networks": draw_networks(pictures, group.regions, group.coords),
    }
    for name, figure in figures.items():
        write_figure(out / name, figure)
    settings = {
        "model": asdict(model),
        "streamlasso": __version__,
        **sources,
        "design": {**asdict(group.design), "events": str(group.design.events or "")},
    }
    write_page_of(out / REPORT, group, edges, figures, settings)
    write_whole(out / RUN_FILE, (json.dumps({**settings, **_described(group)}, indent=1) + "\n").encode())


def _described(group: Group) -> dict[str, Any]:
    subjects = {
        subject.subject: dict(
            time_points=len(subject.t),
            regions=list(subject.regions),
            events=[asdict(event) for event in subject.events],
            notes=list(subject.notes),
        )
        for subject in group.subjects
    }
    coords = None if group.coords is None else group.coords.round(3).tolist()
    return {"subjects": subjects, "regions": group.regions, "coords": coords}


def _write_parquet(path: Path, table: pyarrow.Table) -> None:
    buffer = io.BytesIO()
    parquet.write_table(table, buffer, compression="zstd")
    write_whole(path, buffer.getvalue())


# --- tables -----------------------------------------------------------------------------------------------------------


def lam_table(group: Group) -> pyarrow.Table:
    """The mean lam at each time point, with a band.

    Several subjects: the mean of their mean lam, plus and minus one standard error. One: the quartiles of its regions.
    """
    longest = group.longest
    lam = group.mean_lam(group.subjects)
    n, mean = np.isfinite(lam).sum(axis=0), nan_mean(lam)
    if len(group.subjects) > 1:
        known = np.where(n > 0, n, np.nan)
        error = np.sqrt(np.nansum((lam - mean) ** 2, axis=0) / np.maximum(known - 1, 1)) / np.sqrt(known)
        low, high = mean - error, mean + error
    else:
        known_lam = [row[np.isfinite(row)] for row in np.where(longest.lam_max > 0, longest.lam, np.nan)]
        low, high = np.array([np.quantile(row, [0.25, 0.75]) if len(row) else [np.nan] * 2 for row in known_lam]).T
        n = np.ones(len(mean), dtype=int)
    conditions = group.conditions(longest).tolist() if group.events else [""] * len(longest.t)
    return pyarrow.table(
        {
            "t": longest.t,
            "seconds": longest.seconds if group.timed else pyarrow.nulls(len(mean), pyarrow.float64()),
            "condition": pyarrow.array(conditions, pyarrow.string()),
            "mean": mean,
            "low": low,
            "high": high,
            "subjects": n,
        }
    )


def edge_table(pictures: dict[str, np.ndarray], names: Sequence[str]) -> pyarrow.Table:
    """The edges of every picture, strongest first."""
    rows: list[dict[str, Any]] = []
    for title, network in pictures.items():
        for i, j, strength in zip(*sorted_edges(network), strict=True):
            sign = "+" if strength > 0 else "-"
            rows.append(dict(picture=title, source=names[i], target=names[j], sign=sign, strength=abs(float(strength))))
    return pyarrow.Table.from_pylist(rows, EDGE_SCHEMA)


def network_table(subject: SubjectResult) -> pyarrow.Table:
    """One row per edge and time point."""
    edges = subject.edges
    return pyarrow.table(
        {
            "subject": _coded(np.zeros(len(edges.t)), [subject.subject]),
            "t": subject.t[edges.t].astype(np.int32),
            "source": _coded(edges.i, subject.regions),
            "target": _coded(edges.j, subject.regions),
            "strength": edges.strength,
        }
    ).unify_dictionaries()


def node_tables(group: Group) -> list[pyarrow.Table]:
    """For each subject, one row per region and time point: lam, lam_max, loss, n_active."""
    tables = []
    for subject in group.subjects:
        n, p = subject.lam.shape
        seconds = np.full(n, np.nan) if subject.seconds is None else subject.seconds
        conditions = np.repeat(group.conditions(subject), p).tolist()
        columns = {
            "subject": _coded(np.zeros(n * p), [subject.subject]),
            "t": np.repeat(subject.t, p).astype(np.int32),
            "seconds": pyarrow.array(np.repeat(seconds, p), from_pandas=True),
            "condition": pyarrow.array(conditions, pyarrow.string()).dictionary_encode(),
            "region": _coded(np.tile(np.arange(p), n), subject.regions),
            **{name: np.ascontiguousarray(getattr(subject, name)).ravel() for name in NODE_COLUMNS},
        }
        tables.append(pyarrow.table(columns))
    return tables


def _coded(codes: np.ndarray, values: Sequence[str]) -> pyarrow.Array:
    return pyarrow.DictionaryArray.from_arrays(
        pyarrow.array(codes.astype(np.int32)), pyarrow.array(values, pyarrow.string())
    )


# --- reading ----------------------------------------------------------------------------------------------------------


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
    networks = np.zeros((n, len(regions), len(regions)), dtype=np.float32)
    t = np.searchsorted(np.unique(times.to_numpy()), table["t"].to_numpy())
    place = {region: k for k, region in enumerate(regions)}
    i, j = ([place[name] for name in table[side].to_pylist()] for side in ("source", "target"))
    networks[t, i, j] = networks[t, j, i] = table["strength"].to_numpy()
    return networks
