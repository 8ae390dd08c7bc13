"""The engines of a network's nodes: in groups, one for each thread."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from streamlasso.core.base.lock import Gate
from streamlasso.core.base.record import RECORD
from streamlasso.core.lasso.learner import Learner
from streamlasso.core.mixture.mixture import MixtureLearner
from streamlasso.network.neighbourhoods import Neighbourhoods
from streamlasso.settings import has_mixture

LOSS, SIZE = RECORD.index("loss"), RECORD.index("effective_size")
#: Fewer nodes per thread, or fewer nodes times points in all, cost more to hand over than they save.
NODES_PER_THREAD, LEAST_WORK = 32, 300


class _Separate:
    """Nodes that share nothing: families whose rows weigh differently in each regression, competing models, and
    penalties that are asked.

    variance : of what each node's predictions left, as far back as its memory reaches; 1 for families that have none
    """

    def __init__(self, p: int, first: int, last: int, settings: dict[str, Any]) -> None:
        kind = MixtureLearner if has_mixture(settings) else Learner
        self.first = first
        self.quadratic = settings["family"].quadratic
        self.learners = [kind(p, **{**settings, "penalty_factor": _barred(p, i)}) for i in range(first, last)]
        for learner in self.learners:
            learner.gate = Gate(inner=True)
        self.variance = np.zeros(last - first) if self.quadratic else np.ones(last - first)

    @property
    def n_seen(self) -> int:
        return self.learners[0].n_seen

    def learn(self, X: np.ndarray, record: np.ndarray, coef: np.ndarray | None, variance: np.ndarray | None) -> None:
        targets = np.ascontiguousarray(X.T[self.first : self.first + len(self.learners)])
        for i, learner in enumerate(self.learners):
            learner.learn(X, targets[i], None, record[i], None if coef is None else coef[i])
        for t in range(len(X)):
            if self.quadratic:
                squared, size = 2.0 * record[:, t, LOSS], np.maximum(record[:, t, SIZE], 1.0)
                self.variance += (squared - self.variance) / size
            if variance is not None:
                variance[:, t] = self.variance

    def now(self) -> tuple[np.ndarray, np.ndarray]:
        coef = [np.append(learner.intercept, learner.coef) for learner in self.learners]
        return np.array(coef), self.variance

    def pieces(self) -> list[bytes]:
        """What all nodes have in common, nothing, and each node."""
        return [b"", *(self.variance[i].tobytes() + node.pack() for i, node in enumerate(self.learners))]

    def take_pieces(self, pieces: list[bytes]) -> None:
        for i, (learner, piece) in enumerate(zip(self.learners, pieces[1:], strict=True)):
            (variance,) = np.frombuffer(piece[:8])
            if not variance >= 0.0:
                raise ValueError(f"the variance of node {self.first + i} must be 0 or larger")
            learner.unpack(piece[8:])
            self.variance[i] = variance


def _barred(p: int, i: int) -> np.ndarray:
    """No node explains itself."""
    factor = np.ones(p)
    factor[i] = np.inf
    return factor


class Nodes:
    """All nodes of a network, in groups: one per thread.

    Every group has a covariance of its own: bringing it up to date costs less than waiting for one another.
    """

    def __init__(self, p: int, settings: dict[str, Any], n_jobs: int | None = None) -> None:
        self.n_features = p
        self.settings = settings
        quadratic = settings["family"].quadratic
        self.shared = quadratic and not has_mixture(settings) and settings["penalty"].l1_ratio is not None
        #: The strongest that an edge can be.
        self.most = 1.0 if quadratic else np.inf
        n_groups = min(n_jobs or max(1, min(os.cpu_count() or 1, p // NODES_PER_THREAD)), p)
        edges = np.linspace(0, p, n_groups + 1).astype(int)
        self.groups = [self._group(int(first), int(last)) for first, last in pairwise(edges)]
        self.learners = [learner for group in self.groups for learner in group.learners]
        self.still = np.zeros(p, dtype=bool)
        self.gate = Gate()

    def _group(self, first: int, last: int) -> Any:
        if self.shared:
            return Neighbourhoods(self.n_features, first, last, **self.settings)
        return _Separate(self.n_features, first, last, self.settings)

    @property
    def n_seen(self) -> int:
        return self.groups[0].n_seen

    def refuse_unfit(self, X: np.ndarray) -> None:
        complaint = self.settings["family"].check_target(np.ascontiguousarray(X.ravel()))
        if complaint:
            raise ValueError(f"X: {complaint}; family={self.settings['family']!r}. No time point was learnt.")

    def learn(
        self, X: np.ndarray, *, traced: bool = False, learnt: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Learn the time points; returns what was noted of them, and where asked the models: (time, node, ...).

        learnt : an array of one whole number, to which the time points are added when they are learnt
        """
        p, n = self.n_features, len(X)
        record = np.empty((p, n, len(RECORD)))
        coef = np.empty((p, n, p + 1)) if traced else np.empty((p, 0, p + 1))
        variance = np.empty((p, n)) if traced else np.empty((p, 0))
        tasks = [
            (group, X, record[nodes], coef[nodes] if traced else None, variance[nodes] if traced else None)
            for group, nodes in self._places()
        ]
        with interrupted_later(), self.gate.alone():
            _together(tasks, threads=p * n >= LEAST_WORK)
            if learnt is not None:
                learnt += n
        return record.transpose(1, 0, 2), coef.transpose(1, 0, 2), variance.T

    def _places(self) -> Iterator[tuple[Any, slice]]:
        for group in self.groups:
            yield group, slice(group.first, group.first + len(group.learners))

    def now(self) -> tuple[np.ndarray, np.ndarray]:
        """Intercept and coefficients of each node, and its residual variance."""
        found = [group.now() for group in self.groups]
        return np.concatenate([coef for coef, _ in found]), np.concatenate([variance for _, variance in found])

    def constant(self) -> np.ndarray:
        """Nodes that have not moved: there is nothing to explain in them."""
        if self.shared:
            return self.groups[0].constant()
        return np.array([not learner.lam_max > 0.0 for learner in self.learners])

    def newly_constant(self) -> bool:
        """Has a node that moved, or was not there, stood still in all that is remembered? Not asked of one point."""
        before = self.still
        self.still = self.constant() if self.n_seen > 1 else before
        return bool(np.any(self.still & ~before))

    def pack(self) -> bytes:
        """What the next time point needs; the same for any number of groups."""
        found = [group.pieces() for group in self.groups]
        pieces = [found[0][0], *(piece for pieces in found for piece in pieces[1:])]
        return np.array([len(piece) for piece in pieces], dtype=np.int64).tobytes() + b"".join(pieces)

    def unpack(self, data: bytes) -> None:
        """What `pack` gave, with any number of groups; a ValueError where it does not fit these settings."""
        n_pieces = self.n_features + 1
        if len(data) < 8 * n_pieces:
            raise ValueError("numbers are missing")
        ends = 8 * n_pieces + np.cumsum(np.frombuffer(data, np.int64, n_pieces))
        if np.any(np.diff(ends, prepend=8 * n_pieces) < 0) or ends[-1] != len(data):
            raise ValueError("the state of another network")
        pieces = [data[start:end] for start, end in pairwise([8 * n_pieces, *ends])]
        for group, nodes in self._places():
            group.take_pieces([pieces[0], *pieces[1:][nodes]])

    def __reduce__(self) -> tuple[Any, ...]:
        return _revived, (self.n_features, self.settings, len(self.groups), self.pack())


def _revived(p: int, settings: dict[str, Any], n_groups: int, data: bytes) -> Nodes:
    nodes = Nodes(p, settings, n_groups)
    nodes.unpack(data)
    return nodes


def _together(tasks: list[tuple[Any, ...]], *, threads: bool) -> None:
    """Each group learns, in a thread of its own."""
    if len(tasks) == 1 or not threads:
        for group, *rest in tasks:
            group.learn(*rest)
        return
    futures = [_threads().submit(group.learn, *rest) for group, *rest in tasks]
    wait(futures)
    for future in futures:
        future.result()


@contextmanager
def interrupted_later() -> Iterator[None]:
    """Ctrl-C waits for the end of the block: no group may be ahead of the others."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[int, Any]] = []
    handler = signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if came and callable(handler):
        handler(*came[-1])


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="streamlasso")


# A child of a fork has none of its parent's threads.
os.register_at_fork(after_in_child=_threads.cache_clear)
