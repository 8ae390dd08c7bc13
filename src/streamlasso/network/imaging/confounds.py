"""Confounds of a scan (fMRIPrep's table): read, and regressed out of the region series."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from streamlasso._text import listed
from streamlasso.network.imaging.bids import MISSING, read_tsv
from streamlasso.network.imaging.series import MAX_NAMES

#: Default columns, where present: six motion parameters, two tissue signals and slow drifts.
MOTION = ("trans_x", "trans_y", "trans_z", "rot_x", "rot_y", "rot_z")
DEFAULT_COLUMNS = (*MOTION, "white_matter", "csf", "cosine*")


def read_confounds(path: Path, columns: Sequence[str] = ()) -> tuple[np.ndarray, list[str]]:
    """The chosen columns of a confounds table, and their names; `cosine*` is every column that starts so.

    A missing value (the first of a derivative) becomes its column's mean; a column without values is dropped.
    """
    table = read_tsv(path)
    chosen = _select(path, list(table), columns)
    values = np.array([[_value(path, name, text) for text in table[name]] for name in chosen])
    filled = ~np.isnan(values).all(axis=1)
    values, chosen = values[filled], [name for name, keep in zip(chosen, filled, strict=True) if keep]
    means = np.nanmean(values, axis=1, keepdims=True)
    return np.where(np.isnan(values), means, values).T, chosen


def _select(path: Path, available: list[str], requested: Sequence[str]) -> list[str]:
    chosen: list[str] = []
    absent = []
    for pattern in requested or DEFAULT_COLUMNS:
        found = [name for name in available if _matches(name, pattern)]
        chosen += [name for name in found if name not in chosen]
        absent += [] if found else [pattern]
    if (requested and absent) or not chosen:
        raise ValueError(
            f"{path} has no column {listed(absent, MAX_NAMES)}: choose from its columns with --confound-columns: "
            f"{listed(available, 20)}"
        )
    return chosen


def _matches(name: str, pattern: str) -> bool:
    return name == pattern or (pattern.endswith("*") and name.startswith(pattern[:-1]))


def _value(path: Path, column: str, text: str) -> float:
    if text in MISSING:
        return np.nan
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{path}: {text!r} in column {column} is not a number: fix it, or use n/a") from None


def without_confounds(values: np.ndarray, confounds: np.ndarray) -> np.ndarray:
    """The residuals of each series regressed on the confounds; its mean is kept.

    >>> import numpy as np
    >>> t = np.arange(5.0)
    >>> without_confounds(np.array([[3.0, 5.0, 7.0, 9.0, 11.0]]).T, t[:, None]).ravel().round(6)
    array([7., 7., 7., 7., 7.])
    """
    spread = confounds.std(axis=0)
    Z = (confounds - confounds.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    mean = values.mean(axis=0)
    fitted, *_ = np.linalg.lstsq(Z, values - mean, rcond=None)
    return values - Z @ fitted
