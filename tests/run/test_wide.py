"""`streamlasso run` with any number of features: text, svmlight, Vowpal Wabbit's text, more than 1,000 columns."""

import csv
import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pyarrow import csv as arrow_csv
from pyarrow import parquet
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.feature_extraction.text import CountVectorizer

from streamlasso import WideClassifier, WideRegressor
from streamlasso.cli import main
from streamlasso.river import WideClassifier as NamedClassifier
from streamlasso.river import WideRegressor as NamedRegressor
from support.wide import zipf_stream

KILLER = Path(__file__).with_name("killer.py")
GOOD, BAD = ["lunch", "noon", "report", "meeting", "thanks"], ["cheap", "pills", "winner", "cash", "click"]
OTHERS = [f"word{i}" for i in range(300)]


def mails(n=400, seed=0):
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        spam = rng.random() < 0.4
        some = [*rng.choice(BAD if spam else GOOD, 2), *rng.choice(OTHERS, 6)]
        rows.append((" ".join(rng.permutation(some)) + "!", round(float(rng.normal()), 3), "spam" if spam else "ham"))
    return rows


def write_mails(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("body", "size", "kind"), *rows])
    return path


@pytest.fixture
def mail_csv(tmp_path):
    return write_mails(tmp_path / "mails.csv", mails())


def run(data, out, *more):
    return main(["run", str(data), "--out", str(out), "--quiet", *more])


def predicted(path):
    return arrow_csv.read_csv(path).to_pydict()


# --- the same as from Python ------------------------------------------------------------------------------------------


def test_text_is_learnt_as_scikit_learns_tokens_would_be(mail_csv, tmp_path, undrawn):
    assert run(mail_csv, tmp_path / "out", "--target", "kind", "--text", "body", "--drop", "size") == 0
    rows = mails()
    words = CountVectorizer(ngram_range=(1, 2), binary=True)
    X = words.fit_transform([body for body, _, _ in rows])
    expected = WideClassifier().progressive(X, [kind for *_, kind in rows], classes=["ham", "spam"])
    found = predicted(tmp_path / "out" / "predictions.csv")
    assert found["P(spam)"] == pytest.approx(expected[:, 1], abs=2e-3)
    model = NamedClassifier.load(tmp_path / "out" / "model.safetensors")
    assert set(model.coef_["spam"]) <= set(words.vocabulary_)
    assert model.n_live_ == len(words.vocabulary_)


def test_a_svmlight_file_is_learnt_as_its_matrix_is(tmp_path, undrawn):
    X, y = zipf_stream(n=400, p=1000, values=True)
    dump_svmlight_file(X, y, str(tmp_path / "data.svm"), comment="two\nlines", zero_based=False)
    assert run(tmp_path / "data.svm", tmp_path / "out") == 0
    X, y = load_svmlight_file(str(tmp_path / "data.svm"))
    expected = WideClassifier().progressive(X, y)[:, 1]
    assert predicted(tmp_path / "out" / "predictions.csv")["P(1)"] == pytest.approx(expected, abs=2e-3)


def test_vowpal_wabbits_text_is_learnt_with_its_weights(tmp_path, undrawn):
    rng = np.random.default_rng(1)
    lines, rows = [], []
    for i in range(300):
        age, city, weight = round(float(rng.random()), 2), rng.choice(["Rome", "Oslo"]), int(rng.integers(1, 3))
        y = round(2 * age + (city == "Rome") + float(rng.normal()) / 5, 3)
        lines.append(f"{y} {weight} 'tag{i}|user age:{age} |place:2 {city}")
        rows.append(({"user^age": age, f"place^{city}": 2.0}, y, float(weight)))
    (tmp_path / "data.txt").write_text("\n".join(lines) + "\n")
    assert run(tmp_path / "data.txt", tmp_path / "out", "--lags", "none") == 0
    model, expected = NamedRegressor(), []
    for x, y, weight in rows:
        expected.append(model.predict_one(x))
        model.learn_one(x, y, weight)
    found = predicted(tmp_path / "out" / "predictions.csv")["prediction"]
    assert found[1:] == pytest.approx(expected[1:], abs=2e-3)


def test_more_than_a_thousand_columns_are_learnt_by_it(tmp_path, undrawn):
    rng = np.random.default_rng(0)
    X = (rng.random((150, 1100)) < 0.02) * rng.normal(size=(150, 1100)).round(2)
    y = X[:, 0] - X[:, 1] + rng.normal(size=150).round(3)
    names = [f"x{j}" for j in range(X.shape[1])]
    np.savetxt(tmp_path / "data.csv", np.column_stack([X, y]), "%g", ",", header=",".join([*names, "y"]), comments="")
    assert run(tmp_path / "data.csv", tmp_path / "out", "--target", "y", "--lags", "none") == 0
    expected = WideRegressor().progressive(X, [float(f"{value:g}") for value in y])
    found = predicted(tmp_path / "out" / "predictions.csv")["prediction"]
    assert found[1:] == pytest.approx(expected[1:], abs=2e-3)


# --- predictions, checkpoints, what people see ------------------------------------------------------------------------


