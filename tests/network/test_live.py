"""A scanner's folder, with a real clock and real files: the results are those of a recorded run."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from pyarrow import csv

from streamlasso.cli import main
from streamlasso.network import StreamingNetwork, live, read_networks
from streamlasso.network.group import Group
from streamlasso.network.imaging.folder_watch import FolderWatch
from streamlasso.network.imaging.volumes import read_volume
from streamlasso.network.live import MAX_PRINTED
from support.scans import (
    AFFINE,
    LABELS,
    NAMES,
    atlas_labels,
    made_run,
    region_means,
    save_atlas,
    save_mosaic,
    save_nifti,
    save_slice,
)


@pytest.fixture
def scanner(tmp_path, monkeypatch):
    """A folder, an atlas, and a run whose volumes can be put into it; drawn on circles, which is fast."""
    monkeypatch.setattr(Group, "coords", None)
    (tmp_path / "incoming").mkdir()
    save_atlas(tmp_path / "atlas.nii")
    return Scanner(tmp_path)


class Scanner:
    def __init__(self, path):
        self.path, self.incoming, self.out = path, path / "incoming", path / "out"
        self.run = made_run(30)

    def put(self, number, data=None):
        volume = self.run[..., number - 1] if data is None else data
        save_nifti(self.incoming / f"vol_{number:04d}.nii", volume)

    def watch(self, *arguments):
        fixed = ["--watch", self.incoming, "--atlas", self.path / "atlas.nii", "--out", self.out, "--patience", "0.6"]
        return main(["network", *map(str, [*fixed, *arguments])])

    def expected(self, numbers):
        """The networks of these volumes, in percent of the first."""
        X = np.array([region_means(self.run[..., k - 1]) for k in numbers])
        return StreamingNetwork().fit_transform(100 * X / X[0])


def test_volumes_are_learnt_as_in_a_recorded_run(scanner, capsys):
    for number in range(1, 31):
        scanner.put(number)
    assert scanner.watch("--volumes", 30, "--idle", 20, "--tr", 0.72) == 0
    printed = capsys.readouterr()
    np.testing.assert_allclose(read_networks(scanner.out), scanner.expected(range(1, 31)), atol=1e-5)
    assert printed.err.count("ms after its file was complete") == 30
    assert "30 volumes learnt, 6 regions" in printed.out
    assert "took longer than the 0.72 s between volumes" in printed.out


def test_the_current_network_is_on_disk(scanner):
    for number in range(1, 21):
        scanner.put(number)
    assert scanner.watch("--volumes", 20, "--idle", 20) == 0
    last = scanner.expected(range(1, 21))[-1]
    current = json.loads((scanner.out / "current.json").read_text())
    assert (current["volume"], current["learnt"]) == (20, 20)
    assert len(current["edges"]) == np.count_nonzero(last) // 2
    for edge in current["edges"]:
        i, j = NAMES.index(edge["source"]), NAMES.index(edge["target"])
        assert edge["strength"] == pytest.approx(last[i, j], abs=1e-5)
    assert not [path for path in scanner.out.iterdir() if path.name.endswith(".part")]
    model = StreamingNetwork.load(scanner.out / "model.safetensors")
    assert model.n_seen_ == 20
    assert list(model.feature_names_in_) == list(NAMES)


def test_series_csv_holds_the_region_means(scanner):
    for number in range(1, 6):
        scanner.put(number)
    assert scanner.watch("--volumes", 5, "--idle", 20) == 0
    table = csv.read_csv(scanner.out / "series.csv")
    assert table.column_names == list(NAMES)
    expected = [region_means(scanner.run[..., k]) for k in range(5)]
    np.testing.assert_allclose(np.column_stack([column.to_numpy() for column in table]), expected, rtol=1e-6)


def test_problems_are_reported_and_the_scan_continues(scanner, capsys):
    """Volume 3 is missing, 5 has another shape, 6 is truncated, 8 has missing values, and there is another series."""
    for number in (1, 2, 4, 7, 9, 10):
        scanner.put(number)
    scanner.put(5, made_run(1)[:4, ..., 0])
    scanner.put(6)
    path = scanner.incoming / "vol_0006.nii"
    path.write_bytes(path.read_bytes()[:700])
    holes = scanner.run[..., 7].copy()
    holes[0, 0, 0] = np.nan
    scanner.put(8, holes)
    save_nifti(scanner.incoming / "vol_other_0001.nii", scanner.run[..., 0])
    assert scanner.watch("--volumes", 6, "--idle", 20) == 0
    err = capsys.readouterr().err
    for text in (
        "volume 3 did not arrive within 0.6 s; left out",
        "vol_0005.nii: its grid (4 x 5 x 4 voxels",
        "vol_0006.nii: damaged or truncated",
        "vol_0008.nii: missing values in left front; the volume is left out",
        "a second series (vol_other_)",
    ):
        assert text in err
    learnt = (1, 2, 4, 7, 9, 10)
    np.testing.assert_allclose(read_networks(scanner.out), scanner.expected(learnt), atol=1e-5)
    volumes = csv.read_csv(scanner.out / "volumes.csv").to_pylist()
    assert [row["volume"] for row in volumes if row["status"] == "ok"] == list(learnt)
    assert {"missing", "refused", "unreadable", "not a number", "other series"} <= {row["status"] for row in volumes}
    notes = json.loads((scanner.out / "run.json").read_text())["subjects"]["incoming"]["notes"]
    assert any("volume 3 did not arrive" in note for note in notes)


def test_a_file_written_in_pieces_is_waited_for(scanner, monkeypatch):
    """A piece is written at every look at the folder."""
    scanner.put(1)
    data = save_nifti(scanner.path / "second.nii", scanner.run[..., 1]).read_bytes()
    pieces = iter([data[start : start + 200] for start in range(0, len(data), 200)])
    wait = FolderWatch.wait

    def write_and_wait(watch):
        with open(scanner.incoming / "vol_0002.nii", "ab") as file:
            file.write(next(pieces, b""))
        return wait(watch)

    monkeypatch.setattr(FolderWatch, "wait", write_and_wait)
    assert scanner.watch("--volumes", 2, "--idle", 20) == 0
    np.testing.assert_allclose(read_networks(scanner.out), scanner.expected((1, 2)), atol=1e-5)


def test_dicom_volumes_are_learnt(scanner):
    run = np.clip(np.rint(scanner.run), 0, 4000)
    for number in range(1, 9):
        save_mosaic(scanner.incoming / f"{number:03d}.dcm", run[..., number - 1], number)
    first = read_volume(scanner.incoming / "001.dcm")
    save_nifti(scanner.path / "atlas.nii", atlas_labels(), first.affine)
    (scanner.incoming / "003.dcm").write_bytes(b"no DICOM at all" * 100)
    assert scanner.watch("--volumes", 7, "--idle", 20) == 0
    X = np.array([region_means(run[..., k - 1]) for k in (1, 2, 4, 5, 6, 7, 8)])
    np.testing.assert_allclose(read_networks(scanner.out), StreamingNetwork().fit_transform(100 * X / X[0]), atol=1e-5)


def test_an_atlas_on_another_grid_is_resampled_with_a_note(scanner, capsys):
    coarse = AFFINE.copy()
    save_nifti(scanner.path / "atlas.nii", atlas_labels()[1:], coarse @ np.array(
        [[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]]
    ))  # fmt: skip
    for number in range(1, 4):
        scanner.put(number)
    assert scanner.watch("--volumes", 3, "--idle", 20) == 0
    assert "are on different grids; the atlas was resampled" in capsys.readouterr().err


def test_a_late_start_is_reported_once(scanner, capsys):
    scanner.put(5)
    assert scanner.watch("--volumes", 1, "--idle", 20) == 0
    printed = capsys.readouterr()
    assert printed.err.count("the first volume is number 5") == 1
    assert "1 volume learnt" in printed.out


def test_repeated_problems_are_printed_a_few_times(scanner, capsys):
    for number in range(1, 41):
        save_slice(scanner.incoming / f"{number:04d}.dcm", number)
    assert scanner.watch("--idle", 1) == 2
    err = capsys.readouterr().err
    assert err.count("is not one volume: export mosaics") <= 2 * MAX_PRINTED
    assert len(csv.read_csv(scanner.out / "volumes.csv").to_pylist()) == 40


def test_what_is_reported_is_on_disk(scanner, monkeypatch):
    """When the network of a volume appears, its region means have been synced."""
    synced, sync = [], os.fsync

    def recorded(handle):
        sync(handle)
        synced.append(os.fstat(handle))

    def lines_on_disk():
        series = (scanner.out / "series.csv").stat()
        last = [status for status in synced if status.st_ino == series.st_ino][-1]
        assert last.st_size == series.st_size
        return (scanner.out / "series.csv").read_text().count("\n") - 1

    def checked(out, scan, arrival):
        assert lines_on_disk() == len(scan.numbers)
        write(out, scan, arrival)

    monkeypatch.setattr(os, "fsync", recorded)
    write = live.write_current
    monkeypatch.setattr(live, "write_current", checked)
    for number in range(1, 6):
        scanner.put(number)
    assert scanner.watch("--volumes", 5, "--idle", 20) == 0
    assert lines_on_disk() == 5
    assert scanner.out.stat().st_ino in {status.st_ino for status in synced}


def test_a_scan_that_was_killed_can_be_learnt_again(scanner):
    """From its series.csv, and by restarting: nothing that was reported is lost."""
    command = [sys.executable, "-c", "import sys; from streamlasso.cli import main; sys.exit(main())", "network"]
    command += ["--watch", str(scanner.incoming), "--atlas", str(scanner.path / "atlas.nii"), "--out", str(scanner.out)]
    for number in range(1, 13):
        scanner.put(number)
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ)
    for line in process.stderr:
        if line.startswith("volume 12"):
            break
    process.kill()
    process.wait()
    process.stderr.close()
    assert main(["network", str(scanner.out / "series.csv"), "--out", str(scanner.path / "again")]) == 0
    X = np.array([region_means(scanner.run[..., k]) for k in range(12)])
    expected = StreamingNetwork().fit_transform((X - X.mean(axis=0)) / X.std(axis=0))
    np.testing.assert_allclose(read_networks(scanner.path / "again"), expected, atol=1e-5)
    scanner.put(13)
    assert scanner.watch("--volumes", 13, "--idle", 20) == 0
    np.testing.assert_allclose(read_networks(scanner.out), scanner.expected(range(1, 14)), atol=1e-5)
    assert (scanner.out / "series-1.csv").read_text().count("\n") == 13


def test_a_constant_region_is_reported_and_has_no_edges(scanner, capsys):
    scanner.run[atlas_labels() == LABELS[2]] = 1000
    for number in range(1, 21):
        scanner.put(number)
    assert scanner.watch("--volumes", 20, "--idle", 20) == 0
    err = capsys.readouterr().err
    assert "constant so far, and therefore without edges: left back" in err
    assert "UserWarning" not in err
    assert not read_networks(scanner.out)[:, 2].any()


def test_the_series_of_an_earlier_scan_is_kept(scanner):
    for number in (1, 2, 3):
        scanner.put(number)
    assert scanner.watch("--volumes", 3, "--idle", 20) == 0
    first = (scanner.out / "series.csv").read_bytes()
    scanner.put(4)
    assert scanner.watch("--volumes", 4, "--idle", 20) == 0
    assert (scanner.out / "series-1.csv").read_bytes() == first
    assert csv.read_csv(scanner.out / "series.csv").num_rows == 4


@pytest.mark.parametrize("volumes", [1, 2])
def test_scans_of_one_and_two_volumes(scanner, volumes):
    for number in range(1, volumes + 1):
        scanner.put(number)
    assert scanner.watch("--volumes", volumes, "--idle", 20, "--tr", 0.72) == 0
    assert read_networks(scanner.out).shape == (volumes, 6, 6)


def test_no_volume_gives_a_one_line_error(scanner, capsys):
    assert scanner.watch("--idle", 0.3) == 2
    assert "no volume could be learnt: the folder is empty" in capsys.readouterr().err
    (scanner.incoming / "IM_0001").write_text("a DICOM, perhaps")
    assert scanner.watch("--idle", 0.3, "--pattern", "x*") == 2
    assert (
        "no file matches among IM_0001: volumes are named x* and end in .nii, .nii.gz, .dcm" in capsys.readouterr().err
    )
    assert not (scanner.out / "run.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--volumes", "0"], "--volumes 0"),
        (["--idle", "-1"], "--idle -1"),
        (["--patience", "0"], "--patience 0"),
        (["--confounds", "auto"], "--confounds does not work with --watch"),
        (["--watch", "nowhere"], "create it before the scanner writes to it"),
        (["--events", "events.tsv"], "add --tr"),
        (["--family", "binomial"], "--family binomial"),
    ],
)
def test_bad_arguments_are_refused_before_watching(scanner, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(scanner.path)
    (scanner.path / "events.tsv").write_text("onset\tduration\n1\t1\n")
    fixed = ["network", "--atlas", str(scanner.path / "atlas.nii"), "--out", str(scanner.out)]
    fixed += [] if "--watch" in arguments else ["--watch", str(scanner.incoming)]
    assert main([*fixed, *arguments]) == 2
    assert message in capsys.readouterr().err


def test_watching_needs_an_atlas(scanner, capsys):
    assert main(["network", "--watch", str(scanner.incoming), "--out", str(scanner.out)]) == 2
    assert "--atlas" in capsys.readouterr().err


@pytest.mark.posix
def test_ctrl_c_writes_the_report(scanner):
    for number in range(1, 11):
        scanner.put(number)
    command = [sys.executable, "-c", "import sys; from streamlasso.cli import main; sys.exit(main())", "network"]
    command += ["--watch", str(scanner.incoming), "--atlas", str(scanner.path / "atlas.nii"), "--out", str(scanner.out)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ)
    for line in process.stderr:
        if line.startswith("volume 10"):
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "10 volumes learnt" in out
    np.testing.assert_allclose(read_networks(scanner.out), scanner.expected(range(1, 11)), atol=1e-5)
