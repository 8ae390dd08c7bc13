"""`run --key`: the same predictions as `KeyedRegressor` on the encoded rows, whatever happens to the run."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import csv, parquet

from streamlasso import RAPClassifier, RAPRegressor, progressive
from streamlasso.cli import main
from streamlasso.keyed import KeyedClassifier, KeyedRegressor
from streamlasso.run.options import Options
from streamlasso.run.results import finish
from streamlasso.run.run import Run

KILLER = Path(__file__).with_name("killer.py")
SHOPS = 9
#: Text that means something to HTML, to rich, and to CSV.
STRANGE = ['<b>"A" & Co</b>', "[red]x[/red]", "a,b", "ç 店"]


def shops(n=500, seed=0, late=None):
    """Prices and levels that differ by shop, of which some open late; with `late`, a level that comes late."""
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=(2, n))
    shop = np.where(np.arange(n) < n // 2, rng.integers(SHOPS // 2, size=n), rng.integers(SHOPS, size=n))
    names = np.array([*STRANGE, *(f"shop {k}" for k in range(len(STRANGE), SHOPS))])[shop]
    promo = np.array(["no", "yes", late or "no"])[rng.integers(2 + (np.arange(n) > 2 * n // 3), size=n)]
    y = x * (shop - 3) / 2 + shop + (promo == "yes") + 2.0 * (promo == late) + 0.3 * rng.normal(size=n)
    return pyarrow.table({"shop": names, "x": x, "z": z, "promo": promo, "y": y})


@pytest.fixture
def few_first(monkeypatch):
    """Features and classes appear after the first rows."""
    monkeypatch.setattr("streamlasso.data.sources.delimited.FIRST_ROWS", 50)


def written(table, path):
    csv.write_csv(table, path)
    return path


def features(table, promos=None):
    """As the encoder makes them: one per level, in the order in which they come."""
    columns = [table["x"].to_numpy(), table["z"].to_numpy()]
    promo = np.array(table["promo"].to_pylist())
    promos = list(dict.fromkeys(promo.tolist())) if promos is None else promos
    return np.column_stack([*columns, *(promo == name for name in promos)]).astype(float)


# --- the same predictions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tuner", ["mixture", "logrms"])
def test_predictions_are_those_of_the_keyed_regressor(tuner, tmp_path, go):
    table = shops()
    run, predicted, trace = go(written(table, tmp_path / "data.csv"), key="shop", tuner=tuner, lags={})
    assert run.model.encoder.features == ["x", "z", "promo = yes", "promo = no"]
    keyed = KeyedRegressor(RAPRegressor(tuner=tuner))
    expected = keyed.progressive(features(table), table["y"].to_numpy(), table["shop"].to_pylist())
    np.testing.assert_array_equal(predicted["prediction"].to_numpy(), expected)
    assert predicted["key"].to_pylist() == trace["key"].to_pylist() == table["shop"].to_pylist()
    np.testing.assert_allclose(trace["loss"].to_numpy(), (expected - table["y"].to_numpy()) ** 2 / 2)


def test_counts_and_rows_without_a_target(tmp_path, go):
    table = shops()
    rate = np.exp(0.3 * table["y"].to_numpy())
    y = np.random.default_rng(1).poisson(np.minimum(rate, 50.0)).astype(float)
    missing = np.arange(len(y)) % 7 == 3
    table = table.set_column(4, "y", pyarrow.array(y, mask=missing))
    _, predicted, _ = go(written(table, tmp_path / "data.csv"), key="shop", family="poisson")
    keyed = KeyedRegressor(RAPRegressor(family="poisson"))
    X, keys = features(table), table["shop"].to_pylist()
    expected = keyed.progressive(X, np.where(missing, 1.0, y), keys, (~missing).astype(float))
    np.testing.assert_array_equal(predicted["prediction"].to_numpy(), expected)


def test_classes_as_the_keyed_classifier(tmp_path, go):
    table = shops()
    y = np.array(["low", "mid", "top"])[np.digitize(table["y"].to_numpy(), [2.0, 5.0])]
    table = table.set_column(4, "y", pyarrow.array(y))
    _, predicted, _ = go(written(table, tmp_path / "data.csv"), key="shop", tuner="logrms")
    keyed = KeyedClassifier(RAPClassifier(tuner="logrms"))
    X, keys = features(table), table["shop"].to_pylist()
    expected = keyed.progressive(X, y, keys, classes=["low", "mid", "top"])
    for k, label in enumerate(["low", "mid", "top"]):
        np.testing.assert_array_equal(predicted[f"P({label})"].to_numpy(), expected[:, k])


def test_keys_that_wait_on_disk_come_back_to_the_bit(tmp_path, go, few_first):
    data = written(shops(late="radio"), tmp_path / "data.csv")
    _, all_here, _ = go(data, key="shop", tuner="logrms", out="all")
    _, two_here, _ = go(data, key="shop", tuner="logrms", out="two", max_keys=2)
    assert two_here.equals(all_here)


# --- features and classes that appear ---------------------------------------------------------------------------------


@pytest.mark.parametrize("tuner", ["mixture", "logrms"])
def test_a_feature_that_comes_late_was_zero_before(tuner, tmp_path, go, few_first):
    table = shops(late="radio")
    run, predicted, _ = go(written(table, tmp_path / "data.csv"), key="shop", tuner=tuner, lags={})
    promos = [name.removeprefix("promo = ") for name in run.model.encoder.features[2:]]
    assert promos[-1] == "radio"
    first = table["promo"].to_pylist().index("radio")
    assert first > 50
    keyed = KeyedRegressor(RAPRegressor(tuner=tuner))
    expected = keyed.progressive(features(table, promos), table["y"].to_numpy(), table["shop"].to_pylist())
    np.testing.assert_allclose(predicted["prediction"].to_numpy(), expected, rtol=1e-9, atol=1e-9)


def test_a_class_that_comes_late_is_predicted_by_all_keys(tmp_path, go, few_first):
    """Two classes as if there were no others, until the third comes; then about as well as one model for all rows."""
    table = shops(1500)
    rng = np.random.default_rng(0)
    y = np.where(table["x"].to_numpy() * rng.choice([1, 1, 1, -1], size=1500) > 0, "up", "down")
    late = (np.arange(1500) > 900) & (table["z"].to_numpy() > 0)
    table = table.set_column(4, "y", pyarrow.array(np.where(late, "late", y)))
    run, predicted, trace = go(written(table, tmp_path / "data.csv"), key="shop", tuner="logrms")
    first = int(np.argmax(late))
    keyed = KeyedClassifier(RAPClassifier(tuner="logrms"))
    keys = table["shop"].to_pylist()
    X = features(table)
    two = keyed.progressive(X[:first], y[:first], keys[:first], classes=["down", "up"])
    np.testing.assert_array_equal(predicted["P(up)"].to_numpy()[:first], two[:, 1])
    assert len(run.model.keys.models.stores) == 3
    _, _, alone = go(tmp_path / "data.csv", drop=("shop",), tuner="logrms", out="alone")
    after, without = (np.nan_to_num(each["loss"].to_numpy())[first + 1 :].mean() for each in (trace, alone))
    assert after < 1.1 * without
    assert without < 0.8 * alone["baseline"].to_numpy()[first + 1 :].mean()


# --- lags and baselines are a key's own -------------------------------------------------------------------------------


def test_lags_count_the_rows_of_the_same_key(tmp_path, go):
    table = shops(120)
    run, _, _ = go(written(table, tmp_path / "data.csv"), key="shop", tuner="logrms", lags={"y": [2], "x": [1]})
    encoder = run.model.encoder
    rows = encoder.read(table.to_batches()[0])
    fresh = Run(Options(str(tmp_path / "data.csv"), "y", tmp_path / "b", key="shop", lags={"y": [2], "x": [1]}))
    X = np.concatenate([fresh.model.encoder.encode(rows.part(slice(a, a + 40))).X for a in (0, 40, 80)])
    y, x, keys = (table[name].to_pylist() for name in ("y", "x", "shop"))
    seen = {}
    for i, key in enumerate(keys):
        past = seen.setdefault(key, [])
        past.append(i)
        earlier, last = past[max(len(past) - 3, 0)], past[max(len(past) - 2, 0)]
        earlier = max(i - 1, 0) if len(past) == 1 else earlier  # its own y would be the answer
        assert X[i, encoder.features.index("y lag 2")] == y[earlier]
        assert X[i, encoder.features.index("x lag 1")] == x[last]


def test_no_lag_holds_the_target_of_its_own_row(tmp_path):
    """Each shop has one value for ever, and half of them have no target at first: then nothing gives it away."""
    rng = np.random.default_rng(0)
    shop = np.repeat(np.arange(60), 5)
    level = rng.normal(size=60)[shop]
    gone = (np.arange(300) % 5 < 2) & (shop % 2 == 0)
    y = pyarrow.array(level, mask=gone)
    table = pyarrow.table({"shop": [f"s{k}" for k in shop], "x": rng.normal(size=300), "y": y})
    written(table, tmp_path / "data.csv")
    fresh = Run(Options(str(tmp_path / "data.csv"), "y", tmp_path / "b", key="shop", lags={"y": [1]}))
    cells = fresh.model.encoder.read(next(fresh.data.blocks()).rows)
    X = np.concatenate([fresh.model.encoder.encode(cells.part(slice(a, a + 30))).X for a in range(0, 300, 30)])
    first = [int(np.flatnonzero((shop == k) & ~gone)[0]) for k in range(60)]
    lag = X[:, fresh.model.encoder.features.index("y lag 1")]
    assert not np.any(lag[first[1:]] == level[first[1:]])
    assert (lag[np.array(first) + 1] == level[first]).all()


def test_a_panel_in_the_order_of_time_has_lags(tmp_path):
    days = np.arange("2024-01-01", "2024-03-01", dtype="datetime64[D]").astype(str)
    rows = [(day, shop, i % 5 + (shop == "b")) for i, day in enumerate(days) for shop in "ab"]
    lines = [f"{day},{shop},{i % 3},{y + 0.5}" for i, (day, shop, y) in enumerate(rows)]
    (tmp_path / "data.csv").write_text("\n".join(["day,shop,x,y", *lines]) + "\n")
    alone = Run(Options(str(tmp_path / "data.csv"), "y", tmp_path / "a", drop=("shop",)))
    keyed = Run(Options(str(tmp_path / "data.csv"), "y", tmp_path / "b", key="shop"))
    assert not alone.model.encoder.lags.steps
    assert keyed.model.encoder.lags.steps == {"y": [1, 7]}


def test_baselines_are_those_of_the_key(tmp_path, go):
    table = shops(200)
    _, _, trace = go(written(table, tmp_path / "data.csv"), key="shop", tuner="logrms")
    y, keys = table["y"].to_numpy(), table["shop"].to_pylist()
    of_key = {}
    for i, key in enumerate(keys):
        past = of_key.setdefault(key, [])
        known = y[past] if past else y[:i]
        if len(known):
            assert trace["baseline"][i].as_py() == pytest.approx((y[i] - known.mean()) ** 2 / 2)
            assert trace["persistence"][i].as_py() == pytest.approx((y[i] - known[-1]) ** 2 / 2)
        past.append(i)


# --- interruptions ----------------------------------------------------------------------------------------------------


def arguments(data, out, *more):
    every = ["--checkpoint", f"{out}.ckpt", "--every", "40", "--quiet", "--key", "shop"]
    return ["run", str(data), "--target", "y", "--out", str(out), *every, *more]


@pytest.mark.posix
@pytest.mark.parametrize("more", [["--lags", "y:1,3"], ["--tuner", "logrms", "--max-keys", "3"]], ids=" ".join)
def test_killed_many_times_it_ends_the_same(more, tmp_path):
    data = written(shops(600, late="radio"), tmp_path / "data.csv")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert main(arguments(data, whole, *more)) == 0
    command = [sys.executable, str(KILLER), "1", "12", "0.5", *arguments(data, killed, *more)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    kills, status = map(int, done.stdout.split())
    assert (status, kills >= 8) == (0, True), done.stderr
    names = ("predictions.csv", "trace.parquet", "keys.csv", "model.safetensors", "report.html")
    for name in names:
        assert (whole / name).read_bytes() == (killed / name).read_bytes(), name


def test_a_checkpoint_of_other_keys_is_refused(tmp_path, undrawn, capsys):
    data = written(shops(100), tmp_path / "data.csv")
    assert main(arguments(data, tmp_path / "out", "--tuner", "logrms")) == 0
    before = (tmp_path / "out.ckpt").read_bytes()
    for key, had in ((["--key", "promo"], "promo"), ([], "None")):
        command = arguments(data, tmp_path / "out", "--tuner", "logrms")
        at = command.index("--key")
        assert main([*command[:at], *key, *command[at + 2 :]]) == 2
        error = " ".join(capsys.readouterr().err.split())
        assert f"had --key shop, not {had}" in error
        assert "another --checkpoint" in error
    assert (tmp_path / "out.ckpt").read_bytes() == before


def test_max_keys_may_change_when_a_run_continues(tmp_path, undrawn):
    table = shops(300)
    data = written(table.slice(0, 150), tmp_path / "data.csv")
    assert main(arguments(data, tmp_path / "out", "--tuner", "logrms")) == 0
    written(table, data)
    assert main(arguments(data, tmp_path / "out", "--tuner", "logrms", "--max-keys", "2")) == 0
    assert main(arguments(data, tmp_path / "whole", "--tuner", "logrms")) == 0
    one, other = ((tmp_path / out / "predictions.csv").read_bytes() for out in ("out", "whole"))
    assert one == other


# --- bad input --------------------------------------------------------------------------------------------------------


def test_a_row_without_a_key_is_a_bad_row(tmp_path, undrawn, capsys):
    lines = written(shops(60), tmp_path / "data.csv").read_text().splitlines()
    for i in (21, 41):
        lines[i] = ("" if i == 21 else "  ") + lines[i][lines[i].rindex('",', 0, lines[i].index("0.", 3)) + 1 :]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    command = ["run", str(tmp_path / "data.csv"), "--target", "y", "--key", "shop", "--out", str(tmp_path / "out")]
    assert main([*command, "--tuner", "logrms", "--quiet"]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "line 22" in error
    assert "column 'shop' is empty, where every row needs a key" in error
    assert main([*command, "--tuner", "logrms", "--on-error", "skip", "--quiet"]) == 0
    rows = csv.read_csv(tmp_path / "out" / "predictions.csv")["row"].to_pylist()
    assert rows == [i for i in range(60) if i not in (20, 40)]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--key", "Shop"], "--key Shop is not a column: did you mean 'shop'?"),
        (["--key", "y"], "--key y is in --target too"),
        (["--key", "x", "--keep", "x"], "--key x is in --keep too"),
        (["--key", "shop", "--max-keys", "0"], "--max-keys 0 is not a number of keys: use 1 or more"),
        (["--max-keys", "5"], "--max-keys 5 needs --key"),
    ],
)
def test_options_that_make_no_sense(more, words, tmp_path, capsys):
    data = written(shops(30), tmp_path / "data.csv")
    assert main(["run", str(data), "--target", "y", "--out", str(tmp_path / "out"), *more]) == 2
    assert words in " ".join(capsys.readouterr().err.split())


def test_keys_that_hardly_repeat_are_noted(tmp_path):
    table = shops(200)
    data = written(table.append_column("id", pyarrow.array([f"r{i}" for i in range(200)])), tmp_path / "data.csv")
    notes = Run(Options(str(data), "y", tmp_path / "a", key="id")).model.encoder.notes
    assert any("--key id has 200 keys in the first 200 rows" in note for note in notes)
    notes = Run(Options(str(data), "y", tmp_path / "b", key="shop")).model.encoder.notes
    assert not any("--key" in note for note in notes)


# --- what is written --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A complete run, whose last shop is a new one after two thirds, and loses more at the end."""
    folder = tmp_path_factory.mktemp("keys")
    table = shops(900)
    y, last = table["y"].to_numpy().copy(), np.array(table["shop"].to_pylist()) == f"shop {SHOPS - 1}"
    worse = last & (np.arange(900) > 700)
    y[worse] += 4.0 * np.random.default_rng(0).normal(size=int(worse.sum()))
    table = table.set_column(4, "y", pyarrow.array(y))
    data = written(table, folder / "data.csv")
    assert main(["run", str(data), "--target", "y", "--key", "shop", "--out", str(folder / "out"), "--quiet"]) == 0
    return table, folder


