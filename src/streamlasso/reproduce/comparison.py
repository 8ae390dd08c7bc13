"""Learners compared: means over draws, standard errors, and paired differences against Stepwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow
from scipy.stats import t as student

from streamlasso.reproduce.learners import FLOOR, STEPWISE, WARM_UP

CONFIDENCE = 0.95
#: The mean of the two orders, draw by draw.
BOTH = "both orders"
#: Family -> the memory at which all are compared with plain cross-validation: the paper's, or the nearest all have.
SAME_MEMORY = {"gaussian": 0.95, "binomial": 0.97}
#: Learner and setting -> draw -> loss and F.
Scores = dict[tuple[str, str], dict[int, np.ndarray]]


@dataclass(frozen=True)
class Line:
    """A learner with a setting: means over draws, standard errors, and its loss less that of Stepwise, draw by draw.

    `best` says that no other setting of the learner has a smaller mean loss: chosen on these draws, in its favour.
    Stepwise is the best of its settings; `low` and `high` bound the mean difference with confidence .95. `excess` is
    the loss above the noise floor, divided by that of Stepwise; nan without a floor.
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


def summarised(draws: pyarrow.Table) -> list[Line]:
    """The lines of every family and order; first those of both orders, and of these with one memory for everyone."""
    panels: dict[str, dict[str, Scores]] = {}
    for row in draws.to_pylist():
        scores = panels.setdefault(row["family"], {}).setdefault(row["order"], {})
        by_draw = scores.setdefault((row["learner"], row["setting"]), {})
        by_draw[row["draw"]] = np.array([row["loss"], row["f"]])
    lines: list[Line] = []
    for family, orders in panels.items():
        both = {BOTH: _averaged(list(orders.values()))} if len(orders) > 1 else {}
        alike = {
            f"{name}, all at r={SAME_MEMORY[family]}": _alike(of, SAME_MEMORY[family]) for name, of in both.items()
        }
        alike = {name: of for name, of in alike.items() if any(learner == STEPWISE for learner, _ in of)}
        for order, scores in (both | alike | orders).items():
            lines += _panel(family, order, scores)
    return lines


def _averaged(orders: Sequence[Scores]) -> Scores:
    """A draw has the same seed in every order, so its scores are averaged first: they are not independent."""
    first = orders[0]
    return {who: {i: np.mean([order[who][i] for order in orders], axis=0) for i in first[who]} for who in first}


def _alike(scores: Scores, r: float) -> Scores:
    """Those with this memory, by plain cross-validation or by a rule of any step size, and the floor."""
    settings = (f"r={r}", f"r={r}, step=")
    return {
        (learner, setting): by_draw
        for (learner, setting), by_draw in scores.items()
        if learner == FLOOR or setting == settings[0] or setting.startswith(settings[1])
    }


def _panel(family: str, order: str, scores: Scores) -> Iterator[Line]:
    table = {who: np.array([by_draw[i] for i in sorted(by_draw)]) for who, by_draw in scores.items()}
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
        yield Line(family, order, learner, setting, best[learner] == setting, n, *map(float, numbers))


def _best_settings(table: dict[tuple[str, str], np.ndarray]) -> dict[str, str]:
    best: dict[str, str] = {}
    for learner, setting in sorted(table, key=lambda who: table[who][:, 0].mean()):
        best.setdefault(learner, setting)
    return best


# --- as text ----------------------------------------------------------------------------------------------------------


def as_markdown(lines: Sequence[Line], heading: str) -> str:
    """Each learner at its best setting, a table for each family and order."""
    text = [
        f"# {heading}",
        "",
        f"Mean prequential loss (half squared error; log loss) from row {WARM_UP} on, and F of the support after each",
        "row; standard errors in brackets. Then the loss less that of Stepwise on the same draws, with its 95 %",
        "interval, and the loss above the noise floor as a share of that of Stepwise. Each learner is shown at the",
        "setting of least mean loss on these very draws: that flatters those with many settings, Stepwise among them,",
        "and the intervals do not allow for it. summary.csv has all settings. CV, SMBO and hindsight have seen the",
        "responses to come; Stepwise and Told also know the change points. Stepwise is shown at its setting of best F",
        "too, where that is another: compare supports with that one.",
    ]
    for family, order in dict.fromkeys((line.family, line.order) for line in lines):
        text += [
            "",
            f"## {family}, {order}",
            "",
            "| learner | setting | loss | F | loss - Stepwise | above the floor |",
            "|---|---|---|---|---|---|",
        ]
        shown = _shown([line for line in lines if (line.family, line.order) == (family, order)])
        text += [_cells(line) for line in sorted(shown, key=lambda line: (np.isnan(line.loss), line.loss))]
    return "\n".join(text) + "\n"


def _shown(lines: Sequence[Line]) -> list[Line]:
    """The best settings; and Stepwise at its best F, for the lam of least loss is not the one of the best support."""
    best_support = max((line for line in lines if line.learner == STEPWISE), key=lambda line: line.f)
    return [line for line in lines if line.best or line is best_support]


def _cells(line: Line) -> str:
    reference = line.learner == STEPWISE and line.best
    cells = [
        line.learner,
        line.setting,
        _with_error(line.loss, line.loss_se),
        "" if line.learner == FLOOR else _with_error(line.f, line.f_se),
        "" if reference or np.isnan(line.loss) else f"{line.difference:+.3f} [{line.low:+.3f}, {line.high:+.3f}]",
        "" if np.isnan(line.excess) else f"{round(100 * line.excess)} %",
    ]
    return f"| {' | '.join(cells)} |"


def _with_error(mean: float, error: float) -> str:
    return "" if np.isnan(mean) else f"{mean:.3f} ({error:.3f})"
