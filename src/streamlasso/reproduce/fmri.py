"""The paper's application: is lam lower while emotional faces are shown? Region series with events, subject by subject.

The statistic is the mean lam in emotion blocks minus that in neutral blocks, relative to the mean of both; blocks are
moved by the haemodynamic delay. All subjects see the blocks in the same order, so they cannot be shuffled: the test
shifts the whole design around the scan, circularly, in the same way for all subjects. A linear trend of lam is removed
first, since the blocks have a fixed order. There are as many shifts as time points, and the smallest p is one in that
number (`least_p`); but neighbouring shifts are much alike, so that few of them are independent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow

from streamlasso._files import write_whole
from streamlasso._text import listed, markdown_table
from streamlasso.network import StreamingNetwork
from streamlasso.network.imaging.events import conditions_of
from streamlasso.network.imaging.nifti import is_nifti
from streamlasso.network.options import Design, Images
from streamlasso.network.results import follow_sparse, mean_over_nodes
from streamlasso.network.subjects import Subject, find_files, read_subject
from streamlasso.reproduce.fmri_figures import figures
from streamlasso.reproduce.page import write_index, write_study
from streamlasso.reproduce.parts import as_csv, write_table
from streamlasso.tuners import LARS, SGD, LogRMS

#: The paper's forgetting factor and step.
R, STEP = 0.95, 0.025
#: Time points whose lam still depends on the initial one: one length of the memory.
WARM_UP = 20
#: Haemodynamic delay in seconds, and the delays of the figure.
DELAY, DELAYS = 5.0, np.arange(0.0, 30.5, 1.0)
#: Setting -> parameters. The first is what the paper's authors ran, as far as one can tell.
SETTINGS: dict[str, dict[str, Any]] = {
    "rRAP: LARS(0.025)": dict(tuner=LARS(step_size=STEP)),
    "paper's equation: SGD(0.025)": dict(tuner=SGD(step_size=STEP)),
    "Algorithm 1 as printed: SGD(0.025), H before the row": dict(tuner=SGD(step_size=STEP), curvature="previous"),
    "default: LogRMS(0.05)": dict(tuner=LogRMS()),
    "default, four times the step: LogRMS(0.2)": dict(tuner=LogRMS(step_size=0.2)),
}


@dataclass(frozen=True)
class Task:
    """The two conditions that are compared, and the delay in seconds."""

    emotion: str = "fear"
    neutral: str = "neutral"
    delay: float = DELAY

    def __post_init__(self) -> None:
        if self.emotion == self.neutral:
            raise ValueError(f"--emotion {self.emotion} is also --neutral: the two conditions are the same")


@dataclass(frozen=True)
class BlockContrast:
    """One setting and one subject, or all subjects.

    neutral, emotion : mean lam in these blocks
    relative, detrended : (emotion - neutral)/mean, as it is and without a linear trend
    p, least_p : of the circular shifts, and the smallest one that is possible
    """

    setting: str
    subject: str
    neutral: float
    emotion: float
    relative: float
    detrended: float
    p: float
    least_p: float


# --- the test ---------------------------------------------------------------------------------------------------------


def contrast(lam: np.ndarray, conditions: np.ndarray, task: Task) -> np.ndarray:
    """(..., time) -> (...): mean lam in emotion blocks minus that in neutral ones.

    >>> import numpy as np
    >>> lam = np.array([1.0, 1.0, 3.0, 3.0])
    >>> float(contrast(lam, np.array(["fear", "fear", "neutral", "neutral"]), Task()))
    -2.0
    """
    return lam[..., conditions == task.emotion].mean(axis=-1) - lam[..., conditions == task.neutral].mean(axis=-1)


def shifted(lam: np.ndarray, conditions: np.ndarray, task: Task) -> np.ndarray:
    """(time, ...): the contrast for every circular shift of the design; the first is the design as it was."""
    return np.array([contrast(lam, np.roll(conditions, k), task) for k in range(lam.shape[-1])])


def p_value(contrasts: np.ndarray) -> float:
    """One-sided: the share of shifts, the true one among them, with a contrast that is as low.

    >>> import numpy as np
    >>> p_value(np.array([-3.0, -1.0, -4.0, 2.0]))
    0.5
    """
    return float(np.mean(contrasts <= contrasts[0] + 1e-12 * np.abs(contrasts).max()))


def relative(lam: np.ndarray) -> np.ndarray:
    """(subject, time), each in units of its mean, without its linear trend."""
    t = np.arange(lam.shape[-1]) - (lam.shape[-1] - 1) / 2
    scaled = lam / lam.mean(axis=-1, keepdims=True)
    slope = (scaled * t).sum(axis=-1, keepdims=True) / (t**2).sum()
    return scaled - slope * t


def least_p(conditions: np.ndarray, task: Task) -> float:
    """The p of a lam that is low in emotion blocks, high in neutral ones, and in between otherwise."""
    ideal = np.where(conditions == task.emotion, -1.0, np.where(conditions == task.neutral, 1.0, 0.0))
    return p_value(shifted(ideal, conditions, task))


# --- the study --------------------------------------------------------------------------------------------------------


def run_fmri(data: Path, out: Path, tr: float = 0.72, start: float = 0.72, task: Task = Task()) -> str:
    """Follow all subjects with all `SETTINGS`; tables, figures and the summary in `out`/fmri. Returns the summary.

    data : a folder with region series, one file per subject, and events.tsv
    start : seconds from the clock of the events to the first row of the series
    """
    events = data / "events.tsv"
    if not events.exists():
        raise ValueError(
            f"--data {data}: there is no events.tsv in it; region series with a BIDS events file are needed"
        )
    design = Design(events, tr, start, task.delay)
    subjects = [read_subject(path, Images(), design, None) for path in _series_in(data)]
    seconds = start + tr * np.arange(min(len(subject.series.values) for subject in subjects))
    _refuse(subjects, seconds, task)
    lams = {name: _lams(subjects, setting) for name, setting in SETTINGS.items()}
    contrasts = [row for name, lam in lams.items() for row in _contrasts(name, lam, seconds, subjects, task)]
    folder = out / "fmri"
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "blocks.csv", as_csv(contrasts).encode())
    write_table(folder / "lam.parquet", _lam_table(lams, seconds, subjects, task))
    write_table(folder / "delays.parquet", _delay_table(lams, seconds, subjects, task))
    summary = _summary(contrasts, subjects, task)
    write_whole(folder / "summary.md", summary.encode())
    settings = dict(**asdict(task), tr=design.tr, start=design.start, r=R)
    write_study(folder, figures(folder, list(subjects[0].events), len(subjects), task.delay), settings)
    write_index(out)
    return summary


def _series_in(data: Path) -> list[Path]:
    found = find_files([data])
    images = [path.name for path in found if is_nifti(path)]
    if images:
        raise ValueError(f"--data {data}: {listed(images, 3)}: an image; region series are needed, CSV for one")
    return found


def _refuse(subjects: Sequence[Subject], seconds: np.ndarray, task: Task) -> None:
    """Series that are too short; conditions without blocks in the time points that are compared."""
    if len(seconds) <= WARM_UP:
        raise ValueError(f"a series has {len(seconds)} time points, too few: the first {WARM_UP} are not compared")
    shown = {event.condition for subject in subjects for event in subject.events}
    for option, name in (("--emotion", task.emotion), ("--neutral", task.neutral)):
        if name not in shown:
            raise ValueError(f"{option} {name}: the events are {', '.join(sorted(shown)) or 'all outside of the scan'}")
        if name not in _conditions(seconds, subjects, task.delay):
            raise ValueError(
                f"{option} {name}: none of its blocks, {task.delay:g} s later, reaches into the time points that are "
                f"compared, {WARM_UP} to {len(seconds) - 1}"
            )


def _lams(subjects: Sequence[Subject], setting: Mapping[str, Any]) -> np.ndarray:
    """(subject, time): mean lam over the regions."""
    found = []
    for subject in subjects:
        trace, _ = follow_sparse(StreamingNetwork(memory=R, **setting), subject.series.values)
        found.append(mean_over_nodes(trace.lam, trace.lam_max))
    shortest = min(map(len, found))
    return np.array([lam[:shortest] for lam in found])


def _conditions(seconds: np.ndarray, subjects: Sequence[Subject], delay: float) -> np.ndarray:
    return conditions_of(seconds, subjects[0].events, delay)[WARM_UP:]


def _contrasts(
    name: str, lam: np.ndarray, seconds: np.ndarray, subjects: Sequence[Subject], task: Task
) -> list[BlockContrast]:
    """One per subject, then one for all."""
    conditions = _conditions(seconds, subjects, task.delay)
    late = lam[:, WARM_UP:]
    neutral, emotion = (late[:, conditions == kind].mean(axis=1) for kind in (task.neutral, task.emotion))
    contrasts = shifted(relative(late), conditions, task)
    per_mean = contrast(late, conditions, task) / late.mean(axis=1)
    least = least_p(conditions, task)

    def summary(subject: str, means: tuple[float, float, float], contrasts: np.ndarray) -> BlockContrast:
        return BlockContrast(name, subject, *means, contrasts[0], p_value(contrasts), least)

    single = [
        summary(subject.name, (neutral[k], emotion[k], per_mean[k]), contrasts[:, k])
        for k, subject in enumerate(subjects)
    ]
    return [*single, summary("all", (neutral.mean(), emotion.mean(), per_mean.mean()), contrasts.mean(axis=1))]


def _lam_table(
    lams: Mapping[str, np.ndarray], seconds: np.ndarray, subjects: Sequence[Subject], task: Task
) -> pyarrow.Table:
    """The mean over subjects and its standard error, for the first figure."""
    conditions = conditions_of(seconds, subjects[0].events, task.delay).tolist()
    parts = []
    for name, lam in lams.items():
        mean = lam.mean(axis=0)
        error = lam.std(axis=0, ddof=1) / np.sqrt(len(lam)) if len(lam) > 1 else np.zeros(len(mean))
        columns = dict(t=np.arange(len(mean)), seconds=seconds, mean=mean, low=mean - error, high=mean + error)
        parts.append(pyarrow.table({"setting": [name] * len(mean), **columns, "condition": conditions}))
    return pyarrow.concat_tables(parts)


def _delay_table(
    lams: Mapping[str, np.ndarray], seconds: np.ndarray, subjects: Sequence[Subject], task: Task
) -> pyarrow.Table:
    """The contrast of all subjects by the assumed delay, with quantiles over the shifts of the design."""
    rows = []
    for name, lam in lams.items():
        scaled = relative(lam[:, WARM_UP:])
        for delay in DELAYS:
            contrasts = shifted(scaled, _conditions(seconds, subjects, float(delay)), task).mean(axis=1)
            low, high = np.quantile(contrasts, [0.05, 0.95])
            rows.append(
                dict(setting=name, delay=float(delay), contrast=float(contrasts[0]), low=float(low), high=float(high))
            )
    return pyarrow.Table.from_pylist(rows)


# --- summary ----------------------------------------------------------------------------------------------------------


def _summary(contrasts: Sequence[BlockContrast], subjects: Sequence[Subject], task: Task) -> str:
    n = len(subjects)
    p = len(subjects[0].series.regions)
    text = (
        f"# Application: fMRI, {n} subjects, {p} regions\n\n"
        f"Mean lam over regions, in blocks of `{task.emotion}` and of `{task.neutral}`, {task.delay:g} s after they "
        f"were shown, without the first {WARM_UP} time points; r = {R}. The paper's claim: lam is lower in emotion "
        "blocks, so `difference` is negative. `detrended` is the same without a linear trend of lam, and p the "
        "one-sided share of circular shifts of the design that give a difference as low; the same shift for all "
        f"subjects in the last line of each. The smallest possible p is {contrasts[-1].least_p:.3f}.\n"
    )
    columns = ("subject", "neutral", "emotion", "difference", "detrended", "p")
    for name in dict.fromkeys(row.setting for row in contrasts):
        rows = [_cells(row) for row in contrasts if row.setting == name]
        text += f"\n### {name}\n\n{markdown_table(columns, rows)}"
    return text


def _cells(row: BlockContrast) -> list[str]:
    means = [f"{row.neutral:.4g}", f"{row.emotion:.4g}"]
    shares = [f"{100 * row.relative:+.1f} %", f"{100 * row.detrended:+.1f} %"]
    return [row.subject, *means, *shares, f"{row.p:.3f}"]
