"""A recorded run: a 4-D NIfTI image and a label atlas -> region series, by nilearn's masker."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from streamlasso.network.imaging.atlas import Atlas
from streamlasso.network.imaging.bids import repetition_time
from streamlasso.network.imaging.extras import import_fmri
from streamlasso.network.imaging.series import Series, subject_of

#: Volumes are averaged over regions in blocks of at most this size.
BLOCK_BYTES = 1 << 29
#: Seconds per unit of time in a NIfTI header.
UNITS = {"sec": 1.0, "msec": 1e-3, "usec": 1e-6, "unknown": 1.0}
#: A longer time between volumes must be in milliseconds.
MAX_TR = 60.0


def is_nifti(path: Path) -> bool:
    """Whether the name ends as that of a NIfTI image."""
    return path.name.lower().endswith((".nii", ".nii.gz"))


def load_run(path: Path) -> Any:
    """The image of a run, with its last volume read once, so that a truncated file is refused early."""
    nibabel = import_fmri("nibabel")
    if not is_nifti(path):
        raise ValueError(f"{path} is not a NIfTI image: use a file that ends in .nii or .nii.gz")
    try:
        image = nibabel.load(path)
        if image.ndim != 4 or image.shape[3] < 2:
            shape = " x ".join(map(str, image.shape))
            raise ValueError(f"{path} is {shape}, not a 4-D run: use --watch FOLDER for single volumes")
        np.asanyarray(image.dataobj[..., -1])
    except (nibabel.filebasedimages.ImageFileError, EOFError, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ValueError(f"{path} is damaged or truncated ({error})") from error
    return image


def opened_run(path: Path) -> Any:
    """The run with random access to its volumes: a compressed file would be decompressed again for each."""
    image = load_run(path)
    if not path.name.lower().endswith(".gz"):
        return image
    return type(image)(np.asanyarray(image.dataobj), image.affine, image.header)


def seconds_per_volume(path: Path, image: Any) -> float | None:
    """From the BIDS sidecar, else from the image's header; None if neither has it."""
    stated = _stated_seconds(path, image)
    return stated / 1000 if stated is not None and stated >= MAX_TR else stated


def _stated_seconds(path: Path, image: Any) -> float | None:
    """As stated, even if that must be milliseconds."""
    in_sidecar = repetition_time(path)
    if in_sidecar is not None:
        return in_sidecar
    zooms = image.header.get_zooms()
    units = image.header.get_xyzt_units()[1] if hasattr(image.header, "get_xyzt_units") else "unknown"
    seconds = float(zooms[3]) * UNITS.get(units, 0.0) if len(zooms) > 3 else 0.0
    return round(seconds, 6) if seconds > 0 else None


def read_run(path: Path, atlas: Atlas) -> Series:
    """The mean of each region in each volume; regions without a voxel are left out, with a note."""
    maskers = import_fmri("nilearn.maskers")
    image = opened_run(path)
    fitted, notes = atlas.onto(image.shape[:3], image.affine)
    masker = maskers.NiftiLabelsMasker(fitted.image(), standardize=None, resampling_target=None, reports=False)
    values = np.concatenate([_means(masker, fitted, volumes) for volumes in _blocks(image)])
    stated, tr = _stated_seconds(path, image), seconds_per_volume(path, image)
    resampled = bool(notes)
    if stated != tr:
        notes.append(f"{stated:g} s between volumes is read as milliseconds: {tr:g} s")
    series = Series(subject_of(path), values, atlas.names, tr, fitted.centres, tuple(notes))
    # The note on resampling names the regions that it lost.
    return series.keep(fitted.sizes > 0, "" if resampled else "no voxel in the image; left out")


def _blocks(image: Any) -> Iterator[Any]:
    """The run in blocks of volumes that fit into memory."""
    size = max(1, BLOCK_BYTES // (8 * int(np.prod(image.shape[:3]))))
    for first in range(0, image.shape[3], size):
        yield image.slicer[..., first : first + size]


def _means(masker: Any, atlas: Atlas, volumes: Any) -> np.ndarray:
    """(time, region) by nilearn's masker; nan for regions without voxels, or with a voxel that is not finite."""
    # Found beforehand: nilearn sets such voxels to zero, in the image itself, and the region would seem to drop.
    data = np.asanyarray(volumes.dataobj)
    holes = {t: ~np.isfinite(atlas.means(data[..., t])) for t in np.flatnonzero(~np.isfinite(data).all(axis=(0, 1, 2)))}
    means = np.full((volumes.shape[3], len(atlas.names)), np.nan)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Non-finite values")
        means[:, atlas.sizes > 0] = masker.fit_transform(volumes)
    for t, regions in holes.items():
        means[t, regions] = np.nan
    return means
