"""A recorded run written volume by volume."""

import time

import numpy as np

from streamlasso.cli import main
from streamlasso.network.imaging.replay import replay
from streamlasso.network.imaging.volumes import read_volume
from support.scans import AFFINE, SHAPE, made_run, save_nifti


def test_volumes_are_written_at_the_pace_of_the_run(tmp_path, monkeypatch):
    run = made_run(6)
    save_nifti(tmp_path / "run.nii.gz", run, tr=0.72)
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    slept = []
    monkeypatch.setattr(
        time, "sleep", lambda seconds: (slept.append(seconds), clock.__setitem__(0, clock[0] + seconds))
    )
    assert replay(tmp_path / "run.nii.gz", tmp_path / "out") == 0.0
    np.testing.assert_allclose(slept, [0, *[0.72] * 5])
    files = sorted((tmp_path / "out").iterdir())
    assert [path.name for path in files] == [f"vol_{k:04d}.nii" for k in range(1, 7)]
    for k, path in enumerate(files):
        volume = read_volume(path)
        np.testing.assert_array_equal(volume.data, run[..., k])
        assert volume.data.shape == SHAPE
        np.testing.assert_allclose(volume.affine, AFFINE)


def test_the_command(tmp_path, capsys):
    save_nifti(tmp_path / "run.nii", made_run(3))
    assert main(["replay", str(tmp_path / "run.nii"), str(tmp_path / "out"), "--tr", "0.01", "--volumes", "2"]) == 0
    assert "the largest delay was" in capsys.readouterr().out
    assert len(list((tmp_path / "out").iterdir())) == 2
    assert main(["replay", str(tmp_path / "run.nii"), str(tmp_path / "out"), "--tr", "0.01"]) == 2
    assert "use an empty folder" in capsys.readouterr().err
    for bad in (["--volumes", "0"], ["--volumes", "-1"], ["--tr", "nan"]):
        assert main(["replay", str(tmp_path / "run.nii"), str(tmp_path / "new"), *bad]) == 2
        assert f"{bad[0]} {bad[1]} is " in capsys.readouterr().err
    assert main(["replay", str(tmp_path / "nothing.nii"), str(tmp_path / "new")]) == 2
    assert "nothing.nii" in capsys.readouterr().err
