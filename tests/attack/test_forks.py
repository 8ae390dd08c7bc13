"""Forks while models learn: a child has whole models, and nobody waits for ever."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")

#: A hook that another library registered first runs last, right before the fork, and lets other threads run.
START = """
import faulthandler, os, pickle, sys, threading, time
faulthandler.dump_traceback_later(100, exit=True)
late = []
os.register_at_fork(before=lambda: [each() for each in late])
import numpy as np
import streamlasso.river
from streamlasso import RAPRegressor
from streamlasso.keyed import KeyedRegressor
from streamlasso.network import StreamingNetwork
from streamlasso.tuners import Tuner
from streamlasso.wide import WideClassifier
rng = np.random.default_rng(0)

def bits(model):
    return b"|".join(learner.pack() for learner in model.learners_)

def in_child(look):
    "What a child finds."
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        data = pickle.dumps(look())
        while data:
            data = data[os.write(theirs, data):]
        os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as pipe:
        found = pickle.load(pipe)
    os.waitpid(pid, 0)
    return found
"""

#: `make()`, `learn(model, rows)` and `state(model)` of rows that take long, compared with the first n of them.
MODELS = {
    "batches": """
X = rng.normal(size=(3000, 60)); y = X[:, 0] + rng.normal(size=3000)
make = lambda: RAPRegressor().partial_fit(X[:5], y[:5])
learn = lambda model, a, b: model.partial_fit(X[a:b], y[a:b])
state = lambda model: (model.n_seen_, bits(model))
""",
    "classes": """
X = rng.normal(size=(200, 130)); y = np.digitize(X[:, 0], [-0.5, 0.5])
rows = [dict(enumerate(row)) for row in X.tolist()]
def learn(model, a, b):
    for row, target in zip(rows[a:b], y[a:b].tolist()):
        model.learn_one(row, target)
    return model
make = lambda: learn(streamlasso.river.RAPClassifier(), 0, 15)
state = lambda model: (model.n_seen_, bits(model))
""",
    "keys": """
X = rng.normal(size=(2000, 20)); y = X[:, 0] + rng.normal(size=2000); keys = np.arange(2000) % 7
learn = lambda model, a, b: [model.partial_fit(X[i : i + 50], y[i : i + 50], keys[i : i + 50]) for i in range(a, b, 50)]
def make():
    model = KeyedRegressor()
    learn(model, 0, 50)
    return model
state = lambda model: (model._n_rows, model.to_bytes())
""",
    "networks": """
X = rng.normal(size=(600, 12))
learn = lambda model, a, b: [model.partial_fit(X[i : min(i + 5, b)]) for i in range(a, b, 5)]
make = lambda: StreamingNetwork(n_jobs=2).partial_fit(X[:5])
state = lambda model: (model.n_seen_, bits(model))
""",
    "wide classes": """
X = rng.normal(size=(3000, 10)); y = np.digitize(X[:, 0], [-0.5, 0.5])
def learn(model, a, b):
    for i in range(a, b, 50):
        model.partial_fit(X[i : i + 50], y[i : i + 50], classes=[0, 1, 2])
    return model
make = lambda: learn(WideClassifier(), 0, 50)
wide_bits = lambda model: [array.tobytes() for each in model.learners_ for array in each.state().values()]
state = lambda model: (model.n_seen_, wide_bits(model))
""",
    "wide classes with names": """
X = rng.normal(size=(3000, 10)); y = np.digitize(X[:, 0], [-0.5, 0.5])
rows = [dict(zip("abcdefghij", row)) for row in X.tolist()]
def learn(model, a, b):
    for row, target in zip(rows[a:b], y[a:b].tolist()):
        model.learn_one(row, target)
    return model
def make():
    model = streamlasso.river.WideClassifier()
    model.learners_[0].name_key = np.arange(2, dtype=np.uint64)
    return learn(model, 0, 15)
wide_bits = lambda model: [array.tobytes() for each in model.learners_ for array in each.state().values()]
state = lambda model: (model.n_seen_, wide_bits(model))
""",
}

LOOK = """
def whole(found):
    n, bits = found
    again = make()
    start = state(again)[0]
    if n > start:
        learn(again, start, n)
    return state(again) == (n, bits)

def looked_at(hook):
    "Is each child's model whole? `hook` runs right before each fork, while another thread begins to learn."
    right = []
    for i in range(6):
        model, go = make(), threading.Event()
        start = state(model)[0]
        def learn_then():
            go.wait()
            learn(model, start, len(X))
        thread = threading.Thread(target=learn_then, daemon=True)
        thread.start()
        late[:] = [lambda: hook(go)]
        found = in_child(lambda: state(model))
        late.clear()
        go.set()
        thread.join()
        right.append(whole(found) and whole(state(model)))
    return right

