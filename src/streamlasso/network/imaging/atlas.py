"""A label atlas: which voxel belongs to which region, and the mean of a volume over each region."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlasso._text import listed
from streamlasso.data.sources.base import distinct
from streamlasso.network.imaging.extras import import_fmri
from streamlasso.network.imaging.series import MAX_NAMES

if TYPE_CHECKING:
    from nibabel.spatialimages import SpatialImage

#: Grids that differ by less than this, in mm, are the same.
GRID_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Atlas:
    """Regions on a grid of voxels.

    labels : (x, y, z), 0 for no region, k for region k - 1
    affine : from voxels to mm
    values, names : the label of each region in the file, and its name
    """

    labels: np.ndarray
    affine: np.ndarray
    values: tuple[int, ...]
    names: tuple[str, ...]

    @cached_property
    def _inside(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions of the voxels in any region (Fortran order, as images are stored), and the region of each."""
        flat = self.labels.ravel(order="F")
        voxels = np.flatnonzero(flat)
        return voxels, flat[voxels] - 1

    @cached_property
    def sizes(self) -> np.ndarray:
        """The number of voxels in each region."""
        return np.bincount(self._inside[1], minlength=len(self.names))

    @property
    def centres(self) -> np.ndarray:
        """(p, 3): the centre of mass of each region, in mm; nan for one without voxels."""
        axes = np.unravel_index(self._inside[0], self.labels.shape, order="F")
        sums = [np.bincount(self._inside[1], weights=axis, minlength=len(self.names)) for axis in axes]
        with np.errstate(invalid="ignore", divide="ignore"):
            centres = np.column_stack(sums) / self.sizes[:, None]
        return centres @ self.affine[:3, :3].T + self.affine[:3, 3]

    def means(self, volume: np.ndarray) -> np.ndarray:
        """The mean of a volume over each region, in one pass over the voxels of regions."""
        voxels, regions = self._inside
        sums = np.bincount(regions, weights=volume.ravel(order="F")[voxels], minlength=len(self.names))
        with np.errstate(invalid="ignore", divide="ignore"):
            return sums / self.sizes

    def image(self) -> SpatialImage:
        """The labels of the file, as an image for nilearn."""
        import nibabel

        lookup = np.array([0, *self.values], dtype=np.int32)
        return nibabel.Nifti1Image(lookup[self.labels], self.affine)

    def onto(self, shape: tuple[int, ...], affine: np.ndarray) -> tuple[Atlas, list[str]]:
        """The atlas on the grid of an image, each voxel with its nearest label; and a note if it was resampled."""
        if same_grid(self.labels.shape, self.affine, shape, affine):
            return self, []
        resampled = Atlas(self._nearest(shape, affine), np.asarray(affine), self.values, self.names)
        return resampled, [_resampling_note(self, resampled)]

    def _nearest(self, shape: tuple[int, ...], affine: np.ndarray) -> np.ndarray:
        """The label of the voxel in which the centre of each voxel of another grid lies; 0 outside."""
        to_atlas = np.linalg.inv(self.affine) @ affine
        voxels = np.indices(shape).reshape(3, -1)
        i, j, k = np.rint(to_atlas[:3, :3] @ voxels + to_atlas[:3, [3]]).astype(int)
        inside = np.ones(len(i), dtype=bool)
        for index, side in zip((i, j, k), self.labels.shape, strict=True):
            inside &= (index >= 0) & (index < side)
        found = np.zeros(len(i), dtype=self.labels.dtype)
        found[inside] = self.labels[i[inside], j[inside], k[inside]]
        return found.reshape(shape)


