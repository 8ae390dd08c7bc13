"""Changes by their definitions: sums over all rows of products of e-values, posteriors by integrals."""

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


def moved_posterior(design, missed, move, j, beta, noise, tau, shares, rows_before):
    """The probability that a coefficient stayed, and the mean of its move, if all others have moved as said.

    Three kinds of prior in units of the feature: narrow about no move, the value 0 (not for the intercept, j = 0), and
    wide about the value 0. By sums over a grid of moves.
    """
    deviation = np.sqrt(np.mean(design[:, j] ** 2))
    left = missed - design @ move + design[:, j] * move[j]
    best = left @ design[:, j] / (design[:, j] @ design[:, j])
    at = np.linspace(-1, 1, 400001) * (5 * np.sqrt(tau) / deviation + 2 * abs(best) + 2 * abs(beta))
    likelihood = np.exp(-0.5 * design[:, j] @ design[:, j] * (at - best) ** 2 / noise)
    narrow = stats.norm.pdf(at, 0.0, np.sqrt(2.0 * noise / rows_before) / deviation)
    wide = stats.norm.pdf(at, -beta, np.sqrt(tau) / deviation)
    step = at[1] - at[0]
    zero = np.exp(-0.5 * design[:, j] @ design[:, j] * (-beta - best) ** 2 / noise) if j else 0.0
    parts = np.array([np.sum(narrow * likelihood) * step, zero, np.sum(wide * likelihood) * step]) * shares
    means = np.array([np.average(at, weights=narrow * likelihood), -beta, np.average(at, weights=wide * likelihood)])
    return parts[0] / parts.sum(), parts @ means / parts.sum()


def likeliest_start(missed, left, noise):
    """Of each row, how likely the rows from there on are those that moved coefficients leave less of."""
    logs = [np.sum(stats.norm.logpdf(left[s:], 0, noise**0.5)) for s in range(len(left))]
    logs = np.array(logs) + [np.sum(stats.norm.logpdf(missed[:s], 0, noise**0.5)) for s in range(len(left))]
    return np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
