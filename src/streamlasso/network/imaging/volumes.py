"""What one file holds: a volume (NIfTI; DICOM as Siemens mosaic or enhanced multi-frame), or a slice of one (DICOM)."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from streamlasso.network.imaging.extras import needs_fmri
from streamlasso.network.imaging.nifti import is_nifti

DICOM_SUFFIXES = (".dcm", ".ima", ".dicom")
VOLUME_SUFFIXES = (".nii", ".nii.gz", *DICOM_SUFFIXES)
#: DICOM's x and y run to the left and to the back, NIfTI's to the right and to the front.
LPS_TO_RAS = np.diag([-1.0, -1.0, 1.0, 1.0])
#: Where a slice's header says which volume it belongs to; the first is for that, the second is what else there may be.
VOLUME_NUMBERS = ("TemporalPositionIdentifier", "AcquisitionNumber")
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
class Slice:
    """A slice, `affine` from voxels to mm, its place across the slices in mm, and its volume's series and number."""

    data: np.ndarray
    affine: np.ndarray
    place: float
    series: str
    number: int


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


def read_volume(path: Path) -> Volume | Slice:
    """What is in a file. `Unreadable` if it is damaged or not all there, `Refused` if it is of no use."""
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


def _read_dicom(path: Path) -> Volume | Slice:
    pydicom = needs_fmri("pydicom")
    wrappers = needs_fmri("nibabel.nicom.dicomwrappers")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Some scanners leave the preamble out; what is no DICOM at all has no pixels either.
        dataset = pydicom.dcmread(path, force=True)
        if "PixelData" not in dataset:
            raise Unreadable("there is no image in it")
        wrapper = wrappers.wrapper_from_data(dataset)
        series = str(dataset.get("SeriesInstanceUID", ""))
        if "MOSAIC" in dataset.get("ImageType", ()) and not wrapper.is_mosaic:
            raise Refused("a mosaic whose header does not say how many slices there are in it (no Siemens CSA)", series)
        data = np.asarray(wrapper.get_data(), dtype=np.float64)
        if data.ndim == 2:
            return _slice(dataset, wrapper, data, series)
        if data.ndim != 3:
            raise Refused(f"{' x '.join(map(str, data.shape))} is not one volume; one file a volume is needed", series)
        affine = LPS_TO_RAS @ wrapper.affine
    return Volume(data, affine, series, _instance(dataset, path))


def _slice(dataset: Any, wrapper: Any, data: np.ndarray, series: str) -> Slice:
    """Echoes, and magnitude and phase, lie at the same places: they are series of their own."""
    number = next((dataset[name].value for name in VOLUME_NUMBERS if dataset.get(name) is not None), None)
    if number is None or wrapper.slice_indicator is None:
        raise Refused(
            "one slice, and its header does not say of which volume, or where it lies (TemporalPositionIdentifier or "
            "AcquisitionNumber, ImagePositionPatient); export mosaics or enhanced DICOM, or NIfTI",
            series,
        )
    kinds = [dataset.get("EchoNumbers") or 1, *list(dataset.get("ImageType", ()))[2:3]]
    place = round(float(wrapper.slice_indicator), 2)
    return Slice(data, LPS_TO_RAS @ wrapper.affine, place, " ".join(map(str, [series, *kinds])), int(number))


def _instance(dataset: Any, path: Path) -> int | None:
    for name in ("InstanceNumber", "AcquisitionNumber"):
        if dataset.get(name) is not None:
            return int(dataset[name].value)
    return number_of(path)[1]
