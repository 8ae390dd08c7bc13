"""The long attack: `make attack`. Each kind of attack has its share of the time, in a process of its own.

python tests/attack/long.py --minutes 60 [NAMES]: prints a table of attempts and failures. A process that dies, hangs or
raises is a failure. Exit status 1 if there was one. The seed is the time, and is printed: --seed repeats.
"""

import argparse
import errno
import json
import os
import pickle
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from unittest import mock

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from attack import files
from attack.disk import _File, recorded
from attack.rows import bodies, hostile_rows, write
from streamlasso import RAPClassifier, RAPRegressor, progressive
from streamlasso.cli import main
from streamlasso.memories import Window
from streamlasso.tuners import LogRMS


def quietly_drawn():
    """Figures take longer than all else."""
    import streamlasso.report.page
    import streamlasso.report.run.history
    import streamlasso.run.results

    streamlasso.run.results.plot_summary = lambda summary: None
    streamlasso.run.results.drawn = lambda figure, form: b"a picture"
    for room in (streamlasso.report.run.history, streamlasso.report.page):
        room.drawn = lambda figure, form: b"a picture"


# --- the attacks: until the time is over, each yields attempts, and how many of them failed ---------------------------


def forged_files(rng, folder):
    """Files of every kind with other numbers, other words or other bytes: refused, or loaded and usable."""
    kinds = files.kinds(folder)
    while True:
        kind = kinds[rng.integers(len(kinds))]
        yield 1, int(not files.withstood(kind, files.forged(rng, kind)))


def kills(rng, folder):
    """SIGKILL at a random moment of a command, again and again; then it ends like one that was never killed."""
    while True:
        command = _command(rng, folder)
        begun = time.monotonic()
        if main(command):
            yield 1, 1
        longest, whole = time.monotonic() - begun, _files(folder)
        _clear(folder)
        hits = sum(_killed(command, rng.uniform(0, longest)) for _ in range(8))
        status, again = main(command), _files(folder)
        if status or again != whole:
            print(" ".join(command), status, [path for path in {*again, *whole} if again.get(path) != whole.get(path)])
        yield hits, hits * (status != 0 or again != whole)
        _clear(folder)


