"""The commands `network`, `replay` and `reproduce fmri`: arguments -> calls.

Nothing heavy is imported before one of them is run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from streamlasso._files import make_directory


def network(
    *data: Path,
    watch: Path | None = None,
    atlas: Path | None = None,
    labels: Path | None = None,
    coords: Path | None = None,
    events: Path | None = None,
    confounds: str | None = None,
    confound_columns: list[str] | None = None,
    tr: float | None = None,
    start: float = 0.0,
    delay: float = 5.0,
    at: list[str] | None = None,
    memory: float = 0.95,
    tuner: Literal["logrms", "lars", "sgd", "mixture"] = "logrms",
    step_size: float | None = None,
    rule: Literal["and", "or"] = "and",
    family: Literal["gaussian", "binomial"] = "gaussian",
    jobs: int | None = None,
    volumes: int | None = None,
    idle: float | None = None,
    patience: float | None = None,
    pattern: str | None = None,
    out: Path = Path("network"),
) -> None:
    """Which regions depend on which, given all others, moment by moment; recorded, or from a scanner as it scans.

    Example: streamlasso network subject_1.csv subject_2.csv --tr 0.72 --events events.tsv

    Example: streamlasso network sub-01_task-rest_bold.nii.gz --atlas aal.nii.gz --confounds auto

    Example: streamlasso network --watch /scanner/incoming --atlas aal.nii.gz --tr 0.72 --volumes 405

    Parameters
    ----------
    data
        A file a subject, or folders of them: region series (CSV, TSV, .txt, Parquet, Arrow, .npy, .npz; a row a time
        point, a column a region), or 4-D NIfTI images, which need --atlas.
    watch
        A folder into which a scanner writes a NIfTI or DICOM file a volume, or a DICOM file a slice, instead of data.
    atlas
        A 3-D NIfTI of labels, 0 for no region.
    labels
        The regions' names: a table with the columns index and name, or a name a line. Left out: a .tsv, .csv or .txt of
        the atlas' name beside it.
    coords
        A table with x, y, z (mm) and name, for the glass brain. Left out: the atlas' centres, else a circle is drawn.
    events
        A BIDS events.tsv for all subjects. Left out: the one that belongs to each image, if it has a BIDS name.
    confounds
        A BIDS confounds file to be regressed out, or auto for the one beside each image.
    confound_columns
        Which columns of it; cosine* is all that begin so. Left out: motion, white matter, csf and cosines.
    tr
        Seconds from volume to volume. Left out: what the image or its sidecar says.
    start
        Seconds from the clock of the events to the first time point, if volumes were dropped.
    delay
        Seconds from an event to the answer of the blood, for the means over blocks.
    at
        Moments (seconds; time points without --tr) to draw the network at, instead of the means over blocks: 30,60,90.
    memory
        How the past fades: a forgetting factor, or a number of time points such as 60.
    tuner
        How each region's lam moves; lars with --step-size 0.025 is what the paper's authors ran.
    step_size
        The tuner's step. lars and sgd need one; mixture has none.
    rule
        An edge needs both of a pair's two coefficients (and), or one of them (or).
    family
        binomial for series of 0 and 1: votes, spikes.
    jobs
        Subjects at a time. Left out: 1, which uses all cores as it is.
    volumes
        With --watch: stop after so many volumes. Ctrl-C stops too.
    idle
        With --watch: stop after so many seconds without a volume.
    patience
        With --watch: seconds to wait for a volume that is missing, or a file that is broken. Left out: 5.
    pattern
        With --watch: only files with such names, say run2_*.nii.
    out
        The directory for the tables, figures and report.html; made if it is not there.
    """
    from streamlasso.network.command import follow_and_report, watch_and_report
    from streamlasso.network.live import Watching
    from streamlasso.network.options import Design, Images, Model

    if (watch is None) == (not data):
        raise ValueError("name one or more files or folders to learn, or a folder to --watch; not both")
    if watch is None:
        live = {"--volumes": volumes, "--idle": idle, "--patience": patience, "--pattern": pattern}
        _refuse_given(live, "only of use with --watch FOLDER; leave it out")
    else:
        recorded = {"--confounds": confounds, "--confound-columns": confound_columns, "--jobs": jobs}
        _refuse_given(recorded, "of no use with --watch, where volumes come one by one; leave it out")
    images = Images(atlas, labels, coords, confounds, _listed(confound_columns))
    design = Design(events, tr, start, delay, _moments(_listed(at)))
    model = Model(memory, tuner, step_size, rule, family)
    watching = Watching(volumes, idle, 5.0 if patience is None else patience, pattern or "*")
    make_directory(out)
    if watch is None:
        follow_and_report(data, out, images, design, model, 1 if jobs is None else jobs)
    else:
        watch_and_report(watch, out, images, design, model, watching)


def replay(run: Path, folder: Path, /, *, tr: float | None = None, volumes: int | None = None) -> None:
    """Play a recorded run into a folder, a volume at a time at its true pace, for streamlasso network --watch.

    Example: streamlasso replay sub-01_bold.nii.gz incoming --tr 0.72

    Parameters
    ----------
    run
        A 4-D NIfTI image.
    folder
        Where vol_0001.nii and so on are written; made if it is not there.
    tr
        Seconds from volume to volume. Left out: what the image says.
    volumes
        So many of them. Left out: all.
    """
    from rich.console import Console
    from rich.progress import Progress

    from streamlasso.network.replay import replay as play

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("volumes")
        late = play(run, folder, tr, volumes, lambda done, n: bar.update(task, completed=done, total=n))
    print(f"All written to {folder}; the latest was {1000 * late:.0f} ms behind its time.")


def fmri(
    *,
    data: Path,
    tr: float = 0.72,
    start: float = 0.72,
    emotion: str = "fear",
    neutral: str = "neutral",
    delay: float = 5.0,
    out: Path = Path("reproduce"),
) -> None:
    """Is lam lower while emotional faces are shown? The paper's application, with a test, subject by subject.

    Example: streamlasso reproduce fmri --data ../shared/data/hcp_emotion --out reproduce

    Parameters
    ----------
    data
        A folder with region series, a file a subject, and a BIDS events.tsv.
    tr
        Seconds from time point to time point.
    start
        Seconds from the clock of the events to the first time point; the default is one dropped volume.
    emotion
        The condition with emotional faces, as events.tsv calls it.
    neutral
        The condition that it is compared with.
    delay
        Seconds from a block to the answer of the blood.
    out
        The directory for the folder fmri and for index.html; made if it is not there.
    """
    from streamlasso.reproduce.fmri import Task, run_fmri

    make_directory(out)
    print(run_fmri(data, out, tr, start, Task(emotion, neutral, delay)))
    print(f"Open {out / 'index.html'} in a browser; tables and figures are in {out / 'fmri'}.")


def _refuse_given(options: Mapping[str, object], words: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise ValueError(f"{name}: {words}")


def _listed(written: list[str] | None) -> tuple[str, ...]:
    """One by one, or with commas between them."""
    return tuple(name for item in written or () for name in item.split(","))


def _moments(written: tuple[str, ...]) -> tuple[float, ...]:
    try:
        moments = tuple(float(moment) for moment in written)
    except ValueError:
        moments = (math.nan,)
    if not all(map(math.isfinite, moments)):
        raise ValueError(f"--at {','.join(written)}: numbers with commas between them, say 30,60,90")
    return moments
