"""Slices that arrive one by one -> volumes: a volume is complete once it has a slice at every expected position."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from streamlasso.network.imaging.volumes import VOLUME_NUMBERS, Refused, Slice, Volume

#: Incomplete volumes kept per series; the slices of the oldest are dropped.
MAX_WAITING = 50
#: Largest spread of the distances between slices, relative to their mean.
SPACING_TOLERANCE = 0.05

Places = dict[float, Slice]


@dataclass
class Stacks:
    """The slices of incomplete volumes, by series and number of the volume.

    No DICOM field of all scanners holds the number of slices of a volume. So the first two volumes of a series with
    slices at the same, evenly spaced positions define where its slices are; until then volumes wait.
    """

    _waiting: dict[str, dict[int, Places]] = field(default_factory=dict)
    _places: dict[str, frozenset[float]] = field(default_factory=dict)

    def add(self, piece: Slice) -> list[Volume]:
        """The volumes that this slice completes."""
        volumes = self._waiting.setdefault(piece.series, {})
        volume = volumes.setdefault(piece.number, {})
        self._check(piece, volume)
        volume[piece.place] = piece
        known = piece.series in self._places
        if not known and any(other is not volume and other.keys() == volume.keys() for other in volumes.values()):
            self._settle(piece.series, volume)
        places = self._places.get(piece.series)
        candidates = [piece.number] if known else sorted(volumes)
        complete = [number for number in candidates if volumes[number].keys() == places]
        if len(volumes) - len(complete) > MAX_WAITING:
            del volumes[min(volumes.keys() - set(complete))]
        return [_stacked(volumes.pop(number)) for number in complete]

    def _check(self, piece: Slice, volume: Places) -> None:
        if piece.place in volume:
            raise Refused(
                f"a second slice at the same position in volume {piece.number}: {' or '.join(VOLUME_NUMBERS)} does not "
                "distinguish the volumes",
                piece.series,
            )
        other = next(iter(volume.values()), piece)
        if piece.data.shape != other.data.shape or not np.allclose(
            piece.affine[:3, :3], other.affine[:3, :3], atol=1e-3
        ):
            raise Refused(f"its shape or orientation differs from other slices of volume {piece.number}", piece.series)
        places = self._places.get(piece.series)
        if places is not None and piece.place not in places:
            raise Refused(
                f"a slice of volume {piece.number} at {piece.place:g} mm, where earlier volumes have none "
                f"({len(places)} slices from {min(places):g} to {max(places):g} mm)",
                piece.series,
            )

    def _settle(self, series: str, volume: Places) -> None:
        spacing = np.diff(sorted(volume))
        if len(spacing) and np.ptp(spacing) <= SPACING_TOLERANCE * spacing.mean():
            self._places[series] = frozenset(volume)

    def partial(self, series: str | None, number: int | None) -> str:
        """How many slices of an incomplete volume there are, as text; "" if there are none."""
        n = len(self._waiting.get(series or "", {}).get(number or 0, ()))
        return f"{n} of {len(self._places[series or ''])} slices" if n and series in self._places else ""

    @property
    def n_waiting(self) -> int:
        """The number of slices of incomplete volumes."""
        return sum(len(volume) for volumes in self._waiting.values() for volume in volumes.values())


def _stacked(volume: Places) -> Volume:
    """Slices in order of position; the affine is from their positions, not from the header's slice thickness."""
    pieces = [volume[place] for place in sorted(volume)]
    first, last = pieces[0], pieces[-1]
    affine = first.affine.copy()
    affine[:3, 2] = (last.affine[:3, 3] - first.affine[:3, 3]) / (len(pieces) - 1)
    return Volume(np.stack([piece.data for piece in pieces], axis=2), affine, first.series, first.number)
