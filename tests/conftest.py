"""What all tests share: how long hypothesis may look, streams, and the data beside the repository where it is there."""

import os
import signal
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from support.streams import made

settings.register_profile(
    "suite", max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")

# What a shell starts in the background ignores Ctrl-C, and some tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    for item in items:
        if os.name != "posix" and item.get_closest_marker("posix"):
            item.add_marker(pytest.mark.skip(reason="needs signals, file modes or limits that this system lacks"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Tests of a file that share a fixture run in one process, which makes it once; all others one by one."""
    from xdist.scheduler import LoadScopeScheduling

    class OneProcessForShared(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            file = nodeid.partition("::")[0]
            return file if _shares_a_fixture(config.rootpath / file) else nodeid

    return OneProcessForShared(config, log)


@cache
def _shares_a_fixture(path):
    return 'scope="module"' in path.read_text()


SHARED = Path(__file__).resolve().parents[2] / "shared"


def there_or_skip(path):
    return path if path.exists() else pytest.skip(f"{path.name} is not beside the repository")


@pytest.fixture(scope="session")
def shared_data():
    """The folder of real streams."""
    return there_or_skip(SHARED / "data")


@pytest.fixture(scope="session")
def shared_reference():
    """The folder of trajectories of the authors' R package."""
    return there_or_skip(SHARED / "reference")


@pytest.fixture
def make_stream():
    """A well-behaved stream: independent features, responses that follow the first three, sample weights on request."""

    def make(family, n=60, p=4, seed=0, weights=False, gain=0.6):
        return made(family, ["normal"] * p, n, np.random.default_rng(seed), "some" if weights else "none", gain)

    return make


@pytest.fixture
def path(tmp_path):
    """Of a checkpoint that is not there yet."""
    return tmp_path / "model.safetensors"


@pytest.fixture(scope="module")
def skglm():
    """skglm without its just-in-time compilation, which takes longer than these problems."""
    numba = pytest.importorskip("numba")
    before, numba.config.DISABLE_JIT = numba.config.DISABLE_JIT, True
    module = pytest.importorskip("skglm")

    yield module
    numba.config.DISABLE_JIT = before
