"""Two threads learn one row: not a bit changes, whatever happens to either of them."""

import ctypes
import json
import multiprocessing
import os
import platform
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import streamlasso.river
from streamlasso import RAPRegressor, progressive
from streamlasso.core import two_cores
from streamlasso.families import Binomial, Gamma, Gaussian, Poisson
from streamlasso.keyed import KeyedRegressor
from streamlasso.memories import AdaptiveForgetting
from support.plain import PlainGaussian

#: So many features that the default is divided.
P, N = 130, 120
#: Rows with which the second thread has helped, at least.
OFTEN = 100
rng = np.random.default_rng(0)
X = rng.normal(size=(N, P))
ETA = 0.7 * X[:, 0] - 0.5 * X[:, 1] + 0.4 * X[:, 2]
FAMILIES = {family.name: family for family in (Gaussian(), Binomial(), Poisson(), Gamma())}
TARGETS = {name: family.sample(np.random.default_rng(1), ETA) for name, family in FAMILIES.items()}
Y = TARGETS["gaussian"]

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
ignores_threads = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")


@pytest.fixture(autouse=True)
def _as_before():
    before = two_cores.n_threads()
    yield
    two_cores.set_n_threads(before)


def alone(learn):
    """What `learn` gives on one thread."""
    two_cores.set_n_threads(1)
    before = two_cores.n_helped()
    found = learn()
    assert two_cores.n_helped() == before
    return found


def same(learn):
    """Whether it gives the same on two threads, of which the second has often helped (seldom on a busy machine)."""
    expected = alone(learn)
    two_cores.set_n_threads(2)
    before, begun = two_cores.n_helped(), time.monotonic()
    while two_cores.n_helped() < before + OFTEN:
        assert time.monotonic() < begun + 60, "the second thread does not help"
        if learn() != expected:
            return False
    return True


def learnt(make=RAPRegressor, y=Y, rows=X):
    return make().partial_fit(rows, y).to_bytes()


# --- the same bits --------------------------------------------------------------------------------------------------

MODELS = {
    **{name: (dict(family=name), {}) for name in FAMILIES},
    "mini-batches": (dict(batch_size=3), {}),
    "weights": ({}, dict(sample_weight=rng.integers(0, 3, N).astype(float))),
    "factors": (dict(memory=AdaptiveForgetting()), {}),
}


@pytest.mark.parametrize("kind", MODELS)
def test_the_bits_are_those_of_one_thread(kind):
    settings, extra = MODELS[kind]
    y = TARGETS[settings.get("family", "gaussian")]
    rows = np.hstack([X, X[:, ::-1]]) if kind == "factors" else X

    def learn():
        model = RAPRegressor(**settings)
        if extra:
            return model.partial_fit(rows, y, **extra).to_bytes(), b"", b""
        trace = progressive(model, rows, y)
        return model.to_bytes(), trace.prediction.tobytes(), trace.lam.tobytes()

    assert same(learn)


def test_one_row_per_call_as_river_learns():
    """With the GIL, which the second thread does not need."""
    names = [f"x{j}" for j in range(P)]
    rows = [dict(zip(names, row, strict=True)) for row in X.tolist()]

    def learn():
        model = streamlasso.river.RAPRegressor()
        found = []
        for row, y in zip(rows, Y.tolist(), strict=True):
            found.append(model.predict_one(row))
            model.learn_one(row, y)
        return found

    assert same(learn)


@pytest.mark.skipif(platform.machine() != "x86_64" or os.name != "posix", reason="the number of a rounding mode")
def test_both_threads_round_as_the_caller_does():
    upward, nearest = 0x800, 0
    assert same(learnt)
    as_usual = alone(learnt)
    libm = ctypes.CDLL(None)
    try:
        libm.fesetround(upward)
        found = alone(learnt), same(learnt)
    finally:
        libm.fesetround(nearest)
    assert found[0] != as_usual and found[1]
    assert same(learnt)


# --- other threads --------------------------------------------------------------------------------------------------


def test_many_threads_that_learn_models_of_their_own():
    rows, targets = np.tile(X, (5, 1)), [np.tile(Y + k, 5) for k in range(4)]
    expected = [alone(lambda y=y: learnt(y=y, rows=rows)) for y in targets]
    two_cores.set_n_threads(2)
    for _ in range(3):
        found, start = {}, threading.Barrier(len(targets))

        def learn(k, found=found, start=start):
            start.wait()
            found[k] = learnt(y=targets[k], rows=rows)

        threads = [threading.Thread(target=learn, args=(k,)) for k in range(len(targets))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [found[k] for k in range(len(targets))] == expected


def test_models_of_keys():
    def learn():
        rows, y = np.tile(X, (5, 1)), np.tile(Y, 5)
        return KeyedRegressor(RAPRegressor()).partial_fit(rows, y, np.arange(len(y)) % 4).to_bytes()

    two_cores.set_n_threads(1)
    expected = learn()
    two_cores.set_n_threads(2)
    assert learn() == expected


def test_ctrl_c_stops_between_two_rows():
    rows, y = np.tile(X, (200, 1)), np.tile(Y, 200)
    two_cores.set_n_threads(2)
    model = RAPRegressor().partial_fit(X, Y)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt) as stop:
        model.partial_fit(rows, y)
    n = stop.value.rows_learnt
    assert 0 < n < len(rows)
    two_cores.set_n_threads(1)
    assert model.to_bytes() == RAPRegressor().partial_fit(X, Y).partial_fit(rows[:n], y[:n]).to_bytes()


