"""Files of a scanner -> the mean of each region of an atlas, as soon as a volume is whole."""

from __future__ import annotations

from pathlib import Path

from streamlasso.network.imaging.atlas import Atlas, grid, same_grid
from streamlasso.network.imaging.slices import Stacks
from streamlasso.network.imaging.volumes import Reading, Refused, Slice, Volume, read_volume


class RegionReader:
    """Files -> means over the regions of an atlas. The first volume fixes the grid; others of it are refused.

    notes : what fitting the atlas to that grid did, in words
    stacks : slices that are no whole volume yet
    """

    def __init__(self, atlas: Atlas) -> None:
        self.atlas = atlas
        self.fitted: Atlas | None = None
        self.notes: list[str] = []
        self.stacks = Stacks()

    def __call__(self, path: Path) -> list[Reading]:
        """The volumes that are whole by this file: one, or as many as its slice has completed."""
        found = read_volume(path)
        volumes = self.stacks.add(found) if isinstance(found, Slice) else [found]
        return [Reading(volume.series, volume.number, self._fitted(volume).means(volume.data)) for volume in volumes]

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
