"""One file -> a volume: NIfTI, or DICOM as Siemens mosaic or enhanced multi-frame."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from streamlasso.network.imaging.extras import import_fmri
from streamlasso.network.imaging.nifti import is_nifti

DICOM_SUFFIXES = (".dcm", ".ima", ".dicom")
VOLUME_SUFFIXES = (".nii", ".nii.gz", *DICOM_SUFFIXES)
#: DICOM's x and y point left and backwards, NIfTI's right and forwards.
LPS_TO_RAS = np.diag([-1.0, -1.0, 1.0, 1.0])
LAST_NUMBER = re.compile(r"(\d+)(?!.*\d)")


class Unreadable(ValueError):
    """A file that cannot be read: damaged, or not complete yet."""


class Refused(ValueError):
    """A complete file that cannot be used, with its series and volume number if they are known."""

    def __init__(self, reason: str, series: str | None = None, number: int | None = None) -> None:
        super().__init__(reason)
        self.series, self.number = series, number


@dataclass(frozen=True)
class Volume:
    """A volume, its `affine` from voxels to mm, its series, and its number in the series, if it has one."""

    data: np.ndarray
    affine: np.ndarray
    series: str
    number: int | None


@dataclass(frozen=True)
class Reading:
    """The mean of each region in a volume."""

    series: str
    number: int | None
    means: np.ndarray


def is_volume(path: Path) -> bool:
    """Whether the name is that of a volume; hidden and unfinished files (.part, .tmp, ...) are not."""
    name = path.name.lower()
    return not name.startswith(".") and (is_nifti(path) or name.endswith(DICOM_SUFFIXES))


def number_of(path: Path) -> tuple[str, int | None]:
    """The series and the volume number in a file's name.

    >>> number_of(Path("run2_vol_0012.nii.gz")), number_of(Path("scan.nii"))
    (('run2_vol_', 12), ('scan', None))
    """
    stem = path.name.split(".")[0]
    found = LAST_NUMBER.search(stem)
    if not found:
        return stem, None
    return stem[: found.start()] + stem[found.end() :], int(found[1])


def read_volume(path: Path) -> Volume:
    """The contents of a file. Raises `Unreadable` if it is damaged or incomplete, `Refused` if it cannot be used."""
    try:
        return _read_nifti(path) if is_nifti(path) else _read_dicom(path)
    except (Refused, ImportError, FileNotFoundError):
        raise
    # A damaged file can make a reader raise anything; it must not stop a scan.
    except Exception as error:
        raise Unreadable(" ".join(str(error).split()) or type(error).__name__) from error


def _read_nifti(path: Path) -> Volume:
    nibabel = import_fmri("nibabel")
    # A memory-mapped file that is truncated while it is read would end the process.
    image = nibabel.load(path, mmap=False)
    data = np.asarray(image.dataobj, dtype=np.float64)
    data = data[..., 0] if data.ndim == 4 and data.shape[3] == 1 else data
    if data.ndim != 3:
        shape = " x ".join(map(str, data.shape))
        raise Refused(f"{shape} is not one volume: use streamlasso network RUN --atlas ATLAS for a whole run")
    return Volume(data, np.asarray(image.affine), *number_of(path))


def _read_dicom(path: Path) -> Volume:
    pydicom = import_fmri("pydicom")
    wrappers = import_fmri("nibabel.nicom.dicomwrappers")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Some scanners omit the preamble; a file that is not DICOM has no pixels either.
        dataset = pydicom.dcmread(path, force=True)
        if "PixelData" not in dataset:
            raise Unreadable("it holds no image")
        wrapper = wrappers.wrapper_from_data(dataset)
        series = str(dataset.get("SeriesInstanceUID", ""))
        if "MOSAIC" in dataset.get("ImageType", ()) and not wrapper.is_mosaic:
            raise Refused("a mosaic without a Siemens CSA header, so its number of slices is unknown", series)
        data = np.asarray(wrapper.get_data(), dtype=np.float64)
        if data.ndim != 3:
            shape = " x ".join(map(str, data.shape))
            raise Refused(
                f"{shape} is not one volume: export mosaics or enhanced DICOM, or convert slices with dcm2niix", series
            )
        affine = LPS_TO_RAS @ wrapper.affine
    return Volume(data, affine, series, _instance(dataset, path))


def _instance(dataset: Any, path: Path) -> int | None:
    for name in ("InstanceNumber", "AcquisitionNumber"):
        if dataset.get(name) is not None:
            return int(dataset[name].value)
    return number_of(path)[1]