def test_the_table_of_keys_has_the_losses_of_the_trace(finished):
    table, folder = finished
    trace = parquet.read_table(folder / "out" / "trace.parquet")
    of_pooled = progressive(RAPRegressor(), features(table), table["y"].to_numpy())["loss"]
    own, keys = trace["loss"].to_numpy(), np.array(table["shop"].to_pylist())
    found = csv.read_csv(folder / "out" / "keys.csv").to_pylist()
    assert sorted(row["key"] for row in found) == sorted(set(keys))
    gains = [row["gain"] for row in found]
    assert gains == sorted(gains, reverse=True)
    for row in found:
        rows = np.flatnonzero(keys == row["key"])
        scored = rows[rows > 0]
        assert row["rows"] == len(rows)
        assert row["loss"] == pytest.approx(own[scored].mean())
        assert row["pooled"] == pytest.approx(of_pooled[scored].mean())
        assert row["baseline"] == pytest.approx(trace["baseline"].to_numpy()[scored].mean())
        assert row["gain"] == pytest.approx((of_pooled - own)[scored].sum())
        ages = np.arange(len(scored))[::-1]
        assert row["late"] == pytest.approx(np.average(own[scored], weights=0.98**ages))
        assert row["change"] == pytest.approx(row["late"] / row["loss"] - 1)
        assert 0 <= row["weight"] <= 1
    assert max(found, key=lambda row: row["change"])["key"] == f"shop {SHOPS - 1}"


