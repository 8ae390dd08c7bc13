"""The models of all keys: in memory, on disk, and on the cores."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from streamlasso.core.model import Engine, unpacked
from streamlasso.estimators.base import Rows
from streamlasso.keyed.groups import Groups
from streamlasso.keyed.packed_models import PackedModels
from streamlasso.keyed.spill import Spill

#: Fewer rows than this are not worth handing to a second thread.
LEAST_WORK = 64


class Models:
    """Each key has a place, for good; its models (one, or one per class) are there in memory or in the spill.

    places : place by key
    n_workers : threads that learn; as many as there are cores, if nothing else is said
    """

    def __init__(self, learner: Engine, n_learners: int, max_keys: int | None, n_workers: int | None = None) -> None:
        self._n_workers = n_workers or os.cpu_count() or 1
        self.stores = _stores(learner, n_learners, self._n_workers)
        self.max_keys = max_keys
        self.places: dict[Hashable, int] = {}
        self._free: list[int] = []
        self._spill: Spill | None = None
        #: By place: is it in memory, when was it last used, and how many features have its numbers?
        self._resident = np.zeros(0, dtype=bool)
        self._used = np.zeros(0, dtype=np.int64)
        self._width = np.zeros(0, dtype=np.int64)
        self._clock = 0
        #: By place: numbers in memory that have fewer features than there are now.
        self._narrow: dict[int, list[bytes]] = {}

    # --- rows -------------------------------------------------------------------------------------------------------

    def learn(self, groups: Groups, rows: Rows, pooled: list[np.ndarray | None]) -> np.ndarray:
        """eta (row, learner) before each row; `pooled`, that of the pooled model, if there is one."""
        etas = np.empty((len(self.stores), len(rows.X)))
        for chosen in self._batches(len(groups.keys)):
            places = self._bring([groups.keys[g] for g in chosen])
            first, order = groups.some(chosen)
            for store, y, shared, out in zip(self.stores, rows.targets, pooled, etas, strict=True):
                _on_all_cores(store, places, first, order, rows.X, y, rows.weights, shared, out)
        self._spill_some()
        return etas.T

    def predict(self, groups: Groups, X: np.ndarray, pooled: list[np.ndarray | None]) -> np.ndarray:
        """eta (row, learner); of a key that is not known that of the pooled model, or of one that has seen no row."""
        etas = np.array([np.zeros(len(X)) if eta is None else eta for eta in pooled])
        known = np.array([g for g, key in enumerate(groups.keys) if key in self.places], dtype=np.intp)
        for chosen in self._batches(len(known)):
            places = self._bring([groups.keys[g] for g in known[chosen]])
            first, order = groups.some(known[chosen])
            for store, shared, out in zip(self.stores, pooled, etas, strict=True):
                store.predict(places, first, order, X, shared, out)
        self._spill_some()
        return etas.T

    def _batches(self, n_keys: int) -> Iterable[np.ndarray]:
        """No more keys at a time than may be in memory."""
        size = min(self.max_keys or n_keys, n_keys)
        return (np.arange(start, min(start + size, n_keys)) for start in range(0, n_keys, size or 1))

    # --- places -----------------------------------------------------------------------------------------------------

    def _bring(self, keys: list[Hashable]) -> np.ndarray:
        """The places of these keys, with their models in memory."""
        for key in keys:
            if key not in self.places:
                self.places[key] = self._new_place()
        places = np.array([self.places[key] for key in keys], dtype=np.intp)
        away = places[~self._resident[places]].tolist()
        if away:
            assert self._spill is not None
            n = len(self.stores)
            for number, data in self._spill.get([place * n + c for place in away for c in range(n)]):
                self.stores[number % n].put(number // n, self._grown(data, number // n))
            self._resident[places] = True
        self._grow(places[self._width[places] < self.n_features].tolist())
        self._clock += 1
        self._used[places] = self._clock
        self._spill_some()
        return places

    def _new_place(self) -> int:
        if self._free:
            place = self._free.pop()
        else:
            place = len(self.places)
            if place >= len(self._used):
                more = max(place + 1 - len(self._used), len(self._used), 16)
                self._resident = np.append(self._resident, np.zeros(more, dtype=bool))
                self._used = np.append(self._used, np.zeros(more, dtype=np.int64))
                self._width = np.append(self._width, np.zeros(more, dtype=np.int64))
                for store in self.stores:
                    store.add_places(more)
        self._resident[place] = True
        self._width[place] = self.n_features
        return place

    def _spill_some(self) -> None:
        """The least recently used, where there are more than there should be."""
        if self.max_keys is None:
            return
        here = np.flatnonzero(self._resident)
        excess = len(here) - self.max_keys
        if excess <= 0:
            return
        self._spill = self._spill or Spill()
        oldest = here[np.argsort(self._used[here], kind="stable")[:excess]].tolist()
        n = len(self.stores)
        self._spill.put((place * n + c, data) for place in oldest for c, data in enumerate(self._here(place)))
        for place in oldest:
            self._narrow.pop(place, None)
            for store in self.stores:
                store.clear(place)
        self._resident[oldest] = False

    # --- features and classes that appear ---------------------------------------------------------------------------

    @property
    def n_features(self) -> int:
        return self.stores[0].p

    def widen(self, learner: Engine) -> None:
        """As many features as this one has: new ones were 0 until now. The models of a key grow when they are used."""
        for place in self.places.values():
            if self._resident[place]:
                self._narrow[place] = self._here(place)
        stores = _stores(learner, len(self.stores), self._n_workers)
        for new, old in zip(stores, self.stores, strict=True):
            new.add_places(old.n_places)
        self.stores = stores

    def _here(self, place: int) -> list[bytes]:
        """The numbers of a place in memory, as they are."""
        return self._narrow.get(place) or [store.packed(place) for store in self.stores]

    def _grow(self, places: list[int]) -> None:
        """Models in memory, to as many features as there are now."""
        for place in places:
            for store, data in zip(self.stores, self._narrow.pop(place, []), strict=False):
                store.put(place, self._grown(data, place))
            self._width[place] = self.n_features

    def _grown(self, data: bytes, place: int) -> bytes:
        """The numbers of this place, which may have fewer features, with as many as there are now."""
        width = int(self._width[place])
        return data if width == self.n_features or not data else self.stores[0].grown(data, width)

    def with_classes(self, n_learners: int) -> Models:
        """The same keys with more classes, in the order of `estimators/multiclass.py`.

        A key has no row of a new class: what it predicts of it is the pooled model's, until there are such rows.
        """
        new = Models(self.stores[0].engines[0], n_learners, self.max_keys, self._n_workers)
        for key in self.places:
            old = self.packed(key)
            old = [self.stores[0].exchanged(old[0]), *old] if len(old) == 1 else old
            new.put(key, old + [b""] * (n_learners - len(old)))
        return new

    # --- one key ----------------------------------------------------------------------------------------------------

    def packed(self, key: Hashable) -> list[bytes]:
        """The numbers of a key's models, wherever they are."""
        place, n = self.places[key], len(self.stores)
        if self._resident[place]:
            self._grow([place] if place in self._narrow else [])
            return self._here(place)
        assert self._spill is not None
        found = dict(self._spill.get([place * n + c for c in range(n)]))
        data = [self._grown(found[place * n + c], place) for c in range(n)]
        if self._width[place] < self.n_features:
            self._spill.put((place * n + c, numbers) for c, numbers in enumerate(data))
            self._width[place] = self.n_features
        return data

    def sizes(self, key: Hashable) -> list[int]:
        """How many bytes each of them takes."""
        place = self.places[key]
        if self._resident[place] and place not in self._narrow:
            return [store.size_of(place) for store in self.stores]
        return [len(data) for data in self.packed(key)]

    def weight(self, key: Hashable) -> float:
        """The weight of a key's own models in its predictions."""
        return float(np.mean([self.stores[0].own_weight(data) for data in self.packed(key)]))

    def put(self, key: Hashable, data: list[bytes]) -> None:
        """A model for a new key."""
        place = self._new_place()
        for store, numbers in zip(self.stores, data, strict=True):
            store.put(place, numbers)
        self.places[key] = place
        self._spill_some()

    def states(self, key: Hashable) -> list[tuple[bytes, float]]:
        """Of each learner what `Engine.unpack` takes, and its weight against the pooled one."""
        (place,) = self._bring([key])
        return [store.state_of(int(place)) for store in self.stores]

    def engine(self, state: bytes) -> Engine:
        like = self.stores[0].engines[0]
        return unpacked(type(like), like.n_features, like.settings, state)

    def evict(self, key: Hashable) -> None:
        place, n = self.places.pop(key), len(self.stores)
        if self._resident[place]:
            for store in self.stores:
                store.clear(place)
        elif self._spill is not None:
            self._spill.drop([place * n + c for c in range(n)])
        self._narrow.pop(place, None)
        self._resident[place] = False
        self._free.append(place)

    @property
    def n_bytes(self) -> int:
        narrow = sum(len(data) for numbers in self._narrow.values() for data in numbers)
        return narrow + sum(store.n_bytes for store in self.stores)


