"""The skeletons in examples/extend run everywhere a built-in part does: faces, traces, pickle, networks, `run`."""

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from streamlasso import RAPClassifier, RAPRegressor, compact, families, penalties, progressive, tuners
from streamlasso.cli import main
from streamlasso.data.sources import opening
from streamlasso.network import StreamingNetwork
from streamlasso.river import RAPRegressor as RiverRegressor

SKELETONS = Path(__file__).parent.parent / "examples" / "extend"
sys.path.insert(0, str(SKELETONS))

from family import Robust  # noqa: E402
from memory import HalfLife  # noqa: E402
from penalty import Parts  # noqa: E402
from source import Npy  # noqa: E402
from tuner import Momentum  # noqa: E402

PARTS = {"family": Robust(), "memory": HalfLife(30), "penalty": Parts(), "tuner": Momentum()}
every_part = pytest.mark.parametrize("setting", [{name: part} for name, part in PARTS.items()], ids=PARTS)


@pytest.fixture
def stream():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    return X, X[:, 0] - X[:, 2] + 0.5 * rng.normal(size=80)


@every_part
@pytest.mark.parametrize("tuner", ["mixture", "logrms"])
def test_in_an_estimator(setting, tuner, stream):
    model = RAPRegressor(**{"tuner": tuner, **setting}).fit(*stream)
    assert model.coef_[0] > 0.3 and model.coef_[2] < -0.3
    assert np.isfinite(clone(model).partial_fit(*stream).predict(stream[0])).all()


@every_part
def test_in_a_classifier(setting, stream):
    if "family" in setting:
        pytest.skip("a classifier has the binomial family")
    X, y = stream
    assert RAPClassifier(**setting).fit(X, y > 0).score(X, y > 0) > 0.6


@every_part
def test_in_a_trace(setting, stream, tmp_path):
    trace = progressive(RAPRegressor(**setting), *stream)
    assert trace.mean_loss < trace.mean_baseline
    trace.plot().savefig(tmp_path / "trace.png")


@every_part
def test_in_river(setting, stream):
    model, river = RAPRegressor(**setting).fit(*stream), RiverRegressor(**setting)
    for x, y in zip(*stream, strict=True):
        river.learn_one(dict(zip("abcd", x, strict=True)), y)
    assert list(river.coef_.values()) == model.coef_.tolist()


@every_part
def test_in_a_network(setting, stream):
    model = StreamingNetwork(**setting).fit(np.column_stack(stream))
    assert model.adjacency_[0, 4] and model.adjacency_[2, 4]


@every_part
def test_pickled_and_continued_it_gives_the_same_bits(setting, stream):
    X, y = stream
    whole = RAPRegressor(**setting).fit(X, y)
    half = pickle.loads(pickle.dumps(RAPRegressor(**setting).fit(X[:40], y[:40])))
    assert (half.partial_fit(X[40:], y[40:]).coef_ == whole.coef_).all()


@every_part
def test_it_is_a_value(setting):
    (part,) = setting.values()
    assert pickle.loads(pickle.dumps(part)) == part
    assert eval(repr(part), {type(part).__name__: type(part)}) == part


@pytest.mark.parametrize(
    ("words", "part"),
    [(families.FAMILIES, Robust), (penalties.PENALTIES, Parts), (tuners.TUNERS, Momentum)],
    ids=["family", "penalty", "tuner"],
)
def test_one_line_makes_it_a_word(words, part, stream, monkeypatch):
    monkeypatch.setitem(words, part.name, part)
    setting = {part.__mro__[1].__name__.lower(): part.name}
    assert RAPRegressor(**setting).fit(*stream).n_seen_ == 80


def test_one_line_puts_a_family_into_the_command_and_its_report(stream, tmp_path, monkeypatch):
    monkeypatch.setitem(families.FAMILIES, Robust.name, Robust)
    monkeypatch.setitem(compact.PARTS, "Robust", Robust)
    X, y = stream
    table = "\n".join(",".join(map(str, row)) for row in np.column_stack([X, y]))
    (tmp_path / "stream.csv").write_text("a,b,c,d,y\n" + table, encoding="utf-8")
    out = tmp_path / "run"
    main(["run", str(tmp_path / "stream.csv"), "--target", "y", "--family", Robust.name, "--out", str(out)])
    assert Robust.loss_name in (out / "report.html").read_text(encoding="utf-8")


def test_one_line_makes_a_format_readable(stream, tmp_path, monkeypatch):
    """The same rows as CSV and in the new format give the same predictions."""
    monkeypatch.setattr(opening, "SOURCES", [Npy, *opening.SOURCES])
    table = np.column_stack(stream)
    np.save(tmp_path / "stream.npy", table)
    rows = [",".join(map(repr, row)) for row in table.tolist()]
    (tmp_path / "stream.csv").write_text("\n".join(["x0,x1,x2,x3,x4", *rows]), encoding="utf-8")
    for name in ("npy", "csv"):
        main(["run", str(tmp_path / f"stream.{name}"), "--target", "x4", "--out", str(tmp_path / name), "--quiet"])
    npy, csv = ((tmp_path / name / "predictions.csv").read_text(encoding="utf-8") for name in ("npy", "csv"))
    assert npy == csv
