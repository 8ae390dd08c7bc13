"""The paper's application: is lam lower while emotional faces are shown? Region series with events, subject by subject.

The paper claims two things of emotion blocks, in comparison with neutral ones: lam is lower, and networks are denser
(`MEASURES`). A contrast is the mean in emotion blocks minus that in neutral ones, relative to the mean of the scan and
without a linear trend; blocks are moved by the haemodynamic delay. How sure one can be of it is found by circular
shifts of the design, the same for all subjects (`shifts.py`): a p-value and an interval, alone and corrected for all
contrasts of all settings. Subjects are corrected for among themselves, their means among themselves.
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
from streamlasso.network.results import Edges, follow_sparse, mean_over_nodes
from streamlasso.network.subjects import Subject, find_files, read_subject
from streamlasso.reproduce.fmri_figures import figures
from streamlasso.reproduce.page import write_index, write_study
from streamlasso.reproduce.parts import as_csv, write_table
from streamlasso.reproduce.shifts import (
    ALPHA,
    Certainty,
    certainty_of,
    contrast,
    detrended,
    p_value,
    shifted,
    unit_effect,
)
from streamlasso.tuners import LARS, SGD, LogRMS

#: The paper's forgetting factor and step.
R, STEP = 0.95, 0.025
#: Time points whose lam still depends on the initial one: one length of the memory.
WARM_UP = 20
#: Haemodynamic delay in seconds.
DELAY = 5.0
#: What the paper says of emotion blocks: measure -> the sign of the difference.
MEASURES = {"lam": -1, "density": 1}
#: An edge that just appears or vanishes can be there by rounding alone.
ROUNDING = 1e-9
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
    """One measure of one setting and one subject, or all subjects.

    neutral, emotion : the mean in these blocks
    relative, detrended : (emotion - neutral)/mean, as it is and without a linear trend
    p, low, high : of the paper's claim by circular shifts, and the 90 % interval of `detrended` by the same shifts
    p_corrected : for all settings and measures
    least_p : the smallest p that is possible
    """

    setting: str
    measure: str
    subject: str
    neutral: float
    emotion: float
    relative: float
    detrended: float
    p: float
    low: float
    high: float
    p_corrected: float
    least_p: float


#: (setting, measure) -> (subject, time).
Measured = Mapping[tuple[str, str], np.ndarray]


def relative(values: np.ndarray) -> np.ndarray:
    """(subject, time), each in units of its mean, without its linear trend."""
    return detrended(values / _scale(values))


def _scale(values: np.ndarray) -> np.ndarray:
    """The mean over time; 1 where it is 0."""
    mean = values.mean(axis=-1, keepdims=True)
    return np.where(mean == 0, 1.0, mean)


def least_p(design: np.ndarray) -> float:
    """The p of a lam that is low in emotion blocks, high in neutral ones, and in between otherwise."""
    return p_value(shifted(-design, design))


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
    measured = _measured(subjects)
    contrasts = _contrasts(measured, seconds, subjects, task)
    lams = {setting: values for (setting, measure), values in measured.items() if measure == "lam"}
    folder = out / "fmri"
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "blocks.csv", as_csv(contrasts).encode())
    write_table(folder / "lam.parquet", _lam_table(lams, seconds, subjects, task))
    summary = _summary(contrasts, subjects, task)
    write_whole(folder / "summary.md", summary.encode())
    settings = dict(**asdict(task), tr=design.tr, start=design.start, r=R)
    write_study(folder, figures(folder, list(subjects[0].events), len(subjects)), settings)
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


def _measured(subjects: Sequence[Subject]) -> Measured:
    """The mean lam over the regions, and the share of edges that are there."""
    shortest = min(len(subject.series.values) for subject in subjects)
    found: dict[tuple[str, str], list[np.ndarray]] = {}
    for name, setting in SETTINGS.items():
        for subject in subjects:
            trace, edges = follow_sparse(StreamingNetwork(memory=R, **setting), subject.series.values[:shortest])
            found.setdefault((name, "lam"), []).append(mean_over_nodes(trace.lam, trace.lam_max))
            found.setdefault((name, "density"), []).append(_density(edges))
    return {key: np.array(values) for key, values in found.items()}


def _density(edges: Edges) -> np.ndarray:
    """(time,): the share of edges that are there, beyond rounding."""
    there = edges.t[np.abs(edges.strength) > ROUNDING]
    return np.bincount(there, minlength=edges.n_times) / (edges.n_nodes * (edges.n_nodes - 1) / 2)


def _conditions(seconds: np.ndarray, subjects: Sequence[Subject], delay: float) -> np.ndarray:
    return conditions_of(seconds, subjects[0].events, delay)[WARM_UP:]


def _contrasts(measured: Measured, seconds: np.ndarray, subjects: Sequence[Subject], task: Task) -> list[BlockContrast]:
    """Of each setting and measure: one per subject, then one for all."""
    conditions = _conditions(seconds, subjects, task.delay)
    #: 1 in emotion blocks, -1 in neutral ones, of the time points that are compared.
    design = (conditions == task.emotion).astype(float) - (conditions == task.neutral)
    late = {key: values[:, WARM_UP:] for key, values in measured.items()}
    #: (shift, subject), lower where the paper is right.
    claimed = {key: -MEASURES[key[1]] * shifted(relative(values), design) for key, values in late.items()}
    effect = unit_effect(design)
    singles = iter(certainty_of(np.concatenate(list(claimed.values()), axis=1), effect))
    together = iter(certainty_of(np.column_stack([each.mean(axis=1) for each in claimed.values()]), effect))
    names = [subject.name for subject in subjects]
    least = least_p(design)
    found = []
    for (setting, measure), values in late.items():
        sure = [*(next(singles) for _ in names), next(together)]
        for subject, each, test in zip([*names, "all"], [*values[:, None], values], sure, strict=True):
            found.append(_block_contrast((setting, measure, subject), each, design, test, least))
    return found


def _block_contrast(
    about: tuple[str, str, str], values: np.ndarray, design: np.ndarray, test: Certainty, least: float
) -> BlockContrast:
    neutral, emotion = (float(values[:, design == kind].mean()) for kind in (-1, 1))
    plain, level = (float(contrast(each, design).mean()) for each in (values / _scale(values), relative(values)))
    known = test.mirrored() if MEASURES[about[1]] > 0 else test
    return BlockContrast(
        *about, neutral, emotion, plain, level, known.p, known.low, known.high, known.p_corrected, least
    )


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


# --- summary ----------------------------------------------------------------------------------------------------------

COLUMNS = ("setting", "measure", "subject", "neutral", "emotion", "difference", "detrended", "90 %", "p",
           "p, corrected")  # fmt: skip
CLAIMS = {"lam": "lam is lower in emotion blocks", "density": "networks are denser in emotion blocks"}


def _summary(contrasts: Sequence[BlockContrast], subjects: Sequence[Subject], task: Task) -> str:
    n = len(subjects)
    p = len(subjects[0].series.regions)
    text = (
        f"# Application: fMRI, {n} subjects, {p} regions\n\n"
        f"Mean lam over regions, and the share of edges (density), in blocks of `{task.emotion}` and of "
        f"`{task.neutral}`, {task.delay:g} s after they were shown, without the first {WARM_UP} time points; r = {R}. "
        "`detrended` is the difference without a linear trend, with its 90 % interval; p is the one-sided share of "
        "circular shifts of the design that agree with the paper as much; the same shift for all subjects in the last "
        f"line of each. The smallest possible p is {contrasts[-1].least_p:.3f}. `corrected`: for all contrasts, "
        f"{len(SETTINGS) * len(MEASURES)} of the means and {n * len(SETTINGS) * len(MEASURES)} of single subjects.\n\n"
    )
    text += "".join(f"- {_conclusion(contrasts, measure)}\n" for measure in MEASURES)
    for title, single in (("All subjects", False), ("Single subjects", True)):
        rows = [_cells(row) for row in contrasts if (row.subject != "all") == single]
        text += f"\n### {title}\n\n{markdown_table(COLUMNS, rows)}"
    return text


def _conclusion(contrasts: Sequence[BlockContrast], measure: str) -> str:
    """How sure one can be of one claim of the paper."""
    means = [row for row in contrasts if row.measure == measure and row.subject == "all"]
    agree = sum(MEASURES[measure] * row.detrended > 0 for row in means)
    alone = sum(row.p <= ALPHA for row in means)
    corrected = sum(row.p_corrected <= ALPHA for row in means)
    best = min(means, key=lambda row: row.p_corrected)
    return (
        f"The paper: {CLAIMS[measure]}. So it is with {agree} of {len(means)} settings; beyond chance (p <= {ALPHA:g}) "
        f"with {alone}, and with {corrected} once all contrasts are corrected for. The clearest is {best.setting}: "
        f"{100 * best.detrended:+.1f} %, 90 % interval {_percent(best.low, best.high)}, "
        f"p = {best.p_corrected:.3f}, corrected."
    )


def _percent(low: float, high: float) -> str:
    return f"{100 * low:+.1f} to {100 * high:+.1f}"


def _cells(row: BlockContrast) -> list[str]:
    about = [row.setting, row.measure, row.subject, f"{row.neutral:.4g}", f"{row.emotion:.4g}"]
    shares = [f"{100 * row.relative:+.1f} %", f"{100 * row.detrended:+.1f} %"]
    return [*about, *shares, _percent(row.low, row.high), f"{row.p:.3f}", f"{row.p_corrected:.3f}"]
