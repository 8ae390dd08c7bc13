"""What differs between the blocks of a task: in lam, in the number of edges, and in single edges.

lam drifts for as long as a network is learnt, so that the condition that comes later would have the larger one. A block
is therefore compared with the blocks of the other condition before and after it.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations, groupby
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from streamlasso._text import count, number
from streamlasso.network.report.group import MAX_PICTURES, Group
from streamlasso.network.report.settling import warm_up
from streamlasso.network.results import SubjectResult

#: A difference is clear if it lies outside this two-sided confidence interval.
LEVEL = 0.95


class Block(NamedTuple):
    """Consecutive time points of one condition: their mean lam, and their mean number of edges."""

    condition: str
    times: np.ndarray
    lam: float
    edges: float


class Difference(NamedTuple):
    """The mean of some differences, its standard error (NaN if unknown), and whether it is clear.

    n, n_same : how many there are, and how many have the sign of their mean
    """

    value: float
    error: float
    n: int
    n_same: int

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
        return cls(value, error, n, int(np.sum(each * value > 0)))

    @property
    def clear(self) -> bool:
        return bool(self.n > 1 and abs(self.value) > stdtrit(self.n - 1, (1 + LEVEL) / 2) * self.error)

    @property
    def in_errors(self) -> float:
        return abs(self.value) / self.error if self.error > 0 else 0.0


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
    pair = max(pairs, key=lambda pair: pairs[pair].in_errors)
    if pairs[pair].n < 2:
        return ["There are too few blocks to compare the conditions."]
    first, second = pair if not pairs[pair].value < 0 else pair[::-1]
    chosen = [f"Of {len(n_blocks)} conditions, those whose lam differs most:"] if len(names) > 2 else []
    about = [_about_lam(every, first, second), _about_edges(every, first, second)]
    return [" ".join([*chosen, *about]), *_about_one_edge(group, every, first, second)]


def condition_table(group: Group) -> list[tuple[str, int, float, float]]:
    """Of each condition: its name, blocks, and means of lam and of the number of edges."""
    every = [block for subject in group.subjects for block in blocks_of(group, subject)]
    found = []
    for name in group.condition_names:
        blocks = [block for block in every if block.condition == name]
        if blocks:
            lam, edges = (float(np.mean([getattr(block, column) for block in blocks])) for column in ("lam", "edges"))
            found.append((name, len(blocks), lam, edges))
    return found


def _difference(every: list[list[Block]], first: str, second: str, column: str) -> Difference:
    """Over subjects; over blocks, if there is one subject."""
    each = [differences(blocks, first, second, column) for blocks in every]
    if len(each) == 1:
        return Difference.of(each[0])
    return Difference.of(np.array([values.mean() for values in each if len(values)]))


# --- words ------------------------------------------------------------------------------------------------------------


def _about_lam(every: list[list[Block]], first: str, second: str) -> str:
    between = _difference(every, first, second, "lam")
    over = "subjects" if len(every) > 1 else "blocks"
    error = f"{number(between.value)} ± {number(between.error)} (standard error over {between.n} {over})"
    beside = "each block against those before and after it"
    if not between.clear:
        return f"lam does not differ clearly between {first} and {second}, {beside}: by {error}."
    same = f"in {between.n_same} of {between.n} {over}"
    return f"lam is larger during {first} than during {second}, {beside}: by {error}, {same}."


def _about_edges(every: list[list[Block]], first: str, second: str) -> str:
    between = _difference(every, first, second, "edges")
    error = f"by {number(between.value)} ± {number(between.error)}"
    difference = "differs clearly" if between.clear else "does not differ clearly"
    return f"The number of edges {difference} ({error} during {first})."


def _about_one_edge(group: Group, every: list[list[Block]], first: str, second: str) -> list[str]:
    """The edge whose mean strength differs most."""
    a, b = (group.mean_network([_times(blocks, name) for blocks in every]) for name in (first, second))
    i, j = sorted(np.unravel_index(np.argmax(np.abs(a - b)), a.shape))
    if a[i, j] == b[i, j]:
        return []
    pairs = count(len(a) * (len(a) - 1) // 2, "pair")
    return [
        f"The edge that differs most is {group.regions[i]} – {group.regions[j]}: {a[i, j]:+.2f} during {first}, "
        f"{b[i, j]:+.2f} during {second}. It is the largest difference of {pairs}, some of which differ by chance."
    ]


def _times(blocks: list[Block], name: str) -> np.ndarray:
    return np.concatenate([np.empty(0, dtype=int), *(block.times for block in blocks if block.condition == name)])