def _resampling_note(atlas: Atlas, resampled: Atlas) -> str:
    lost = [name for name, size in zip(atlas.names, resampled.sizes, strict=True) if size == 0]
    shape, affine = resampled.labels.shape, resampled.affine
    mine, other = grid(atlas.labels.shape, atlas.affine), grid(shape, affine)
    apart = "" if mine != other else f", up to {_largest_offset(shape, atlas.affine, affine):.3g} mm off"
    grids = f"the atlas ({mine}) and the image ({other}{apart})"
    if len(lost) > len(atlas.names) / 2:
        raise ValueError(
            f"{grids} do not overlap: {len(lost)} of {len(atlas.names)} regions have no voxel in the image. "
            "Register both to the same space first"
        )
    note = f"{grids} are on different grids; the atlas was resampled to the image by nearest label"
    return f"{note}; left out, without voxels there: {listed(lost, MAX_NAMES)}" if lost else note


def _largest_offset(shape: tuple[int, ...], affine: np.ndarray, other: np.ndarray) -> float:
    """The largest distance in mm between the positions of the same corner under two affines."""
    corners = np.array([[*corner, 1.0] for corner in np.ndindex(2, 2, 2)]) * [*(side - 1 for side in shape), 1.0]
    return float(np.linalg.norm(corners @ (np.asarray(affine) - other)[:3].T, axis=1).max())


def grid(shape: tuple[int, ...], affine: np.ndarray) -> str:
    """A grid as text.

    >>> import numpy as np
    >>> grid((91, 109, 91), np.diag([2.0, 2.0, 2.0, 1.0]))
    '91 x 109 x 91 voxels of 2 x 2 x 2 mm'
    """
    sides = np.sqrt((np.asarray(affine)[:3, :3] ** 2).sum(axis=0))
    return f"{' x '.join(map(str, shape))} voxels of {' x '.join(f'{side:.3g}' for side in sides)} mm"


def same_grid(shape: tuple[int, ...], affine: np.ndarray, other: tuple[int, ...], other_affine: np.ndarray) -> bool:
    """Whether the corners of two grids are at the same positions."""
    if tuple(shape) != tuple(other):
        return False
    corner = np.array([*shape, 1.0])
    apart = np.abs(np.asarray(affine) - np.asarray(other_affine))
    return bool((apart @ corner)[:3].max() < GRID_TOLERANCE)


# --- files ------------------------------------------------------------------------------------------------------------


def load_atlas(path: Path, names: Path | None = None) -> Atlas:
    """A 3-D NIfTI of labels. Names: from a file, else from a table or list beside the atlas, else "region 7"."""
    affine, labels = _read_labels(path)
    found = np.unique(labels)
    values = found[found > 0]
    if len(values) < 2:
        raise ValueError(f"--atlas {path} has {len(values)} regions: a network needs two or more")
    numbers = np.searchsorted(values, labels) + 1
    numbers[labels == 0] = 0
    unique_names = distinct(list(read_names(names or _names_beside(path), values.tolist())))
    return Atlas(numbers, affine, tuple(values.tolist()), tuple(unique_names))


