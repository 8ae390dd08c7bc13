"""Made-up folders of streams for the tests of the leaderboard."""

import pytest

from support.made_up_streams import write_all


@pytest.fixture(scope="session")
def fake_data(tmp_path_factory):
    """A directory with all twelve streams, made up."""
    return write_all(tmp_path_factory.mktemp("data"))
