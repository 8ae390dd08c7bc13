"""Many models in one process: what a key costs in time and memory, and what the pooled model is worth to a new one.

Times are CPU seconds of the process, ratios are measured side by side in one run. `--million` adds a million keys.
"""

import argparse
import ctypes
import gc
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil

from common import report
from streamlasso import RAPRegressor
from streamlasso.keyed import KeyedRegressor

P = 20
SETTINGS = {"LogRMS": {"memory": 0.99, "tuner": "logrms"}, "default": {}}

Line = dict[str, str]


def line(what: str, value: str, must: str = "") -> Line:
    return {"what": what, "measured": value, "must": must}


def cpu(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def stream(n_rows: int, p: int = P) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, p))
    return X, X[:, 0] - X[:, 1] + rng.normal(size=n_rows)


# --- one model --------------------------------------------------------------------------------------------------------


def packing() -> Iterator[Line]:
    """A state out of a learner and back in, against one learnt row."""
    for name, most in (("LogRMS", 3), ("default", 1)):
        X, y = stream(4000)
        model = RAPRegressor(**SETTINGS[name]).partial_fit(X, y)
        ratios = [out_and_in(model) / (cpu(lambda m=model, X=X, y=y: m.partial_fit(X, y)) / len(X)) for _ in range(5)]
        yield line(f"pack and unpack over a learnt row, {name}", f"{np.median(ratios):.2f}x", f"{most}x")


def out_and_in(model: RAPRegressor, times: int = 1000) -> float:
    (learner,) = model.learners_
    return cpu(lambda: [learner.unpack(learner.pack()) for _ in range(times)]) / times


def resident(n_models: int = 200) -> Iterator[Line]:
    """Memory of many models over the bytes of their states: estimators, and the models of as many keys."""
    X, y = stream(300)
    for name, settings in SETTINGS.items():
        before = held()
        models = [RAPRegressor(**settings).partial_fit(X, y) for _ in range(n_models)]
        state = sum(len(model.learners_[0].pack()) for model in models)
        yield line(f"resident over state, {n_models} estimators, {name}", f"{(held() - before) / state:.2f}x", "1.3x")
        models = None
        before = held()
        keys = np.tile(np.arange(n_models), 60)
        X2, y2 = stream(len(keys))
        keyed = KeyedRegressor(RAPRegressor(**settings), pooled=False).partial_fit(X2, y2, keys)
        ratio = (held() - before - X2.nbytes - y2.nbytes - keys.nbytes) / keyed.n_bytes
        yield line(f"resident over state, {n_models} keys, {name}", f"{ratio:.2f}x", "1.3x")
        yield line(f"bytes of a key, {name}", f"{keyed.n_bytes / n_models:,.0f}")


