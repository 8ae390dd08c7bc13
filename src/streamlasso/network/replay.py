"""A recorded run, played into a folder volume by volume at its true pace, as a scanner would."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from streamlasso.network.imaging.extras import needs_fmri
from streamlasso.network.imaging.nifti import opened_run, seconds_per_volume
from streamlasso.network.imaging.volumes import is_volume
from streamlasso.network.options import check_tr


def replay(
    run: Path,
    folder: Path,
    tr: float | None = None,
    volumes: int | None = None,
    advance: Callable[[int, int], None] = lambda k, n: None,
) -> float:
    """Write the volumes of a 4-D image to `folder`, vol_0001.nii and on; how late the latest was, in seconds.

    tr : seconds from volume to volume; None is what the image says
    """
    if volumes is not None and volumes < 1:
        raise ValueError(f"--volumes {volumes}: a number of volumes, 1 or more")
    with opened_run(run) as image:
        seconds = seconds_per_volume(run, image) if tr is None else tr
        if seconds is None:
            raise ValueError(f"{run}: it does not say how many seconds volumes are apart; give --tr")
        check_tr(seconds)
        folder.mkdir(parents=True, exist_ok=True)
        if any(is_volume(path) for path in folder.iterdir()):
            raise ValueError(f"{folder}: there are volumes in it already; name an empty folder")
        n = image.shape[3] if volumes is None else min(volumes, image.shape[3])
        return _play(image, folder, seconds, n, advance)


def _play(image: Any, folder: Path, seconds: float, n: int, advance: Callable[[int, int], None]) -> float:
    nibabel = needs_fmri("nibabel")
    start, latest = time.monotonic(), 0.0
    for k in range(n):
        volume = nibabel.Nifti1Image(np.asanyarray(image.dataobj[..., k]), image.affine)
        due = start + k * seconds
        time.sleep(max(0.0, due - time.monotonic()))
        nibabel.save(volume, folder / f"vol_{k + 1:04d}.nii")
        latest = max(latest, time.monotonic() - due)
        advance(k + 1, n)
    return latest
