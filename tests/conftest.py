"""What all tests share: how long hypothesis may look, streams, and the data beside the repository where it is there."""

import os
import signal
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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if _shares_a_fixture(item):
            item.add_marker(pytest.mark.xdist_group(item.path.name))
        if os.name != "posix" and item.get_closest_marker("posix"):
            item.add_marker(pytest.mark.skip(reason="needs signals, file modes or limits that this system lacks"))


def _shares_a_fixture(item):
    """With another test of its file. Then one process runs all of these, and makes it once (--dist loadgroup)."""
    found = getattr(item, "_fixtureinfo", None)
    return found is not None and any(f.scope == "module" for fs in found.name2fixturedefs.values() for f in fs)


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
