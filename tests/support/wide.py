"""Sparse rows whose first features are most frequent, and classes that depend on them."""

import numpy as np
from scipy import sparse


def zipf_rows(n, p, draws, seed=0, values=False):
    """Rows with `draws` features, the first ones most often."""
    rng = np.random.default_rng(seed)
    columns = np.minimum(rng.zipf(1.3, n * draws) - 1, p - 1).astype(np.int32)
    data = rng.normal(size=n * draws) if values else np.ones(n * draws)
    X = sparse.csr_array((data, columns, np.arange(0, n * draws + 1, draws, dtype=np.int32)), shape=(n, p))
    X.sum_duplicates()
    return X


def zipf_stream(n=600, p=5000, draws=12, seed=0, values=False):
    X = zipf_rows(n, p, draws, seed, values)
    rng = np.random.default_rng(seed + 1)
    beta = np.where(np.arange(p) < 300, rng.normal(size=p), 0.0)
    return X, (rng.random(n) < 1 / (1 + np.exp(-(X @ beta)))).astype(int)
