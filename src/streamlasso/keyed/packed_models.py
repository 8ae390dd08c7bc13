# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Many models of one kind, as packed numbers (`tape.py`), and a few engines that they take turns on.

To learn or predict the rows of a model its numbers are copied to an engine, and after learning back: an engine's
scratch space is not kept for every model, and a model takes no more memory than its state. The largest array of a
single model, S, stays where it is (`Tape.lent`): a row reads a part of it.

Beside the models of the keys there is one that sees all rows; `pooling.py` says how they predict together.
"""

import cython
import numpy as np
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.cimports.libc.stdlib import free, malloc, realloc
from cython.cimports.libc.string import memcpy
from cython.cimports.streamlasso.core.base.buffers import Pointers
from cython.cimports.streamlasso.core.base.checks import weight_of
from cython.cimports.streamlasso.core.base.record import Record
from cython.cimports.streamlasso.core.base.tape import Tape
from cython.cimports.streamlasso.core.model import Engine
from cython.cimports.streamlasso.keyed.pooling import Pooling

from streamlasso.core.base.state import NoRoom
from streamlasso.core.model import unpacked
from streamlasso.families import Gaussian

#: A model that grows gets memory for this share more than it needs.
SLACK = cython.declare(cython.Py_ssize_t, 16)
#: What stands before the state of a model: that of its `Pooling`.
HEAD = cython.declare(cython.Py_ssize_t, len(Pooling(Gaussian()).pack()))


@cython.cclass
class PackedModels:
    """Models in numbered places; a place may be empty, and its model has then seen no row."""

    def __cinit__(self, engines):
        first: Engine = engines[0]
        self.engines = list(engines)
        self.each = Pointers(self.engines)
        self.tapes = Pointers([Tape() for _ in self.engines])
        self.poolings = Pointers([Pooling(first.settings["family"]) for _ in self.engines])
        self.p = first.p
        self.fresh = Pooling(first.settings["family"]).pack() + first.pack()
        self.fresh_at = PyBytes_AS_STRING(self.fresh)
        self.fresh_size = len(self.fresh)
        self.n_places = self.room = 0
        self.working = [False for _ in self.engines]
        self.n_working = 0

    def __dealloc__(self):
        i: cython.Py_ssize_t
        for i in range(self.n_places):
            free(self.at[i])
        free(self.at)
        free(self.size)
        free(self.held)

    def add_places(self, n: cython.Py_ssize_t):
        """n more places, all empty."""
        i: cython.Py_ssize_t
        self._refuse_at_work()
        if self.n_places + n > self.room:
            room: cython.Py_ssize_t = max(self.n_places + n, 2 * self.room)
            at = cython.cast(cython.pointer[cython.p_char], realloc(self.at, room * cython.sizeof(cython.p_char)))
            if at == cython.NULL:
                raise MemoryError
            self.at = at
            size = cython.cast(
                cython.pointer[cython.Py_ssize_t], realloc(self.size, room * cython.sizeof(cython.Py_ssize_t))
            )
            if size == cython.NULL:
                raise MemoryError
            self.size = size
            held = cython.cast(
                cython.pointer[cython.Py_ssize_t], realloc(self.held, room * cython.sizeof(cython.Py_ssize_t))
            )
            if held == cython.NULL:
                raise MemoryError
            self.held = held
            self.room = room
        for i in range(self.n_places, self.n_places + n):
            self.at[i] = cython.NULL
            self.size[i] = self.held[i] = 0
        self.n_places += n

    # --- rows -------------------------------------------------------------------------------------------------------

    def learn(
        self,
        worker: cython.Py_ssize_t,
        places: cython.const[cython.Py_ssize_t][::1],
        first: cython.const[cython.Py_ssize_t][::1],
        order: cython.const[cython.Py_ssize_t][::1],
        X: cython.const[cython.double][:, ::1],
        y: cython.const[cython.double][::1],
        weight,
        pooled,
        etas: cython.double[::1],
    ):
        """The model in `places[g]` learns the rows `order[first[g]:first[g + 1]]`; `etas`, what was predicted for each.

        `pooled`: what the pooled model predicted, or None. Several workers may learn at once, if no place is given to
        two of them.
        """
        g: cython.Py_ssize_t
        weighted: cython.bint = weight is not None
        pools: cython.bint = pooled is not None
        shared: cython.const[cython.double][::1] = pooled if pools else _NOTHING
        w: cython.const[cython.double][::1] = weight if weighted else _NOTHING
        self._start(worker)
        try:
            with cython.nogil:
                for g in range(places.shape[0]):
                    if first[g + 1] > first[g]:
                        self._learn(
                            cython.cast(Engine, self.each.at[worker]),
                            cython.cast(Tape, self.tapes.at[worker]),
                            cython.cast(Pooling, self.poolings.at[worker]),
                            places[g],
                            first[g + 1] - first[g],
                            cython.address(order[first[g]]),
                            cython.address(X[0, 0]),
                            cython.address(y[0]),
                            cython.address(w[0]) if weighted else cython.NULL,
                            cython.address(shared[0]) if pools else cython.NULL,
                            cython.address(etas[0]),
                        )
        finally:
            self._stop(worker)

    def predict(
        self,
        places: cython.const[cython.Py_ssize_t][::1],
        first: cython.const[cython.Py_ssize_t][::1],
        order: cython.const[cython.Py_ssize_t][::1],
        X: cython.const[cython.double][:, ::1],
        pooled,
        etas: cython.double[::1],
    ):
        """The same without learning, each row as the next one of its model."""
        g: cython.Py_ssize_t
        pools: cython.bint = pooled is not None
        shared: cython.const[cython.double][::1] = pooled if pools else _NOTHING
        self._start(0)
        try:
            with cython.nogil:
                for g in range(places.shape[0]):
                    if first[g + 1] > first[g]:
                        self._predict(
                            cython.cast(Engine, self.each.at[0]),
                            cython.cast(Tape, self.tapes.at[0]),
                            cython.cast(Pooling, self.poolings.at[0]),
                            places[g],
                            first[g + 1] - first[g],
                            cython.address(order[first[g]]),
                            cython.address(X[0, 0]),
                            cython.address(shared[0]) if pools else cython.NULL,
                            cython.address(etas[0]),
                        )
        finally:
            self._stop(0)

    def _learn(self, engine, tape, pooling, place, n, rows, X, y, w, pooled, etas):
        i: cython.Py_ssize_t
        k: cython.Py_ssize_t
        weight: cython.double
        record: Record
        self._take_out(engine, tape, pooling, place)
        for k in range(n):
            i = rows[k]
            weight = weight_of(w, i)
            n_seen: cython.Py_ssize_t = engine.n_seen
            engine.step(1, X + i * self.p, y + i, cython.address(weight), cython.address(record))
            etas[i] = record.eta
            if pooled != cython.NULL:
                etas[i] = pooling.combined(record.eta, pooled[i])
                if weight > 0.0:
                    pooling.see(n_seen, y[i], weight, record.eta, pooled[i])
        self._put_back(engine, tape, pooling, place)
        return 0

    def _predict(self, engine, tape, pooling, place, n, rows, X, pooled, etas):
        i: cython.Py_ssize_t
        k: cython.Py_ssize_t
        self._take_out(engine, tape, pooling, place)
        for k in range(n):
            i = rows[k]
            etas[i] = engine.eta_at(X + i * self.p)
            if pooled != cython.NULL:
                etas[i] = pooling.combined(etas[i], pooled[i])
        return 0

    # --- numbers ----------------------------------------------------------------------------------------------------

    def _take_out(self, engine, tape, pooling, place):
        """To the engine."""
        new: cython.bint = self.size[place] == 0
        start: cython.p_char = self.fresh_at if new else self.at[place]
        size: cython.Py_ssize_t = self.fresh_size if new else self.size[place]
        tape.lends = engine.in_place and not new
        pooling.read(tape, start, HEAD)
        engine.read(tape, start + HEAD, size - HEAD)
        if tape.lacks:
            with cython.gil:
                raise MemoryError
        return 0

    def _put_back(self, engine, tape, pooling, place):
        """Where they were before, if there is room: most models stay about as large as they are."""
        size: cython.Py_ssize_t
        before: cython.p_char = self.at[place]
        if before != cython.NULL:
            engine.write(tape, before + HEAD, self.held[place] - HEAD)
        if before == cython.NULL or tape.wrong != cython.NULL:
            size = HEAD + engine.n_bytes(tape)
            there: cython.p_char = cython.cast(cython.p_char, malloc(size + size // SLACK))
            if there == cython.NULL:
                # The numbers here are half of the old model and half of the new one.
                self._drop(place)
                with cython.gil:
                    raise MemoryError("too little memory for the model of a key, which is empty now")
            engine.write(tape, there + HEAD, size - HEAD)
            self._keep(place, there, size + size // SLACK)
        self.size[place] = HEAD + tape.at
        pooling.write(tape, self.at[place], HEAD)
        return 0

    def _keep(self, place, there, size):
        """This memory of as many bytes instead of what there was."""
        free(self.at[place])
        self.at[place] = there
        self.held[place] = size

    def _drop(self, place):
        self._keep(place, cython.NULL, 0)
        self.size[place] = 0

    def packed(self, place: cython.Py_ssize_t):
        """The numbers in a place, as bytes."""
        self._refuse_place(place)
        self._refuse_at_work()
        return PyBytes_FromStringAndSize(self.at[place], self.size[place])

    def size_of(self, place: cython.Py_ssize_t):
        """How many bytes `packed` gives."""
        self._refuse_place(place)
        return self.size[place]

    def put(self, place: cython.Py_ssize_t, data: bytes):
        """What `packed` gave; a ValueError, and no change, where it does not fit these settings."""
        self._refuse_place(place)
        self._refuse_at_work()
        if len(data) > 0:
            self._pooling(data)
            engine: Engine = self.engines[0]
            engine.refuse_unfit(data[HEAD:])
            there: cython.p_char = cython.cast(cython.p_char, malloc(len(data)))
            if there == cython.NULL:
                raise NoRoom
            memcpy(there, PyBytes_AS_STRING(data), len(data))
            self._keep(place, there, len(data))
            self.size[place] = len(data)
        else:
            self._drop(place)

    def clear(self, place: cython.Py_ssize_t):
        """Empty a place."""
        self._refuse_place(place)
        self._refuse_at_work()
        self._drop(place)

    def state_of(self, place: cython.Py_ssize_t):
        """What `Engine.unpack` takes, and the weight against the pooled model."""
        data = self.packed(place)
        return (data or self.fresh)[HEAD:], self.own_weight(data)

    def own_weight(self, data: bytes):
        """The weight of a key's own model in what `packed` gave."""
        return self._pooling(data).own_weight if data else 0.0

    def exchanged(self, data: bytes):
        """What `packed` gave, of the same key with the two classes exchanged."""
        if not data:
            return data
        engine: Engine = self.engines[0]
        pooling = self._pooling(data)
        pooling.exchange_classes()
        return pooling.pack() + unpacked(type(engine), self.p, engine.settings, data[HEAD:]).mirrored().pack()

    def grown(self, data: bytes, n_features):
        """What `packed` gave of a model with fewer features, with as many as there are here."""
        engine: Engine = self.engines[0]
        settings = {**engine.settings, "penalty_factor": engine.settings["penalty_factor"][:n_features]}
        return data[:HEAD] + unpacked(type(engine), n_features, settings, data[HEAD:]).grown(self.p).pack()

    def _pooling(self, data):
        pooling: Pooling = Pooling(cython.cast(Engine, self.engines[0]).settings["family"])
        pooling.unpack(data[:HEAD])
        return pooling

    @property
    def n_bytes(self):
        """Of all models."""
        i: cython.Py_ssize_t
        total: cython.Py_ssize_t = 0
        for i in range(self.n_places):
            total += self.size[i]
        return total

    def _start(self, worker):
        """This engine is at work, until it is not."""
        if self.working[worker]:
            raise RuntimeError(f"worker {worker} is at work in another thread")
        self.working[worker] = True
        self.n_working += 1
        return 0

    def _stop(self, worker):
        self.working[worker] = False
        self.n_working -= 1
        return 0

    def _refuse_at_work(self):
        """Places are written, and moved, without the GIL; the first engine looks at what is put."""
        if self.n_working > 0:
            raise RuntimeError("models are at work in another thread: wait for its end")
        return 0

    def _refuse_place(self, place):
        if not 0 <= place < self.n_places:
            raise IndexError(f"place {place} of {self.n_places}")


_NOTHING = np.zeros(1)
