"""A recorded run written to a folder volume by volume, at its own pace, as a scanner would."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from streamlasso.network.imaging.extras import import_fmri
from streamlasso.network.imaging.nifti import opened_run, seconds_per_volume
from streamlasso.network.imaging.volumes import is_volume
from streamlasso.network.options import check_tr, check_volumes


def replay(
    run: Path,
    folder: Path,
    tr: float | None = None,
    volumes: int | None = None,
    advance: Callable[[int, int], None] = lambda k, n: None,
) -> float:
    """Write the volumes of a 4-D image to `folder`, vol_0001.nii and so on; returns the largest delay in seconds.

    tr : seconds between volumes; None is what the image states
    advance : called after each volume with its number and the number of all
    """
    check_volumes(volumes)
    image = opened_run(run)
    seconds = seconds_per_volume(run, image) if tr is None else tr
    if seconds is None:
        raise ValueError(f"{run} does not state the time between volumes: add --tr")
    check_tr(seconds)
    folder.mkdir(parents=True, exist_ok=True)
    if any(is_volume(path) for path in folder.iterdir()):
        raise ValueError(f"{folder} already holds volumes: use an empty folder")
    n = image.shape[3] if volumes is None else min(volumes, image.shape[3])
    return _play(image, folder, seconds, n, advance)


def _play(image: Any, folder: Path, seconds: float, n: int, advance: Callable[[int, int], None]) -> float:
    nibabel = import_fmri("nibabel")
    start, largest_delay = time.monotonic(), 0.0
    for k in range(n):
        volume = nibabel.Nifti1Image(np.asanyarray(image.dataobj[..., k]), image.affine)
        due = start + k * seconds
        time.sleep(max(0.0, due - time.monotonic()))
        nibabel.save(volume, folder / f"vol_{k + 1:04d}.nii")
        largest_delay = max(largest_delay, time.monotonic() - due)
        advance(k + 1, n)
    return largest_delay
