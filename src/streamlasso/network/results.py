"""A subject's network, followed through time: lam of every node, and all edges that there were."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamlasso.network.estimator import NetworkTrace, StreamingNetwork
from streamlasso.network.imaging.bids import Event, conditions_of

#: Bytes of dense networks that are held at a time.
MOST_BYTES = 64 << 20


@dataclass(frozen=True)
class Edges:
    """Networks over time, as the edges that are there: one between i[k] < j[k] at time point t[k], in order of t."""

    t: np.ndarray
    i: np.ndarray
    j: np.ndarray
    strength: np.ndarray
    n_times: int
    n_nodes: int

    @staticmethod
    def of(networks: np.ndarray, first: int = 0) -> Edges:
        """The edges of (time, p, p) networks, of which the first is number `first`."""
        n, p = networks.shape[:2]
        upper = np.triu(np.ones((p, p), dtype=bool), 1)
        t, i, j = np.nonzero(networks * upper)
        strength = networks[t, i, j].astype(np.float32)
        return Edges((t + first).astype(np.int32), i.astype(np.int32), j.astype(np.int32), strength, first + n, p)

    @staticmethod
    def joined(parts: list[Edges]) -> Edges:
        t, i, j, strength = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("t", "i", "j", "strength")
        )
        return Edges(t, i, j, strength, parts[-1].n_times, parts[-1].n_nodes)

    def at(self, t: int) -> np.ndarray:
        """(p, p): the network after time point t."""
        here = slice(*np.searchsorted(self.t, [t, t + 1]))
        return self._dense(self.i[here], self.j[here], self.strength[here])

    def mean(self, times: np.ndarray) -> np.ndarray:
        """(p, p): the mean network of some time points; an edge counts 0 where it is not there."""
        if len(times) == 1:
            return self.at(int(times[0]))
        weight = np.bincount(times, minlength=self.n_times) / max(len(times), 1)
        return self._dense(self.i, self.j, self.strength * weight[self.t])

    def counts(self) -> np.ndarray:
        """How many edges there are at each time point."""
        return np.bincount(self.t, minlength=self.n_times)

    def _dense(self, i: np.ndarray, j: np.ndarray, strength: np.ndarray) -> np.ndarray:
        p = self.n_nodes
        upper = np.bincount(i * p + j, weights=strength, minlength=p * p).reshape(p, p)
        return upper + upper.T


@dataclass(frozen=True)
class Followed:
    """What is known of a subject afterwards. lam, lam_max, loss and n_active are (time, region).

    t : the number of each time point: of the row, or of the volume
    seconds : on the clock of the events; None if the time from point to point is not known
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
        """What was shown `delay` seconds before each time point; "" for nothing."""
        if self.seconds is None:
            return np.full(len(self.t), "", dtype=object)
        return conditions_of(self.seconds, self.events, delay)

    @property
    def mean_lam(self) -> np.ndarray:
        """(time,): over the regions, of those that could be fitted at all; nan if there are none yet."""
        return mean_over_nodes(self.lam, self.lam_max)


def mean_over_nodes(lam: np.ndarray, lam_max: np.ndarray) -> np.ndarray:
    """The mean lam at each time point, over the nodes for which there was something to fit.

    >>> import numpy as np
    >>> mean_over_nodes(np.array([[0.0, 0.0], [0.1, 0.3]]), np.array([[0.0, 0.0], [1.0, 1.0]]))
    array([nan, 0.2])
    """
    fitted = np.isfinite(lam) & (lam_max > 0)
    with np.errstate(invalid="ignore"):
        return np.where(fitted, lam, 0.0).sum(axis=1) / np.where(fitted.any(axis=1), fitted.sum(axis=1), np.nan)


def follow(model: StreamingNetwork, values: np.ndarray) -> tuple[NetworkTrace, Edges]:
    """Learn all time points, and keep what happened: the trace (its networks left out), and the edges.

    >>> import numpy as np
    >>> from streamlasso.network import StreamingNetwork
    >>> from streamlasso.network.results import follow
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> X[:, 1] += X[:, 0]
    >>> trace, edges = follow(StreamingNetwork(), X)
    >>> trace.lam.shape, edges.at(59).shape, bool(edges.at(59)[0, 1] > 0.3)
    ((60, 3), (3, 3), True)
    """
    p = values.shape[1]
    size = max(1, MOST_BYTES // (8 * p * p))
    traces, edges = [], []
    for first in range(0, len(values), size):
        trace = model.follow(values[first : first + size])
        edges.append(Edges.of(trace.networks, first))
        traces.append(trace)
    columns = {name: np.concatenate([getattr(trace, name) for trace in traces]) for name in NODE_COLUMNS}
    return NetworkTrace(names=traces[0].names, networks=np.empty((0, p, p)), **columns), Edges.joined(edges)


#: What is noted of every node at every time point.
NODE_COLUMNS = ("lam", "lam_max", "loss", "n_active")
