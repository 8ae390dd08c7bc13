# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Many models of one kind, as packed numbers (`tape.py`), and a few engines that they take turns on.

To learn or predict the rows of a model its numbers are copied to an engine, and after learning back: an engine's
scratch space is not kept for every model, and a model takes no more memory than its state. The largest array of a
single model, S, stays where it is (`Tape.lent`): a row reads a part of it.

**Own and pooled.** Beside the models of the keys there is one that sees all rows. For each key three predictions
compete: that of its own model, that of the pooled model, and that of the pooled model shifted to the level of this key,

    eta = w_own eta_own + w_pooled eta_pooled + w_shifted (eta_pooled + b)

As in `dispersion.py` losses are measured in units of the noise, no row moves the odds by more than ODDS_CAP, and a
little is shared back after each row:

    w_c <- w_c exp(-l_c), normalised;        w_c <- (1 - SHARE) w_c + SHARE / 3

The shift takes a Newton step on each row's loss, from a prior worth one row at 0, and forgets:

    H <- SHIFT_DECAY H + loss''(eta_pooled + b),        b <- b - loss'(eta_pooled + b) / (1 + H)

A key that has seen no row has the pooled model alone; its own model, which is empty for its first rows, competes after
them.
"""

import cython
import numpy as np
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.cimports.libc.math import exp, fabs, isfinite
from cython.cimports.libc.stdlib import free, malloc, realloc
from cython.cimports.libc.string import memcpy, memset
from cython.cimports.streamlasso.core.base.buffers import Pointers
from cython.cimports.streamlasso.core.base.checks import FIRST_ROWS, weight_of
from cython.cimports.streamlasso.core.base.record import Record
from cython.cimports.streamlasso.core.base.tape import Tape
from cython.cimports.streamlasso.core.model import Engine

from streamlasso.core.base.state import NoRoom

#: The weight of a key's own model when it enters, and what is shared back.
PRIOR = cython.declare(cython.double, 0.25)
SHARE = cython.declare(cython.double, 1e-4)
SHIFT_DECAY = cython.declare(cython.double, 0.99)
#: As in `dispersion.py`.
ODDS_CAP = cython.declare(cython.double, 6.0)
NOISE_DECAY = cython.declare(cython.double, 0.98)
#: Beyond this the exponential of eta is not a number.
FARTHEST = cython.declare(cython.double, 700.0)

#: A model that grows gets memory for this share more than it needs.
SLACK = cython.declare(cython.Py_ssize_t, 16)
HEAD = cython.declare(cython.Py_ssize_t, N_GATE * cython.sizeof(cython.double))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _combined(gate: cython.p_double, own: cython.double, pooled: cython.double) -> cython.double:
    """The average; of the pooled predictions alone where a key's own is no number."""
    eta: cython.double = pooled + gate[SHIFTED] * gate[SHIFT]
    if gate[OWN] > 0.0 and isfinite(own):
        eta += gate[OWN] * (own - pooled)
    return eta


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _enter(gate: cython.p_double) -> cython.void:
    """A key's own model competes from now on."""
    c: cython.Py_ssize_t
    for c in range(N_COMPETING):
        gate[c] *= 1.0 - PRIOR
    gate[OWN] = PRIOR


