"""A label atlas: which voxel belongs to which region, and means over regions, a volume at a time."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlasso.network.imaging.extras import needs_fmri
from streamlasso.network.imaging.series import named
from streamlasso.sources.delimited import distinct

if TYPE_CHECKING:
    from nibabel.spatialimages import SpatialImage

#: Two grids are the same if no voxel is off by more than so many mm.
SAME_GRID = 1e-3


@dataclass(frozen=True)
class Atlas:
    """Regions on a grid of voxels.

    labels : (x, y, z), 0 for no region, k for region k - 1; `affine` takes voxels to mm
    values, names : what the file calls region k - 1, as a number and in words
    """

    labels: np.ndarray
    affine: np.ndarray
    values: tuple[int, ...]
    names: tuple[str, ...]

    @cached_property
    def _inside(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the voxels of all regions are, in the order in which images lie in memory, and whose they are."""
        flat = self.labels.ravel(order="F")
        where = np.flatnonzero(flat)
        return where, flat[where] - 1

    @cached_property
    def sizes(self) -> np.ndarray:
        """Voxels of each region."""
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
        """The mean of a volume over each region: one pass over the voxels of regions."""
        where, whose = self._inside
        sums = np.bincount(whose, weights=volume.ravel(order="F")[where], minlength=len(self.names))
        with np.errstate(invalid="ignore", divide="ignore"):
            return sums / self.sizes

    def image(self) -> SpatialImage:
        """For nilearn: the labels as the file has them."""
        import nibabel

        lookup = np.array([0, *self.values], dtype=np.int32)
        return nibabel.Nifti1Image(lookup[self.labels], self.affine)

    def onto(self, shape: tuple[int, ...], affine: np.ndarray) -> tuple[Atlas, list[str]]:
        """On the grid of an image, each voxel with the label nearest to it; what that did, in words."""
        if same_grid(self.labels.shape, self.affine, shape, affine):
            return self, []
        moved = Atlas(self._nearest(shape, affine), np.asarray(affine), self.values, self.names)
        return moved, [_moved_words(self, moved, shape, affine)]

    def _nearest(self, shape: tuple[int, ...], affine: np.ndarray) -> np.ndarray:
        """The label of the voxel in which the centre of each voxel of another grid lies; 0 outside."""
        way = np.linalg.inv(self.affine) @ affine
        voxels = np.indices(shape).reshape(3, -1)
        i, j, k = np.rint(way[:3, :3] @ voxels + way[:3, [3]]).astype(int)
        inside = np.ones(len(i), dtype=bool)
        for index, side in zip((i, j, k), self.labels.shape, strict=True):
            inside &= (index >= 0) & (index < side)
        found = np.zeros(len(i), dtype=self.labels.dtype)
        found[inside] = self.labels[i[inside], j[inside], k[inside]]
        return found.reshape(shape)


def _moved_words(atlas: Atlas, moved: Atlas, shape: tuple[int, ...], affine: np.ndarray) -> str:
    lost = [name for name, size in zip(atlas.names, moved.sizes, strict=True) if size == 0]
    mine, other = grid(atlas.labels.shape, atlas.affine), grid(shape, affine)
    apart = "" if mine != other else f", {_corners_apart(shape, atlas.affine, affine):.3g} mm off at most"
    grids = f"the atlas ({mine}) and the image ({other}{apart})"
    if len(lost) > len(atlas.names) / 2:
        raise ValueError(
            f"{grids} do not overlap: {len(lost)} of {len(atlas.names)} regions have no voxel in the image. "
            "Bring both into one space first"
        )
    words = f"{grids} are on different grids; the atlas was resampled to the image, nearest label"
    return f"{words}; without voxels there, and left out: {named(lost)}" if lost else words


def _corners_apart(shape: tuple[int, ...], affine: np.ndarray, other: np.ndarray) -> float:
    """mm between the places to which two affines take the same corner, at most."""
    corners = np.array([[*corner, 1.0] for corner in np.ndindex(2, 2, 2)]) * [*(side - 1 for side in shape), 1.0]
    return float(np.linalg.norm(corners @ (np.asarray(affine) - other)[:3].T, axis=1).max())


def grid(shape: tuple[int, ...], affine: np.ndarray) -> str:
    """A grid in words.

    >>> import numpy as np
    >>> grid((91, 109, 91), np.diag([2.0, 2.0, 2.0, 1.0]))
    '91 x 109 x 91 voxels of 2 x 2 x 2 mm'
    """
    sides = np.sqrt((np.asarray(affine)[:3, :3] ** 2).sum(axis=0))
    return f"{' x '.join(map(str, shape))} voxels of {' x '.join(f'{side:.3g}' for side in sides)} mm"


def same_grid(shape: tuple[int, ...], affine: np.ndarray, other: tuple[int, ...], other_affine: np.ndarray) -> bool:
    """Whether the corners of two grids lie at the same places."""
    if tuple(shape) != tuple(other):
        return False
    corner = np.array([*shape, 1.0])
    apart = np.abs(np.asarray(affine) - np.asarray(other_affine))
    return bool((apart @ corner)[:3].max() < SAME_GRID)


# --- files ------------------------------------------------------------------------------------------------------------


