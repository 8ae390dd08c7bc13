"""From paths to subjects: which files to read, and each subject's series and events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from streamlasso._text import listed
from streamlasso.network.imaging.atlas import Atlas, load_atlas, read_coords
from streamlasso.network.imaging.bids import find_confounds, find_events, name_suffix
from streamlasso.network.imaging.confounds import read_confounds, without_confounds
from streamlasso.network.imaging.events import Event, clip_events, read_events, suspicious_events, unobserved_conditions
from streamlasso.network.imaging.nifti import is_nifti, read_run
from streamlasso.network.imaging.series import (
    SERIES_SUFFIXES,
    TEXT_SUFFIXES,
    Series,
    is_series,
    is_text,
    read_series,
    subject_of,
)
from streamlasso.network.options import Design, Images

#: Written last by `streamlasso network`: a folder that holds it is the output of a run.
RUN_FILE = "run.json"
#: Tables in BIDS and data folders that are not region series, by the last part of their name.
OTHER_TABLES = ("events", "timeseries", "regressors", "participants", "channels", "scans", "regressor", "dseg")


@dataclass(frozen=True)
class Subject:
    """A series ready to be learnt, and the events within it."""

    series: Series
    events: tuple[Event, ...]

    @property
    def name(self) -> str:
        return self.series.subject

    @property
    def t(self) -> np.ndarray:
        """The number of each time point."""
        return np.arange(len(self.series.values))

    def seconds(self, start: float) -> np.ndarray | None:
        """The time of each time point on the clock of the events; None if the time between them is unknown."""
        return None if self.series.tr is None else start + self.t * self.series.tr


# --- which files ------------------------------------------------------------------------------------------------------


def find_files(data: Sequence[Path], excluded: Sequence[Path | None] = ()) -> list[Path]:
    """The files named, and those in the folders named except `excluded`; one per subject."""
    found: list[Path] = []
    for path in data:
        if path.is_dir():
            found += _files_in(path, {other.absolute() for other in excluded if other is not None})
        elif not path.exists():
            raise ValueError(f"{path}: no such file or folder")
        elif is_series(path) or is_nifti(path) or is_text(path):
            found.append(path)
        else:
            raise ValueError(
                f"{path} has an unknown format: use {', '.join((*SERIES_SUFFIXES, *TEXT_SUFFIXES))} (also .gz), "
                ".nii or .nii.gz"
            )
    _refuse_duplicates(found)
    return found


def _visible(folder: Path) -> list[Path]:
    """The files in a folder, without hidden ones and without the output of a run."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith(".")]
    outputs = {path.parent for path in files if path.name == RUN_FILE}
    return [path for path in files if path.parent not in outputs]


def _refuse_duplicates(paths: Sequence[Path]) -> None:
    found: dict[str, Path] = {}
    for path in paths:
        subject = subject_of(path)
        if subject in found:
            raise ValueError(
                f"{found[subject]} and {path} are two files for subject {subject}, named after its file: "
                "give one of them, or rename one"
            )
        found[subject] = path


def _files_in(folder: Path, excluded: set[Path]) -> list[Path]:
    """The BIDS images in a folder, else its series, else its images; never the output of a run."""
    files = [path for path in _visible(folder) if path.absolute() not in excluded]
    images = [path for path in files if is_nifti(path)]
    series = [path for path in files if is_series(path) and name_suffix(path).lower() not in OTHER_TABLES]
    found = [path for path in images if name_suffix(path).lower() == "bold"] or series or images
    if not found:
        raise ValueError(f"{folder} holds no region series ({', '.join(SERIES_SUFFIXES)}) and no image (.nii, .nii.gz)")
    return found


def open_atlas(paths: Sequence[Path], images: Images) -> Atlas | None:
    """The atlas, if any of the files needs one."""
    if not any(is_nifti(path) for path in paths):
        if images.atlas is not None:
            raise ValueError("--atlas is for images, and the data are region series: omit it (--coords places regions)")
        return None
    if images.atlas is None:
        raise ValueError("images need a label atlas: add --atlas ATLAS.nii.gz")
    return load_atlas(images.atlas, images.labels)


# --- one subject ------------------------------------------------------------------------------------------------------


def read_subject(
    path: Path, images: Images, design: Design, atlas: Atlas | None, *, standardize: bool = True
) -> Subject:
    """One subject: its series without confounds and without constant or incomplete regions, in standard deviations.

    standardize : False for binary series
    """
    series = read_series(path) if atlas is None or not is_nifti(path) else read_run(path, atlas)
    series = _with_tr(series, design)
    series = _without_confounds(path, series.usable(), images).usable()
    if images.coords is not None:
        series = replace(series, coords=read_coords(images.coords, series.regions))
    events, series = _events(path, series, design)
    return Subject(_standardised(series) if standardize else series, tuple(events))


def _with_tr(series: Series, design: Design) -> Series:
    """--tr takes precedence over what the image states."""
    if design.tr is None:
        return series
    differs = series.tr is not None and abs(series.tr - design.tr) > 1e-3
    note = f"--tr {design.tr:g} is used, although the image states {series.tr} s"
    return replace(series, tr=design.tr, notes=(*series.notes, note) if differs else series.notes)


def _without_confounds(path: Path, series: Series, images: Images) -> Series:
    if images.confounds is None:
        return series
    file = find_confounds(path) if images.confounds == "auto" else Path(images.confounds)
    if file is None:
        raise ValueError(f"--confounds auto found no desc-confounds_timeseries.tsv beside {path}: name the file")
    confounds, used = read_confounds(file, images.confound_columns)
    if len(confounds) != len(series.values):
        raise ValueError(f"{file} has {len(confounds)} rows, but {path.name} has {len(series.values)} volumes")
    note = f"confounds regressed out: {listed(used) if used else 'none'}"
    return replace(series, values=without_confounds(series.values, confounds), notes=(*series.notes, note))


def _events(path: Path, series: Series, design: Design) -> tuple[list[Event], Series]:
    file = design.events or find_events(path)
    if file is None:
        return [], series
    events = read_events(file)
    if series.tr is None:
        raise ValueError(f"{file}: events are in seconds, but the time between volumes is unknown: add --tr")
    n = len(series.values)
    kept, clipped = clip_events(events, design.start, design.start + n * series.tr)
    unobserved = unobserved_conditions(kept, design.start + np.arange(n) * series.tr, design.delay, series.tr)
    notes = [*suspicious_events(file, events), *([clipped] if clipped else []), *unobserved]
    return kept, replace(series, notes=(*series.notes, *notes))


def _standardised(series: Series) -> Series:
    """In standard deviations, so that the lam of regions and subjects can be averaged."""
    # Scaled by a power of two first, which rounds nothing, so that squares neither overflow nor underflow.
    values = np.ldexp(series.values, -np.frexp(np.abs(series.values).max(axis=0))[1])
    values -= values.mean(axis=0)
    return replace(series, values=values / values.std(axis=0))
