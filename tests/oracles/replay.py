"""Drive a learner along a stream, and rebuild the problem it should have solved after each row."""

from dataclasses import dataclass, field

import numpy as np

from oracles.problem import Problem
from oracles.weights import weights
from streamlasso.core.base.record import RECORD, STATUS
from streamlasso.core.lasso.learner import Learner


@dataclass
class Stream:
    X: np.ndarray
    y: np.ndarray
    a: np.ndarray | None = None

    def __post_init__(self):
        self.X = np.ascontiguousarray(self.X, dtype=float)
        self.y = np.ascontiguousarray(self.y, dtype=float)

    def __len__(self):
        return len(self.y)

    @property
    def weight(self):
        return np.ones(len(self)) if self.a is None else self.a

    def part(self, start, stop):
        return Stream(self.X[start:stop], self.y[start:stop], None if self.a is None else self.a[start:stop])


@dataclass
class Run:
    learner: Learner
    columns: dict
    coef: np.ndarray
    status: list = field(default_factory=list)

    def __getattr__(self, name):
        return self.__dict__["columns"][name]

    def b0(self, t):
        return self.coef[t, 0]

    def b(self, t):
        return self.coef[t, 1:]


def run(learner, stream):
    """Learn the stream; everything noted on the way."""
    record, coef = np.empty((len(stream), len(RECORD))), np.empty((len(stream), stream.X.shape[1] + 1))
    learner.learn(stream.X, stream.y, stream.a, record=record, coef=coef)
    columns = dict(zip(RECORD[:-1], record.T[:-1], strict=True))
    return Run(learner, columns, coef, [STATUS[int(code)] for code in record[:, -1]])


def problems(stream, *, family, memory, penalty, penalty_factor=None, fit_intercept=True, standardize=True, **_):
    """The problem after each row, every row whole. Rows of weight 0 do not exist: the problem before them stays."""
    return folded_problems(
        stream,
        lambda t: None,
        len(stream),
        family=family,
        memory=memory,
        penalty=penalty,
        penalty_factor=penalty_factor,
        fit_intercept=fit_intercept,
        standardize=standardize,
    )


def folded_problems(
    stream, solution, history, *, family, memory, penalty, penalty_factor=None, fit_intercept=True, standardize=True
):
    """The problem after each row (`core/glm/likelihood.py`): rows were expanded when the `history`-th newer one came.

    `solution(t)` is (b0, b) after row t; it is asked only for rows already given out.
    """
    expanded_at = np.full(len(stream), np.nan)
    there: list[int] = []
    for t in range(len(stream)):
        if stream.weight[t] > 0:
            if len(there) >= history:
                b0, b = solution(there[-1])
                expanded_at[there[-history]] = b0 + stream.X[there[-history]] @ b
            there.append(t)
        if not there:
            yield None
            continue
        w = weights(memory, stream.weight[there])
        kept, w = np.array(there)[w > 0], w[w > 0]
        at = expanded_at[kept] if np.isfinite(expanded_at[kept]).any() else None
        yield Problem(
            stream.X[kept], stream.y[kept], w, family, penalty.l1_ratio, penalty_factor, fit_intercept, standardize, at
        )


def learner(stream, **settings):
    return Learner(stream.X.shape[1], **settings)


def same_bits(one, other):
    """Whether two states are equal to the last bit."""
    return one.keys() == other.keys() and all(
        np.asarray(one[key]).dtype == np.asarray(other[key]).dtype
        and np.asarray(one[key]).tobytes() == np.asarray(other[key]).tobytes()
        for key in one
    )


def violations(stream, result, *, history, batch_size=1, **settings):
    """(t, problem, violation) after each step whose problem has a minimum."""
    known = {"family", "memory", "penalty", "penalty_factor", "fit_intercept", "standardize"}
    settings = {name: value for name, value in settings.items() if name in known}
    solution = lambda t: (result.b0(t), result.b(t))  # noqa: E731
    for t, problem in enumerate(folded_problems(stream, solution, history, **settings)):
        solved = (t + 1) % batch_size == 0 or t + 1 == len(stream)
        if not solved or problem is None or stream.weight[t] == 0 or problem.undefined:
            continue
        lam = result.lam[t] if np.isfinite(result.lam[t]) else 0.0
        yield t, problem, problem.violation(*solution(t), lam)
