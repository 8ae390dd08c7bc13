"""The commands `network` and `replay`: options -> calls. Nothing heavy is imported before one of them runs."""

from __future__ import annotations

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
    memory: float = 0.95,
    tuner: str = "logrms",
    step_size: float | None = None,
    rule: Literal["and", "or"] = "and",
    family: str = "gaussian",
    volumes: int | None = None,
    idle: float | None = None,
    patience: float | None = None,
    pattern: str | None = None,
    out: Path = Path("network"),
) -> None:
    """Learn which regions depend on which, given all others, over time: recorded, or live from a scanner.

    Example: streamlasso network subject_1.csv subject_2.csv --tr 0.72 --events events.tsv

    Example: streamlasso network sub-01_task-rest_bold.nii.gz --atlas aal.nii.gz --confounds auto

    Example: streamlasso network --watch /scanner/incoming --atlas aal.nii.gz --tr 0.72 --volumes 405

    Parameters
    ----------
    data
        One file per subject, or folders of them: region series (CSV, TSV, .txt, Parquet, Arrow, .npy, .npz) with one
        row per time point and one column per region, or 4-D NIfTI images, which need --atlas.
    watch
        Instead of data, a folder into which a scanner writes one NIfTI or DICOM file per volume.
    atlas
        A 3-D NIfTI of labels, 0 for no region.
    labels
        The names of the regions: a table with the columns index and name, or one name per line. Default: a .tsv, .csv
        or .txt file beside the atlas, with the same name.
    coords
        A table with x, y, z (mm) and name, for the glass brain. Default: the centres of the atlas regions; for region
        series a circle is drawn.
    events
        A BIDS events.tsv for all subjects. Default: the one that belongs to each image with a BIDS name.
    confounds
        A BIDS confounds file to regress out, or auto for the one beside each image.
    confound_columns
        Its columns to use; cosine* is every column that starts so. Default: motion, white matter, csf and cosines.
    tr
        Seconds between volumes. Default: what the image or its sidecar states.
    start
        Time of the first time point on the clock of the events, in seconds; not 0 if volumes were dropped.
    delay
        Haemodynamic delay in seconds: means over blocks are taken this much later.
    memory
        How the past is forgotten: a forgetting factor, or a number of time points such as 60.
    tuner
        How each region's lam moves: logrms, mixture, lars or sgd; lars with --step-size 0.025 is what the paper's
        authors ran.
    step_size
        The step of the tuner. lars and sgd need one; mixture has none.
    rule
        Whether an edge needs both coefficients of a pair (and), or one of them (or).
    family
        binomial for series of 0 and 1: votes, spikes.
    volumes
        With --watch: stop after this many volumes. Ctrl-C stops too.
    idle
        With --watch: stop after this many seconds without a volume.
    patience
        With --watch: seconds to wait for a missing volume or a broken file. Default: 5.
    pattern
        With --watch: only files whose names match, for example run2_*.nii.
    out
        The directory for the tables, figures and report.html; created if needed.
    """
    from streamlasso.network.options import Design, Images, Model, Watching

    if (watch is None) == (not data):
        raise ValueError("nothing to learn: name files or folders, or a folder to --watch, but not both")
    if watch is None:
        live = {"--volumes": volumes, "--idle": idle, "--patience": patience, "--pattern": pattern}
        _refuse_given(live, "is only for --watch FOLDER: omit it")
    else:
        recorded = {"--confounds": confounds, "--confound-columns": confound_columns}
        _refuse_given(recorded, "does not work with --watch, where volumes arrive one by one: omit it")
    images = Images(atlas, labels, coords, confounds, _split(confound_columns))
    design = Design(events, tr, start, delay)
    model = Model(memory, tuner, step_size, rule, family)
    watching = Watching(volumes, idle, 5.0 if patience is None else patience, pattern or "*")
    make_directory(out)

    from streamlasso.network.command import run_live, run_recorded

    if watch is None:
        run_recorded(data, out, images, design, model)
    else:
        run_live(watch, out, images, design, model, watching)


def replay(run: Path, folder: Path, /, *, tr: float | None = None, volumes: int | None = None) -> None:
    """Write a recorded run to a folder one volume at a time, at its own pace, for streamlasso network --watch.

    Example: streamlasso replay sub-01_bold.nii.gz incoming --tr 0.72

    Parameters
    ----------
    run
        A 4-D NIfTI image.
    folder
        Where vol_0001.nii and so on are written; created if needed.
    tr
        Seconds between volumes. Default: what the image states.
    volumes
        Write only the first volumes. Default: all.
    """
    from rich.console import Console
    from rich.progress import Progress

    from streamlasso._terminal import say
    from streamlasso.network.imaging.replay import replay as play

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("volumes")
        delay = play(run, folder, tr, volumes, lambda done, n: bar.update(task, completed=done, total=n))
    say(f"All volumes are in {folder}; the largest delay was {1000 * delay:.0f} ms.")


def _refuse_given(options: Mapping[str, object], reason: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise ValueError(f"{name} {reason}")


def _split(values: list[str] | None) -> tuple[str, ...]:
    """Values given one by one, or separated by commas."""
    return tuple(name for value in values or () for name in value.split(","))