def test_the_report_ranks_keys_and_their_text_is_text(finished):
    _, folder = finished
    page = (folder / "out" / "report.html").read_text()
    keys = page[page.index("<h2>Keys") :]
    keys = keys[: keys.index("<h2>", 5)]
    assert "<b>" not in keys
    assert "&lt;b&gt;&quot;A&quot; &amp; Co&lt;/b&gt;" in keys
    changed = keys[keys.index("Loss has risen most") :]
    assert changed.index(f"shop {SHOPS - 1}") < changed.index("</tr>\n<tr>", changed.index("<tbody>"))


def test_predict_uses_the_models_of_the_keys(finished, capsys):
    table, folder = finished
    X, y, keys = features(table), table["y"].to_numpy(), table["shop"].to_pylist()
    keyed = KeyedRegressor().partial_fit(X, y, keys)
    new = shops(40, seed=5)
    new = new.set_column(0, "shop", pyarrow.array([*new["shop"].to_pylist()[:-3], *["new one"] * 3]))
    data = written(new, folder / "new.csv")
    assert main(["predict", str(folder / "out" / "model.safetensors"), str(data), "--out", str(folder / "p.csv")]) == 0
    assert "has not seen the key 'new one' (3 rows): the pooled model is used" in " ".join(
        capsys.readouterr().err.split()
    )
    predicted = csv.read_csv(folder / "p.csv")
    expected = keyed.predict(features(new, list(dict.fromkeys(table["promo"].to_pylist()))), new["shop"].to_pylist())
    np.testing.assert_array_equal(predicted["prediction"].to_numpy(), expected)
    assert predicted["key"].to_pylist() == new["shop"].to_pylist()