@cython.cclass
class PackedModels:
    """Models in numbered places; a place may be empty, and its model has then seen no row."""

    def __cinit__(self, engines):
        first: Engine = engines[0]
        self.engines = list(engines)
        self.each = Pointers(self.engines)
        self.tapes = Pointers([Tape() for _ in self.engines])
        self.family = first.family
        self.scaled = self.family.has_scale
        self.p = first.p
        self.fresh = first.pack()
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
                            places[g],
                            first[g + 1] - first[g],
                            cython.address(order[first[g]]),
                            cython.address(X[0, 0]),
                            cython.address(shared[0]) if pools else cython.NULL,
                            cython.address(etas[0]),
                        )
        finally:
            self._stop(0)

    def _learn(self, engine, tape, place, n, rows, X, y, w, pooled, etas):
        i: cython.Py_ssize_t
        k: cython.Py_ssize_t
        weight: cython.double
        record: Record
        gate: cython.double[N_GATE]
        self._take_out(engine, tape, place, gate)
        for k in range(n):
            i = rows[k]
            weight = weight_of(w, i)
            n_seen: cython.Py_ssize_t = engine.n_seen
            engine.step(1, X + i * self.p, y + i, cython.address(weight), cython.address(record))
            if pooled == cython.NULL:
                etas[i] = record.eta
                continue
            etas[i] = _combined(gate, record.eta, pooled[i])
            if weight > 0.0:
                if n_seen > 0:
                    self._judge(gate, y[i], weight, record.eta, pooled[i])
                else:
                    gate[POOLED] = gate[SHIFTED] = 0.5
                if n_seen == FIRST_ROWS:
                    _enter(gate)
                self._shift(gate, y[i], weight, pooled[i])
        self._put_back(engine, tape, place, gate)
        return 0

    def _predict(self, engine, tape, place, n, rows, X, pooled, etas):
        i: cython.Py_ssize_t
        k: cython.Py_ssize_t
        gate: cython.double[N_GATE]
        self._take_out(engine, tape, place, gate)
        for k in range(n):
            i = rows[k]
            etas[i] = engine.eta_at(X + i * self.p)
            if pooled != cython.NULL:
                etas[i] = _combined(gate, etas[i], pooled[i])
        return 0

    def _judge(self, gate, y, weight, own, pooled):
        """The weights after a row."""
        c: cython.Py_ssize_t
        total: cython.double = 0.0
        lowest: cython.double
        loss: cython.double[N_COMPETING]
        least: cython.double = self.family.loss_at(y, self.family.best_eta(y, -FARTHEST, FARTHEST))
        self._measure_noise(gate, 2.0 * self._excess(y, _combined(gate, own, pooled), least))
        if not gate[NOISE] > 0.0:
            return 0
        loss[OWN] = self._excess(y, own, least) / gate[NOISE]
        loss[POOLED] = self._excess(y, pooled, least) / gate[NOISE]
        loss[SHIFTED] = self._excess(y, pooled + gate[SHIFT], least) / gate[NOISE]
        lowest = min(loss[OWN], min(loss[POOLED], loss[SHIFTED]))
        for c in range(N_COMPETING):
            gate[c] *= exp(-weight * min(loss[c] - lowest, ODDS_CAP))
            total += gate[c]
        for c in range(N_COMPETING):
            gate[c] = gate[c] / total
        if gate[OWN] > 0.0:
            for c in range(N_COMPETING):
                gate[c] = (1.0 - SHARE) * gate[c] + SHARE / N_COMPETING
        return 0

    def _measure_noise(self, gate, deviance):
        if not self.scaled:
            gate[NOISE] = 1.0
            return 0
        if gate[NOISE] > 0.0:
            deviance = min(deviance, 2.0 * ODDS_CAP * gate[NOISE])
        gate[NOISE_WEIGHT] = NOISE_DECAY * gate[NOISE_WEIGHT] + 1.0
        gate[NOISE] += (deviance - gate[NOISE]) / gate[NOISE_WEIGHT]
        return 0

    def _shift(self, gate, y, weight, pooled):
        """The level of this key."""
        eta: cython.double = pooled + gate[SHIFT]
        step: cython.double
        gate[CURVATURE] = SHIFT_DECAY * gate[CURVATURE] + weight * self.family.curvature_at(y, eta)
        step = weight * self.family.slope_at(y, eta) / (1.0 + gate[CURVATURE])
        if isfinite(step):
            gate[SHIFT] -= step
        return 0

    def _excess(self, y, eta, least):
        """The loss less the least that there is; large where eta is no number."""
        loss: cython.double
        if not isfinite(eta):
            return LARGE
        loss = self.family.loss_at(y, eta) - least
        return min(max(loss, 0.0), LARGE)

    # --- numbers ----------------------------------------------------------------------------------------------------

    def _take_out(self, engine, tape, place, gate):
        """To the engine."""
        if self.size[place] == 0:
            memset(gate, 0, HEAD)
            gate[POOLED] = 1.0
            tape.lends = False
            engine.read(tape, self.fresh_at, self.fresh_size)
        else:
            tape.lends = engine.in_place
            memcpy(gate, self.at[place], HEAD)
            engine.read(tape, self.at[place] + HEAD, self.size[place] - HEAD)
        if tape.lacks:
            with cython.gil:
                raise MemoryError
        return 0

    def _put_back(self, engine, tape, place, gate):
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
        memcpy(self.at[place], gate, HEAD)
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
            self._refuse_gate(data)
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
        return data[HEAD:] or self.fresh, own_weight(data)

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

    def _refuse_gate(self, data):
        i: cython.Py_ssize_t
        total: cython.double = 0.0
        right: cython.bint = True
        gate: cython.double[N_GATE]
        if len(data) < HEAD:
            raise ValueError("numbers are missing")
        memcpy(gate, PyBytes_AS_STRING(data), HEAD)
        for i in range(N_GATE):
            right = right and isfinite(gate[i]) and (i == SHIFT or gate[i] >= 0.0)
        for i in range(N_COMPETING):
            total += gate[i]
        if not (right and fabs(total - 1.0) < 1e-6):
            raise ValueError("the weights of own and pooled models are no weights")


def split(data: bytes):
    """Of what `packed` gives, the weights against the pooled model, and the state of a key's own."""
    return data[:HEAD], data[HEAD:]


def mirrored(gate: bytes):
    """The weights of the same key with the two classes exchanged."""
    numbers = np.frombuffer(gate).copy()
    numbers[SHIFT] *= -1.0
    return numbers.tobytes()


def own_weight(data: bytes):
    """The weight of a key's own model."""
    return float(np.frombuffer(data, count=N_GATE)[OWN]) if data else 0.0


#: A loss that is worse than any.
LARGE = cython.declare(cython.double, 1e300)
_NOTHING = np.zeros(1)
