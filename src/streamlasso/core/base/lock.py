# cython: language_level=3
"""One thread learns a model, others read it: between two rows, when its state is whole.

Rows are learnt without the GIL, by the thread that owns the gate. Between two rows it gives the gate away if another
thread wants it, and queues behind. The owner and the number of threads that wait change only under the GIL, so that a
gate without a queue costs nothing; the locks are for waiting.
"""

import os
import time

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
#: The attribute that marks an estimator as learning, and in which process.
MARK = "_learning"
#: The gates of the models that learn now; and how many forks this process is away from the first.
_learning = set()
_forks = cython.declare(cython.Py_ssize_t, 0)
#: Forks that are about to be: no row begins. And the gates that each of their threads holds.
_closed = cython.declare(cython.Py_ssize_t, 0)
_forking = {}


@cython.final
@cython.cclass
class Gate:
    """Who may look at a model, and when: `with gate:` waits for the end of the row that is being learnt.

    owner : the thread that learns a row, or reads
    wanted : threads that wait: one for the bell, with `turn`, the others for `turn`
    busy : a call learns, from its first row to its last; or a thread has claimed that
    learner, claimed_by : the threads that do
    watched : since `begin` a fork waits for `end`
    in_row : its thread owns the gate, and the state is not whole
    inner : the model is part of another, behind whose gate it learns

    >>> from streamlasso.core.base.lock import Gate
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
        """Until the gate is free, and threads that came earlier have had it."""
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
            if turn != cython.NULL:
                PyThread_free_lock(turn)
            raise MemoryError
        PyThread_acquire_lock(bell, NOWAIT_LOCK)
        self.turn, self.bell, self.rung = turn, bell, False
        return 0

    # --- learning -----------------------------------------------------------------------------------------------

    def begin(self, keeps_gil: cython.bint = False):
        """A call learns from here to `end`; while another does, it is refused and has changed nothing.

        keeps_gil : no other thread runs until `end`, so none forks
        """
        me: cython.ulong = PyThread_get_thread_ident()
        watched: cython.bint = not keeps_gil and self._outermost()
        if watched:
            _await_forks()
        self._renew()
        if self.busy and (self.in_row or self.claimed_by != me):
            raise RuntimeError(BUSY)
        self.busy = True
        self.learner = me
        self.watched = watched
        if watched:
            _learning.add(self)
        try:
            self.hold()
        except BaseException:
            self._end()
            raise
        self.in_row = True
        return 0

    def end(self):
        self.in_row = False
        self._end()
        self.release()
        return 0

    def _end(self):
        self.learner = 0
        self.busy = self.claimed_by != 0
        if self.watched:
            self.watched = False
            self.unwatch()

    def alone(self):
        """`with gate.alone():` from `begin` to `end`, whatever signal comes when."""
        return Alone(self)

    def whole(self):
        """`with gate.whole():` for readers that move what they read, or give the GIL away: a fork waits for them."""
        return Whole(self)

    def claim(self):
        """No other thread learns until `unclaim`, also between calls; all may read."""
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
        self._renew()
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
        """By the thread that owns it: until `unwatch` a fork waits for it; False where it would anyway."""
        if not self._outermost():
            return False
        _await_forks()
        _learning.add(self)
        return True

    def unwatch(self):
        """Unless a call that has begun waits for the gate: its `end` does it."""
        if not self.watched:
            _learning.discard(self)

    def _outermost(self):
        """A row within a row belongs to the outer one, and a fork that waits for the outer row waits for both. One that
        held the inner gate and waited for the outer one would wait for ever."""
        gate: Gate
        me: cython.ulong = PyThread_get_thread_ident()
        if self.inner:
            return False
        for each in _learning:
            gate = each
            if gate.owner == me:
                return False
        return True

    def _renew(self):
        """The child of a fork has none of its parent's other threads, whose locks and claims it inherits."""
        me: cython.ulong = PyThread_get_thread_ident()
        if self.generation == _forks:
            return 0
        self._make_locks()
        self.generation = _forks
        self.wanted = 0
        if self.owner != me:
            self.owner = 0
            self.depth = 0
            self.in_row = False
            self.watched = False
        if self.learner != me:
            self.learner = 0
        if self.claimed_by != me:
            self.claimed_by = 0
        self.busy = self.learner != 0 or self.claimed_by != 0
        return 0

    def mine(self):
        """Whether this thread owns it."""
        return self.owner == PyThread_get_thread_ident()