def test_predict_needs_the_keys(finished, capsys):
    _, folder = finished
    data = written(shops(5).drop_columns(["shop"]), folder / "without.csv")
    assert main(["predict", str(folder / "out" / "model.safetensors"), str(data), "--out", str(folder / "q.csv")]) == 2
    assert "there is no column 'shop'" in capsys.readouterr().err


def test_inspect_says_how_many_keys(finished, capsys):
    _, folder = finished
    assert main(["inspect", str(folder / "out" / "model.safetensors")]) == 0
    assert f"{SHOPS} of shop" in " ".join(capsys.readouterr().out.split())


def test_a_run_without_keys_removes_the_table_of_an_earlier_one(finished, tmp_path, undrawn):
    _, folder = finished
    shutil.copytree(folder / "out", tmp_path / "out")
    data = str(folder / "data.csv")
    assert main(["run", data, "--target", "y", "--out", str(tmp_path / "out"), "--tuner", "logrms", "--quiet"]) == 0
    assert not (tmp_path / "out" / "keys.csv").exists()


def test_an_interrupted_run_has_a_table_of_the_keys_so_far(tmp_path, undrawn):
    run = Run(Options(str(written(shops(900), tmp_path / "data.csv")), "y", tmp_path / "out", key="shop"))
    run.interruption.signal = signal.SIGINT
    assert not run.go()
    finish(run)
    rows = csv.read_csv(tmp_path / "out" / "keys.csv")["rows"].to_pylist()
    assert sum(rows) == run.n_rows < 900
