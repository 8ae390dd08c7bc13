"""Do two versions of streamlasso learn the same, to the bit?

    python benchmarks/bits.py write before.json      # with the one version installed
    python benchmarks/bits.py compare before.json    # with the other; exit status 1 where a stream differs

Streams over all families, memories, penalties, tuners and faces, the files of `run` and the answers of `serve`,
through the public interface only. Of each, checksums are kept: of every prediction, of the coefficients, of lam, of the
bytes of the model. These bytes include its settings, so they may differ where nothing else does.
"""

import hashlib
import http.client
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from pyarrow import csv, parquet, table
from scipy import sparse

from streamlasso import RAPClassifier, RAPRegressor, WideClassifier, WideRegressor, progressive
from streamlasso.families import Binomial, Gamma, Gaussian, Poisson
from streamlasso.keyed import KeyedClassifier, KeyedRegressor
from streamlasso.memories import AdaptiveForgetting, Forgetting, Window
from streamlasso.network import StreamingNetwork
from streamlasso.penalties import ElasticNet, Ridge
from streamlasso.river import RAPClassifier as RiverClassifier
from streamlasso.river import RAPRegressor as RiverRegressor
from streamlasso.simulate import simulate
from streamlasso.tuners import LARS, SGD, Fixed, LogRMS, Mixture

FAMILIES = {"gaussian": Gaussian, "binomial": Binomial, "poisson": Poisson, "gamma": Gamma}


def checksum(*arrays: Any) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(np.asarray(array, dtype=float)).tobytes())
    return digest.hexdigest()


def rows(family: str, seed: int = 0, n_features: int = 12) -> tuple[np.ndarray, np.ndarray]:
    stream = simulate(seed, n_features=n_features, lengths=(150, 150), densities=(0.8, 0.2), family=Gaussian())
    eta = np.einsum("ij,ij->i", stream.X, stream.beta) / 3
    return stream.X, np.maximum(FAMILIES[family]().sample(np.random.default_rng(seed + 1), eta), 1e-9)


def classes(X: np.ndarray, n: int) -> np.ndarray:
    return np.argmax(X[:, :n] + np.random.default_rng(5).gumbel(size=(len(X), n)), axis=1)


def data_of(model: Any) -> str:
    return hashlib.sha256(model.to_bytes()).hexdigest()


def changes_of(model: Any) -> str:
    """The rows of each change, their probability, and the effect of each feature before and after."""
    if not hasattr(model, "changes_"):
        return "none were looked for"
    return checksum(*([each.row, each.detected, *each.probability.values()] for each in model.changes_)) + checksum(
        *(effect for each in model.changes_ for effect in each.features.values())
    )


def regressor(family: str = "gaussian", n_features: int = 12, **settings: Any) -> dict[str, str]:
    X, y = rows(family, n_features=n_features)
    model = RAPRegressor(family=family, **settings)
    trace = progressive(model, X, y, coef=True)
    sums = {
        "predictions": checksum(trace.prediction, model.predict(X)),
        "coefficients": checksum(trace.coef, model.coef_, model.intercept_),
        "lam": checksum(trace.lam, trace.lam_max, trace.slope, trace.n_active, trace.effective_size),
        "changes": changes_of(model),
        "bytes": data_of(model),
    }
    if family != "binomial":
        sums["intervals"] = checksum(model.predict_interval(X, 0.8), model.predict_quantiles(X, [0.05, 0.5]))
    if hasattr(model, "selected_"):
        sums["selected"] = checksum(model.selected_.coef, model.selected_.intercept, model.selected_.since)
        sums["inclusion"] = checksum(model.inclusion_)
    return sums


def classifier(n: int, n_features: int = 12, **settings: Any) -> dict[str, str]:
    X, _ = rows("gaussian", n_features=n_features)
    model = RAPClassifier(**settings)
    trace = progressive(model, X, classes(X, n), coef=True)
    return {
        "predictions": checksum(trace.loss, trace.prediction, model.predict_proba(X)),
        "coefficients": checksum(trace.coef, model.coef_, model.intercept_),
        "lam": checksum(trace.lam, trace.lam_max, trace.slope),
        "changes": changes_of(model),
        "bytes": data_of(model),
    }


