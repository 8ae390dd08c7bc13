"""Sparse networks over time are the dense ones."""

import numpy as np

from streamlasso.network import StreamingNetwork
from streamlasso.network.results import Edges, follow_sparse


def test_edges_are_the_networks_in_any_number_of_chunks(monkeypatch):
    X = np.random.default_rng(5).normal(size=(50, 5)).cumsum(axis=1)
    networks = StreamingNetwork().fit_transform(X)
    whole = Edges.of(networks)
    monkeypatch.setattr("streamlasso.network.results.CHUNK_BYTES", 8 * 25 * 7)
    trace, chunks = follow_sparse(StreamingNetwork(), X)
    for name in ("t", "i", "j", "strength"):
        np.testing.assert_array_equal(getattr(chunks, name), getattr(whole, name))
    assert trace.lam.shape == (50, 5)
    for t in (0, 13, 49):
        np.testing.assert_allclose(chunks.at(t), networks[t], atol=1e-7)
    times = np.array([3, 17, 18, 40])
    np.testing.assert_allclose(chunks.mean(times), networks[times].mean(axis=0), atol=1e-7)
    np.testing.assert_array_equal(chunks.counts(), (networks != 0).sum(axis=(1, 2)) // 2)
