"""Slices that come one by one -> volumes: a volume is whole once it has a slice at every place that others have."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from streamlasso.network.imaging.volumes import VOLUME_NUMBERS, Refused, Slice, Volume

#: Volumes that are waited for at a time; slices of older ones are let go.
MOST_WAITING = 50
#: How evenly the slices of a volume lie, as a share of the distance between two.
EVEN = 0.05

Places = dict[float, Slice]


@dataclass
class Stacks:
    """The slices of volumes that are not whole yet, by series and number of the volume.

    No header says for all scanners how many slices a volume has. So the first two volumes that have slices at the same
    places, evenly apart, say where slices lie in their series; until then volumes wait.
    """

    _waiting: dict[str, dict[int, Places]] = field(default_factory=dict)
    _places: dict[str, frozenset[float]] = field(default_factory=dict)

    def add(self, piece: Slice) -> list[Volume]:
        """The volumes that have become whole by this slice."""
        volumes = self._waiting.setdefault(piece.series, {})
        volume = volumes.setdefault(piece.number, {})
        self._check(piece, volume)
        volume[piece.place] = piece
        known = piece.series in self._places
        if not known and any(other is not volume and other.keys() == volume.keys() for other in volumes.values()):
            self._settle(piece.series, volume)
        places = self._places.get(piece.series)
        candidates = [piece.number] if known else sorted(volumes)
        whole = [number for number in candidates if volumes[number].keys() == places]
        if len(volumes) - len(whole) > MOST_WAITING:
            del volumes[min(volumes.keys() - set(whole))]
        return [_stacked(volumes.pop(number)) for number in whole]

    def _check(self, piece: Slice, volume: Places) -> None:
        if piece.place in volume:
            raise Refused(
                f"a second slice at the same place in volume {piece.number}: volumes cannot be told apart by "
                f"{' or '.join(VOLUME_NUMBERS)}",
                piece.series,
            )
        other = next(iter(volume.values()), piece)
        if piece.data.shape != other.data.shape or not np.allclose(
            piece.affine[:3, :3], other.affine[:3, :3], atol=1e-3
        ):
            raise Refused(f"a slice of another shape or direction than others of volume {piece.number}", piece.series)
        places = self._places.get(piece.series)
        if places is not None and piece.place not in places:
            raise Refused(
                f"a slice of volume {piece.number} at a place where the volumes before have none "
                f"({len(places)} slices from {min(places):g} to {max(places):g} mm; this one is at {piece.place:g} mm)",
                piece.series,
            )

    def _settle(self, series: str, volume: Places) -> None:
        apart = np.diff(sorted(volume))
        if len(apart) and np.ptp(apart) <= EVEN * apart.mean():
            self._places[series] = frozenset(volume)

    def came(self, series: str | None, number: int | None) -> str:
        """What there is of a volume that is not whole, in words."""
        some = len(self._waiting.get(series or "", {}).get(number or 0, ()))
        return f"{some} of {len(self._places[series or ''])} slices" if some and series in self._places else ""

    @property
    def n_waiting(self) -> int:
        """Slices that are no part of a whole volume."""
        return sum(len(volume) for volumes in self._waiting.values() for volume in volumes.values())


def _stacked(volume: Places) -> Volume:
    """From the lowest slice to the highest; the affine takes their real places, not the header's thickness."""
    pieces = [volume[place] for place in sorted(volume)]
    first, last = pieces[0], pieces[-1]
    affine = first.affine.copy()
    affine[:3, 2] = (last.affine[:3, 3] - first.affine[:3, 3]) / (len(pieces) - 1)
    return Volume(np.stack([piece.data for piece in pieces], axis=2), affine, first.series, first.number)