@cython.final
@cython.cclass
class Alone:
    """A call that learns. Compiled, since Ctrl-C can come between any two lines of Python, and the gate of a model that
    has begun and never ends stays closed."""

    def __cinit__(self, gate: Gate):
        self.gate = gate

    def __enter__(self):
        self.gate.begin()

    def __exit__(self, *_):
        self.gate.end()


@cython.final
@cython.cclass
class Whole:
    """From `hold` to `release`, and no fork comes between."""

    def __cinit__(self, gate: Gate):
        self.gate = gate

    def __enter__(self):
        self.gate.hold()
        try:
            self.watched = self.gate.watch()
        except BaseException:
            self.gate.release()
            raise

    def __exit__(self, *_):
        if self.watched:
            self.gate.unwatch()
        self.gate.release()


@cython.final
@cython.cclass
class Claimed:
    """`with Claimed(gate):` from `claim` to `unclaim`."""

    def __cinit__(self, gate: Gate):
        self.gate = gate

    def __enter__(self):
        self.gate.claim()

    def __exit__(self, *_):
        self.gate.unclaim()


@cython.final
@cython.cclass
class Learning:
    """The estimator for this call alone; while another one learns it is refused.

    >>> from streamlasso import RAPRegressor
    >>> from streamlasso.core.base.lock import Learning
    >>> model = RAPRegressor()
    >>> with Learning(model):  # doctest: +ELLIPSIS
    ...     model.fit([[0.0]], [1.0])
    Traceback (most recent call last):
        ...
    RuntimeError: this model is learning in another thread, and rows need an order: ...
    """

    def __cinit__(self, estimator):
        self.estimator = estimator
        self.process = os.getpid()

    def __enter__(self):
        attributes: dict = vars(self.estimator)
        found = attributes.setdefault(MARK, self)
        # The mark of another process came with a fork; the thread that set it has stayed behind.
        if found is not self and found.process == self.process:
            raise RuntimeError(BUSY)
        attributes[MARK] = self

    def __exit__(self, *_):
        vars(self.estimator).pop(MARK, None)


def seconds():
    """By a clock that may jump: C has no other on all systems."""
    now: timespec
    timespec_get(cython.address(now), TIME_UTC)
    return now.tv_sec + 1e-9 * now.tv_nsec


# --- a fork takes a row boundary of every model -----------------------------------------------------------------------

# Hooks of other packages run between ours and the fork, and with them other threads: so once all models that learn are
# held, no other row begins until the fork is over. A thread that waits for this holds no gate that a fork waits for.


def _await_forks():
    """Of other threads. Some milliseconds at most, so looking is enough, and no lock can stay closed in a child."""
    while _closed > len(_forking.get(PyThread_get_thread_ident(), ())):
        time.sleep(0.0005)
    return 0


def _before_fork():
    """One thread after the other: two that each hold what the other waits for would wait for ever. One that forks
    inside a row does not wait for the others, which wait for the end of that row."""
    global _closed
    me = PyThread_get_thread_ident()
    held = []
    while any(thread != me for thread in list(_forking)) and not any(gate.mine() for gate in list(_learning)):
        time.sleep(0.0005)
    _forking.setdefault(me, []).append(held)
    left = True
    try:
        while left:
            left = [gate for gate in list(_learning) if not gate.mine()]
            for gate in left:
                gate.hold()
                held.append(gate)
    finally:
        _closed += 1


def _after_fork():
    """Hooks may fork as well, so the last one that began is over."""
    global _closed
    me = PyThread_get_thread_ident()
    if me not in _forking:
        return
    for gate in _forking[me].pop():
        gate.release()
    if not _forking[me]:
        del _forking[me]
    _closed -= 1


def _in_child():
    global _forks, _closed
    me = PyThread_get_thread_ident()
    for thread in [thread for thread in _forking if thread != me]:
        del _forking[thread]
    _closed = len(_forking.get(me, ()))
    _after_fork()
    for gate in [gate for gate in _learning if not gate.mine()]:
        _learning.discard(gate)
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
