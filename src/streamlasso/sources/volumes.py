"""One volume from one file: NIfTI or DICOM (Siemens mosaic, enhanced multi-frame)."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from streamlasso.sources.atlas import Atlas, grid, same_grid
from streamlasso.sources.extras import needs_fmri
from streamlasso.sources.nifti import is_nifti

DICOM_SUFFIXES = (".dcm", ".ima", ".dicom")
#: DICOM's x and y run to the left and to the back, NIfTI's to the right and to the front.
LPS_TO_RAS = np.diag([-1.0, -1.0, 1.0, 1.0])
LAST_NUMBER = re.compile(r"(\d+)(?!.*\d)")


class Unreadable(ValueError):
    """A file that cannot be read: damaged for good, or not all there yet."""


class Refused(ValueError):
    """A file that was read whole, and is of no use here; the series and number that it has, if they are known."""

    def __init__(self, words: str, series: str | None = None, number: int | None = None) -> None:
        super().__init__(words)
        self.series, self.number = series, number


@dataclass(frozen=True)
class Volume:
    """A volume, `affine` from voxels to mm, the series that it belongs to, and its number there, if it has one."""

    data: np.ndarray
    affine: np.ndarray
    series: str
    number: int | None


@dataclass(frozen=True)
class Reading:
    """What is kept of a volume: the mean of each region."""

    series: str
    number: int | None
    means: np.ndarray


def is_volume(path: Path) -> bool:
    """By its name. Hidden and unfinished files (.part, .tmp, ...) have other ends."""
    name = path.name.lower()
    return not name.startswith(".") and (is_nifti(path) or name.endswith(DICOM_SUFFIXES))


def number_of(path: Path) -> tuple[str, int | None]:
    """The series and the number that a name tells.

    >>> number_of(Path("run2_vol_0012.nii.gz")), number_of(Path("scan.nii"))
    (('run2_vol_', 12), ('scan', None))
    """
    stem = path.name.split(".")[0]
    found = LAST_NUMBER.search(stem)
    if not found:
        return stem, None
    return stem[: found.start()] + stem[found.end() :], int(found[1])


def read_volume(path: Path) -> Volume:
    """The volume in a file. `Unreadable` if it is damaged or not all there, `Refused` if it is no volume."""
    try:
        return _read_nifti(path) if is_nifti(path) else _read_dicom(path)
    except (Refused, ImportError, FileNotFoundError):
        raise
    # Whatever a damaged file makes a reader stumble over: it must not stop a scan.
    except Exception as error:
        words = " ".join(str(error).split()) or type(error).__name__
        raise Unreadable(words) from error


def _read_nifti(path: Path) -> Volume:
    nibabel = needs_fmri("nibabel")
    # Mapped memory of a file that is cut short while it is read would end the whole process.
    image = nibabel.load(path, mmap=False)
    data = np.asarray(image.dataobj, dtype=np.float64)
    data = data[..., 0] if data.ndim == 4 and data.shape[3] == 1 else data
    if data.ndim != 3:
        shape = " x ".join(map(str, data.shape))
        raise Refused(f"{shape} is not one volume; a whole run is learnt by streamlasso network RUN --atlas ATLAS")
    return Volume(data, np.asarray(image.affine), *number_of(path))


def _read_dicom(path: Path) -> Volume:
    pydicom = needs_fmri("pydicom")
    wrappers = needs_fmri("nibabel.nicom.dicomwrappers")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Some scanners leave the preamble out; what is no DICOM at all has no pixels either.
        dataset = pydicom.dcmread(path, force=True)
        if "PixelData" not in dataset:
            raise Unreadable("there is no image in it")
        wrapper = wrappers.wrapper_from_data(dataset)
        if wrapper.image_shape is None or len(wrapper.image_shape) != 3:
            raise Refused(
                "one slice of a volume; whole volumes are needed, a file each: "
                "export mosaics or enhanced DICOM, or NIfTI"
            )
        data = np.asarray(wrapper.get_data(), dtype=np.float64)
        affine = LPS_TO_RAS @ wrapper.affine
    return Volume(data, affine, str(dataset.get("SeriesInstanceUID", "")), _instance(dataset, path))


def _instance(dataset: Any, path: Path) -> int | None:
    for name in ("InstanceNumber", "AcquisitionNumber"):
        if dataset.get(name) is not None:
            return int(dataset[name].value)
    return number_of(path)[1]


class RegionReader:
    """Files -> means over the regions of an atlas. The first volume fixes the grid; others of it are refused.

    notes : what fitting the atlas to that grid did, in words
    """

    def __init__(self, atlas: Atlas) -> None:
        self.atlas = atlas
        self.fitted: Atlas | None = None
        self.notes: list[str] = []

    def __call__(self, path: Path) -> Reading:
        volume = read_volume(path)
        fitted = self._fitted(volume)
        means = fitted.means(volume.data)
        return Reading(volume.series, volume.number, means)

    def _fitted(self, volume: Volume) -> Atlas:
        if self.fitted is None:
            self.fitted, self.notes = self.atlas.onto(volume.data.shape, volume.affine)
        elif not same_grid(self.fitted.labels.shape, self.fitted.affine, volume.data.shape, volume.affine):
            raise Refused(
                f"another grid ({grid(volume.data.shape, volume.affine)}) than the first volume's "
                f"({grid(self.fitted.labels.shape, self.fitted.affine)})",
                volume.series,
                volume.number,
            )
        return self.fitted