def _stores(learner: Engine, n_learners: int, n_workers: int) -> list[PackedModels]:
    """No models yet, with the settings of this one: an engine per worker for each learner."""
    kind, p, settings = type(learner), learner.n_features, {**learner.settings, "false_alarms": 0.0}
    return [PackedModels([kind(p, **settings) for _ in range(n_workers)]) for _ in range(n_learners)]


def _on_all_cores(store: PackedModels, places: np.ndarray, first: np.ndarray, order: np.ndarray, *rest: Any) -> None:
    """The keys are dealt out so that each worker has about as many rows. An interrupt waits for all."""
    n_workers = len(store.engines)
    if n_workers == 1 or len(order) < LEAST_WORK or len(places) < n_workers:
        store.learn(0, places, first, order, *rest)
        return
    edges = np.searchsorted(first, np.linspace(0, first[-1], n_workers + 1)[1:-1])
    edges = np.concatenate([[0], edges, [len(places)]])
    futures = [
        _threads().submit(store.learn, i, places[a:b], np.ascontiguousarray(first[a : b + 1]), order, *rest)
        for i, (a, b) in enumerate(pairwise(edges))
        if a < b
    ]
    try:
        wait(futures)
    except BaseException:
        wait(futures)
        raise
    for future in futures:
        future.result()


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="streamlasso-keyed")


# A child of a fork has none of its parent's threads.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.cache_clear)
