# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""A second thread that helps with one row: the same bits in less time.

`together(work, what)` calls `work(what, False)` here and `work(what, True)` in the second thread, and returns when both
have. The work divides itself, by a number that both count up (`add`). What it gives does not depend on who does which
part of it, nor on whether the second thread comes at all: that may sleep, be busy, or not exist.

There is one second thread in a process. It starts when it is first needed, and never touches Python, so a process ends
whatever it does. Rows follow each other within microseconds, in which no thread can be woken: it looks for work until
PATIENCE after the last, and only then sleeps. While it looks, every other thread that could run on its core goes first;
without that, rows took up to twice as long as on one thread where other processes used both cores.

**Why nobody waits for ever.** `state` moves in a circle:

    FREE -> OPEN    by the caller, when the work is written down
    OPEN -> TAKEN   by the second thread, which begins; or
    OPEN -> FREE    by the caller, when nothing is left to do: one atomic exchange decides which of the two
    TAKEN -> FREE   by the second thread, when it has done its part

The caller waits in TAKEN only, where the second thread is at work. Who waits looks for a while, then says so
(`asleep`), looks once more, and sleeps on a lock. Who changes the state does so first, and asks afterwards whether the
other is asleep. All threads see these four in one order, so one of the two sees the other, and no bell is missed. It is
rung by whoever turns `asleep` back to 0; that happens once, so no lock is released twice.

**Who may call.** The first to add 1 to `inside`; another thread that learns meanwhile does its work alone. Where
several threads learn at once the cores are in use: each finds the others inside, and the second thread sleeps.

**Errors.** What is compiled raises none in a row, and the second thread's -1 is passed on all the same. But a number
that happens to be -1 is looked at under the GIL, whether it is an error: so the caller must not hold the GIL
(`Engine.take` gives it back), or both would wait for ever.

**The same bits.** Both threads have the rounding mode and the treatment of subnormal numbers of the caller.

**Forks.** A child has none of its parent's threads: it begins anew, and starts a second thread when it needs one. After
a fork that Python does not know of the second thread never comes, and nobody waits for it.

**How many threads.** As elsewhere in numerical Python: OMP_NUM_THREADS=1 in the environment, or threadpoolctl's
`threadpool_limits(1)`, is one thread, and so is a process that may use one core only.

