"""Group -> the tables that figures and the page are made from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow

from streamlasso.network.estimator import sorted_edges
from streamlasso.network.report.group import Group, nan_mean
from streamlasso.network.results import NODE_COLUMNS, SubjectResult

EDGE_SCHEMA = pyarrow.schema(
    [*((name, pyarrow.string()) for name in ("picture", "source", "target", "sign")), ("strength", pyarrow.float64())]
)

# --- lam --------------------------------------------------------------------------------------------------------------


def lam_table(group: Group) -> pyarrow.Table:
    """The mean lam at each time point, with a band.

    Several subjects: the mean of their mean lam, plus and minus one standard error. One: the quartiles of its regions.
    """
    longest = group.longest
    mean, low, high, n = _band_of_subjects(group) if len(group.subjects) > 1 else _band_of_regions(longest)
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


def _band_of_subjects(group: Group) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    table = group.mean_lam(group.subjects)
    n = np.isfinite(table).sum(axis=0)
    divisor = np.where(n > 0, n, np.nan)
    mean = nan_mean(table)
    spread = np.sqrt(np.nansum((table - mean) ** 2, axis=0) / np.maximum(divisor - 1, 1))
    error = spread / np.sqrt(divisor)
    return mean, mean - error, mean + error, n


def _band_of_regions(subject: SubjectResult) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    lam = np.where(subject.lam_max > 0, subject.lam, np.nan)
    low, high = (np.array([_quantile(row, q) for row in lam]) for q in (0.25, 0.75))
    return subject.mean_lam, low, high, np.ones(len(subject.t), dtype=int)


def _quantile(row: np.ndarray, q: float) -> float:
    row = row[np.isfinite(row)]
    return float(np.quantile(row, q)) if len(row) else float("nan")


# --- the networks that are drawn --------------------------------------------------------------------------------------


def edge_table(group: Group) -> pyarrow.Table:
    """The edges of every picture, strongest first."""
    rows: list[dict[str, Any]] = []
    names = group.regions
    for title, times in group.pictures().items():
        for i, j, strength in zip(*sorted_edges(group.mean_network(times)), strict=True):
            sign = "+" if strength > 0 else "-"
            rows.append(dict(picture=title, source=names[i], target=names[j], sign=sign, strength=abs(float(strength))))
    return pyarrow.Table.from_pylist(rows, EDGE_SCHEMA)


def matrix_of(edges: pyarrow.Table, picture: str, regions: Sequence[str]) -> np.ndarray:
    """(p, p): one picture of the table of edges."""
    order = {region: k for k, region in enumerate(regions)}
    matrix = np.zeros((len(regions), len(regions)))
    for row in edges.to_pylist():
        if row["picture"] == picture:
            i, j = order[row["source"]], order[row["target"]]
            matrix[i, j] = matrix[j, i] = row["strength"] * (1 if row["sign"] == "+" else -1)
    return matrix


# --- everything that was learnt ---------------------------------------------------------------------------------------


def network_table(subject: SubjectResult) -> pyarrow.Table:
    """One row per edge and time point."""
    edges = subject.edges
    return pyarrow.table(
        {
            "subject": _repeated(subject.subject, len(edges.t)),
            "t": subject.t[edges.t].astype(np.int32),
            "source": _coded(edges.i, subject.regions),
            "target": _coded(edges.j, subject.regions),
            "strength": edges.strength,
        }
    ).unify_dictionaries()


def node_table(group: Group, subject: SubjectResult) -> pyarrow.Table:
    """One row per region and time point: lam, lam_max, loss, n_active."""
    n, p = subject.lam.shape
    seconds = np.full(n, np.nan) if subject.seconds is None else subject.seconds
    conditions = group.conditions(subject)
    return pyarrow.table(
        {
            "subject": _repeated(subject.subject, n * p),
            "t": np.repeat(subject.t, p).astype(np.int32),
            "seconds": pyarrow.array(np.repeat(seconds, p), from_pandas=True),
            "condition": pyarrow.array(np.repeat(conditions, p).tolist(), pyarrow.string()).dictionary_encode(),
            "region": _coded(np.tile(np.arange(p), n), subject.regions),
            **{name: np.ascontiguousarray(getattr(subject, name)).ravel() for name in NODE_COLUMNS},
        }
    )


def _repeated(value: str, n: int) -> pyarrow.Array:
    return _coded(np.zeros(n), [value])


def _coded(codes: np.ndarray, values: Sequence[str]) -> pyarrow.Array:
    return pyarrow.DictionaryArray.from_arrays(
        pyarrow.array(codes.astype(np.int32)), pyarrow.array(values, pyarrow.string())
    )
