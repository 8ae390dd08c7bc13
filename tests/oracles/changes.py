"""The evidence of `core/changes.py` by its definition: sums over all rows of products of e-values."""

import numpy as np
from scipy import integrate, stats

POWERS = (0.33, 0.6, 0.75, 0.875)
SHIFTS = (0.5, -0.5, 1.0, -1.0)
#: Rows before the first that counts, and the weight of each kind of change.
START, SHARE = 30, 0.5


def evidence(e_values, weights):
    """The sum over all rows from which on the rows count of their weights times the product of e-values from there."""
    e_values, weights = np.array(e_values), np.broadcast_to(weights, len(e_values))
    return sum(weights[s] * np.prod(e_values[s:]) for s in range(START, len(e_values)))


def rank_e_values(errors, power):
    """Of the rank of each error among the later half of those before, without the last few."""
    found = []
    for i, error in enumerate(errors):
        late, n = min(16, i // 4), min(max(i // 2, 10), 256)
        before = errors[max(i - late - n, 0) : max(i - late, 0)]
        rank = stats.rankdata(-np.append(before, error))[-1]
        found.append(rank**-power / np.mean(np.arange(1, len(before) + 2.0) ** -power))
    return found


def shift_ratio(b, u):
    """f, over its mean for normal errors within 3 (in steps of b of 1/32)."""

    def f(b, u):
        return (1 + np.clip(b * np.clip(u, -3, 3) - b * b / 2, -6, 3.5) / 8) ** 8

    near = np.round(abs(b) * 32) / 32
    mean = integrate.quad(lambda v: f(near, v) * stats.norm.pdf(v), -8, 8, points=(-3, 3), epsabs=1e-10)[0]
    return f(b, u) / mean


def shift_e_values(scores, z, shift, first):
    """Of errors over their deviation that go with z; before the row `first` they are not known."""
    f = [shift_ratio(shift * z[i], scores[i]) if i >= first else 1.0 for i in range(len(z))]
    return [f[i] / max(np.mean(f[: i + 1]), 1.0) for i in range(len(z))]