>>> from threadpoolctl import threadpool_limits
>>> from streamlasso.core import two_cores
>>> with threadpool_limits(1):
...     two_cores.n_threads()
1
"""

import os

import cython
from cython.cimports.cpython.pythread import (
    NOWAIT_LOCK,
    WAIT_LOCK,
    PyThread_acquire_lock,
    PyThread_allocate_lock,
    PyThread_release_lock,
    PyThread_start_new_thread,
    PyThread_type_lock,
)
from cython.cimports.streamlasso.core.gate import seconds
from cython.cimports.streamlasso.core.two_cores import (
    Waiter,
    Work,
    add,
    fegetenv,
    fenv_t,
    fesetenv,
    give_way,
    look,
    swap,
    turn,
)
from threadpoolctl import LibController, register

from streamlasso import __version__

#: Seconds of looking before a thread sleeps. Between the groups of two rows of a batch there are 27 us at p = 200 and
#: 80 at p = 400, 38 and 130 for classes.
PATIENCE = cython.declare(cython.double, 2e-4)
#: What `state` can be.
FREE = cython.declare(cython.long, 0)
OPEN = cython.declare(cython.long, 1)
TAKEN = cython.declare(cython.long, 2)

#: Threads that may be used, 0 as long as nobody has asked; whether the second is there; how often it has helped.
_allowed = cython.declare(cython.Py_ssize_t, 0)
_started = cython.declare(cython.bint, False)
_helped = cython.declare(cython.Py_ssize_t, 0)
_inside = cython.declare(cython.long, 0)
_state = cython.declare(cython.long, 0)
_caller = cython.declare(Waiter)
_second = cython.declare(Waiter)
# The work that is open.
_work = cython.declare(Work, cython.NULL)
_what = cython.declare(cython.p_void, cython.NULL)
_numerics = cython.declare(fenv_t)
_failed = cython.declare(cython.bint, False)


# --- the caller -----------------------------------------------------------------------------------------------------


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def together(work: Work, what: cython.p_void) -> cython.int:
    """Both threads do the work, or this one alone; an error is raised when both have ended."""
    found: cython.int
    failed: cython.bint = False
    if _allowed == 1:
        return work(what, False)
    if add(cython.address(_inside), 1) == 0 and (_started or _start()):
        _open(work, what)
        found = work(what, False)
        if not turn(cython.address(_state), OPEN, FREE):
            _wait_while(TAKEN, cython.address(_caller))
            failed = _failed
    else:
        found = work(what, False)
    add(cython.address(_inside), -1)
    if failed and found == 0:
        with cython.gil:
            raise RuntimeError("an error in the second thread, which cannot tell which")
    return found


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _open(work: Work, what: cython.p_void) -> cython.void:
    global _work, _what, _failed
    _work, _what, _failed = work, what, False
    fegetenv(cython.address(_numerics))
    _change_to(OPEN, cython.address(_second))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _start() -> cython.bint:
    """The second thread, unless there is to be none; the caller is alone inside."""
    global _allowed, _started
    with cython.gil:
        if _allowed == 0:
            _allowed = _most_threads()
        if _allowed > 1:
            if _second.bell == cython.NULL:
                _second.bell = _new_bell()
                _caller.bell = _new_bell()
            if _caller.bell != cython.NULL and _second.bell != cython.NULL:
                _started = cython.cast(cython.long, PyThread_start_new_thread(_serve, cython.NULL)) != -1
            if not _started:
                _allowed = 1
    return _started


@cython.cfunc
@cython.exceptval(check=False)
def _new_bell() -> PyThread_type_lock:
    bell: PyThread_type_lock = PyThread_allocate_lock()
    if bell != cython.NULL:
        PyThread_acquire_lock(bell, NOWAIT_LOCK)
    return bell


# --- the second thread ----------------------------------------------------------------------------------------------


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _serve(_: cython.p_void) -> cython.void:
    """Until the process ends."""
    global _helped, _failed
    while True:
        _wait_while(FREE, cython.address(_second))
        if turn(cython.address(_state), OPEN, TAKEN):
            fesetenv(cython.address(_numerics))
            _failed = _work(_what, True) != 0
            _helped += 1
            _change_to(FREE, cython.address(_caller))


# --- both -----------------------------------------------------------------------------------------------------------


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _wait_while(state: cython.long, me: cython.pointer[Waiter]) -> cython.void:
    """Until another thread has changed it."""
    since: cython.double = seconds()
    while look(cython.address(_state)) == state:
        if 0.0 <= seconds() - since < PATIENCE:
            give_way()
            continue
        swap(cython.address(me.asleep), 1)
        # Where it has changed meanwhile the other one may have seen that this one sleeps, and rings; or not.
        if look(cython.address(_state)) == state or swap(cython.address(me.asleep), 0) == 0:
            PyThread_acquire_lock(me.bell, WAIT_LOCK)
        since = seconds()


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _change_to(state: cython.long, other: cython.pointer[Waiter]) -> cython.void:
    """And wake who waits for it."""
    swap(cython.address(_state), state)
    if look(cython.address(other.asleep)) and swap(cython.address(other.asleep), 0):
        PyThread_release_lock(other.bell)


# --- forks ----------------------------------------------------------------------------------------------------------


def _in_child():
    """Whoever was inside has stayed behind, as has the second thread, and with it the bells as they were."""
    global _started, _inside, _state
    _inside = 0
    if _started:
        _started = False
        _state = FREE
        _second.asleep = _caller.asleep = 0
        _second.bell = _caller.bell = cython.NULL


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


# --- how many threads -----------------------------------------------------------------------------------------------


def n_threads():
    """That may be used for one row: 2, or 1."""
    return _allowed or _most_threads()


def set_n_threads(n):
    """From the next row on."""
    global _allowed
    _allowed = 2 if n > 1 else 1


def n_helped():
    """How often the second thread has helped in this process."""
    return _helped


def _most_threads():
    """By the cores, and by what the environment says about threads."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return 1 if cores == 1 or wanted == "1" else 2


class SecondThread(LibController):
    """What threadpoolctl asks."""

    user_api = internal_api = "streamlasso"
    filename_prefixes = ("two_cores",)
    check_symbols = ("PyInit_two_cores",)

    def get_num_threads(self):
        return n_threads()

    def set_num_threads(self, num_threads):
        set_n_threads(num_threads)

    def get_version(self):
        return __version__


register(SecondThread)