def _command(rng, folder):
    """Any family, format, tuner; models of keys, and of words; networks, and predictions of a model."""
    data, out = folder / "data.csv", folder / "out"
    family = str(rng.choice(["gaussian", "binomial", "poisson", "gamma"]))
    way = str(rng.choice(["plain", "plain", "plain", "plain", "key", "text", "network", "predict"]))
    rows = _rows_of(rng, "gaussian" if way == "network" else family)
    if way in ("key", "text"):
        rows = [["key text"[i % 3 : i % 5 + 4], *row[1:]] for i, row in enumerate(rows)]
    write(data, ["x", "z", "y"], rows)
    if way == "network":
        return ["network", str(data), "--out", str(out)]
    form = str(rng.choice(["csv", "tsv", "jsonl", "parquet"]))
    if way == "predict":
        model = folder / "data.model"
        assert main(["run", str(data), "--target", "y", "--family", family, "--out", str(out), "--quiet"]) == 0
        (out / "model.safetensors").rename(model)
        _clear(folder)
        return ["predict", str(model), str(data), "--out", str(folder / f"p.{form}"), "--quiet"]
    more = ["--every", str(rng.integers(10, 60)), "--tuner", str(rng.choice(["logrms", "mixture"]))]
    if way == "key":
        more += ["--key", "x"]
    if way == "text" and family != "gamma":
        more = [*more[:2], "--text", "x"]
    places = ["--out", str(out), "--checkpoint", str(folder / "ckpt"), "--predictions", str(out / f"p.{form}")]
    return ["run", str(data), "--target", "y", "--family", family, *places, *more, "--quiet"]


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
    """Whether it was still running then."""
    child, end = os.fork(), time.monotonic() + seconds
    if child == 0:
        os._exit(main(command))
    while time.monotonic() < end:
        if os.waitpid(child, os.WNOHANG)[0]:
            return False
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def _files(folder):
    """What a run leaves."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _clear(folder):
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.stem != "data":
            path.rmdir() if path.is_dir() else path.unlink()


def disk_full(rng, folder):
    """No room at one of the writes of a run: one line, nothing that looks whole; then the command ends as it should."""
    data, out = folder / "data.csv", folder / "out"
    write(data, ["x", "z", "y"], _rows_of(rng, "gaussian"))
    places = ["--out", str(out), "--checkpoint", str(folder / "ckpt")]
    command = ["run", str(data), "--target", "y", *places, "--every", "50", "--tuner", "logrms", "--quiet"]
    with recorded(folder) as log:
        assert main(command) == 0
    whole, n_writes = _files(folder), sum(event[0] == "write" for event in log)
    while True:
        for fatal in range(n_writes):
            _clear(folder)
            calls = []

            def limited(self, data, fatal=fatal, calls=calls, write=_File.write):
                calls.append(1)
                if len(calls) > fatal:
                    raise OSError(errno.ENOSPC, "No space left on device")
                return write(self, data)

            errors = StringIO()
            with redirect_stderr(errors), recorded(folder), mock.patch.object(_File, "write", limited):
                try:
                    status = main(command)
                except OSError:
                    status = 1
            left = list(folder.rglob(".streamlasso-*.tmp"))
            again = main(command)
            yield 1, int(status != 2 or bool(left) or again != 0 or _files(folder) != whole)


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
            yield 1, int(model.predict(X[:2]).tobytes() not in possible)
            yield 1, int(pickle.loads(pickle.dumps(model)).predict(X[:2]).tobytes() not in possible)
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
            yield 1, int(model.n_seen_ != told or not np.array_equal(model.coef_, again.coef_))
        elif told is None:
            yield 1, 0


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
        yield 1, 0


#: What attacks, and its share of the time: what takes longest for an attempt has most.
SHARES = {
    forged_files: 12,
    hostile_rows: 12,
    bodies: 3,
    kills: 18,
    disk_full: 3,
    threads: 3,
    signals: 3,
    streams: 4,
}
ATTACKS = {each.__name__: each for each in SHARES}
#: Bytes of memory that an attack may take: a file that asks for more is found, and does not stop the machine.
MOST_MEMORY = 4 * 2**30


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
    warnings.simplefilter("ignore")
    if "asan" not in os.environ.get("LD_PRELOAD", ""):
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    if name == "durability":
        return durability(seconds, seed)
    attempts = failures = 0
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        for n, failed in ATTACKS[name](np.random.default_rng(seed), Path(folder)):
            attempts, failures = attempts + n, failures + failed
            if time.monotonic() > end:
                break
    return attempts, failures


def all_attacks(names, minutes, seed):
    failed, shares = False, {name: SHARES.get(ATTACKS.get(name), 2) for name in names}
    head = ["attack", "attempts", "failures", "seconds", "CPU seconds", "per minute", "per minute of CPU"]
    print(f"seed {seed}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}", flush=True)
    for name, share in shares.items():
        begun, cpu, seconds = time.monotonic(), _cpu(), 60 * minutes * share / sum(shares.values())
        command = [sys.executable, __file__, "--one", name, "--seconds", str(seconds), "--seed", str(seed)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10 * seconds + 3600, check=False)
        taken, cpu = time.monotonic() - begun, _cpu() - cpu
        attempts, failures = (0, 1) if done.returncode else json.loads(done.stdout.splitlines()[-1])
        rates = f"{60 * attempts / taken:,.0f} | {60 * attempts / cpu:,.0f}"
        print(f"| {name} | {attempts:,} | {failures:,} | {taken:.0f} | {cpu:.0f} | {rates} |", flush=True)
        if failures:
            failed = True
            print(f"status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}", flush=True)
    return int(failed)


def _cpu():
    """Seconds of all attacks so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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
