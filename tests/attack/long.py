"""The long attack: `make attack`. Each kind of attack has its share of the time, in a process of its own.

python tests/attack/long.py --minutes 60 [NAMES]: prints a table of attempts and failures. A process that dies, hangs or
raises is a failure. Exit status 1 if there was one. The seed is the time, and is printed: --seed repeats.
"""

import argparse
import errno
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from unittest import mock

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from attack.disk import _File, recorded
from streamlasso import RAPClassifier, RAPRegressor, progressive
from streamlasso.cli import main
from streamlasso.memories import Window
from streamlasso.tuners import LogRMS
from support.forgery import forged

NUMBERS = [np.nan, np.inf, -np.inf, 0.0, -1.0, 1.0, 1e308, -1e308, 5e-324, 2.0**200, -0.0]
COUNTS = [-(2**63), -1, 0, 1, 2, 63, 64, 65, 2**31, 2**62, 2**63 - 1]
CELLS = [
    "",
    "1",
    "-1.5",
    "inf",
    "1e400",
    "9" * 400,
    "nan",
    "[/b]",
    "=1+1",
    "\x1b[2J",
    "a,b",
    'q"q',
    "é",
    "\ud800",
    "x" * 5000,
]


def quietly_drawn():
    """Figures take longer than all else."""
    import streamlasso.report.history
    import streamlasso.run.finish

    streamlasso.run.finish.plot_summary = lambda summary: None
    streamlasso.run.finish.drawn = lambda figure, form: b"a picture"
    streamlasso.report.history.drawn = lambda figure, form: b"a picture"


# --- the attacks: until the time is over, each yields whether one attempt was withstood -------------------------------


def forged_files(rng, folder):
    """Checkpoints with other numbers, other words or other bytes: refused, or loaded and usable."""
    X = np.random.default_rng(0).normal(size=(30, 3))
    models = [
        RAPRegressor().fit(X, X[:, 0]),
        RAPRegressor(tuner=LogRMS(), memory=Window(10)).fit(X, X[:, 0]),
        RAPRegressor("poisson", tuner=LogRMS()).fit(X, np.arange(30.0)),
        RAPClassifier(tuner=LogRMS()).fit(X, np.arange(30) % 3),
    ]
    files = [(type(model), model.to_bytes()) for model in models]
    while True:
        kind, data = files[rng.integers(len(files))]
        bad = (
            forged(data, lambda record, tensors: _edit(rng, record, tensors))
            if rng.random() < 0.7
            else _bytes(rng, data)
        )
        try:
            model = kind.from_bytes(bad)
        except ValueError:
            yield True
            continue
        with np.errstate(all="ignore"):
            try:
                model.predict(X[:2])
                model.partial_fit(X[:3], model.predict(X[:3]) if kind is RAPClassifier else np.ones(3))
            except (ValueError, RuntimeError):
                pass
        yield True


def _edit(rng, record, tensors):
    for _ in range(rng.integers(1, 4)):
        if rng.random() < 0.7:
            name = sorted(tensors)[rng.integers(len(tensors))]
            flat = tensors[name].reshape(-1)
            if flat.size:
                flat[rng.integers(flat.size)] = rng.choice(NUMBERS if flat.dtype.kind == "f" else COUNTS)
        else:
            place = record[["settings", "labels", "engine"][rng.integers(3)]]
            if place:
                place[sorted(place)[rng.integers(len(place))]] = [
                    None,
                    -1,
                    1e308,
                    "x",
                    [],
                    {"type": "tuple", "items": []},
                ][rng.integers(6)]


def _bytes(rng, data):
    data = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        data[rng.integers(len(data))] = rng.integers(256)
    return bytes(data[: rng.integers(1, len(data) + 1)] if rng.random() < 0.3 else data)


