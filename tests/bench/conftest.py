"""Made-up folders of streams for the tests of the leaderboard."""

import pytest
import sklearn.ensemble  # noqa: F401 - only libraries that are loaded can be limited
from threadpoolctl import threadpool_limits

from support.made_up_streams import write_all


@pytest.fixture(scope="session")
def fake_data(tmp_path_factory):
    """A directory with all twelve streams, made up."""
    return write_all(tmp_path_factory.mktemp("data"))


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """As when the leaderboard runs: boosted trees on several threads wait for each other on a busy machine."""
    with threadpool_limits(1):
        yield
