"""A recorded run: a 4-D NIfTI image and a label atlas -> region series, by nilearn's masker."""

from __future__ import annotations

import gzip
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from streamlasso.network.imaging.atlas import Atlas
from streamlasso.network.imaging.bids import repetition_time
from streamlasso.network.imaging.extras import needs_fmri
from streamlasso.network.imaging.series import Series, subject_of

#: Bytes of a packed run that are unpacked in memory, not on the disk; and of volumes that are looked at in one go.
LARGE, BLOCK_BYTES = 1 << 29, 1 << 29
#: Units of the fourth dimension of a NIfTI header, in seconds.
UNITS = {"sec": 1.0, "msec": 1e-3, "usec": 1e-6, "unknown": 1.0}
#: Nobody waits so many seconds from volume to volume: they are milliseconds, whatever they are called.
TOO_LONG = 60.0


def is_nifti(path: Path) -> bool:
    """By the end of its name."""
    return path.name.lower().endswith((".nii", ".nii.gz"))


def load_run(path: Path) -> Any:
    """The image, whole: a file that is cut short is refused before anything is learnt of it."""
    nibabel = needs_fmri("nibabel")
    if not is_nifti(path):
        raise ValueError(f"{path}: no NIfTI image, which would end in .nii or .nii.gz")
    try:
        image = nibabel.load(path)
        if image.ndim != 4 or image.shape[3] < 2:
            shape = " x ".join(map(str, image.shape))
            raise ValueError(f"{path}: {shape}; a run is 4-D, volume after volume. For single volumes: --watch FOLDER")
        np.asanyarray(image.dataobj[..., -1])
    except (nibabel.filebasedimages.ImageFileError, EOFError, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ValueError(f"{path}: the image is damaged or cut short ({error})") from error
    return image


@contextmanager
def opened_run(path: Path) -> Iterator[Any]:
    """The run, such that any of its volumes is at hand: a packed file would be unpacked anew for each."""
    image = load_run(path)
    if not path.name.lower().endswith(".gz"):
        yield image
    elif np.prod(image.shape) * image.get_data_dtype().itemsize <= LARGE:
        yield type(image)(np.asanyarray(image.dataobj), image.affine, image.header)
    else:
        with TemporaryDirectory() as folder:
            unpacked = Path(folder, "run.nii")
            with gzip.open(path) as packed, open(unpacked, "wb") as whole:
                shutil.copyfileobj(packed, whole, 1 << 20)
            yield needs_fmri("nibabel").load(unpacked)


def seconds_per_volume(path: Path, image: Any) -> float | None:
    """From the BIDS sidecar, else from the image's header; None if neither says."""
    told = _told_seconds(path, image)
    return told / 1000 if told is not None and told >= TOO_LONG else told


def _told_seconds(path: Path, image: Any) -> float | None:
    told = repetition_time(path)
    if told is not None:
        return told
    zooms = image.header.get_zooms()
    units = image.header.get_xyzt_units()[1] if hasattr(image.header, "get_xyzt_units") else "unknown"
    seconds = float(zooms[3]) * UNITS.get(units, 0.0) if len(zooms) > 3 else 0.0
    return round(seconds, 6) if seconds > 0 else None


def _means(masker: Any, atlas: Atlas, volumes: Any) -> np.ndarray:
    """(time, region) by nilearn's masker; nan for regions without voxels, or with a voxel that is not a number."""
    # Looked for first: nilearn puts zeros in their place, in the image itself, and a region would seem to fall to zero.
    data = np.asanyarray(volumes.dataobj)
    holes = {t: ~np.isfinite(atlas.means(data[..., t])) for t in np.flatnonzero(~np.isfinite(data).all(axis=(0, 1, 2)))}
    means = np.full((volumes.shape[3], len(atlas.names)), np.nan)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Non-finite values")
        means[:, atlas.sizes > 0] = masker.fit_transform(volumes)
    for t, whose in holes.items():
        means[t, whose] = np.nan
    return means


def read_run(path: Path, atlas: Atlas) -> Series:
    """The mean of each region in each volume; regions without a voxel are left out, by name."""
    needs_fmri("nilearn")
    from nilearn.maskers import NiftiLabelsMasker

    with opened_run(path) as image:
        fitted, notes = atlas.onto(image.shape[:3], image.affine)
        masker = NiftiLabelsMasker(fitted.image(), standardize=None, resampling_target=None, reports=False)
        there = fitted.sizes > 0
        values = np.full((image.shape[3], len(atlas.names)), np.nan)
        size = max(1, BLOCK_BYTES // (8 * int(np.prod(image.shape[:3]))))
        for first in range(0, len(values), size):
            values[first : first + size] = _means(masker, fitted, image.slicer[..., first : first + size])
        told, tr = _told_seconds(path, image), seconds_per_volume(path, image)
    resampled = bool(notes)
    if told != tr:
        notes.append(f"{told:g} s between volumes, it says: taken for milliseconds, {tr:g} s")
    series = Series(subject_of(path), values, atlas.names, tr, fitted.centres, tuple(notes))
    # Regions that were lost on the way to another grid are named already.
    return series.keep(there, "" if resampled else "no voxel in the image; left out")