def begin_now(go):
    go.set()
    time.sleep(0.05)

print(looked_at(begin_now))
"""


def ran(code):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", START + code], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


@pytest.mark.parametrize("kind", MODELS)
def test_a_row_that_begins_between_the_hooks_and_the_fork_waits(kind):
    assert ran(MODELS[kind] + LOOK) == str([True] * 6)


@pytest.mark.parametrize("kind", MODELS)
def test_a_fork_waits_for_a_row(kind):
    early = LOOK.replace("in_child(lambda", "go.set() or time.sleep(0.003 * (i + 1)) or in_child(lambda")
    assert ran(MODELS[kind] + early.replace("begin_now)", "lambda go: None)")) == str([True] * 6)


def test_a_fork_while_models_of_keys_learn_does_not_wait_for_ever():
    """The fork held the pooled model between two of its rows, and waited for the end of the call, which never came."""
    code = """
X = rng.normal(size=(2000, 5)); keys = np.arange(2000) % 40
each = [KeyedRegressor(RAPRegressor(tuner="logrms")).partial_fit(X, X[:, 0], keys) for _ in range(8)]
stop = threading.Event()
def learn():
    while not stop.is_set():
        for models in each:
            models.partial_fit(X, X[:, 0], keys)
thread = threading.Thread(target=learn)
thread.start()
for _ in range(200):
    in_child(lambda: None)
stop.set()
thread.join()
print("done")
"""
    assert ran(code) == "done"


def test_a_fork_while_models_of_keys_move_between_memory_and_disk_does_not_wait_for_ever():
    """A lock inside SQLite, where models of keys were, was closed in the child: another thread had it at the fork."""
    code = """
sys.setswitchinterval(1e-5)
X = rng.normal(size=(200, 5)); keys = np.arange(200) % 20
models = KeyedRegressor(RAPRegressor(tuner="logrms"), max_keys=6).partial_fit(X, X[:, 0], keys)
expected, stop = models.predict(X, keys), threading.Event()
def read():
    while not stop.is_set():
        models.predict(X, keys)
        models.to_bytes()
threads = [threading.Thread(target=read) for _ in range(3)]
for thread in threads:
    thread.start()
def look():
    try:
        models.predict(X, keys)
    except RuntimeError as error:
        return str(error)
for _ in range(60):
    assert "save them before the fork" in in_child(look)
stop.set()
for thread in threads:
    thread.join()
assert np.array_equal(models.predict(X, keys), expected)
print("done")
"""
    assert ran(code) == "done"


def test_a_child_cannot_write_into_the_models_that_its_parent_has_on_disk():
    """It could, and the parent then predicted with what the child had learnt."""
    code = """
X = rng.normal(size=(200, 5)); keys = np.arange(200) % 20
models = KeyedRegressor(RAPRegressor(tuner="logrms"), max_keys=3).partial_fit(X, X[:, 0], keys)
before = models.to_bytes()
def learn():
    try:
        models.partial_fit(X, X[:, 1], keys)
    except RuntimeError as error:
        return str(error)
assert "save them before the fork" in in_child(learn)
assert models.to_bytes() == before
assert in_child(lambda: KeyedRegressor.from_bytes(before).partial_fit(X, X[:, 1], keys).keys()) == list(range(20))
print("done")
"""
    assert ran(code) == "done"


def test_a_child_that_drops_its_models_leaves_those_of_its_parent_on_disk():
    """It removed the folder of its parent."""
    code = """
import gc, pathlib, tempfile
tempfile.tempdir = tempfile.mkdtemp()
X = rng.normal(size=(200, 5)); keys = np.arange(200) % 20
models = KeyedRegressor(RAPRegressor(tuner="logrms"), max_keys=3).partial_fit(X, X[:, 0], keys)
pid = os.fork()
if pid == 0:
    del models
    gc.collect()
    os._exit(0)
os.waitpid(pid, 0)
there = len(list(pathlib.Path(tempfile.tempdir).iterdir()))
del models
gc.collect()
print(there, len(list(pathlib.Path(tempfile.tempdir).iterdir())))
os.rmdir(tempfile.tempdir)
"""
    assert ran(code) == "1 0"


def test_a_fork_waits_for_a_call_that_began_behind_a_reader():
    code = """
from streamlasso.core.base.lock import Gate
gate, inside, entered = Gate(), [], threading.Event()
def learn():
    with gate.alone():
        inside.append(True)
        entered.set()
        time.sleep(0.5)
        inside.clear()
