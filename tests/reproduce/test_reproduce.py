"""`streamlasso reproduce`: what it writes, draws, keeps and refuses. The studies themselves are tested on their own."""

import csv
import json
import re
from dataclasses import replace

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from streamlasso.cli import main
from streamlasso.reproduce import command as reproducing
from streamlasso.reproduce import nonstationary, parts, stationary
from streamlasso.reproduce.learners import APPROXIMATE, FIXED, FLOOR, LOG_RMS, MIXTURE, RAP, STEPWISE
from streamlasso.reproduce.nonstationary import draw_nonstationary
from streamlasso.reproduce.offline import Run, fixed
from streamlasso.reproduce.page import ORDER
from streamlasso.reproduce.stationary import draw_stationary


def quick(stream):
    """Every learner that is drawn, as one that is quick."""
    yield FLOOR, "", Run(stream.floor, np.zeros(len(stream.y)), stream.beta)
    for k, learner in enumerate((STEPWISE, FIXED, RAP, APPROXIMATE, LOG_RMS, MIXTURE)):
        yield learner, "", fixed(stream, 0.05 * (k + 1), 0.95)


@pytest.fixture
def quick_studies(monkeypatch):
    monkeypatch.setattr(parts, "BLOCK", 2)
    monkeypatch.setattr(nonstationary, "GROUPS", {"cross-validation": quick})
    monkeypatch.setattr(stationary, "DIMENSIONS", (10,))


def run(out, *arguments):
    assert main(["reproduce", *arguments, "--out", str(out)]) == 0


def test_all_writes_tables_figures_and_one_page(quick_studies, tmp_path, capsys):
    run(tmp_path / "deep" / "out", "all", "--n", "3", "--seed", "2")
    out = tmp_path / "deep" / "out"
    assert sorted(path.name for path in out.iterdir()) == ["index.html", "nonstationary", "stationary", "theory"]
    for folder in (out / "nonstationary", out / "stationary", out / "theory"):
        noted = json.loads((folder / "run.json").read_text())
        assert (noted["n"], noted["seed"]) == (3, 2)
        assert noted["figures"]
        for name in noted["figures"]:
            assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
            assert (folder / f"{name}.svg").read_text().rstrip().endswith("</svg>")
        with open(folder / "summary.csv", newline="") as file:
            assert list(csv.DictReader(file))
        assert (folder / "summary.md").read_text().startswith("# ")
    assert str(out / "index.html") in capsys.readouterr().out


def test_the_page_is_self_contained_and_holds_everything(quick_studies, tmp_path, capsys):
    run(tmp_path, "all", "--n", "2")
    page = (tmp_path / "index.html").read_text()
    assert not re.search(r"(src|href)=[\"'](?!data:|#)", page)
    assert page.count("<img ") == 4
    for folder in ("stationary", "nonstationary", "theory"):
        assert f'id="{folder}"' in page
        assert "n = 2, seed = 1" in page
    numbers = re.findall(r"\d\.\d{3} \(\d\.\d{3}\)", (tmp_path / "nonstationary" / "summary.md").read_text())
    assert numbers
    assert all(number in page for number in numbers)
    assert "numpy " in page


def test_the_page_has_a_place_for_every_study():
    assert [*reproducing.STUDIES, "fmri"] == list(ORDER)


def test_a_study_that_is_added_joins_the_page(quick_studies, tmp_path, capsys):
    run(tmp_path, "theory", "--n", "2")
    assert 'id="stationary"' not in (tmp_path / "index.html").read_text()
    run(tmp_path, "stationary", "--n", "2")
    page = (tmp_path / "index.html").read_text()
    assert [f'id="{name}"' in page for name in ("stationary", "nonstationary", "theory")] == [True, False, True]


def tables(out):
    return {
        path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.suffix in (".csv", ".md", ".svg")
    }


def test_the_numbers_do_not_depend_on_the_way_there(quick_studies, tmp_path, capsys, monkeypatch):
    run(tmp_path / "at once", "nonstationary", "--n", "3")
    run(tmp_path / "in steps", "nonstationary", "--n", "2")
    before = len(list((tmp_path / "in steps" / "nonstationary" / "parts").iterdir()))
    run(tmp_path / "in steps", "nonstationary", "--n", "3")
    assert len(list((tmp_path / "in steps" / "nonstationary" / "parts").iterdir())) == 2 * before
    assert tables(tmp_path / "at once") == tables(tmp_path / "in steps")
    # All is there: nothing is run.
    monkeypatch.setattr(nonstationary.Comparison, "run", lambda job: 1 / 0)
    run(tmp_path / "in steps", "nonstationary", "--n", "3")
    assert tables(tmp_path / "at once") == tables(tmp_path / "in steps")


