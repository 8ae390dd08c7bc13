"""The statistics of `core/changes.py` by their definitions: sums over all rows, probabilities from scipy."""

import numpy as np
from scipy import stats

RATIOS = (1.5, 2.5, 4.0, 8.0)
WINDOWS = (8, 16, 32, 64, 128)
TAILS = (2.0, 4.0, 10.0, 1000.0)


def page_sums(surprises):
    """Of each ratio, the largest sum of log-likelihood ratios over rows that end with the last; 0 if all are below."""
    found = []
    for ratio in RATIOS:
        gains = np.array(surprises) * (1 - 1 / ratio) - np.log(ratio)
        found.append(max([0.0, *(gains[start:].sum() for start in range(len(gains)))]))
    return np.array(found)


def faded_sums(values):
    """Of each window, the sum of the rows' values, each fading by 1 - 1/L per row."""
    ages = np.arange(len(values))[::-1]
    return np.array([((1 - 1 / length) ** ages) @ values for length in WINDOWS])


def surprise(error, squares, evidence):
    """-log P(|error| as large) under Student's t of all TAILS, weighted by exp(evidence); at most 8."""
    weights = np.exp(np.array(evidence) - np.max(evidence))
    tails = [2 * stats.t.sf(abs(error) / np.sqrt(s), tail) for s, tail in zip(squares, TAILS, strict=True)]
    return min(-np.log(weights @ tails / weights.sum()), 8.0)