@pytest.mark.posix
def test_killed_many_times_it_ends_the_same(mail_csv, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    more = ["--target", "kind", "--text", "body", "--every", "40", "--checkpoint"]
    assert run(mail_csv, whole, *more, f"{whole}.ckpt") == 0
    command = ["run", str(mail_csv), "--out", str(killed), "--quiet", *more, f"{killed}.ckpt"]
    done = subprocess.run(
        [sys.executable, KILLER, "1", "6", "0.4", *command], capture_output=True, text=True, check=True
    )
    kills, status = map(int, done.stdout.split())
    assert status == 0, done.stderr
    assert kills >= 4
    for name in ("trace.parquet", "coefficients.parquet", "report.html", "model.safetensors", "predictions.csv"):
        assert (whole / name).read_bytes() == (killed / name).read_bytes(), name


def test_predict_says_what_the_run_would_have_said_next(mail_csv, tmp_path, undrawn):
    rows = mails()
    write_mails(tmp_path / "first.csv", rows[:-1])
    write_mails(tmp_path / "last.csv", rows[-1:])
    more = ("--target", "kind", "--text", "body")
    assert run(mail_csv, tmp_path / "all", *more) == run(tmp_path / "first.csv", tmp_path / "out", *more) == 0
    saved = str(tmp_path / "out" / "model.safetensors")
    assert main(["predict", saved, str(tmp_path / "last.csv"), "--out", str(tmp_path / "new.csv"), "--quiet"]) == 0
    expected = predicted(tmp_path / "all" / "predictions.csv")
    assert predicted(tmp_path / "new.csv")["P(spam)"] == expected["P(spam)"][-1:]


def test_the_report_and_inspect_name_the_strongest_features(mail_csv, tmp_path, capsys):
    assert run(mail_csv, tmp_path / "out", "--target", "kind", "--text", "body") == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert "body: pills" in page and "entered the strongest" in page and "which features were the strongest" in page
    assert "lam_max, median" not in page
    coefs = parquet.read_table(tmp_path / "out" / "coefficients.parquet")
    assert "coef[body: pills]" in coefs.column_names
    assert main(["inspect", str(tmp_path / "out" / "model.safetensors")]) == 0
    printed = capsys.readouterr().out
    assert "experts for any number of features" in printed and "body: pills" in printed


def test_a_third_class_may_come_late_and_targets_may_be_missing(tmp_path, undrawn):
    rows = mails(300)
    rows = [(body, size, "" if i % 10 == 3 else kind) for i, (body, size, kind) in enumerate(rows)]
    rng = np.random.default_rng(3)
    for i in range(200, 300, 4):
        rows[i] = (" ".join(["invoice", "paid", *rng.choice(OTHERS, 6)]), 0.0, "bill")
    write_mails(tmp_path / "data.csv", rows)
    more = ("--target", "kind", "--text", "body", "--checkpoint", str(tmp_path / "c"))
    write_mails(tmp_path / "data.csv", rows[:150])
    assert run(tmp_path / "data.csv", tmp_path / "out", *more) == 0
    write_mails(tmp_path / "data.csv", rows)
    assert run(tmp_path / "data.csv", tmp_path / "out", *more) == 0
    found = predicted(tmp_path / "out" / "predictions.csv")
    assert found["prediction"][280:300:4].count("bill") >= 2
    assert [found["y"][i] for i in (3, 13)] in ([None, None], ["", ""])
    assert set(NamedClassifier.load(tmp_path / "out" / "model.safetensors").classes_) == {"ham", "spam", "bill"}


# --- bad input --------------------------------------------------------------------------------------------------------

BAD_LINES = {
    "1 3:nan": "'3:nan' is not index:value",
    "1 3:1e99": "'3:1e99' is not index:value",
    "1 3:": "'3:' is not index:value",
    "1 -3:1": "'-3:1' is not index:value",
    "1 3000000000:1": "beyond 2,147,483,647",
    "1 7:1 7:1": "the index 7 is there twice",
}


@pytest.mark.parametrize("line", BAD_LINES)
def test_bad_lines_of_svmlight_are_refused_or_left_out(line, tmp_path, undrawn, capsys):
    good = ["1 2:1 9:0.5", "0 9:1 2:-3.5", "1", "0 4:0"] * 10
    (tmp_path / "data.svm").write_text("\n".join([*good, line, *good]))
    assert run(tmp_path / "data.svm", tmp_path / "out") == 2
    assert BAD_LINES[line] in capsys.readouterr().err.replace("\n", " ")
    assert not (tmp_path / "out" / "predictions.csv").exists()
    assert run(tmp_path / "data.svm", tmp_path / "out", "--on-error", "skip") == 0
    rows = predicted(tmp_path / "out" / "predictions.csv")["row"]
    assert rows == [i for i in range(81) if i != 40]


def test_a_file_that_is_cut_short_is_refused(tmp_path, undrawn, capsys):
    data = gzip.compress("\n".join([f"{i % 2} {i % 7 + 1}:1 {i + 10}:0.25" for i in range(3000)]).encode())
    (tmp_path / "data.svm.gz").write_bytes(data[: len(data) // 2])
    assert run(tmp_path / "data.svm.gz", tmp_path / "out") == 2
    assert "cut short" in capsys.readouterr().err
    assert not (tmp_path / "out" / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--text", "bodi"], "--text bodi"),
        (["--text", "body", "--key", "size"], "do not go together"),
        (["--text", "body", "--memory", "0.9"], "do not go together"),
        (["--text", "body", "--tuner", "logrms"], "leave it out"),
        (["--text", "body", "--ngrams", "2-1"], "--ngrams 2-1 is invalid"),
        (["--text", "kind"], "is the target"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, message, mail_csv, tmp_path, capsys):
    assert run(mail_csv, tmp_path / "out", "--target", "kind", *options) == 2
    assert message in capsys.readouterr().err.replace("\n", " ")


def test_a_table_needs_a_target(mail_csv, tmp_path, capsys):
    assert run(mail_csv, tmp_path / "out") == 2
    assert "--target is missing: use one of the columns, body, size and kind" in capsys.readouterr().err