def _read_labels(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The affine, and (x, y, z) whole numbers."""
    nibabel = import_fmri("nibabel")
    try:
        image = nibabel.load(path)
        data = np.asanyarray(image.dataobj)
    except (nibabel.filebasedimages.ImageFileError, EOFError, OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ValueError(f"--atlas {path} cannot be read as an image ({error})") from error
    data = data[..., 0] if data.ndim == 4 and data.shape[3] == 1 else data
    if data.ndim != 3:
        raise ValueError(
            f"--atlas {path} has {data.ndim} dimensions, not 3: use a label atlas, one volume of whole numbers. "
            "From a probabilistic atlas take the most likely region of each voxel"
        )
    labels = np.rint(np.nan_to_num(data)).astype(int)
    if labels.min() < 0 or not np.allclose(labels, np.nan_to_num(data)):
        raise ValueError(f"--atlas {path} is not a label atlas: use whole numbers, 0 for no region")
    return np.asarray(image.affine), labels


def read_names(path: Path | None, values: list[int]) -> tuple[str, ...]:
    """A name for each label: from a table with a column of labels (BIDS, AAL, FreeSurfer), or one name per line."""
    if path is None:
        return tuple(f"region {value}" for value in values)
    lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    delimiter = next((mark for mark in "\t;," if lines and mark in lines[0]), None)
    by_label = _names_by_label([[cell.strip() for cell in _split(line, delimiter)] for line in lines], values)
    if by_label:
        return tuple(by_label.get(value) or f"region {value}" for value in values)
    if len(lines) != len(values):
        raise ValueError(
            f"{path} has {len(lines)} names for {len(values)} regions: use one name per line for each region, "
            "or a table with the columns index and name"
        )
    return tuple(lines)


def _split(line: str, delimiter: str | None) -> list[str]:
    return line.split() if delimiter is None else next(csv.reader([line], delimiter=delimiter))


def _names_by_label(rows: list[list[str]], values: list[int]) -> dict[int, str]:
    """The names by label, or {} if this is not a table of both."""
    columns = _label_and_name_columns(rows, values)
    if columns is None:
        return {}
    label, name = columns
    rows = [row for row in rows if len(row) > max(columns)]
    return {int(row[label]): row[name] for row in rows if row[label].isdigit()}


def _label_and_name_columns(rows: list[list[str]], values: list[int]) -> tuple[int, int] | None:
    """By a header with index and name, else by the contents: all labels in one column, only text in the other."""
    header = [cell.lower() for cell in rows[0]] if rows else []
    if {"index", "name"} <= set(header):
        return header.index("index"), header.index("name")
    whole = [row for row in rows if len(row) > 1]
    width = min(map(len, whole), default=0)
    labels = [k for k in range(width) if set(values) <= {int(row[k]) for row in whole if row[k].isdigit()}]
    names = [k for k in range(width) if not any(_is_number(row[k]) for row in whole)]
    # "Area 1", "Area 2" are names of two words, not a table separated by spaces.
    if not labels or not names or len({row[names[0]] for row in whole}) < len(whole):
        return None
    return labels[0], names[0]


def _is_number(text: str) -> bool:
    try:
        return bool(text) and np.isfinite(float(text))
    except ValueError:
        return False


def _names_beside(path: Path) -> Path | None:
    stem = path.name.removesuffix(".gz").removesuffix(".nii")
    candidates = [path.with_name(stem + suffix) for suffix in (".tsv", ".csv", ".txt")]
    return next((candidate for candidate in candidates if candidate.exists()), None)


def read_coords(path: Path, regions: tuple[str, ...]) -> np.ndarray:
    """(p, 3) in mm: a table with x, y, z and name; or without names, one row per region in their order."""
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    delimiter = "\t" if any("\t" in line for line in lines) else ","
    header = [cell.strip().lower() for cell in next(csv.reader(lines[:1], delimiter=delimiter), [])]
    if not {"x", "y", "z"} <= set(header):
        raise ValueError(f"--coords {path} has no columns x, y, z: use these (in mm), and name unless in atlas order")
    rows: list[dict[str, Any]] = list(csv.DictReader(lines[1:], header, delimiter=delimiter))
    try:
        places = [[float(row[axis]) for axis in "xyz"] for row in rows]
    except (TypeError, ValueError) as error:
        raise ValueError(f"--coords {path}: x, y and z must be numbers ({error})") from error
    if rows and "name" in rows[0]:
        names = [str(row["name"]).strip() for row in rows]
        return _coords_by_name(path, dict(zip(names, places, strict=True)), regions)
    if len(places) != len(regions):
        raise ValueError(f"--coords {path} has {len(places)} rows for {len(regions)} regions: add a column name")
    return np.array(places)


def _coords_by_name(path: Path, places: dict[str, list[float]], regions: tuple[str, ...]) -> np.ndarray:
    absent = [name for name in regions if name not in places]
    if absent:
        raise ValueError(f"--coords {path} has no row for {listed(absent, MAX_NAMES)}: add it")
    return np.array([places[name] for name in regions])