thread = threading.Thread(target=learn)
with gate.whole():
    thread.start()
    time.sleep(0.5)  # it waits for this one
    assert not inside
entered.wait()
assert inside
assert in_child(lambda: list(inside)) == []
thread.join()
print("done")
"""
    assert ran(code) == "done"


def test_hooks_may_learn_and_fork_themselves():
    """A fork within a fork is for hooks that run first: `concurrent.futures` then takes a lock that it has already."""
    code = """
X = rng.normal(size=(200, 20))
model, other = RAPRegressor().partial_fit(X, X[:, 0]), RAPRegressor().partial_fit(X, X[:, 0])
stop = threading.Event()
def learn_other():
    while not stop.is_set():
        other.partial_fit(X, X[:, 0])
thread = threading.Thread(target=learn_other)
thread.start()
early, nested, found = [], [], []
def fork_as_well():
    early.clear()
    nested.append(in_child(lambda: model.partial_fit(X, X[:, 0]).n_seen_))
os.register_at_fork(before=lambda: [each() for each in early])
for _ in range(10):
    late[:] = [lambda: late.clear() or model.partial_fit(X[:1], X[:1, 0])]
    early[:] = [fork_as_well]
    found.append(in_child(lambda: model.partial_fit(X, X[:, 0]).n_seen_))
stop.set()
thread.join()
print(nested == [401 + i for i in range(10)], found == [401 + i for i in range(10)])
other.partial_fit(X, X[:, 0])
"""
    assert ran(code) == "True True"


def test_two_threads_fork_while_a_third_learns():
    code = """
X = rng.normal(size=(300, 20))
model, stop, errors = RAPRegressor().partial_fit(X, X[:, 0]), threading.Event(), []
def learn():
    while not stop.is_set():
        model.partial_fit(X, X[:, 0])
def fork():
    try:
        for _ in range(30):
            in_child(lambda: model.partial_fit(X[:5], X[:5, 0]).n_seen_)
    except BaseException as error:
        errors.append(error)
learner = threading.Thread(target=learn)
forks = [threading.Thread(target=fork) for _ in range(2)]
late[:] = [lambda: time.sleep(0.001)]
for thread in [learner, *forks]:
    thread.start()
for thread in forks:
    thread.join()
stop.set()
learner.join()
print(errors)
"""
    assert ran(code) == "[]"


def test_several_threads_fork_while_several_models_learn():
    """One held what the other waited for, and both waited for ever."""
    code = """
sys.setswitchinterval(1e-5)
X = rng.normal(size=(40, 5))
end = time.time() + 4.0
def learn(n):
    while time.time() < end:
        model = RAPRegressor()
        for _ in range(5):
            model.partial_fit(X[:n], X[:n, 0])
def fork():
    while time.time() < end:
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
threads = [threading.Thread(target=learn, args=(n,)) for n in (3, 20, 37)]
threads += [threading.Thread(target=fork) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("over")
"""
    assert ran(code) == "over"


def test_a_fork_that_fails_lets_all_go_on():
    code = """
import resource
X = rng.normal(size=(300, 20))
model, stop = RAPRegressor().partial_fit(X, X[:, 0]), threading.Event()
def learn():
    while not stop.is_set():
        model.partial_fit(X, X[:, 0])
thread = threading.Thread(target=learn)
thread.start()
failed, before = 0, resource.getrlimit(resource.RLIMIT_NPROC)
if os.getuid() == 0:
    os.setuid(65534)
resource.setrlimit(resource.RLIMIT_NPROC, (0, before[1]))
for _ in range(20):
    try:
        in_child(lambda: None)
    except BlockingIOError:
        failed += 1
stop.set()
thread.join()
model.partial_fit(X, X[:, 0])
print(failed)
"""
    assert ran(code) == "20"


def test_a_signal_handler_that_forks_while_others_wait_for_the_model():
    """In the child the row goes on, and those who waited for its end have stayed behind."""
    code = """
import signal
X = rng.normal(size=(4000, 30))
model, stop, found = RAPRegressor().partial_fit(X[:50], X[:50, 0]), threading.Event(), []
def read():
    while not stop.is_set():
        model.predict(X[:1])
for _ in range(3):
    threading.Thread(target=read, daemon=True).start()
parent = os.getpid()
def handle(number, frame):
    found.append(os.fork())
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.1)
model.partial_fit(X, X[:, 0])
if os.getpid() != parent:
    model.partial_fit(X[:10], X[:10, 0])
    os._exit(0)
stop.set()
print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in found])
"""
    assert ran(code) == "[0]"
