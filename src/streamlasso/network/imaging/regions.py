"""Files from a scanner -> the mean of each region of an atlas."""

from __future__ import annotations

from pathlib import Path

from streamlasso.network.imaging.atlas import Atlas, grid, same_grid
from streamlasso.network.imaging.volumes import Reading, Refused, read_volume


class RegionReader:
    """File -> means over the regions of an atlas. Volumes on another grid than the first are refused.

    fitted : the atlas on the grid of the first volume
    notes : what resampling the atlas to that grid did
    """

    def __init__(self, atlas: Atlas) -> None:
        self.atlas = atlas
        self.fitted: Atlas | None = None
        self.notes: list[str] = []

    def __call__(self, path: Path) -> Reading:
        volume = read_volume(path)
        if self.fitted is None:
            self.fitted, self.notes = self.atlas.onto(volume.data.shape, volume.affine)
        elif not same_grid(self.fitted.labels.shape, self.fitted.affine, volume.data.shape, volume.affine):
            raise Refused(
                f"its grid ({grid(volume.data.shape, volume.affine)}) differs from the first volume's "
                f"({grid(self.fitted.labels.shape, self.fitted.affine)})",
                volume.series,
                volume.number,
            )
        return Reading(volume.series, volume.number, self.fitted.means(volume.data))
