"""Do two versions of streamlasso learn the same, to the bit?

    python benchmarks/bits.py write before.json      # with the one version installed
    python benchmarks/bits.py compare before.json    # with the other; exit status 1 where a stream differs

Twenty streams over all families, memories, penalties, tuners and faces, through the public interface only. Of each, a
checksum of every prediction, of the coefficients and of lam is kept.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from streamlasso import RAPClassifier, RAPRegressor, progressive
from streamlasso.families import Binomial, Gamma, Gaussian, Poisson
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


def regressor(family: str = "gaussian", **settings: Any) -> dict[str, str]:
    X, y = rows(family)
    model = RAPRegressor(family=family, **settings)
    trace = progressive(model, X, y, coef=True)
    chosen = [model.selected_.coef, model.inclusion_] if hasattr(model, "selected_") else []
    return {
        "predictions": checksum(trace.prediction, model.predict(X)),
        "coefficients": checksum(trace.coef, model.coef_, model.intercept_, *chosen),
        "lam": checksum(trace.lam, trace.lam_max, trace.slope, trace.n_active, trace.effective_size),
    }


def classifier(n: int, **settings: Any) -> dict[str, str]:
    X, _ = rows("gaussian")
    model = RAPClassifier(**settings)
    trace = progressive(model, X, classes(X, n), coef=True)
    return {
        "predictions": checksum(trace.loss, trace.prediction, model.predict_proba(X)),
        "coefficients": checksum(trace.coef, model.coef_, model.intercept_),
        "lam": checksum(trace.lam, trace.lam_max, trace.slope),
    }


def now(predictions: Any, coef: Any, lam: Any) -> dict[str, str]:
    return {"predictions": checksum(predictions), "coefficients": checksum(coef), "lam": checksum(lam)}


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
    }


def river_classifier() -> dict[str, str]:
    X, _ = rows("gaussian", seed=8)
    model, told = RiverClassifier(tuner=LogRMS()), []
    for x, label in zip(X, classes(X, 3), strict=True):
        row = {f"x{j}": value for j, value in enumerate(x)}
        told.append(sorted(model.predict_proba_one(row).values()))
        model.learn_one(row, int(label))
    return {"predictions": checksum(np.concatenate(told))}


def network(**settings: Any) -> dict[str, str]:
    X, _ = rows("gaussian", seed=9)
    model = StreamingNetwork(**settings).partial_fit(X)
    return {"predictions": checksum(model.partial_correlation_), "lam": checksum(model.lambda_)}


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
    "network": network,
    "network of mixtures": lambda: network(tuner=Mixture(powers=(0.2, 0.6), runs=4)),
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
        changed = [what for what, value in sums.items() if before[name][what] != value]
        different += bool(changed)
        print(f"{name}: {'differs in ' + ', '.join(changed) if changed else 'same bits'}")
    print(f"{different} of {len(found)} streams differ")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
