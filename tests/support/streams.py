"""Streams that try to break a solver, made by hypothesis: each feature is of one of the kinds below."""

import numpy as np
from hypothesis import strategies as st

from oracles.replay import Stream

KINDS = ("normal", "integer", "duplicate", "scaled copy", "sum", "constant", "late", "tiny", "huge", "offset")


def unit(x):
    return x / (x.std() or 1.0)


def column(kind, others, n, rng):
    """One feature; `others` are those made before it."""
    fresh = rng.normal(size=n)
    if kind == "integer":
        return rng.integers(-1, 2, size=n).astype(float)
    if kind == "duplicate" and others:
        return others[-1].copy()
    if kind == "scaled copy" and others:
        return 1e6 * unit(others[0])
    if kind == "sum" and len(others) > 1:
        return unit(others[0]) + unit(others[-1])
    if kind == "constant":
        return np.full(n, 3.0)
    if kind == "late":
        return np.where(np.arange(n) < n // 2, 0.0, fresh)
    return {"tiny": 1e-8 * fresh, "huge": 1e8 * fresh, "offset": 30.0 + fresh}.get(kind, fresh)


def made(family, kinds, n, rng, weighting="none", gain=1.0):
    """A stream whose features are of these kinds and whose responses follow the first three, standardised."""
    columns: list[np.ndarray] = []
    for kind in kinds:
        columns.append(column(kind, columns, n, rng))
    X = np.column_stack(columns)
    Z = np.column_stack([unit(x - x.mean()) for x in columns[:3]])
    eta = 0.2 + gain * Z @ np.array([1.0, -0.7, 0.5])[: Z.shape[1]]
    y = family.sample(rng, np.clip(eta, -3.0, 3.0))
    a = {
        "none": None,
        "some": rng.uniform(0.1, 3.0, size=n),
        "whole": rng.integers(1, 4, size=n).astype(float),
        "zeros": rng.integers(0, 3, size=n).astype(float),
    }[weighting]
    return Stream(X, y, a)


@st.composite
def streams(draw, family, *, max_rows=24, max_features=10, kinds=KINDS, weightings=("none", "some", "whole", "zeros")):
    """A stream for the family: sizes, kinds and weights are hypothesis's, the numbers a seeded generator's."""
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=max_features))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(2, max_rows))
    return made(family, chosen, n, rng, draw(st.sampled_from(weightings)), draw(st.sampled_from([0.0, 0.5, 2.0])))


@st.composite
def factors(draw, p):
    """None, or a penalty factor for each feature, some of them 0."""
    some = st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.0, 3.0]), min_size=p, max_size=p)
    return draw(st.none() | some.map(np.array))
