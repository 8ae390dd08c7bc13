"""What was learnt of one subject: lam of every node over time, and the edges of every network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamlasso.network.estimator import NetworkTrace, StreamingNetwork
from streamlasso.network.imaging.events import Event, conditions_of

#: Dense networks held in memory at a time, in bytes.
CHUNK_BYTES = 64 << 20
#: What is recorded of every node at every time point.
NODE_COLUMNS = ("lam", "lam_max", "loss", "n_active")


@dataclass(frozen=True)
class Edges:
    """Sparse networks over time: edge k is between nodes i[k] < j[k] at time point t[k]; sorted by t."""

    t: np.ndarray
    i: np.ndarray
    j: np.ndarray
    strength: np.ndarray
    n_times: int
    n_nodes: int

    @staticmethod
    def of(networks: np.ndarray, first: int = 0) -> Edges:
        """The edges of (time, p, p) networks, the first at time point `first`."""
        n, p = networks.shape[:2]
        upper = np.triu(np.ones((p, p), dtype=bool), 1)
        t, i, j = np.nonzero(networks * upper)
        strength = networks[t, i, j].astype(np.float32)
        return Edges((t + first).astype(np.int32), i.astype(np.int32), j.astype(np.int32), strength, first + n, p)

    @staticmethod
    def concatenate(parts: list[Edges]) -> Edges:
        t, i, j, strength = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("t", "i", "j", "strength")
        )
        return Edges(t, i, j, strength, parts[-1].n_times, parts[-1].n_nodes)

    def at(self, t: int) -> np.ndarray:
        """(p, p): the network after time point t."""
        here = slice(*np.searchsorted(self.t, [t, t + 1]))
        return self._dense(self.i[here], self.j[here], self.strength[here])

    def mean(self, times: np.ndarray) -> np.ndarray:
        """(p, p): the mean network of some time points; an absent edge counts as 0."""
        if len(times) == 1:
            return self.at(int(times[0]))
        weight = np.bincount(times, minlength=self.n_times) / max(len(times), 1)
        return self._dense(self.i, self.j, self.strength * weight[self.t])

    def counts(self) -> np.ndarray:
        """The number of edges at each time point."""
        return np.bincount(self.t, minlength=self.n_times)

    def _dense(self, i: np.ndarray, j: np.ndarray, strength: np.ndarray) -> np.ndarray:
        p = self.n_nodes
        upper = np.bincount(i * p + j, weights=strength, minlength=p * p).reshape(p, p)
        return upper + upper.T


@dataclass(frozen=True)
class SubjectResult:
    """One subject after learning. lam, lam_max, loss and n_active are (time, region).

    t : the number of each row, or of each volume
    seconds : the time of each row on the clock of the events; None if the time between rows is unknown
    notes : what was left out or changed, as sentences for the report
    """

    subject: str
    regions: tuple[str, ...]
    t: np.ndarray
    seconds: np.ndarray | None
    lam: np.ndarray
    lam_max: np.ndarray
    loss: np.ndarray
    n_active: np.ndarray
    edges: Edges
    coords: np.ndarray | None = None
    events: tuple[Event, ...] = ()
    notes: tuple[str, ...] = ()

    def conditions(self, delay: float) -> np.ndarray:
        """The condition shown `delay` seconds before each time point; "" if there was none."""
        if self.seconds is None:
            return np.full(len(self.t), "", dtype=object)
        return conditions_of(self.seconds, self.events, delay)

    @property
    def mean_lam(self) -> np.ndarray:
        """(time,): the mean over regions with something to fit; nan if there are none yet."""
        return mean_over_nodes(self.lam, self.lam_max)


def mean_over_nodes(lam: np.ndarray, lam_max: np.ndarray) -> np.ndarray:
    """The mean lam at each time point, over the nodes with something to fit.

    >>> import numpy as np
    >>> mean_over_nodes(np.array([[0.0, 0.0], [0.1, 0.3]]), np.array([[0.0, 0.0], [1.0, 1.0]]))
    array([nan, 0.2])
    """
    fitted = np.isfinite(lam) & (lam_max > 0)
    with np.errstate(invalid="ignore"):
        return np.where(fitted, lam, 0.0).sum(axis=1) / np.where(fitted.any(axis=1), fitted.sum(axis=1), np.nan)


def follow_sparse(model: StreamingNetwork, values: np.ndarray) -> tuple[NetworkTrace, Edges]:
    """`model.follow` in bounded memory: the trace without its networks, which are returned as `Edges`.

    >>> import numpy as np
    >>> from streamlasso.network import StreamingNetwork
    >>> from streamlasso.network.results import follow_sparse
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> X[:, 1] += X[:, 0]
    >>> trace, edges = follow_sparse(StreamingNetwork(), X)
    >>> trace.lam.shape, edges.at(59).shape, bool(edges.at(59)[0, 1] > 0.3)
    ((60, 3), (3, 3), True)
    """
    p = values.shape[1]
    size = max(1, CHUNK_BYTES // (8 * p * p))
    traces, edges = [], []
    for first in range(0, len(values), size):
        trace = model.follow(values[first : first + size])
        edges.append(Edges.of(trace.networks, first))
        traces.append(trace)
    columns = {name: np.concatenate([getattr(trace, name) for trace in traces]) for name in NODE_COLUMNS}
    return NetworkTrace(names=traces[0].names, networks=np.empty((0, p, p)), **columns), Edges.concatenate(edges)
