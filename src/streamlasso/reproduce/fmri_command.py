"""The command `reproduce fmri`: options -> calls. Nothing heavy is imported before it runs."""

from __future__ import annotations

from pathlib import Path

from streamlasso._files import make_directory


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
    """Is lam lower while emotional faces are shown? The paper's application, with a test for each subject.

    Example: streamlasso reproduce fmri --data hcp_emotion --out reproduce

    Parameters
    ----------
    data
        A folder with region series, one file per subject, and a BIDS events.tsv.
    tr
        Seconds between time points.
    start
        Time of the first time point on the clock of the events, in seconds; the default is one dropped volume.
    emotion
        The condition with emotional faces, as named in events.tsv.
    neutral
        The condition that it is compared with.
    delay
        Haemodynamic delay in seconds.
    out
        The directory for the folder fmri and for index.html; created if needed.
    """
    from streamlasso.reproduce.fmri import Task, run_fmri

    make_directory(out)
    print(run_fmri(data, out, tr, start, Task(emotion, neutral, delay)))
    print(f"Open {out / 'index.html'} in a browser; tables and figures are in {out / 'fmri'}.")
