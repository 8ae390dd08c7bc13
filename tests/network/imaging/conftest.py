"""Fixtures of the imaging tests."""

import pytest

from streamlasso.network.imaging.atlas import load_atlas
from support.scans import save_atlas


@pytest.fixture
def atlas(tmp_path):
    return load_atlas(save_atlas(tmp_path / "atlas.nii.gz"))
