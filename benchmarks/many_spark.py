"""Many models in Spark: what a row costs, against the same job without a model, and models that survive SIGKILL.

Local mode, CPU seconds of the driver, the JVM and its Python workers; ratios are of jobs side by side in one run.
Needs pip install "streamlasso[spark]" and Java 17. `--kill` kills jobs of all families at random points instead.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
from pyspark.sql import SparkSession
from pyspark.sql.types import DoubleType, LongType, StructField, StructType

from common import report
from streamlasso import RAPRegressor, families
from streamlasso.keyed import KeyedRegressor
from streamlasso.spark import api, columns, learn, models
from streamlasso.spark.page import Events, Pages, Results

P = 20
FEATURES = [f"x{j}" for j in range(P)]
NAMES = dict(key="key", features=FEATURES, target="y", id="id")
LOGRMS = RAPRegressor(memory=0.99, tuner="logrms")

Line = dict[str, str]


def line(what: str, value: str, must: str = "") -> Line:
    return {"what": what, "measured": value, "must": must}


def session(cores: int = 2, java: str = "") -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.memory": "4g",
        "spark.driver.extraJavaOptions": java,
        "spark.sql.shuffle.partitions": cores,
        "spark.python.authenticate.socketTimeout": "120s",
    }
    builder = SparkSession.builder.master(f"local[{cores},4]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


# --- what a row costs -------------------------------------------------------------------------------------------------


class WithoutModel(api._Processor):
    """The same rows in and out of the same pages, with `key_bytes` of state for each key, read and written."""

    def __init__(self, job, key_bytes: int) -> None:
        super().__init__(job, None)
        self._key_bytes = key_bytes

    def handleInputRows(self, key, rows, timerValues):
        before = self._state.get()
        events = columns.unpacked(self._job, [row["rows"] for row in rows])
        if before is None:
            data = os.urandom(max(8, self._key_bytes * len(set(events.keys))))
        else:
            data = os.urandom(8) + b64decode(before[1])[8:]
        self._state.update(("", b64encode(data).decode(), "", "", "", 0))
        results = Results(events.keys, events.ids)
        results.prediction = results.loss = results.baseline = events.y.tolist()
        yield self._row(results, [0.0] * len(columns.NOTES))


def bytes_of_key(n_keys: int, n_batches: int = 14) -> int:
    """Of the state of a page of so many keys after as many rows of each."""
    rng, pages, state = np.random.default_rng(0), Pages(api._job(LOGRMS, FEATURES, 1, None)), None
    keys = [str(key) for key in range(n_keys)]
    for batch in range(n_batches):
        X, order = rng.normal(size=(n_keys, P)), list(range(batch * n_keys, (batch + 1) * n_keys))
        y = X[:, 0] - X[:, 1] + rng.normal(size=n_keys)
        rows = Events(keys, list(map(str, order)), order, [0] * n_keys, [True] * n_keys, X, y)
        state, _ = pages.learn(state, rows)
    return state.n_bytes // n_keys


def without_model(df, pages: int, key_bytes: int):
    job = api._job(LOGRMS, FEATURES, pages, None)
    api._use_rocksdb(df.sparkSession)
    out = columns.events(df, job, "key", "y", "id", None).groupBy("page")
    out = out.transformWithState(WithoutModel(job, key_bytes), columns.out_schema(job), "Append", "none")
    return columns.results(out, job, df, "key", "y", "id")


def write_batch(folder: Path, number: int, n_keys: int, n_rows: int) -> None:
    """The next rows, round-robin."""
    rng = np.random.default_rng(number)
    X = rng.normal(size=(n_rows, P))
    table = pd.DataFrame(X, columns=FEATURES)
    table["id"] = np.arange(number * n_rows, (number + 1) * n_rows)
    table["key"] = rng.permutation(table["id"] % n_keys)
    table["y"] = X[:, 0] - X[:, 1] + rng.normal(size=n_rows)
    table.to_parquet(folder / f".{number}.parquet", index=False)
    os.rename(folder / f".{number}.parquet", folder / f"{number}.parquet")


def cpu() -> dict[str, float]:
    """Seconds of this process, the JVM and the Python workers so far."""
    me = psutil.Process()
    seconds = {"python": sum(me.cpu_times()[:2]), "jvm": 0.0}
    for child in me.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            seconds["jvm" if child.name() == "java" else "python"] += sum(child.cpu_times()[:2])
    return seconds


def patiently(action, times: int = 5):
    """Spark gives a Python worker ten seconds to start, and a busy machine may need more."""
    for left in reversed(range(times)):
        try:
            return action()
        except Exception as error:
            if not left or "failed to connect back" not in str(error):
                raise


def seconds_of(spark, job, n_keys: int, n_rows: int, warm: int, batches: int) -> dict[str, float]:
    """CPU seconds of some batches after a few others."""
    schema = StructType([StructField(name, DoubleType()) for name in FEATURES])
    schema = schema.add("id", LongType()).add("key", LongType()).add("y", DoubleType())
    # The state store may still write to it when the query has stopped.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        source = Path(place, "in")
        source.mkdir()
        df = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(source))
        writer = job(df).writeStream.format("noop").option("checkpointLocation", f"{place}/checkpoint")
        query = writer.trigger(processingTime="0 seconds").start()
        try:
            for number in range(warm):
                write_batch(source, number, n_keys, n_rows)
            query.processAllAvailable()
            for number in range(warm, warm + batches):
                write_batch(source, number, n_keys, n_rows)
            before = cpu()
            query.processAllAvailable()
            after = cpu()
        finally:
            query.stop()
    return {name: after[name] - before[name] for name in before}


def costs(n_keys: int, n_rows: int, pages: list[int], warm: int, batches: int) -> Iterator[Line]:
    spark = session()
    for n_pages in pages:
        jobs = {
            "model": lambda df, n=n_pages: learn(df, LOGRMS, **NAMES, pages=n),
            "copied state": lambda df, n=n_pages: without_model(df, n, bytes_of_key(max(1, n_keys // n))),
            "small state": lambda df, n=n_pages: without_model(df, n, 0),
        }
        seconds = {}
        for name, job in jobs.items():
            seconds[name] = patiently(lambda job=job: seconds_of(spark, job, n_keys, n_rows, warm, batches))
            print(n_pages, name, {what: round(value, 2) for what, value in seconds[name].items()}, flush=True)
        total = {name: sum(parts.values()) for name, parts in seconds.items()}
        what = f"{n_keys:,} keys, {n_pages} pages, batches of {n_rows:,}"
        yield line(f"{what}: events/s/core", f"{n_rows * batches / total['model']:,.0f}", "4,000")
        for name, must in (("copied state", "1.4x"), ("small state", "")):
            yield line(f"{what}: CPU over no model, {name}", f"{total['model'] / total[name]:.2f}x", must)
    spark.stop()


# --- killed -----------------------------------------------------------------------------------------------------------

#: For jobs of seconds: do not optimise.
SHORT = dict(cores=1, java="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def serve(folder: Path, family: str) -> None:
    """The job that is killed: all there is, one file in a batch, into one folder for each batch."""
    spark = session(**SHORT)
    schema = "key BIGINT, id BIGINT, y DOUBLE, a DOUBLE, b DOUBLE, c DOUBLE"
    df = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    model = RAPRegressor(family, tuner="logrms")
    out = learn(df, model, key="key", features=["a", "b", "c"], target="y", id="id", pages=8)

    def write(batch, number):
        batch.write.mode("overwrite").parquet(str(folder / "out" / f"batch={number}"))

    query = out.writeStream.foreachBatch(write).option("checkpointLocation", str(folder / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()


def killed(n_kills: int = 5, n_batches: int = 12, n_rows: int = 200, seed: int = 0) -> Iterator[Line]:
    """Each family: killed at random points of a run until it is through, then compared with one process."""
    rng = np.random.default_rng(seed)
    spark = session(**SHORT)
    for family in families.FAMILIES:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            X, y, keys = write_files(folder / "in", family, n_batches, n_rows)
            kills = 0
            while True:
                done = run_once(folder, family, rng.uniform(0.1, 0.9) if kills < n_kills else None, n_batches)
                if done:
                    break
                kills += 1
            out = spark.read.parquet(str(folder / "out")).toPandas().sort_values("id")
            keyed = KeyedRegressor(RAPRegressor(family, tuner="logrms"), pooled=False)
            expected = keyed.progressive(X, y, keys)
            once = out.id.tolist() == list(range(len(y))) and set(out.status) == {"learnt"}
            found = models(spark, str(folder / "checkpoint")).toPandas()
            same = len(found) == len(keyed) and all(
                RAPRegressor.from_bytes(bytes(data)).learners_[0].pack() == keyed.model(int(key)).learners_[0].pack()
                for key, data in zip(found.key, found.model, strict=True)
            )
            bits = once and np.array_equal(out.prediction, expected) and same
            yield line(f"{family}: killed {kills} times, all rows once, same bits", "yes" if bits else "NO", "yes")
            print(family, kills, bits, flush=True)
    spark.stop()


def write_files(folder: Path, family: str, n_batches: int, n_rows: int):
    folder.mkdir()
    rng = np.random.default_rng(0)
    n = n_batches * n_rows
    X, keys = rng.normal(size=(n, 3)), rng.integers(30, size=n)
    y = families.FAMILIES[family]().sample(rng, 0.5 * X[:, 0]).astype(float)
    table = pd.DataFrame(X, columns=list("abc")).assign(key=keys, id=np.arange(n), y=y)
    for number in range(n_batches):
        path = folder / f"{number:03d}.parquet"
        table[number * n_rows : (number + 1) * n_rows].sample(frac=1, random_state=number).to_parquet(path, index=False)
        os.utime(path, (1_700_000_000 + number,) * 2)
    return X, y, keys.tolist()


def run_once(folder: Path, family: str, share: float | None, n_batches: int) -> bool:
    """Is it through? It is killed a while after a few of the batches that are left; `share`, of these."""
    commits = folder / "checkpoint" / "commits"
    n_before = len(list(commits.glob("[0-9]*"))) if commits.exists() else 0
    command = [sys.executable, __file__, "--serve", str(folder), "--family", family]
    job = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        until = None if share is None else n_before + max(1, int(share * (n_batches - n_before) / 3))
        while job.poll() is None:
            if until is not None and commits.exists() and len(list(commits.glob("[0-9]*"))) >= until:
                time.sleep(share)
                break
            time.sleep(0.02)
    finally:
        through = job.poll() == 0
        kill_session(job)
    return through


def kill_session(job: subprocess.Popen) -> None:
    """SIGKILL for the driver, its JVM and the Python workers, which have a process group of their own."""
    for pid in psutil.pids():
        with suppress(ProcessLookupError):
            if os.getsid(pid) == job.pid:
                os.kill(pid, signal.SIGKILL)
    job.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2,000 keys")
    parser.add_argument("--pages", type=int, nargs="+", default=[256, 4096])
    parser.add_argument("--rows", type=int, default=20_000, help="of a batch")
    parser.add_argument("--batches", type=int, default=6, help="measured")
    parser.add_argument("--warm", type=int, default=8, help="batches before these: Java compiles what it runs often")
    parser.add_argument("--kill", action="store_true", help="SIGKILL at five random points for each family")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--family", default="gaussian", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if shutil.which("java") is None:
        sys.exit("needs Java 17: apt-get install openjdk-17-jre-headless")
    if options.serve:
        serve(options.serve, options.family)
    elif options.kill:
        report("many_spark_kill", list(killed()))
    else:
        n_keys = 2_000 if options.quick else 20_000
        report("many_spark", list(costs(n_keys, options.rows, options.pages, options.warm, options.batches)))


if __name__ == "__main__":
    main()