def long_batches() -> dict[str, str]:
    """Enough rows for changes, in batches with weights, a third of them 0."""
    rng = np.random.default_rng(4)
    X = rng.normal((0.0, 5.0, 0.0, 0.0, 100.0), size=(1500, 5))
    y = X[:, 0] * np.where(np.arange(1500) < 900, 2.0, -1.0) + X[:, 1] + rng.normal(size=1500)
    weight = rng.uniform(0.5, 2.0, size=1500) * (np.arange(1500) % 3 > 0)
    model, told = RAPRegressor(), []
    for start in range(0, 1500, 70):
        batch = slice(start, start + 70)
        told += [model.predict(X[batch]), model.predict_interval(X[batch])] if start else []
        model.partial_fit(X[batch], y[batch], sample_weight=weight[batch])
    return {
        "predictions": checksum(*told),
        "coefficients": checksum(model.coef_, model.intercept_, model.selected_.coef, model.inclusion_),
        "changes": changes_of(model),
        "bytes": data_of(model),
    }


def saved_halfway(tmp: Path) -> dict[str, str]:
    X, y = rows("poisson", seed=3)
    model = RAPRegressor(family="poisson").partial_fit(X[:170], y[:170])
    model.save(tmp)
    model = RAPRegressor.load(tmp).partial_fit(X[170:], y[170:])
    tmp.unlink()
    return {
        "predictions": checksum(model.predict(X)),
        "coefficients": checksum(model.coef_),
        "lam": checksum(model.lambda_),
        "bytes": data_of(model),
    }


def river_regressor() -> dict[str, str]:
    X, y = rows("gaussian", seed=7)
    model, told = RiverRegressor(), []
    for t, (x, target) in enumerate(zip(X, y, strict=True)):
        row = {f"x{j}": value for j, value in enumerate(x) if j < 6 or t > 100}
        told.append(model.predict_one(row))
        model.learn_one(row, target)
    return {
        "predictions": checksum(told),
        "coefficients": checksum(list(model.coef_.values())),
        "lam": checksum(model.lambda_),
        "intervals": checksum(model.predict_interval_one(row)),
        "bytes": data_of(model),
    }


def river_classifier() -> dict[str, str]:
    X, _ = rows("gaussian", seed=8)
    model, told = RiverClassifier(tuner=LogRMS()), []
    for x, label in zip(X, classes(X, 3), strict=True):
        row = {f"x{j}": value for j, value in enumerate(x)}
        told.append(sorted(model.predict_proba_one(row).values()))
        model.learn_one(row, int(label))
    return {"predictions": checksum(np.concatenate(told)), "bytes": data_of(model)}


def network(**settings: Any) -> dict[str, str]:
    X, _ = rows("gaussian", seed=9)
    model = StreamingNetwork(**settings).partial_fit(X)
    return {
        "predictions": checksum(model.partial_correlation_),
        "lam": checksum(model.lambda_),
        "bytes": data_of(model),
    }


def sparse_rows(n: int = 600, p: int = 5000, draws: int = 12) -> tuple[sparse.csr_array, np.ndarray]:
    """Rows with a dozen features, the first ones most often, and the sum of their effects."""
    rng = np.random.default_rng(11)
    columns = np.minimum(rng.zipf(1.3, n * draws) - 1, p - 1).astype(np.int32)
    X = sparse.csr_array((rng.normal(size=n * draws), columns, np.arange(n + 1, dtype=np.int32) * draws), shape=(n, p))
    X.sum_duplicates()
    return X, np.sum(X.multiply(np.where(np.arange(p) < 300, rng.normal(size=p), 0.0)), axis=1)


def wide(model: Any, n_classes: int = 0) -> dict[str, str]:
    X, eta = sparse_rows()
    noise = np.random.default_rng(12).gumbel(size=(len(eta), max(n_classes, 1)))
    noise[:, 0] += eta
    if n_classes:
        y = np.argmax(noise, axis=1)
    else:
        y = np.maximum(noise[:, 0], 0.0).round() if model.family == "poisson" else noise[:, 0]
    told = model.progressive(X[:500], y[:500])
    after = model.predict_proba(X[500:]) if n_classes else model.predict(X[500:])
    coef = model.coef_
    values = [each.data for each in coef] if isinstance(coef, list) else [sparse.csr_array(coef).data]
    return {
        "predictions": checksum(told, after),
        "coefficients": checksum(*values, model.intercept_),
        "bytes": data_of(model),
    }


