"""Files appear whole or not at all."""

import pytest

from streamlasso._files import write_whole


def test_a_file_appears_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_whole(path, b"first")
    monkeypatch.setattr("os.replace", lambda temporary, final: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_whole(path, b"second")
    assert path.read_bytes() == b"first"
    assert [child.name for child in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("sync", [True, False])
def test_a_file_and_its_directory_are_synced_by_default(tmp_path, monkeypatch, sync):
    synced = []
    monkeypatch.setattr("os.fsync", synced.append)
    assert write_whole(tmp_path / "file", b"data", sync=sync).read_bytes() == b"data"
    assert len(synced) == (2 if sync else 0)