def load_atlas(path: Path, names: Path | None = None) -> Atlas:
    """A 3-D NIfTI of labels. Names: from a file, else from a table or list beside the atlas, else "region 7"."""
    nibabel = needs_fmri("nibabel")
    try:
        image = nibabel.load(path)
        data = np.asanyarray(image.dataobj)
    except (nibabel.filebasedimages.ImageFileError, EOFError, OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ValueError(f"--atlas {path}: no image that can be read ({error})") from error
    data = data[..., 0] if data.ndim == 4 and data.shape[3] == 1 else data
    if data.ndim != 3:
        raise ValueError(
            f"--atlas {path}: {data.ndim} dimensions; a label atlas is one 3-D volume of whole numbers. "
            "Of a probabilistic atlas take each voxel's likeliest region"
        )
    rounded = np.rint(np.nan_to_num(data)).astype(int)
    if rounded.min() < 0 or not np.allclose(rounded, np.nan_to_num(data)):
        raise ValueError(f"--atlas {path}: labels are whole numbers, 0 for no region; this is another kind of image")
    found = np.unique(rounded)
    values = found[found > 0]
    if len(values) < 2:
        raise ValueError(f"--atlas {path}: {len(values)} regions; a network needs two or more")
    labels = np.searchsorted(values, rounded) + 1
    labels[rounded == 0] = 0
    known = distinct(list(read_names(names or _beside(path), values.tolist())))
    return Atlas(labels, np.asarray(image.affine), tuple(values.tolist()), tuple(known))


def read_names(path: Path | None, values: list[int]) -> tuple[str, ...]:
    """A name for each value: from a table with a column of them (BIDS, AAL, FreeSurfer), or a name a line."""
    if path is None:
        return tuple(f"region {value}" for value in values)
    lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    delimiter = next((mark for mark in "\t;," if lines and mark in lines[0]), None)
    rows = [[cell.strip() for cell in _split(line, delimiter)] for line in lines]
    known = _numbered_names(rows, values)
    if known:
        return tuple(known.get(value) or f"region {value}" for value in values)
    if len(lines) != len(values):
        raise ValueError(
            f"{path}: {len(lines)} names for {len(values)} regions; a name a line for each, "
            "or a table with the columns index and name"
        )
    return tuple(lines)


def _split(line: str, delimiter: str | None) -> list[str]:
    return line.split() if delimiter is None else next(csv.reader([line], delimiter=delimiter))


def _numbered_names(rows: list[list[str]], values: list[int]) -> dict[int, str]:
    """The names by number. The columns are told by a first line with index and name, else by what is in them."""
    head = [cell.lower() for cell in rows[0]] if rows else []
    if {"index", "name"} <= set(head):
        number, name = head.index("index"), head.index("name")
    else:
        whole = [row for row in rows if len(row) > 1]
        width = min(map(len, whole), default=0)
        numbers = [k for k in range(width) if set(values) <= {int(row[k]) for row in whole if row[k].isdigit()}]
        words = [k for k in range(width) if not any(_is_number(row[k]) for row in whole)]
        if not numbers or not words:
            return {}
        number, name = numbers[0], words[0]
        # "Area 1", "Area 2" are names, not a table with blanks between its columns.
        if len({row[name] for row in whole}) < len(whole):
            return {}
    rows = [row for row in rows if len(row) > max(number, name)]
    return {int(row[number]): row[name] for row in rows if row[number].isdigit()}


def _is_number(text: str) -> bool:
    try:
        return bool(text) and np.isfinite(float(text))
    except ValueError:
        return False


def _beside(path: Path) -> Path | None:
    stem = path.name.removesuffix(".gz").removesuffix(".nii")
    for suffix in (".tsv", ".csv", ".txt"):
        if (beside := path.with_name(stem + suffix)).exists():
            return beside
    return None


def read_coords(path: Path, regions: tuple[str, ...]) -> np.ndarray:
    """(p, 3) mm: a table with x, y, z, and a name a row; or a row for each region, in their order."""
    text = path.read_text(encoding="utf-8-sig")
    head = next(csv.reader(text.splitlines()[:1], delimiter="\t" if "\t" in text else ","), [])
    rows: list[dict[str, Any]] = list(
        csv.DictReader(
            text.splitlines()[1:], [cell.strip().lower() for cell in head], delimiter="\t" if "\t" in text else ","
        )
    )
    if not {"x", "y", "z"} <= {cell.strip().lower() for cell in head}:
        raise ValueError(f"--coords {path}: the columns x, y, z (mm) are needed, and name if in another order")
    try:
        places = [[float(row[axis]) for axis in "xyz"] for row in rows]
    except (TypeError, ValueError) as error:
        raise ValueError(f"--coords {path}: x, y and z are numbers ({error})") from error
    if rows and "name" in rows[0]:
        known = {str(row["name"]).strip(): place for row, place in zip(rows, places, strict=True)}
        lacking = [name for name in regions if name not in known]
        if lacking:
            raise ValueError(f"--coords {path}: no row for {named(lacking)}")
        return np.array([known[name] for name in regions])
    if len(places) != len(regions):
        raise ValueError(f"--coords {path}: {len(places)} rows for {len(regions)} regions; add a column of names")
    return np.array(places)
