"""What a build of the package does on streams (`rules_streams.py`), in processes of its own that import it.

Results are kept in a folder by what they depend on: the files of the build, the options, the stream. So a build that
has not changed is not run again, and a run that was interrupted goes on.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import numpy as np

#: To be raised when `learnt` changes: what was kept is then run again.
MEASURED = 1

# --- in a process of a build ------------------------------------------------------------------------------------------


def learnt(stream: dict, options: dict) -> dict:
    """The mean predicted for each row, CPU seconds, and the support of `selected_` after each row where asked for.

    Options that the build's `Mixture` does not know are left out; a stream with views that it does not know is skipped.
    """
    from streamlasso import RAPClassifier, RAPRegressor, progressive
    from streamlasso.tuners import Mixture

    known = Mixture().settings()
    if "views" in stream:
        if "views" not in known:
            return {}
        options = {**options, "views": stream["views"]}
    tuner = Mixture(**{name: value for name, value in options.items() if name in known})
    settings = dict(stream.get("settings", {}), tuner=tuner)
    classes = stream["family"] == "binomial"
    model = RAPClassifier(**settings) if classes else RAPRegressor(family=stream["family"], **settings)
    new = type(model)(**model.get_params(deep=False))
    start = time.process_time()
    trace = progressive(model, stream["X"], stream["y"], progress=False)
    found = {"means": trace.prediction, "seconds": time.process_time() - start}
    if classes:
        right = np.exp(-trace.loss)
        found["means"] = np.where(stream["y"] > 0, right, 1 - right)
    if stream.get("follow"):
        found["chosen"] = followed(new, stream["X"], stream["y"])
    return found


def followed(model, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Which features `selected_` has after each row."""
    chosen = np.zeros(X.shape, dtype=bool)
    first = {"classes": [0.0, 1.0]} if hasattr(model, "predict_proba") else {}
    for t in range(len(y)):
        model.partial_fit(X[t : t + 1], y[t : t + 1], **(first if t == 0 else {}))
        chosen[t, model.selected_.support] = True
    return chosen


def work(folder: Path, keep: Path, options: dict) -> None:
    """The streams in a folder that no other process has taken."""
    for path in sorted(folder.glob("*.npy")):
        try:
            path.with_suffix(".taken").touch(exist_ok=False)
        except FileExistsError:
            continue
        stream = np.load(path, allow_pickle=True).item()
        written = keep / f"{stream['key']}.{os.getpid()}.npy"
        np.save(written, learnt(stream, options), allow_pickle=True)
        written.replace(keep / f"{stream['key']}.npy")


# --- from outside -----------------------------------------------------------------------------------------------------


def results(build: Path, streams: Sequence[dict], *, options: dict, jobs: int, keep: Path | None = None) -> list[dict]:
    """Of each stream; `build` is the folder from which the package is imported."""
    with tempfile.TemporaryDirectory() as folder, nullcontext(keep) if keep else tempfile.TemporaryDirectory() as kept:
        kept = Path(kept)
        kept.mkdir(parents=True, exist_ok=True)
        files = fingerprint(build)
        keys = [key(files, stream, options) for stream in streams]
        missing = {k: stream for k, stream in zip(keys, streams, strict=True) if not (kept / f"{k}.npy").exists()}
        longest = sorted(missing.items(), key=lambda item: -len(item[1]["X"]) * item[1]["X"].shape[1] ** 1.5)
        for i, (k, stream) in enumerate(longest):
            np.save(Path(folder) / f"{i:05}.npy", dict(stream, key=k), allow_pickle=True)
        if missing:
            run(build, [__file__, folder, str(kept.resolve()), json.dumps(options)], jobs)
        return loaded(kept, keys)


def results_kept(files: str, streams: Sequence[dict], *, options: dict, keep: Path) -> list[dict] | None:
    """Those of a build that is known by its fingerprint only, if all are there."""
    keys = [key(files, stream, options) for stream in streams]
    return loaded(keep, keys) if all((keep / f"{k}.npy").exists() for k in keys) else None


def loaded(keep: Path, keys: list[str]) -> list[dict]:
    return [np.load(keep / f"{k}.npy", allow_pickle=True).item() for k in keys]


def run(build: Path, command: list[str], jobs: int) -> None:
    """On one thread each: times are comparable, and other processes have their core."""
    here = str(Path(__file__).parent)
    path = f"{build.resolve()}{os.pathsep}{here}"
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    workers = [subprocess.Popen([sys.executable, *command], env=environment) for _ in range(jobs)]
    failed = [worker.wait() for worker in workers]
    if any(failed):
        raise SystemExit(f"{build}: a process failed")


def fingerprint(build: Path) -> str:
    """Differs where a compiled module or a Python file does: also between a source that was changed and its build."""
    data = hashlib.sha256()
    for path in sorted([*build.rglob("*.so"), *build.rglob("*.pyd"), *build.rglob("*.py")]):
        data.update(str(path.relative_to(build)).encode() + path.read_bytes())
    return data.hexdigest()


def key(files: str, stream: dict, options: dict) -> str:
    asked = {name: stream.get(name) for name in ("family", "settings", "views", "follow")}
    data = hashlib.sha256(repr((MEASURED, files, asked, sorted(options.items()), stream["X"].shape)).encode())
    for name in ("X", "y"):
        data.update(np.ascontiguousarray(stream[name], dtype=float).tobytes())
    return data.hexdigest()[:32]


if __name__ == "__main__":
    work(Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3]))
