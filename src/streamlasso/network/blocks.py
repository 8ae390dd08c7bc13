"""What differs between the blocks of a task: in lam, in the number of edges, and in single edges.

lam drifts for as long as a network is learnt, so the condition that comes later would have the larger one. A block is
therefore compared with the blocks of the other condition before and after it.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations, groupby
from typing import NamedTuple

import numpy as np
from scipy.stats import ttest_1samp

from streamlasso._text import count, number
from streamlasso.network.group import MAX_PICTURES, Group
from streamlasso.network.results import SubjectResult
from streamlasso.report.network.figures import warm_up

#: A difference is clear if its mean is not 0 at this level.
LEVEL = 0.05


class Block(NamedTuple):
    """Consecutive time points of one condition: their mean lam, and their mean number of edges."""

    condition: str
    times: np.ndarray
    lam: float
    edges: float


class Difference(NamedTuple):
    """The mean of n differences, its standard error (NaN if unknown), and whether it is clear by a t test.

    n_same : how many have the sign of their mean
    """

    value: float
    error: float
    n: int
    n_same: int
    clear: bool

    @classmethod
    def of(cls, each: np.ndarray) -> Difference:
        """
        >>> import numpy as np
        >>> found = Difference.of(np.array([2.0, 2.0, 2.5]))
        >>> round(found.value, 2), round(found.error, 2), found.clear, found.n_same
        (2.17, 0.17, True, 3)
        """
        n, value = len(each), float(np.mean(each)) if len(each) else np.nan
        error = float(each.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan
        clear = bool(n > 1 and error > 0 and ttest_1samp(each, 0.0).pvalue < LEVEL)
        return cls(value, error, n, int(np.sum(each * value > 0)), clear)


def blocks_of(group: Group, subject: SubjectResult) -> list[Block]:
    """The blocks of a subject, in the order of time, once lam has settled."""
    conditions, lam, edges = group.conditions(subject), subject.mean_lam, subject.edges.counts()
    found = []
    for name, run in groupby(range(warm_up(len(subject.t)), len(subject.t)), key=lambda t: conditions[t]):
        times = np.array(list(run))
        if name and np.isfinite(lam[times]).any():
            found.append(Block(name, times, float(np.nanmean(lam[times])), float(edges[times].mean())))
    return found


def differences(blocks: list[Block], first: str, second: str, column: str) -> np.ndarray:
    """First minus second condition: each block between two of the other condition, against the mean of these.

    >>> values = [("a", 1.0), ("b", 5.0), ("a", 3.0), ("b", 7.0)]
    >>> differences([Block(name, np.empty(0), value, 0.0) for name, value in values], "b", "a", "lam")
    array([3., 3.])
    """
    chosen = [block for block in blocks if block.condition in (first, second)]
    found = []
    for before, block, after in zip(chosen, chosen[1:], chosen[2:], strict=False):
        if before.condition == after.condition != block.condition:
            beside = (getattr(before, column) + getattr(after, column)) / 2
            found.append((getattr(block, column) - beside) * (1 if block.condition == first else -1))
    return np.array(found)


def conclusion(group: Group) -> list[str]:
    """Sentences for the top of the report; none without two conditions."""
    every = [blocks_of(group, subject) for subject in group.subjects]
    n_blocks = Counter(block.condition for blocks in every for block in blocks)
    names = [name for name, _ in n_blocks.most_common(MAX_PICTURES)]
    if len(names) < 2:
        return []
    pairs = {pair: _difference(every, *pair, "lam") for pair in combinations(names, 2)}
    pair = max(pairs, key=lambda pair: abs(pairs[pair].value) / pairs[pair].error if pairs[pair].error > 0 else 0.0)
    if pairs[pair].n < 2:
        return ["There are too few blocks to compare the conditions."]
    first, second = pair if not pairs[pair].value < 0 else pair[::-1]
    chosen = [f"Of {len(n_blocks)} conditions, those whose lam differs most:"] if len(names) > 2 else []
    return [" ".join([*chosen, *_in_words(every, first, second)]), *_about_one_edge(group, every, first, second)]


def condition_table(group: Group) -> list[list[str]]:
    """Each condition: its name, blocks, and means of lam and of the number of edges."""
    every = [block for subject in group.subjects for block in blocks_of(group, subject)]
    lines = []
    for name in group.condition_names:
        blocks = [block for block in every if block.condition == name]
        if blocks:
            lam, edges = (float(np.mean([getattr(block, column) for block in blocks])) for column in ("lam", "edges"))
            lines.append([name, f"{len(blocks):,}", number(lam), number(edges)])
    return lines


def _difference(every: list[list[Block]], first: str, second: str, column: str) -> Difference:
    """Over subjects; over blocks, if there is one subject."""
    each = [differences(blocks, first, second, column) for blocks in every]
    if len(each) == 1:
        return Difference.of(each[0])
    return Difference.of(np.array([values.mean() for values in each if len(values)]))


def _in_words(every: list[list[Block]], first: str, second: str) -> list[str]:
    lam, edges = (_difference(every, first, second, column) for column in ("lam", "edges"))
    over, beside = "subjects" if len(every) > 1 else "blocks", "each block against those before and after it"
    by = f"by {number(lam.value)} ± {number(lam.error)} (standard error over {lam.n} {over})"
    if lam.clear:
        same = f"in {lam.n_same} of {lam.n} {over}"
        about_lam = f"lam is larger during {first} than during {second}, {beside}: {by}, {same}."
    else:
        about_lam = f"lam does not differ clearly between {first} and {second}, {beside}: {by}."
    differs = "differs clearly" if edges.clear else "does not differ clearly"
    by = f"by {number(edges.value)} ± {number(edges.error)} during {first}"
    return [about_lam, f"The number of edges {differs} ({by})."]


def _about_one_edge(group: Group, every: list[list[Block]], first: str, second: str) -> list[str]:
    """The edge whose mean strength differs most."""

    def mean(name: str) -> np.ndarray:
        times = [[block.times for block in blocks if block.condition == name] for blocks in every]
        return group.mean_network([np.concatenate([np.empty(0, dtype=int), *each]) for each in times])

    a, b = mean(first), mean(second)
    i, j = sorted(np.unravel_index(np.argmax(np.abs(a - b)), a.shape))
    if a[i, j] == b[i, j]:
        return []
    pairs = count(len(a) * (len(a) - 1) // 2, "pair")
    return [
        f"The edge that differs most is {group.regions[i]} – {group.regions[j]}: {a[i, j]:+.2f} during {first}, "
        f"{b[i, j]:+.2f} during {second}. It is the largest difference of {pairs}, some of which differ by chance."
    ]
