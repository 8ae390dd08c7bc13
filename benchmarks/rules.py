"""Two builds of the package on the same streams: what a change of the default's rules does to its losses.

    git worktree add ../before d9b4d89 && (cd ../before && python setup.py build_ext --inplace)
    python benchmarks/rules.py --data DATA --before ../before/src [--now src] [--options '{"starts": 6}'] [--jobs 2]

Losses as on the leaderboard: clipped, after the 50th row. The twelve streams with the last residuals and without, the
29 other streams, the paper's simulation with regimes of random length (Gaussian; without intercept and scaling;
classes: loss above the floor, after row 20, F of `selected_`), and streams with nothing to learn (loss over the running
mean's): events of 2 % with flags, normal and heavy-tailed noise. Differences are paired, with one standard error over
blocks of rows or over draws. Each build runs in processes of its own; `--options` are arguments of `Mixture` for the
new one.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

#: Draws of each simulation, and streams with nothing to learn.
DRAWS, NULLS = 100, 20
BURN_IN_SIMULATED = 20


# --- the streams ------------------------------------------------------------------------------------------------------


def real(data: Path) -> Iterator[dict]:
    from streams import TASKS, load_task

    for name in TASKS:
        task = load_task(name, data)
        kept = dict(family=task.family, X=task.X, y=task.y)
        yield dict(kind="carry on", name=name, **kept)
        yield dict(kind="carry off", name=name, **kept, options={"carry": False})


def others() -> Iterator[dict]:
    from others import tasks

    for task in tasks(2000):
        yield dict(kind="others", name=task.name, family=task.family, X=task.X, y=task.y)


def simulated(draws: int) -> Iterator[dict]:
    from streamlasso.families import Binomial, Gaussian
    from streamlasso.simulate import DENSE, SPARSE, simulate

    orders = ((DENSE, SPARSE, DENSE), (SPARSE, DENSE, SPARSE))
    for kind, family in (("simulation", Gaussian()), ("simulation, classes", Binomial())):
        for seed in range(draws):
            rng = np.random.default_rng(1000 + seed)
            stream = simulate(rng, lengths=rng.integers(60, 151, 3), densities=orders[seed % 2], family=family)
            kept = dict(family=family.name, X=stream.X, y=stream.y, floor=stream.floor, beta=stream.beta)
            yield dict(kind=kind, name=str(seed), **kept)
            if family.name == "gaussian":
                bare = {"fit_intercept": False, "standardize": False}
                yield dict(kind="simulation, bare", name=str(seed), **kept, settings=bare)


def nothing_to_learn(draws: int, n: int = 2000) -> Iterator[dict]:
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 15))
        flags = (rng.random((n, 15)) < 0.05).astype(float)
        yield dict(
            kind="rare events", name=str(seed), family="binomial", X=flags, y=(rng.random(n) < 0.02).astype(float)
        )
        yield dict(kind="normal noise", name=str(seed), family="gaussian", X=X, y=rng.normal(size=n))
        yield dict(kind="heavy tails", name=str(seed), family="gaussian", X=X, y=rng.standard_t(2, n))


def all_streams(data: Path | None, draws: int) -> list[dict]:
    found = [*(real(data) if data else ()), *others(), *simulated(draws), *nothing_to_learn(min(draws, NULLS))]
    return [dict(stream, X=np.ascontiguousarray(stream["X"])) for stream in found]


# --- one build --------------------------------------------------------------------------------------------------------


def learnt(stream: dict, options: dict) -> dict[str, np.ndarray]:
    """The mean that was predicted for each row; in simulations also the loss of each row, and F of the single model."""
    from streamlasso import RAPClassifier, RAPRegressor, progressive
    from streamlasso.tuners import Mixture

    known = Mixture().settings()
    wanted = {name: value for name, value in {**options, **stream.get("options", {})}.items() if name in known}
    settings = dict(stream.get("settings", {}), tuner=Mixture(**wanted))
    classes = stream["family"] == "binomial"
    model = RAPClassifier(**settings) if classes else RAPRegressor(family=stream["family"], **settings)
    if "beta" in stream:
        return followed(model, stream)
    trace = progressive(model, stream["X"], stream["y"], progress=False)
    if not classes:
        return {"means": trace.prediction}
    right = np.exp(-trace.loss)
    return {"means": np.where(stream["y"] > 0, right, 1 - right)}


def followed(model, stream: dict) -> dict[str, np.ndarray]:
    from streamlasso import progressive
    from streamlasso.simulate import f_score

    X, y, beta = stream["X"], stream["y"], stream["beta"]
    loss = progressive(model, X, y, progress=False).loss
    model = type(model)(**model.get_params(deep=False)).partial_fit(X[:1], y[:1], **_classes(stream))
    learner, single = model.learners_[0], np.zeros_like(X)
    for t in range(1, len(y)):
        learner.learn(X[t : t + 1], y[t : t + 1])
        single[t] = learner.selected().coef
    return {"loss": loss, "f": f_score(single, beta)[BURN_IN_SIMULATED:]}


def _classes(stream: dict) -> dict:
    return {"classes": [0.0, 1.0]} if stream["family"] == "binomial" else {}


def work(folder: Path, options: dict) -> None:
    """Of the streams in a folder, those that no other process has taken: their results beside them."""
    for path in sorted(folder.glob("stream*.npy")):
        result = path.with_name(f"result-{os.environ['BUILD']}-{path.name}")
        try:
            result.touch(exist_ok=False)
        except FileExistsError:
            continue
        np.save(result, learnt(np.load(path, allow_pickle=True).item(), options), allow_pickle=True)


def run(build: Path, name: str, folder: Path, options: dict, jobs: int) -> list[dict]:
    """Results of all streams, by as many processes that import the package from `build`."""
    here = str(Path(__file__).parent)
    environment = {**os.environ, "PYTHONPATH": f"{build.resolve()}{os.pathsep}{here}", "BUILD": name}
    command = [sys.executable, __file__, "--work", str(folder), "--options", json.dumps(options)]
    workers = [subprocess.Popen(command, env=environment) for _ in range(jobs)]
    failed = [worker.wait() for worker in workers]
    if any(failed):
        raise SystemExit(f"{build}: a process failed")
    return [np.load(path, allow_pickle=True).item() for path in sorted(folder.glob(f"result-{name}-*.npy"))]


# --- two of them ------------------------------------------------------------------------------------------------------


def scores(stream: dict, result: dict) -> np.ndarray:
    """The loss of each block of rows; of a simulation the mean loss above the floor."""
    from streamlasso.bench.losses import block_losses

    if "floor" in stream:
        return np.array([np.mean((result["loss"] - stream["floor"])[BURN_IN_SIMULATED:])])
    return block_losses(stream["family"], stream["y"], result["means"])


def ratio(now: np.ndarray, before: np.ndarray) -> str:
    """Of the means, with the standard error of the difference."""
    share = now.mean() / before.mean()
    error = np.std(now - share * before, ddof=1) / np.sqrt(len(now)) / before.mean() if len(now) > 1 else np.nan
    return f"{share:.4f} ± {error:.4f}"


def table(streams: list[dict], now: list[dict], before: list[dict]) -> Iterator[dict[str, str]]:
    kinds: dict[str, list[int]] = {}
    for i, stream in enumerate(streams):
        kinds.setdefault(stream["kind"], []).append(i)
    for kind, places in kinds.items():
        new, old = ([scores(streams[i], results[i]) for i in places] for results in (now, before))
        if "floor" in streams[places[0]]:
            a, b = np.concatenate(new), np.concatenate(old)
            yield line(kind, f"{len(places)} draws, above the floor", b.mean(), a.mean(), ratio(a, b))
            f_now, f_old = (np.array([results[i]["f"].mean() for i in places]) for results in (now, before))
            yield line(kind, "F of selected_", f_old.mean(), f_now.mean(), ratio(f_now, f_old))
        elif streams[places[0]]["name"].isdigit():
            yield from null_lines(kind, [streams[i] for i in places], new, old)
        else:
            logs = []
            for i, a, b in zip(places, new, old, strict=True):
                logs.append(np.log(a.mean() / b.mean()))
                yield line(kind, streams[i]["name"], b.mean(), a.mean(), ratio(a, b))
            kept = [log for log, i in zip(logs, places, strict=True) if streams[i]["name"] != "usenet1"]
            yield line(
                kind, "geometric mean", 1.0, np.exp(np.mean(logs)), f"without usenet1 {np.exp(np.mean(kept)):.4f}"
            )


def null_lines(kind: str, streams: list[dict], now: list, before: list) -> Iterator[dict[str, str]]:
    """Against the running mean: the mean over draws (a sum would be that of the largest outlier), and the worst."""
    baseline = np.array([running_mean(stream) for stream in streams])
    a, b = (np.array([blocks.mean() for blocks in each]) / baseline for each in (now, before))
    yield line(kind, "over the running mean", b.mean(), a.mean(), ratio(a, b))
    yield line(kind, "worst draw", b.max(), a.max(), "")


def running_mean(stream: dict) -> float:
    from streamlasso.bench.leaderboard import running_mean_loss
    from streamlasso.bench.task import Task

    return running_mean_loss(Task("", stream["family"], stream["X"], stream["y"], []))


def line(kind: str, name: str, before: float, now: float, change: str) -> dict[str, str]:
    return {"kind": kind, "stream": name, "before": f"{before:.5g}", "now": f"{now:.5g}", "now / before": change}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the directory with the streams' folders; without it, no real ones")
    parser.add_argument("--before", type=Path, help="the folder from which the older build is imported")
    parser.add_argument("--now", type=Path, default=Path(__file__).parents[1] / "src")
    parser.add_argument("--options", type=json.loads, default={}, help="arguments of Mixture, as JSON")
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--kinds", nargs="+", help="some of the kinds of streams alone")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(given.work, given.options)
        return
    streams = [
        stream
        for stream in all_streams(given.data, given.draws)
        if given.kinds is None or stream["kind"] in given.kinds
    ]
    with tempfile.TemporaryDirectory() as folder:
        for i, stream in enumerate(streams):
            np.save(Path(folder) / f"stream{i:05}.npy", stream, allow_pickle=True)
        before = run(given.before, "before", Path(folder), {}, given.jobs)
        now = run(given.now, "now", Path(folder), given.options, given.jobs)
    from common import report

    report("rules", list(table(streams, now, before)))


if __name__ == "__main__":
    main()
