# cython: language_level=3
"""One thread learns a model, others read it: between two rows, when its state is whole.

Rows are learnt without the GIL, by the thread that owns the gate. Between two rows it gives the gate away if another
thread wants it, and queues behind. Who owns it and how many want it changes only under the GIL, so that where nobody
has to wait it costs nothing; the locks are for waiting.
"""

import os

import cython
from cython.cimports.cpython.exc import PyErr_CheckSignals
from cython.cimports.cpython.pythread import (
    NOWAIT_LOCK,
    WAIT_LOCK,
    PyThread_acquire_lock,
    PyThread_allocate_lock,
    PyThread_free_lock,
    PyThread_get_thread_ident,
    PyThread_release_lock,
    PyThread_type_lock,
)
from cython.cimports.libc.time import TIME_UTC, timespec, timespec_get

BUSY = (
    "this model is learning in another thread, and rows need an order: learn from one thread, or give every thread a "
    "model of its own"
)
#: The gates of the models that learn now; and how many forks this process is away from the first.
_learning = set()
_forks = cython.declare(cython.Py_ssize_t, 0)


@cython.final
@cython.cclass
class Gate:
    """Who may look at a model, and when: `with gate:` waits for the end of the row that is being learnt.

    owner : the thread that learns a row, or reads
    wanted : threads that wait: one for the bell, with `turn`, the others for `turn`
    busy : a call learns, from its first row to its last; or a thread has claimed that
    in_row : its thread owns the gate, and the state is not whole
    inner : the model is part of another, behind whose gate it learns

    >>> from streamlasso.core.gate import Gate
    >>> gate = Gate()
    >>> with gate, gate:
    ...     gate.learning
    False
    """

    def __cinit__(self, inner: cython.bint = False):
        self.inner = inner
        self.generation = _forks

    def __dealloc__(self):
        if self.turn != cython.NULL:
            PyThread_free_lock(self.turn)
            PyThread_free_lock(self.bell)

    @property
    def learning(self):
        return self.busy

    # --- reading ------------------------------------------------------------------------------------------------

    def __enter__(self):
        self.hold()
        return self

    def __exit__(self, *_):
        self.release()

    def hold(self):
        """Wait for the end of the row; until `release` no other begins. One thread may hold it several times."""
        me: cython.ulong = PyThread_get_thread_ident()
        self._renew()
        if self.owner == me:
            if self.in_row:
                raise RuntimeError("a family or tuner cannot use the model that is just learning a row with it")
            self.depth += 1
            return 0
        if self.owner != 0 or self.wanted > 0:
            self._wait()
        self.owner = me
        self.depth = 1
        return 0

    def release(self):
        self.depth -= 1
        if self.depth == 0:
            self._leave()
        return 0

    def _leave(self):
        self.owner = 0
        if self.wanted > 0 and not self.rung:
            self.rung = True
            PyThread_release_lock(self.bell)

    def _wait(self):
        """Until nobody owns the gate, and those who came before have had it."""
        if self.turn == cython.NULL:
            self._make_locks()
        self.wanted += 1
        with cython.nogil:
            PyThread_acquire_lock(self.turn, WAIT_LOCK)
        while self.owner != 0:
            with cython.nogil:
                PyThread_acquire_lock(self.bell, WAIT_LOCK)
            self.rung = False
        self.wanted -= 1
        PyThread_release_lock(self.turn)
        return 0

    def _make_locks(self):
        turn: PyThread_type_lock = PyThread_allocate_lock()
        bell: PyThread_type_lock = PyThread_allocate_lock()
        if turn == cython.NULL or bell == cython.NULL:
            raise MemoryError
        PyThread_acquire_lock(bell, NOWAIT_LOCK)
        self.turn, self.bell, self.rung = turn, bell, False
        return 0

    # --- learning -----------------------------------------------------------------------------------------------

    def begin(self):
        """A call learns from here to `end`; while another does, it is refused and has changed nothing."""
        self._renew()
        if self.busy and (self.in_row or self.claimed_by != PyThread_get_thread_ident()):
            raise RuntimeError(BUSY)
        self.busy = True
        self.hold()
        self.in_row = True
        return 0

    def end(self):
        self.in_row = False
        self.busy = self.claimed_by != 0
        self.release()
        return 0

    def claim(self):
        """Nobody else learns until `unclaim`, also between calls; everyone may read."""
        self._renew()
        if self.busy:
            raise RuntimeError(BUSY)
        self.busy = True
        self.claimed_by = PyThread_get_thread_ident()
        return 0

    def unclaim(self):
        self.claimed_by = 0
        self.busy = False
        return 0

    def give_way(self):
        """Between two rows: those who wait go first."""
        me: cython.ulong = self.owner
        depth: cython.Py_ssize_t = self.depth
        self.in_row = False
        self._leave()
        self._wait()
        self.owner = me
        self.depth = depth
        self.in_row = True
        return 0

    def pause(self):
        """Between two rows: Ctrl-C and other signals are handled, and a handler may use the model."""
        self.in_row = False
        try:
            PyErr_CheckSignals()
        finally:
            self.in_row = True
        return 0

    # --- forks --------------------------------------------------------------------------------------------------

    def watch(self):
        """Until `unwatch` a fork waits for the end of a row."""
        if not self.inner:
            _learning.add(self)

    def unwatch(self):
        _learning.discard(self)

    def _renew(self):
        """The child of a fork has none of its parent's other threads, whose locks and claims it inherits."""
        if self.generation != _forks:
            self.generation = _forks
            if self.owner != PyThread_get_thread_ident():
                self._make_locks()
                self.owner = 0
                self.depth = 0
                self.wanted = 0
                self.claimed_by = 0
                self.busy = False
                self.in_row = False
        return 0

    def mine(self):
        """Whether this thread owns it."""
        return self.owner == PyThread_get_thread_ident()


def seconds():
    """By a clock that may jump: C has no other on all systems."""
    now: timespec
    timespec_get(cython.address(now), TIME_UTC)
    return now.tv_sec + 1e-9 * now.tv_nsec


# --- a fork takes a row boundary of every model -----------------------------------------------------------------------

_held = []


def _before_fork():
    for gate in list(_learning):
        if not gate.mine():
            gate.hold()
            _held.append(gate)


def _after_fork():
    while _held:
        _held.pop().release()


def _in_child():
    global _forks
    _after_fork()
    _learning.clear()
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
