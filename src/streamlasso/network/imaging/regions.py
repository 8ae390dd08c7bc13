"""Files from a scanner -> the mean of each region of an atlas, as soon as a volume is complete."""

from __future__ import annotations

from pathlib import Path

from streamlasso.network.imaging.atlas import Atlas, grid, same_grid
from streamlasso.network.imaging.slices import Stacks
from streamlasso.network.imaging.volumes import Reading, Refused, Slice, Volume, read_volume


class RegionReader:
    """File -> means over the regions of an atlas. Volumes on another grid than the first are refused.

    fitted : the atlas on the grid of the first volume
    notes : what resampling the atlas to that grid did
    stacks : slices of incomplete volumes
    """

    def __init__(self, atlas: Atlas) -> None:
        self.atlas = atlas
        self.fitted: Atlas | None = None
        self.notes: list[str] = []
        self.stacks = Stacks()

    def __call__(self, path: Path) -> list[Reading]:
        """The volumes that this file completes: one, or several if its slice showed how many slices a volume has."""
        found = read_volume(path)
        volumes = self.stacks.add(found) if isinstance(found, Slice) else [found]
        return [Reading(volume.series, volume.number, self._atlas_for(volume).means(volume.data)) for volume in volumes]

    def _atlas_for(self, volume: Volume) -> Atlas:
        if self.fitted is None:
            self.fitted, self.notes = self.atlas.onto(volume.data.shape, volume.affine)
        elif not same_grid(self.fitted.labels.shape, self.fitted.affine, volume.data.shape, volume.affine):
            raise Refused(
                f"its grid ({grid(volume.data.shape, volume.affine)}) differs from the first volume's "
                f"({grid(self.fitted.labels.shape, self.fitted.affine)})",
                volume.series,
                volume.number,
            )
        return self.fitted