def test_a_family_in_python_needs_the_gil_and_stays_on_one_thread():
    two_cores.set_n_threads(2)
    before = two_cores.n_helped()
    RAPRegressor(family=PlainGaussian()).partial_fit(X[:30], Y[:30])
    assert two_cores.n_helped() == before


# --- forks ----------------------------------------------------------------------------------------------------------


@needs_fork
@ignores_threads
def test_a_forked_child_and_its_parent_go_on_with_second_threads_of_their_own():
    expected = alone(lambda: RAPRegressor().partial_fit(X, Y).partial_fit(X, Y).to_bytes())
    assert same(learnt)
    model = RAPRegressor().partial_fit(X, Y)
    for _ in range(3):
        ours, theirs = multiprocessing.Pipe()
        child = os.fork()
        if child == 0:
            theirs.send((model.partial_fit(X, Y).to_bytes(), same(learnt)))
            os._exit(0)
        assert RAPRegressor.from_bytes(model.to_bytes()).partial_fit(X, Y).to_bytes() == expected
        assert same(learnt)
        assert ours.poll(100), "the child hangs"
        assert ours.recv() == (expected, True)
        os.waitpid(child, 0)


@needs_fork
@ignores_threads
def test_children_that_are_forked_while_another_thread_learns():
    fork = multiprocessing.get_context("fork")
    expected = alone(learnt)
    two_cores.set_n_threads(2)
    stop = threading.Event()
    right = []

    def learn():
        while not stop.is_set():
            right.append(learnt() == expected)

    thread = threading.Thread(target=learn)
    thread.start()
    try:
        for _ in range(5):
            ours, theirs = fork.Pipe()
            child = fork.Process(target=lambda pipe: pipe.send(learnt() == expected), args=(theirs,))
            child.start()
            assert ours.poll(60), "the child hangs"
            assert ours.recv()
            child.join()
    finally:
        stop.set()
        thread.join()
    assert right and all(right)


# --- a process ends -------------------------------------------------------------------------------------------------

LEARN = f"""
import os, sys, threading, time
import numpy as np
from streamlasso import RAPRegressor
from streamlasso.core import two_cores
rng = np.random.default_rng(0)
X = rng.normal(size=({N}, {P}))
learn = lambda: RAPRegressor().partial_fit(X, X[:, 0])
def for_ever():
    while True:
        learn()
"""
ENDS = {
    "right after a row": "learn()",
    "while it sleeps": "learn(); time.sleep(0.3)",
    "while a daemon learns": "threading.Thread(target=for_ever, daemon=True).start(); time.sleep(0.5)",
    "at once": "learn(); os._exit(0)",
    "by an exit in a thread": "t = threading.Thread(target=lambda: (learn(), sys.exit(0))); t.start(); t.join()",
}


def ran(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", LEARN + code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("how", ENDS)
def test_a_process_ends(how):
    done = ran(f"two_cores.set_n_threads(2)\n{ENDS[how]}")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("family", ["poisson", "gamma"])
def test_a_slope_of_minus_one_is_no_reason_to_wait_for_ever(family):
    """With responses of 2 it is -1 at eta = 0: the second thread then asks under the GIL whether it was an error."""
    learn_one = f"""
import streamlasso.river
two_cores.set_n_threads(2)
model = streamlasso.river.RAPRegressor(family="{family}")
for x in X:
    model.learn_one(dict(enumerate(x)), 2.0)
print(model.n_seen_)
"""
    done = ran(learn_one)
    assert (done.stdout.strip(), done.stderr) == (str(N), "")


@pytest.mark.posix
@pytest.mark.parametrize("number", ["SIGTERM", "SIGKILL"])
def test_a_process_is_killed(number):
    code = "two_cores.set_n_threads(2); threading.Thread(target=for_ever, daemon=True).start(); time.sleep(0.3)"
    done = ran(f"import signal\n{code}\nos.kill(os.getpid(), signal.{number})\ntime.sleep(60)")
    assert done.returncode == -getattr(signal, number)


# --- how many threads -----------------------------------------------------------------------------------------------

TELL = "\nlearn(); import json; print(json.dumps([two_cores.n_threads(), two_cores.n_helped() > 0]))"


@pytest.mark.parametrize("value", ["1", "1,2"])
def test_one_thread_where_the_environment_says_so(value):
    assert json.loads(ran(TELL, OMP_NUM_THREADS=value).stdout) == [1, False]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity")
def test_one_thread_where_there_is_one_core():
    code = "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})"
    assert json.loads(ran(code + TELL, OMP_NUM_THREADS="").stdout) == [1, False]


def test_threadpoolctl_knows_of_it():
    two_cores.set_n_threads(2)
    (entry,) = [each for each in threadpool_info() if each["user_api"] == "streamlasso"]
    assert entry["num_threads"] == 2
    with threadpool_limits(1):
        assert two_cores.n_threads() == 1
        before = two_cores.n_helped()
        learnt()
        assert two_cores.n_helped() == before
    assert two_cores.n_threads() == 2
    with threadpool_limits(1, user_api="blas"):
        assert two_cores.n_threads() == 2
