"""Learners compared: means over draws, standard errors, and paired differences against Stepwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow
from scipy.stats import t as student

from streamlasso._text import markdown_table, percent
from streamlasso.reproduce.learners import FLOOR, STEPWISE, WARM_UP

CONFIDENCE = 0.95
#: The mean of the two orders, draw by draw.
BOTH = "both orders"
#: Family -> the memory at which all are compared with plain cross-validation: the paper's, or the nearest all have.
SAME_MEMORY = {"gaussian": 0.95, "binomial": 0.97}
#: Learner and setting -> draw -> loss and F.
Scores = dict[tuple[str, str], dict[int, np.ndarray]]


@dataclass(frozen=True)
class LearnerSummary:
    """A learner with a setting: means over draws, standard errors, and its loss minus that of Stepwise, draw by draw.

    best : no other setting of the learner has a smaller mean loss; chosen on these draws, in its favour
    difference, low, high : from Stepwise at the best of its settings, with the 95 % interval of the mean
    excess : the loss above the noise floor, divided by that of Stepwise; nan without a floor
    """

    family: str
    order: str
    learner: str
    setting: str
    best: bool
    draws: int
    loss: float
    loss_se: float
    f: float
    f_se: float
    difference: float
    low: float
    high: float
    excess: float


def summaries(draws: pyarrow.Table) -> list[LearnerSummary]:
    """The records of every family and order; first those of both orders, then of both with one memory for all."""
    panels: dict[str, dict[str, Scores]] = {}
    for row in draws.to_pylist():
        scores = panels.setdefault(row["family"], {}).setdefault(row["order"], {})
        by_draw = scores.setdefault((row["learner"], row["setting"]), {})
        by_draw[row["draw"]] = np.array([row["loss"], row["f"]])
    records: list[LearnerSummary] = []
    for family, orders in panels.items():
        both = {BOTH: _averaged(list(orders.values()))} if len(orders) > 1 else {}
        alike = {
            f"{name}, all at r={SAME_MEMORY[family]}": _alike(of, SAME_MEMORY[family]) for name, of in both.items()
        }
        alike = {name: of for name, of in alike.items() if any(learner == STEPWISE for learner, _ in of)}
        for order, scores in (both | alike | orders).items():
            records += _panel(family, order, scores)
    return records


def _averaged(orders: Sequence[Scores]) -> Scores:
    """A draw has the same seed in every order, so its scores are averaged first: they are not independent."""
    first = orders[0]
    return {key: {i: np.mean([order[key][i] for order in orders], axis=0) for i in first[key]} for key in first}


def _alike(scores: Scores, r: float) -> Scores:
    """The learners with this memory, by plain cross-validation or by a rule of any step size, and the floor."""
    settings = (f"r={r}", f"r={r}, step=")
    return {
        (learner, setting): by_draw
        for (learner, setting), by_draw in scores.items()
        if learner == FLOOR or setting == settings[0] or setting.startswith(settings[1])
    }


def _panel(family: str, order: str, scores: Scores) -> Iterator[LearnerSummary]:
    table = {key: np.array([by_draw[i] for i in sorted(by_draw)]) for key, by_draw in scores.items()}
    best = _best_settings(table)
    reference = table[STEPWISE, best[STEPWISE]][:, 0]
    floor = table[FLOOR, ""][:, 0].mean() if (FLOOR, "") in table else np.nan
    for (learner, setting), values in table.items():
        n = len(values)
        (loss, f), (loss_se, f_se) = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(n)
        gap = values[:, 0] - reference
        margin = student.ppf((1 + CONFIDENCE) / 2, n - 1) * gap.std(ddof=1) / np.sqrt(n)
        differences = (gap.mean(), gap.mean() - margin, gap.mean() + margin)
        excess = (loss - floor) / (reference.mean() - floor)
        numbers = (loss, loss_se, f, f_se, *differences, excess)
        yield LearnerSummary(family, order, learner, setting, best[learner] == setting, n, *map(float, numbers))


def _best_settings(table: dict[tuple[str, str], np.ndarray]) -> dict[str, str]:
    best: dict[str, str] = {}
    for learner, setting in sorted(table, key=lambda key: table[key][:, 0].mean()):
        best.setdefault(learner, setting)
    return best


# --- as text ----------------------------------------------------------------------------------------------------------


def as_markdown(records: Sequence[LearnerSummary], heading: str) -> str:
    """Each learner at its best setting, one table per family and order."""
    text = (
        f"# {heading}\n\n"
        f"Mean prequential loss (half squared error; log loss) from row {WARM_UP} on, and F of the support after each\n"
        "row; standard errors in brackets. Then the loss minus that of Stepwise on the same draws, with its 95 %\n"
        "interval, and the loss above the noise floor as a share of that of Stepwise. Each learner is shown at the\n"
        "setting of the smallest mean loss on these draws: that favours those with many settings, Stepwise among\n"
        "them, and the intervals do not allow for it. summary.csv has all settings. CV and SMBO have seen\n"
        "the responses to come; Stepwise also knows the change points. Stepwise is shown at its setting of\n"
        "best F too, if that is another: compare supports with that one.\n"
    )
    head = ("learner", "setting", "loss", "F", "loss - Stepwise", "above the floor")
    for family, order in dict.fromkeys((record.family, record.order) for record in records):
        shown = _shown([record for record in records if (record.family, record.order) == (family, order)])
        shown = sorted(shown, key=lambda record: (np.isnan(record.loss), record.loss))
        text += f"\n## {family}, {order}\n\n{markdown_table(head, map(_cells, shown))}"
    return text


def _shown(records: Sequence[LearnerSummary]) -> list[LearnerSummary]:
    """The best settings; and Stepwise at its best F, since the lam of the smallest loss has not the best support."""
    best_support = max((record for record in records if record.learner == STEPWISE), key=lambda record: record.f)
    return [record for record in records if record.best or record is best_support]


def _cells(record: LearnerSummary) -> list[str]:
    reference = record.learner == STEPWISE and record.best
    difference = f"{record.difference:+.3f} [{record.low:+.3f}, {record.high:+.3f}]"
    return [
        record.learner,
        record.setting,
        _with_error(record.loss, record.loss_se),
        "" if record.learner == FLOOR else _with_error(record.f, record.f_se),
        "" if reference or np.isnan(record.loss) else difference,
        "" if np.isnan(record.excess) else percent(record.excess),
    ]


def _with_error(mean: float, error: float) -> str:
    return "" if np.isnan(mean) else f"{mean:.3f} ({error:.3f})"
