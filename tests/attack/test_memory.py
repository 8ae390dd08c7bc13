"""Too little memory is a MemoryError: no process ends, and no model is half of two."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux how much memory there is")

START = """
import faulthandler, os, resource
faulthandler.enable()
import numpy as np
import streamlasso.river, streamlasso.wide
from scipy import sparse
from streamlasso import RAPClassifier, RAPRegressor
from streamlasso.keyed import KeyedRegressor
from streamlasso.network import StreamingNetwork
from streamlasso.tuners import Fixed
rng = np.random.default_rng(0)

def with_little_memory(extra, work):
    "What `work` gives with so many bytes more than there are now; None where that was too little."
    now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + extra, before[1]))
    try:
        return work()
    except MemoryError:
        return None
    except ValueError as error:
        # A file may claim to need any amount of memory: so it may be refused.
        if not isinstance(error.__cause__, MemoryError):
            raise
        return None
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
"""

MODELS = {
    "one model": """
X = rng.normal(size=(300, 400))
model = RAPRegressor(tuner=Fixed(0.001), memory="all").partial_fit(X, X @ rng.normal(size=400))
""",
    "default": "X = rng.normal(size=(60, 40)); model = RAPRegressor().partial_fit(X, X[:, 0])",
    "classes": "X = rng.normal(size=(60, 30)); model = RAPClassifier().partial_fit(X, np.arange(60) % 3)",
    "keys": """
X = rng.normal(size=(300, 90))
model = KeyedRegressor(RAPRegressor(tuner=Fixed(0.001), memory="all"))
model.partial_fit(X, X @ rng.normal(size=90), np.arange(300) % 3)
""",
    "networks": "X = rng.normal(size=(80, 20)); model = StreamingNetwork().partial_fit(X)",
    "wide": """
X = sparse.random(400, 20_000, density=0.01, random_state=0, format="csr")
model = streamlasso.wide.WideRegressor().partial_fit(X, np.asarray(X.sum(axis=1)).ravel())
""",
    "wide with names": """
model = streamlasso.river.WideRegressor(keep_names=True)
for i in range(2000):
    model.learn_one({f"name {i} {j}": 1.0 for j in range(5)}, float(i % 7))
""",
}

LOAD = """
data = model.to_bytes()
found = []
for extra in [0, *(2 ** np.arange(14, 26)).tolist()]:
    again = with_little_memory(extra, lambda: type(model).from_bytes(data))
    found.append(None if again is None else again.to_bytes() == data)
    del again
print(type(model).from_bytes(data).to_bytes() == data, False in found)
"""


def ran(code):
    done = subprocess.run(
        [sys.executable, "-c", START + code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        # Large blocks come from the system, and not from what happens to be free in the heap.
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "65536"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


@pytest.mark.parametrize("kind", MODELS)
def test_loading_with_little_memory(kind):
    assert ran(MODELS[kind] + LOAD) == "True False"


def test_a_state_that_does_not_fit_the_memory_changes_nothing():
    """Reading it ended the process."""
    code = (
        MODELS["one model"]
        + """
(learner,) = model.learners_
small = RAPRegressor(tuner=Fixed(0.001), memory="all").partial_fit(X[:3], X[:3, 0]).learners_[0]
state, before, found = learner.pack(), small.pack(), set()
for extra in [0, *range(1 << 16, 4 << 20, 1 << 16)]:
    def unpack():
        small.unpack(state)
        return True
    done = with_little_memory(extra, unpack)
    found.add(done)
    if done:
        break
    assert small.pack() == before
print(found == {None, True}, small.pack() == state)
"""
    )
    assert ran(code) == "True True"


def test_models_of_keys_that_do_not_fit_the_memory():
    """The rows of a key are learnt, or its model is empty, or it is what it was; and all can be used and saved."""
    code = (
        MODELS["keys"]
        + """
keys = np.arange(300) % 7
found = set()
for extra in [0, *(2 ** np.arange(10, 24)).tolist()]:
    again = type(model).from_bytes(model.to_bytes())
    found.add(with_little_memory(extra, lambda: again.partial_fit(X, X[:, 0], keys)) is None)
    assert type(again).from_bytes(again.to_bytes()).keys() == again.keys()
    again.partial_fit(X, X[:, 0], keys)
    assert np.isfinite(again.predict(X, keys)).all()
print(found)
"""
    )
    assert ran(code) in ("{False, True}", "{False}")
