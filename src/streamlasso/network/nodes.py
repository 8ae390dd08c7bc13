"""The engines of a network's nodes: in groups, one for each thread."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np

from streamlasso.core.engine import Engine
from streamlasso.core.learner import Learner
from streamlasso.core.mixture import MixtureLearner
from streamlasso.core.neighbourhoods import Neighbourhoods
from streamlasso.core.record import RECORD
from streamlasso.core.state import FIXED, Stateful, array
from streamlasso.settings import has_mixture

LOSS, SIZE = RECORD.index("loss"), RECORD.index("effective_size")
#: Fewer nodes per thread, or fewer nodes times points in all, cost more to hand over than they save.
NODES_PER_THREAD, LEAST_WORK = 32, 300


class _Node(Stateful):
    """A node that shares nothing with others: its model, and the variance of what its predictions left."""

    STATE = (array("variance", FIXED),)

    def __init__(self, learner: Engine, variance: np.ndarray) -> None:
        self.learner = learner
        self.variance = variance

    def parts(self) -> dict[str, Stateful]:
        return {"": self.learner}


class _Separate(Stateful):
    """Nodes that share nothing: families whose rows weigh differently in each regression, and competing models.

    variance : of what each node's predictions left, as far back as its memory reaches; 1 for families that have none
    """

    def __init__(self, p: int, first: int, last: int, settings: dict[str, Any]) -> None:
        kind = MixtureLearner if has_mixture(settings) else Learner
        self.first = first
        self.quadratic = settings["family"].quadratic
        self.learners = [kind(p, **{**settings, "penalty_factor": _barred(p, i)}) for i in range(first, last)]
        self.variance = np.zeros(last - first) if self.quadratic else np.ones(last - first)
        self.nodes = [_Node(learner, self.variance[i : i + 1]) for i, learner in enumerate(self.learners)]

    @property
    def n_seen(self) -> int:
        return self.learners[0].n_seen

    def learn(self, X: np.ndarray, record: np.ndarray, coef: np.ndarray | None, variance: np.ndarray | None) -> None:
        for i, learner in enumerate(self.learners):
            y = np.ascontiguousarray(X[:, self.first + i])
            learner.learn(X, y, None, record[i], None if coef is None else coef[i])
        for t in range(len(X)):
            if self.quadratic:
                squared, size = 2.0 * record[:, t, LOSS], np.maximum(record[:, t, SIZE], 1.0)
                self.variance += (squared - self.variance) / size
            if variance is not None:
                variance[:, t] = self.variance

    def now(self) -> tuple[np.ndarray, np.ndarray]:
        coef = [np.append(learner.intercept, learner.coef) for learner in self.learners]
        return np.array(coef), self.variance

    def parts(self) -> dict[str, Stateful]:
        return {f"node{self.first + i}/": node for i, node in enumerate(self.nodes)}


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
        self.shared = quadratic and not has_mixture(settings)
        #: The strongest that an edge can be.
        self.most = 1.0 if quadratic else np.inf
        n_groups = min(n_jobs or max(1, min(os.cpu_count() or 1, p // NODES_PER_THREAD)), p)
        edges = np.linspace(0, p, n_groups + 1).astype(int)
        self.groups = [self._group(int(first), int(last)) for first, last in pairwise(edges)]
        self.learners = [learner for group in self.groups for learner in group.learners]
        self.still = np.zeros(p, dtype=bool)
        self.lock = Lock()

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

    def learn(self, X: np.ndarray, *, traced: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Learn the time points; returns what was noted of them, and where asked the models: (time, node, ...)."""
        p, n = self.n_features, len(X)
        record = np.empty((p, n, len(RECORD)))
        coef = np.empty((p, n, p + 1)) if traced else np.empty((p, 0, p + 1))
        variance = np.empty((p, n)) if traced else np.empty((p, 0))
        if not self.lock.acquire(blocking=False):
            raise RuntimeError("this network is learning in another thread; give every thread a model of its own")
        before = None if self.learners[0].compiled else self.state()
        try:
            tasks = [
                (group, X, record[nodes], coef[nodes] if traced else None, variance[nodes] if traced else None)
                for group, nodes in self._places()
            ]
            _together(tasks, threads=p * n >= LEAST_WORK)
        except BaseException:
            if before is not None:
                self.restore(before)
            raise
        finally:
            self.lock.release()
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

    def state(self) -> dict[str, np.ndarray]:
        """What the next time point needs; the same for any number of groups."""
        return {key: value for group in self.groups for key, value in group.state().items()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """The state that `state` gave, of any number of groups; a ValueError where it does not fit these settings."""
        names = [group.names() for group in self.groups]
        if set(state) != set().union(*names):
            raise ValueError(f"the state of another network: {sorted(set(state) ^ set().union(*names))}")
        for group, own in zip(self.groups, names, strict=True):
            group.restore({name: state[name] for name in own})

    def __reduce__(self) -> tuple[Any, ...]:
        return _revived, (self.n_features, self.settings, len(self.groups), self.state())


def _revived(p: int, settings: dict[str, Any], n_groups: int, state: dict[str, np.ndarray]) -> Nodes:
    nodes = Nodes(p, settings, n_groups)
    nodes.restore(state)
    return nodes


def _together(tasks: list[tuple[Any, ...]], *, threads: bool) -> None:
    """Each group learns, in a thread of its own. An interrupt waits for all: none may be ahead of the others."""
    if len(tasks) == 1 or not threads:
        _one_by_one(tasks)
        return
    futures = [_threads().submit(group.learn, *rest) for group, *rest in tasks]
    try:
        wait(futures)
    except BaseException:
        wait(futures)
        raise
    for future in futures:
        future.result()


def _one_by_one(tasks: list[tuple[Any, ...]]) -> None:
    first: BaseException | None = None
    for group, *rest in tasks:
        try:
            group.learn(*rest)
        except BaseException as error:
            first = first or error
    if first is not None:
        raise first


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="streamlasso")


# A child of a fork has none of its parent's threads.
os.register_at_fork(after_in_child=_threads.cache_clear)