def held() -> int:
    """What is in use: memory that was freed goes back to the system first."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    return psutil.Process().memory_info().rss


# --- keys -------------------------------------------------------------------------------------------------------------


def keyed(n_keys: int, rows_each: int) -> Iterator[Line]:
    """Rows round-robin, all in one call, over the plain batch row."""
    X, y = stream(n_keys * rows_each)
    keys = np.tile(np.arange(n_keys), rows_each)
    for pooled in (False, True):
        plain = RAPRegressor(**SETTINGS["LogRMS"]).partial_fit(X[:3000], y[:3000])
        models = KeyedRegressor(RAPRegressor(**SETTINGS["LogRMS"]), pooled=pooled).partial_fit(X, y, keys)
        ratios = []
        for _ in range(3):
            row = cpu(lambda plain=plain: plain.partial_fit(X, y)) / len(X)
            ratios.append(cpu(lambda models=models: models.partial_fit(X, y, keys)) / len(X) / row)
        what = f"{n_keys:,} keys, {rows_each} rows each in a call, {'with' if pooled else 'without'} the pooled model"
        yield line(what, f"{np.median(ratios):.2f}x", "2x")


def sizes(n_keys: int = 20, rows_each: int = 100) -> Iterator[Line]:
    """What to expect of other numbers of features: bytes of a key, rows of one core with the pooled model."""
    for p in (8, 20, 50, 100):
        X, y = stream(n_keys * rows_each, p)
        keys = np.tile(np.arange(n_keys), rows_each)
        for name, settings in SETTINGS.items():
            models = KeyedRegressor(RAPRegressor(**settings)).partial_fit(X, y, keys)
            seconds = min(cpu(lambda m=models, X=X, y=y, k=keys: m.partial_fit(X, y, k)) for _ in range(3))
            what = f"{models.n_bytes / n_keys / 1000:,.1f} kB, {len(X) / seconds:,.0f} rows a second and core"
            yield line(f"a key, p={p}, {name}", what)


def million(n_keys: int = 1_000_000, p: int = 8) -> Iterator[Line]:
    X, y = stream(n_keys, p)
    keys, before = np.arange(n_keys), held()
    models = KeyedRegressor(RAPRegressor(memory=0.99, tuner="logrms"), pooled=False)
    seconds = cpu(lambda: [models.partial_fit(X, y, keys) for _ in range(3)])
    yield line(f"{n_keys:,} keys, p={p}: rows a second and core", f"{3 * n_keys / seconds:,.0f}")
    yield line("resident", f"{(held() - before) / 1e9:.2f} GB, {(held() - before) / models.n_bytes:.2f}x of the state")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "models"
        seconds = cpu(lambda: models.save(path))
        yield line("saved", f"{seconds:.1f} s of CPU, {os.path.getsize(path) / 1e9:.2f} GB")
        models = None
        gc.collect()
        found: list[KeyedRegressor] = []
        seconds = cpu(lambda: found.append(KeyedRegressor.load(path)))
        yield line("loaded", f"{seconds:.1f} s of CPU, {len(found[0]):,} keys")


# --- the pooled start -------------------------------------------------------------------------------------------------


def chain(n_shops: int, level: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shops with shared and own effects; half of them open late. `level`: how far the shops' means are apart."""
    rng = np.random.default_rng(seed)
    own = rng.normal(size=8) + 0.3 * rng.normal(size=(n_shops, 8))
    mean = level * rng.normal(size=n_shops)
    opens = np.where(np.arange(n_shops) < n_shops // 2, 0, rng.integers(1, 400, size=n_shops))
    shop = np.concatenate([np.flatnonzero(opens <= day) for day in range(1000)])
    X = rng.normal(size=(len(shop), 8))
    return X, mean[shop] + (X * own[shop]).sum(axis=1) + rng.normal(size=len(shop)), shop


def panel(data: Path, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Series side by side as rows: the last five values of a series and the mean of all, for its next value."""
    import pandas as pd

    values = pd.read_csv(data / name / f"{name}.csv.gz").select_dtypes("number").to_numpy(float)
    values = values if name == "frm_returns" else 100.0 * np.diff(np.log(values), axis=0)
    rows = [
        (*values[t - 5 : t, j], np.nanmean(values[t - 1]), values[t, j], j)
        for t in range(5, len(values))
        for j in range(values.shape[1])
    ]
    found = np.array([row for row in rows if np.all(np.isfinite(row))])
    return np.ascontiguousarray(found[:, :-2]), np.ascontiguousarray(found[:, -2]), found[:, -1].astype(int)


def start_of(name: str, X: np.ndarray, y: np.ndarray, keys: np.ndarray) -> Iterator[Line]:
    """Squared error of keys with the pooled model over that of keys on their own."""
    model = RAPRegressor(memory=0.998, tuner="logrms")
    with_pooled, alone = (
        (y - KeyedRegressor(model, pooled=pooled).progressive(X, y, keys)) ** 2 for pooled in (True, False)
    )
    rank = np.empty(len(keys), dtype=int)
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    rank[order] = np.arange(len(keys)) - np.repeat(starts, np.diff(np.append(starts, len(keys))))
    for what, chosen, must in (("the first 50 rows", rank < 50, ".70"), ("after 500", rank >= 500, "1")):
        ratio = with_pooled[chosen].sum() / alone[chosen].sum()
        yield line(f"{name}: {what}, pooled over separate", f"{ratio:.3f}", must)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer keys")
    parser.add_argument("--million", action="store_true", help="a million keys as well (3 GB)")
    parser.add_argument("--sizes", action="store_true", help="a key's bytes and rows for other numbers of features")
    parser.add_argument("--data", type=Path, help="the folder with the development streams")
    options = parser.parse_args()
    n_keys, n_shops = (5_000, 50) if options.quick else (100_000, 500)
    if options.sizes:
        report("many_sizes", list(sizes()))
        return
    lines = [*packing(), *resident(), *keyed(n_keys, 10), *keyed(n_keys, 1)]
    for level in (0.0, 1.0):
        lines += start_of(f"{n_shops} shops, means {level:g} apart", *chain(n_shops, level))
    if options.data:
        for name in ("frm_returns", "exchange_rate"):
            lines += start_of(name, *panel(options.data, name))
    if options.million:
        lines += million()
    report("many", lines)


if __name__ == "__main__":
    main()
