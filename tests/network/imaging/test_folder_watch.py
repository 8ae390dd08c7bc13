"""The events of a real folder."""

from streamlasso.network.imaging.folder_watch import FolderWatch


def test_files_that_were_closed_or_renamed_are_reported(tmp_path):
    with FolderWatch(tmp_path) as watch:
        path = tmp_path / "vol_1.nii"
        path.write_text("ok")
        (tmp_path / "part").write_text("ok")
        (tmp_path / "part").rename(tmp_path / "vol_2.nii")
        closed = set()
        for _ in range(50):
            closed |= watch.wait(0.1)
            if {path, tmp_path / "vol_2.nii"} <= closed:
                return
    raise AssertionError(closed)