def test_fewer_draws_than_there_are_give_a_warning(quick_studies, tmp_path, capsys):
    run(tmp_path, "nonstationary", "--n", "3")
    capsys.readouterr()
    run(tmp_path, "nonstationary", "--n", "2")
    assert "holds 3 draws; tables and figures will be of the first 2" in capsys.readouterr().err
    assert "2 draws" in (tmp_path / "nonstationary" / "summary.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["all", "--n", "0"], "n=0 is too few: a standard error needs two draws or more"),
        (["theory", "--jobs", "0"], "at least one process"),
        (["stationary", "--seed", "-1"], "seed=-1 is negative: use 0 or more"),
        (["everything"], "everything"),
    ],
)
def test_what_makes_no_sense_is_one_line_and_leaves_nothing(arguments, words, tmp_path, capsys):
    assert main(["reproduce", *arguments, "--out", str(tmp_path / "out")]) == 2
    printed = capsys.readouterr()
    assert not printed.out
    assert printed.err.count("\n") == 1
    assert words in printed.err
    assert not (tmp_path / "out").exists()


def test_another_seed_needs_another_directory(quick_studies, tmp_path, capsys):
    run(tmp_path, "nonstationary", "--n", "2", "--seed", "5")
    page = (tmp_path / "index.html").read_bytes()
    assert main(["reproduce", "nonstationary", "--n", "2", "--seed", "6", "--out", str(tmp_path)]) == 2
    assert "seed=5, not 6: name another directory" in capsys.readouterr().err
    assert (tmp_path / "index.html").read_bytes() == page


def test_a_directory_that_cannot_be_written_is_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["reproduce", "theory", "--out", str(tmp_path / "file")]) == 2
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1
    assert "name another directory" in printed.err


def test_an_interrupt_is_130_and_tells_how_to_continue(tmp_path, capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(reproducing, "run_jobs", interrupted)
    assert main(["reproduce", "theory", "--out", str(tmp_path)]) == 130
    assert "the same command continues from there" in capsys.readouterr().err


def test_help_lists_the_studies(capsys):
    assert main(["reproduce", "--help"]) == 0
    printed = capsys.readouterr().out
    for name in ("stationary", "nonstationary", "theory", "all"):
        assert name in printed


# --- figures ----------------------------------------------------------------------------------------------------------


def test_curves_are_the_means_of_the_table(quick_studies, tmp_path, capsys):
    run(tmp_path, "nonstationary", "--n", "2")
    curves = parquet.read_table(tmp_path / "nonstationary" / "curves.parquet")
    draws = parquet.read_table(tmp_path / "nonstationary" / "draws.parquet")
    lines = nonstationary.summaries(draws)
    figure = draw_nonstationary(curves, lines, "dense-sparse-dense")
    assert len(figure.axes) == 4
    assert all(axes.get_ylabel() for axes in figure.axes)
    streams = [nonstationary.draw(i, 1, "dense-sparse-dense", "gaussian") for i in range(2)]
    floor = np.mean([stream.floor for stream in streams], axis=0)
    drawn = [line.get_ydata() for line in figure.axes[1].lines if len(line.get_ydata()) == 96]
    expected = np.convolve(floor[100:200], np.full(5, 0.2), mode="valid")
    assert any(np.allclose(values, expected) for values in drawn)


def test_violins_leave_out_what_would_hide_the_rest_with_a_note():
    def summary(rule, p):
        return stationary.RuleSummary("gaussian", p, rule, 0.1, True, 100, 5.0, *[0.0] * 8)

    rng = np.random.default_rng(0)
    rules = [summary(rule, p) for rule in (RAP, "LogRMS") for p in (10, 50)]
    rules += [replace(rule, family="binomial") for rule in rules]
    rows = [
        dict(family=of.family, p=of.p, rule=of.rule, step=0.1, draw=i, norm_cv=5.0, norm=5.0 + rng.normal(), lam=1.0)
        for of in rules
        for i in range(100)
    ]
    rows[3]["norm"] = 1e6
    figure = draw_stationary(pyarrow.Table.from_pylist(rows), rules)
    linear, logistic = figure.axes
    assert linear.get_xlabel().endswith("1 of 400 beyond the edge")
    assert logistic.get_xlabel() == "number of features p"
    assert max(np.abs(linear.get_ylim())) < 10
    assert len(linear.collections) == 4
