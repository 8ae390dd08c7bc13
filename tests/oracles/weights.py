"""How much each row weighs: the definition, row by row (docs/method.md, section 5)."""

import numpy as np


def weights(memory, a):
    """w_i after the last of the rows: a_i decay^(t - i), or nothing once `length` newer rows have come."""
    a = np.asarray(a, dtype=float)
    age = np.arange(len(a))[::-1]
    remembered = age < memory.length if memory.length else np.ones(len(a), dtype=bool)
    return np.where(remembered, a * float(memory.decay) ** age, 0.0)


def weighted_mean(X, w):
    return w @ X / sum(w)


def weighted_scatter(X, w):
    """sum_i w_i (x_i - mean)(x_i - mean)', not divided by anything."""
    away = X - weighted_mean(X, w)
    return (away * w[:, None]).T @ away
