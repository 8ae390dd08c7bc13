"""From paths to subjects: who is there, what belongs to whom, and series that are ready to be learnt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from streamlasso.network.imaging.atlas import Atlas, load_atlas, read_coords
from streamlasso.network.imaging.bids import (
    Event,
    doubts_about,
    find_confounds,
    find_events,
    never_seen,
    read_confounds,
    read_events,
    within,
    without_confounds,
)
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

#: What a run of this command leaves last.
RUN = "run.json"
#: Files of a BIDS or data folder that are no series.
NO_SERIES = ("events", "timeseries", "regressors", "participants", "channels", "scans", "regressor", "dseg")


@dataclass(frozen=True)
class Subject:
    """A series that can be learnt, with the events of its scan, cut to it."""

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
        """Of each time point, on the clock of the events; None if nobody says how far they are apart."""
        return None if self.series.tr is None else start + self.t * self.series.tr


def find_files(data: Sequence[Path], but: Sequence[Path | None] = ()) -> list[Path]:
    """The files named, and those in the folders named, without those that mean something else (`but`)."""
    found: list[Path] = []
    for path in data:
        if path.is_dir():
            found += _inside(path, {other.absolute() for other in but if other is not None})
        elif not path.exists():
            raise ValueError(f"{path}: there is no such file or folder")
        elif is_series(path) or is_nifti(path) or is_text(path):
            found.append(path)
        else:
            raise ValueError(
                f"{path}: an unknown kind of file; {', '.join((*SERIES_SUFFIXES, *TEXT_SUFFIXES))} (also .gz), "
                ".nii and .nii.gz are read"
            )
    subjects: dict[str, list[Path]] = {}
    for path in found:
        subjects.setdefault(subject_of(path), []).append(path)
    twice = next((name for name, paths in subjects.items() if len(paths) > 1), None)
    if twice:
        which = " and ".join(map(str, subjects[twice][:2]))
        raise ValueError(
            f"two files for {twice}, {which}: a subject's name is that of its file. Name one, or rename one"
        )
    return found


def _inside(folder: Path, but: set[Path]) -> list[Path]:
    """The BIDS images of a folder, else its series, else its images; never what another run has left in it."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith(".")]
    left_by_runs = {path.parent for path in files if path.name == RUN}
    files = [path for path in files if path.absolute() not in but and path.parent not in left_by_runs]
    images = [path for path in files if is_nifti(path)]
    series = [path for path in files if is_series(path) and _last_word(path) not in NO_SERIES]
    found = [path for path in images if _last_word(path) == "bold"] or series or images
    if not found:
        raise ValueError(
            f"{folder}: no region series ({', '.join(SERIES_SUFFIXES)}) and no image (.nii, .nii.gz) in it"
        )
    return found


def _last_word(path: Path) -> str:
    return path.name.split(".")[0].split("_")[-1].lower()


def open_atlas(paths: Sequence[Path], images: Images) -> Atlas | None:
    """The atlas, if any of the files needs one."""
    if not any(is_nifti(path) for path in paths):
        if images.atlas is not None:
            raise ValueError(
                "--atlas: there is no image among the data, and region series need none; leave it out. "
                "For a glass brain give --coords"
            )
        return None
    if images.atlas is None:
        raise ValueError("images need a label atlas to become regions: --atlas ATLAS.nii.gz")
    return load_atlas(images.atlas, images.labels)


def read_subject(
    path: Path, images: Images, design: Design, atlas: Atlas | None, *, standardize: bool = True
) -> Subject:
    """One subject: its series without confounds, constant or missing regions, in units of its standard deviation.

    standardize : False for series of 0 and 1, which have to stay what they are
    """
    series = read_series(path) if atlas is None or not is_nifti(path) else read_run(path, atlas)
    series = _timed(series, design)
    series = _without_confounds(path, series.usable(), images).usable()
    if images.coords is not None:
        series = replace(series, coords=read_coords(images.coords, series.regions))
    events, series = _events(path, series, design)
    return Subject(_standardised(series) if standardize else series, tuple(events))


def _timed(series: Series, design: Design) -> Series:
    if design.tr is None:
        return series
    differs = series.tr is not None and abs(series.tr - design.tr) > 1e-3
    note = f"--tr {design.tr:g} is used, although the image says {series.tr} s"
    return replace(series, tr=design.tr, notes=(*series.notes, note) if differs else series.notes)


def _without_confounds(path: Path, series: Series, images: Images) -> Series:
    if images.confounds is None:
        return series
    file = find_confounds(path) if images.confounds == "auto" else Path(images.confounds)
    if file is None:
        raise ValueError(f"--confounds auto: no desc-confounds_timeseries.tsv beside {path}; name the file")
    confounds, used = read_confounds(file, images.confound_columns)
    if len(confounds) != len(series.values):
        raise ValueError(f"{file}: {len(confounds)} rows for {len(series.values)} volumes of {path.name}")
    note = f"taken out: {', '.join(used)}"
    return replace(series, values=without_confounds(series.values, confounds), notes=(*series.notes, note))


def _events(path: Path, series: Series, design: Design) -> tuple[list[Event], Series]:
    file = design.events or find_events(path)
    if file is None:
        return [], series
    events = read_events(file)
    if series.tr is None:
        raise ValueError(f"{file}: events are in seconds, and nobody says how far volumes are apart; give --tr")
    n = len(series.values)
    kept, words = within(events, design.start, design.start + n * series.tr)
    unseen = never_seen(kept, design.start + np.arange(n) * series.tr, design.delay, series.tr)
    notes = [*doubts_about(file, events), *([words] if words else []), *unseen]
    return kept, replace(series, notes=(*series.notes, *notes))


def _standardised(series: Series) -> Series:
    """So that the lams of regions and subjects can be averaged; a network does not depend on units."""
    # A power of two first: it rounds nothing, and squares of very large or small numbers have room.
    values = np.ldexp(series.values, -np.frexp(np.abs(series.values).max(axis=0))[1])
    values -= values.mean(axis=0)
    return replace(series, values=values / values.std(axis=0))