def hostile_rows(rng, folder):
    """Files of 50 to 5,000 rows with hostile cells, in three formats: read, skipped or refused in one line."""
    while True:
        n = int(rng.choice([50, 500, 5000]))
        names = ["x", str(rng.choice(["z", "[/b]", "=z", "a,b"])), "y"]
        rows = [[f"{value:.3f}" for value in row] for row in rng.normal(size=(n, 3))]
        for _ in range(rng.integers(1, n // 3)):
            rows[rng.integers(n)][rng.integers(3)] = CELLS[rng.integers(len(CELLS))]
        path = folder / f"data.{['csv', 'jsonl', 'tsv'][rng.integers(3)]}"
        _write(path, names, rows)
        errors = StringIO()
        with redirect_stderr(errors):
            places = ["--target", "y", "--out", str(folder / "out")]
            status = main(["run", str(path), *places, "--on-error", "skip", "--quiet", "--tuner", "logrms"])
        fine = status in (0, 2) and errors.getvalue().count("\n") <= 1 and "\x1b" not in errors.getvalue()
        for _ in range(n):
            yield fine


def _write(path, names, rows):
    if path.suffix == ".jsonl":
        lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
    else:
        delimiter = "," if path.suffix == ".csv" else "\t"
        quoted = [[f'"{cell}"' if delimiter in cell else cell for cell in row] for row in [names, *rows]]
        lines = [delimiter.join(row) for row in quoted]
    path.write_text("\n".join(lines) + "\n", errors="replace")


def kills(rng, folder):
    """SIGKILL at a random moment of a run, again and again; then it ends like one that was never killed."""
    while True:
        data, out = folder / "data.csv", folder / "out"
        family = str(rng.choice(["gaussian", "binomial", "poisson", "gamma"]))
        _write(data, ["x", "z", "y"], _rows_of(rng, family))
        form = str(rng.choice(["csv", "tsv", "jsonl", "parquet"]))
        more = ["--every", str(rng.integers(10, 60)), "--tuner", str(rng.choice(["logrms", "mixture"]))]
        places = ["--out", str(out), "--checkpoint", str(folder / "ckpt"), "--predictions", str(out / f"p.{form}")]
        command = ["run", str(data), "--target", "y", "--family", family, *places, *more, "--quiet"]
        begun = time.monotonic()
        if main(command):
            yield False
        longest, whole = time.monotonic() - begun, _files(folder)
        _clear(folder)
        hits = 0
        for _ in range(6):
            hits += _killed(command, rng.uniform(0, longest))
        status = main(command)
        fine = status == 0 and _files(folder) == whole
        for _ in range(hits):
            yield fine
        _clear(folder)


def _rows_of(rng, family):
    X = rng.normal(size=(200, 2))
    y = {
        "gaussian": X[:, 0],
        "binomial": (X[:, 0] > 0).astype(int),
        "poisson": rng.poisson(np.exp(X[:, 0])),
        "gamma": np.exp(X[:, 0]),
    }[family]
    digits = ".4f" if family in ("gaussian", "gamma") else "d"
    return [[f"{a:.4f}", f"{b:.4f}", f"{c:{digits}}"] for (a, b), c in zip(X.tolist(), y.tolist(), strict=True)]


def _killed(command, seconds):
    child = os.fork()
    if child == 0:
        os._exit(main(command))
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def _files(folder):
    """What a run leaves; the parts of Parquet predictions may be cut elsewhere, and count as one table."""
    from pyarrow import parquet

    parts = sorted(folder.rglob("part-*.parquet"))
    tables = [str(parquet.read_table(part).to_pylist()) for part in parts]
    rows = "".join(tables).replace("][", ", ")
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path not in parts}
    return {**files, "parts": rows}


def _clear(folder):
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.name != "data.csv":
            path.rmdir() if path.is_dir() else path.unlink()


def disk_full(rng, folder):
    """No room at one of the writes of a run: one line, nothing that looks whole; then the command ends as it should."""
    data, out = folder / "data.csv", folder / "out"
    _write(data, ["x", "z", "y"], _rows_of(rng, "gaussian"))
    places = ["--out", str(out), "--checkpoint", str(folder / "ckpt")]
    command = ["run", str(data), "--target", "y", *places, "--every", "50", "--tuner", "logrms", "--quiet"]
    with recorded(folder) as log:
        assert main(command) == 0
    whole, n_writes = _files(folder), sum(event[0] == "write" for event in log)
    while True:
        for fatal in range(n_writes):
            _clear(folder)
            calls = []

            def write(self, data, fatal=fatal, calls=calls, write=_File.write):
                calls.append(1)
                if len(calls) > fatal:
                    raise OSError(errno.ENOSPC, "No space left on device")
                return write(self, data)

            errors = StringIO()
            with redirect_stderr(errors), recorded(folder), mock.patch.object(_File, "write", write):
                try:
                    status = main(command)
                except OSError:
                    status = 1
            left = list(folder.rglob(".streamlasso-*.tmp"))
            again = main(command)
            yield status == 2 and not left and again == 0 and _files(folder) == whole


def threads(rng, folder):
    """One thread learns, others predict, copy and pickle: all of them see the model after a whole number of rows."""
    X = rng.normal(size=(300, 4))
    y = X[:, 0] + rng.normal(size=300)
    sys.setswitchinterval(1e-5)
    for make in _forever([lambda: RAPRegressor(tuner=LogRMS()), RAPRegressor, lambda: RAPClassifier(tuner=LogRMS())]):
        target = np.digitize(y, [-0.5, 0.5]) if make().__class__ is RAPClassifier else y
        one, possible = make().partial_fit(X[:20], target[:20]), set()
        possible.add(one.predict(X[:2]).tobytes())
        for t in range(20, 300):
            possible.add(one.partial_fit(X[t : t + 1], target[t : t + 1]).predict(X[:2]).tobytes())
        model = make().partial_fit(X[:20], target[:20])
        thread = threading.Thread(target=model.partial_fit, args=(X[20:], target[20:]))
        thread.start()
        while thread.is_alive():
            yield model.predict(X[:2]).tobytes() in possible
            yield pickle.loads(pickle.dumps(model)).predict(X[:2]).tobytes() in possible
        thread.join()


def _forever(makes):
    while True:
        yield from makes


def signals(rng, folder):
    """Ctrl-C at a random moment: the rows that it tells are the rows that were learnt."""
    X = rng.normal(size=(40_000, 4))
    y = X[:, 0] + rng.normal(size=40_000)
    # What a shell starts in the background ignores Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for learn in _forever([lambda model: model.partial_fit(X, y), lambda model: progressive(model, X, y)]):
        model, again = RAPRegressor(tuner=LogRMS()), RAPRegressor(tuner=LogRMS())
        timer = threading.Timer(rng.uniform(0, 0.15), os.kill, (os.getpid(), signal.SIGINT))
        told = 0
        try:
            timer.start()
            learn(model)
            timer.join()
            time.sleep(0.01)
        except KeyboardInterrupt as stop:
            told = getattr(stop, "rows_learnt", None)
        if told:
            again.partial_fit(X[:told], y[:told])
            yield model.n_seen_ == told and np.array_equal(model.coef_, again.coef_)
        elif told is None:
            yield True


def streams(rng, folder):
    """Random streams through all kinds of models; for builds with sanitizers."""
    from streamlasso.families import FAMILIES
    from streamlasso.memories import AdaptiveForgetting, Forgetting
    from streamlasso.network import StreamingNetwork
    from streamlasso.tuners import LARS, SGD, Fixed, Mixture

    while True:
        n, p = int(rng.integers(2, 120)), int(rng.integers(1, 12))
        X = rng.normal(size=(n, p)) * 10.0 ** rng.integers(-3, 4)
        X[:, rng.random(p) < 0.2] = 0.0
        family = str(rng.choice(list(FAMILIES)))
        y = {"gaussian": X[:, 0], "binomial": (X[:, 0] > 0) * 1.0, "poisson": rng.poisson(2.0, n) * 1.0}.get(
            family, np.exp(rng.normal(size=n))
        )
        memory = [None, 0.9, Window(int(rng.integers(2, 40))), Forgetting(1.0), AdaptiveForgetting()][rng.integers(5)]
        tuner = [None, LogRMS(), SGD(0.1), LARS(0.1), Fixed(0.1), Mixture()][rng.integers(6)]
        history, batch = int(rng.integers(1, 30)), int(rng.integers(1, 5))
        try:
            model = RAPRegressor(family, memory=memory, tuner=tuner, history=history, batch_size=batch)
            model.partial_fit(X, np.ascontiguousarray(y)).predict(X)
            model = RAPRegressor.from_bytes(model.to_bytes())
            model.partial_fit(X[:1], y[:1])
            if p > 1:
                StreamingNetwork(memory=0.9).partial_fit(X[:40])
        except ValueError:
            pass
        yield True


ATTACKS = {each.__name__: each for each in (forged_files, hostile_rows, kills, disk_full, threads, signals, streams)}


def durability(seconds, seed):
    """Exhaustive, so the time does not matter: a crash between any two system calls of three small runs."""
    from attack.test_durability import RUNS, recovered

    attempts, failures = 0, []
    for kind in RUNS:
        with tempfile.TemporaryDirectory() as folder:
            n, wrong = recovered(kind, Path(folder))
            attempts, failures = attempts + n, failures + wrong
    return attempts, len(failures)


def attacked(name, seconds, seed):
    """Attempts and failures."""
    quietly_drawn()
    if name == "durability":
        return durability(seconds, seed)
    attempts = failures = 0
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        for fine in ATTACKS[name](np.random.default_rng(seed), Path(folder)):
            attempts, failures = attempts + 1, failures + (not fine)
            if time.monotonic() > end:
                break
    return attempts, failures


def all_attacks(names, minutes, seed):
    failed, seconds = False, 60 * minutes / len(names)
    print(f"seed {seed}\n\n| attack | attempts | failures | seconds |\n|---|---|---|---|", flush=True)
    for name in names:
        begun = time.monotonic()
        command = [sys.executable, __file__, "--one", name, "--seconds", str(seconds), "--seed", str(seed)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10 * seconds + 3600, check=False)
        taken = f"{time.monotonic() - begun:.0f}"
        if done.returncode:
            failed = True
            print(f"| {name} | died with status {done.returncode} | | {taken} |\n{done.stderr[-2000:]}", flush=True)
            continue
        attempts, failures = json.loads(done.stdout.splitlines()[-1])
        failed |= failures > 0
        print(f"| {name} | {attempts:,} | {failures:,} | {taken} |", flush=True)
    return int(failed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--one")
    parser.add_argument("--seconds", type=float)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(attacked(given.one, given.seconds, given.seed)))
    else:
        sys.exit(all_attacks(given.names or [*ATTACKS, "durability"], given.minutes, given.seed))