def keyed(model: Any, n_classes: int = 0) -> dict[str, str]:
    X, y = rows("gaussian", seed=13, n_features=4)
    keys = np.random.default_rng(14).integers(7, size=len(y))
    y = y + 0.3 * keys * X[:, 1]
    if n_classes:
        told = model.progressive(X[:250], classes(X, n_classes)[:250], keys[:250], classes=np.arange(n_classes))
        after = model.predict_proba(X, keys)
    else:
        told, after = model.progressive(X[:250], y[:250], keys[:250]), model.predict(X, keys)
    return {
        "predictions": checksum(told, after),
        "coefficients": checksum(*(model.model(key).coef_ for key in range(7))),
        "weights": checksum([model.weight(key) for key in range(7)]),
        "bytes": data_of(model),
    }


def written_table(path: Path, n: int = 400) -> None:
    """Numbers with holes, text with a level that comes late, dates, and a response that changes its mind."""
    rng = np.random.default_rng(15)
    x, z, noise = rng.normal(size=(3, n))
    t = np.arange(n)
    city = np.array(["Rome", "Oslo", "Lima"])[rng.integers(2, size=n) + (t > n // 2)]
    columns = {
        "when": np.datetime64("2024-01-01T00:00:00") + 3600 * t.astype("timedelta64[s]"),
        "x": x,
        "z": [None if hole else value for hole, value in zip(rng.random(n) < 0.05, z.tolist(), strict=True)],
        "city": city,
        "y": x * np.where(t < 2 * n // 3, 1, -1) + 2.0 * (city == "Lima") + 0.5 * noise,
    }
    csv.write_csv(table(columns), path)


def run(*options: str) -> dict[str, str]:
    """The numbers in the files of a run."""
    with TemporaryDirectory() as folder:
        data, out = Path(folder, "data.csv"), Path(folder, "out")
        written_table(data)
        command = [sys.executable, "-m", "streamlasso", "run", str(data), "--target", "y", "--out", str(out), "--quiet"]
        subprocess.run([*command, *options], check=True)
        sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(out.glob("*.csv"))}
        for path in sorted(out.glob("*.parquet")):
            found = parquet.read_table(path)
            names = [name for name in found.column_names if str(found.schema.field(name).type) in ("double", "int64")]
            sums[path.name] = checksum(*(found[name].to_numpy() for name in names)) + " ".join(names)
        models = [path for path in sorted(out.glob("model*")) if path.is_file()]
        return sums | {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in models}


def service() -> dict[str, str]:
    """Answers over HTTP: rows one by one and in batches."""
    X, y = rows("gaussian", seed=16, n_features=5)
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "streamlasso", "serve", "--store", str(Path(folder, "store")), "--port", "0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            ports = (re.search(r"running on http://[^:]+:(\d+)", line) for line in process.stdout or ())
            port = next(int(found[1]) for found in ports if found)
            return answers(http.client.HTTPConnection("127.0.0.1", port, timeout=60), X, y)
        finally:
            process.terminate()
            process.wait()


def answers(connection: http.client.HTTPConnection, X: np.ndarray, y: np.ndarray) -> dict[str, str]:
    def ask(method: str, path: str, body: Any) -> Any:
        connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        data = answer.read()
        if answer.status >= 300:
            raise RuntimeError(data)
        return json.loads(data)

    ask("PUT", "/models/m", {})
    records = [{f"x{j}": value for j, value in enumerate(x)} for x in X.tolist()]
    learnt, predicted = [], []
    for row, target in zip(records[:60], y.tolist(), strict=False):
        predicted.append(ask("POST", "/models/m/predict", {"row": row}))
        learnt.append(ask("POST", "/models/m/learn", {"row": row, "y": target}))
    learnt.append(ask("POST", "/models/m/learn", {"rows": records[60:], "y": y[60:].tolist()}))
    predicted.append(ask("POST", "/models/m/predict", {"rows": records}))
    return {"learn": numbers_in(learnt), "predict": numbers_in(predicted)}


def numbers_in(answer: Any) -> str:
    """The numbers of JSON with fractions, in their order: no times, no ids."""
    return hashlib.sha256(" ".join(re.findall(r"-?\d+\.\d+(?:e-?\d+)?", json.dumps(answer))).encode()).hexdigest()


STREAMS: dict[str, Callable[[], dict[str, str]]] = {
    "default, gaussian": regressor,
    "default, binomial": lambda: regressor("binomial"),
    "default, poisson": lambda: regressor("poisson"),
    "default, gamma": lambda: regressor("gamma"),
    "default, two classes": lambda: classifier(2),
    "default, four classes": lambda: classifier(4),
    "mixture in a window": lambda: regressor(memory=Window(60), tuner=Mixture(powers=(0.0, 0.5, 1.0))),
    "few runs": lambda: regressor(tuner=Mixture(factors=(0.9,), runs=4)),
    "adaptive forgetting": lambda: regressor(memory=AdaptiveForgetting((0.9, 0.98, 1.0)), tuner=LogRMS()),
    "log rms": lambda: regressor(memory=0.97, tuner=LogRMS()),
    "log rms, window, gamma": lambda: regressor("gamma", memory=Window(80), tuner=LogRMS()),
    "sgd, diagonal": lambda: regressor(memory=0.95, tuner=SGD(0.01), gradient="diagonal"),
    "lars, previous": lambda: regressor(memory=0.95, tuner=LARS(0.01), curvature="previous", lambda_init=0.1),
    "fixed, poisson, batches": lambda: regressor("poisson", memory=1.0, tuner=Fixed(0.05), batch_size=7, history=10),
    "elastic net, binomial": lambda: regressor("binomial", memory=0.98, penalty=ElasticNet(0.5), tuner=LogRMS()),
    "ridge, free feature": lambda: regressor(
        memory=Forgetting(0.99), penalty=Ridge(), tuner=LogRMS(), penalty_factor=[0.0] + [1.0] * 11, standardize=False
    ),
    "saved halfway": lambda: saved_halfway(Path("bits.safetensors")),
    "river, features that appear": river_regressor,
    "river, three classes": river_classifier,
    "default, p = 70": lambda: regressor(n_features=70),
    "default, p = 150, binomial": lambda: regressor("binomial", n_features=150),
    "log rms, p = 130": lambda: regressor(n_features=130, memory=0.99, tuner=LogRMS()),
    "lars, p = 70, window, poisson": lambda: regressor("poisson", 70, memory=Window(90), tuner=LARS(0.01)),
    "log rms, three classes, p = 70": lambda: classifier(3, 70, tuner=LogRMS()),
    "changes, batches, weights": long_batches,
    "network": network,
    "network of mixtures": lambda: network(tuner=Mixture(powers=(0.2, 0.6), runs=4)),
    "sparse": lambda: wide(WideRegressor()),
    "sparse, poisson": lambda: wide(WideRegressor("poisson", memory="second_sight")),
    "sparse, two classes": lambda: wide(WideClassifier(), 2),
    "sparse, three classes, few features": lambda: wide(WideClassifier(max_features=50), 3),
    "keys": lambda: keyed(KeyedRegressor()),
    "keys, log rms, not pooled": lambda: keyed(KeyedRegressor(RAPRegressor(tuner=LogRMS()), pooled=False)),
    "keys, three classes": lambda: keyed(KeyedClassifier(), 3),
    "run": run,
    "run, keys": lambda: run("--key", "city", "--coverage", "0.8"),
    "run, text": lambda: run("--text", "city"),
    "service": service,
}


def results() -> Iterator[tuple[str, dict[str, str]]]:
    for name, learn in STREAMS.items():
        yield name, learn()


def main(action: str, file: str) -> int:
    found = dict(results())
    if action == "write":
        Path(file).write_text(json.dumps(found, indent=1))
        return 0
    before, different = json.loads(Path(file).read_text()), 0
    for name, sums in found.items():
        changed = [what for what in before[name] | sums if before[name].get(what) != sums.get(what)]
        different += bool(changed)
        print(f"{name}: {'differs in ' + ', '.join(changed) if changed else 'same bits'}")
    print(f"{different} of {len(found)} streams differ")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
