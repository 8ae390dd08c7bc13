"""Real Spark in local mode: the same bits as one process, however the rows are cut, dealt out and interrupted."""

import os
import runpy
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyspark", reason='needs pyspark: pip install "streamlasso[spark]"')
pytest.importorskip("google.protobuf", reason='needs protobuf: pip install "streamlasso[spark]"')
pytest.importorskip("pyarrow", minversion="18.0", reason="Spark needs it")

import pandas as pd
from pyspark import cloudpickle
from pyspark.sql.streaming import DataStreamReader

from many_spark import kill_session
from streamlasso import RAPClassifier, RAPRegressor
from streamlasso.keyed import KeyedClassifier, KeyedRegressor
from streamlasso.spark import backfill, learn, models

pytestmark = [
    pytest.mark.posix,
    pytest.mark.skipif(shutil.which("java") is None, reason="needs Java 17: apt-get install openjdk-17-jre-headless"),
]
EXAMPLE = Path(__file__).parents[2] / "examples" / "spark_job.py"
MODEL = RAPRegressor(tuner="logrms")
FEATURES = ["price", "rain", "holiday"]
COLUMNS = "shop STRING, sale BIGINT, at TIMESTAMP, price DOUBLE, rain DOUBLE, holiday BOOLEAN, sold DOUBLE"
NAMES = dict(key="shop", features=FEATURES, target="sold", id="sale", time="at")
#: Of workers, and of the socket that they call.
SLOW_START = ("Python worker failed to connect back", "CANNOT_OPEN_SOCKET")
#: Small jobs: one worker, a virtual machine that does not optimise, and nothing tried twice but by `patiently`.
CONF = {
    "spark.master": "local[1]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
    "spark.python.authenticate.socketTimeout": "60s",
}
#: While there are timers Spark runs batches without data, and a query for all that is available has no end.
NO_DATA_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    """The one session of all tests. What Spark prints goes to a file: its errors are raised here as well."""
    from pyspark.sql import SparkSession

    os.environ.update(PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable)
    builder = SparkSession.builder
    for name, value in CONF.items():
        builder = builder.config(name, value)
    with output_to(tmp_path_factory.mktemp("spark") / "log"):
        session = builder.getOrCreate()
    yield session
    session.stop()


@contextmanager
def output_to(path):
    """Of this process and, for good, of those that it starts meanwhile."""
    before = [os.dup(1), os.dup(2)]
    with open(path, "w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        for number, copy in enumerate(before, start=1):
            os.dup2(copy, number)
            os.close(copy)


def sales(n=300, shops=7, seed=0):
    """In the order of their times."""
    rng = np.random.default_rng(seed)
    shop = rng.integers(shops, size=n)
    table = pd.DataFrame(
        {
            "shop": [f"shop {s}" for s in shop],
            "sale": np.arange(n),
            "at": pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(n), "min"),
            "price": rng.normal(size=n),
            "rain": rng.normal(size=n),
            "holiday": rng.random(n) < 0.2,
        }
    )
    table["sold"] = 3.0 - (1 + shop / shops) * table.price + table.holiday + 0.3 * rng.normal(size=n)
    return table


def in_files(folder, *tables, seed=0):
    """One file, which is one batch, for each table; rows in no order."""
    folder.mkdir(exist_ok=True)
    first = len(list(folder.iterdir()))
    for number, table in enumerate(tables, start=first):
        path = folder / f"{number:03d}.parquet"
        table.sample(frac=1, random_state=seed).to_parquet(
            path, index=False, coerce_timestamps="us", allow_truncated_timestamps=True
        )
        os.utime(path, (1_700_000_000 + number,) * 2)


def stream(spark, folder, columns=COLUMNS):
    return spark.readStream.schema(columns).option("maxFilesPerTrigger", 1).parquet(str(folder))


def run(learnt, folder, partitions=1):
    """All there is, and what has come out since the checkpoint was new."""
    learnt.sparkSession.conf.set("spark.sql.shuffle.partitions", partitions)
    writer = learnt.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
    patiently(lambda: writer.trigger(availableNow=True).start(str(folder / "out")).awaitTermination())
    return out_of(learnt.sparkSession, folder)


def patiently(action, times=6):
    """Spark gives a Python worker ten seconds to start, and a busy machine may need more: then resume."""
    for left in reversed(range(times)):
        try:
            return action()
        except Exception as error:
            if not left or not any(words in str(error) for words in SLOW_START):
                raise


def out_of(spark, folder):
    return spark.read.parquet(str(folder / "out")).toPandas().sort_values("sale", ignore_index=True)


def one_process(table, model=MODEL):
    """A `KeyedRegressor` on the same rows in order, and what it predicted."""
    keyed = KeyedRegressor(model, pooled=False)
    return keyed, keyed.progressive(table[FEATURES].to_numpy(float), table.sold, table.shop.tolist())


def assert_same_models(spark, checkpoint, keyed):
    found = models(spark, str(checkpoint)).toPandas().set_index("key")
    assert sorted(found.index) == sorted(keyed.keys())
    for key, row in found.iterrows():
        expected = keyed.model(key)
        assert type(expected).from_bytes(bytes(row.model)).learners_[0].pack() == expected.learners_[0].pack()
        assert row.rows == expected.n_seen_
        assert dict(row.coefficients) == dict(zip(FEATURES, np.ravel(expected.coef_), strict=True))


def test_same_bits_as_one_process_and_bad_rows_leave(spark, tmp_path):
    """Every row comes out once. Then a job of other settings is refused on the same checkpoint."""
    table = sales()
    bad = table.iloc[[5, 6, 7, 120]].copy()
    bad["sale"] = [1001, 1002, 1003, 3]
    bad.loc[5, "shop"] = None
    bad.loc[6, "price"] = None
    bad.loc[7, "sold"] = np.inf
    bad.loc[120, "shop"] = table.shop[3]
    table_of = [pd.concat([table[:100], bad.loc[[5, 6, 7]]]), pd.concat([table[100:], bad.loc[[120]]])]
    in_files(tmp_path / "in", *table_of)
    learnt = learn(stream(spark, tmp_path / "in"), MODEL, **NAMES, pages=5)
    out = run(learnt, tmp_path)
    assert len(out) == len(table) + len(bad)
    good, wrong = out[out.status == "learnt"], out[out.status == "refused"]
    keyed, predicted = one_process(table)
    assert good.sale.tolist() == table.sale.tolist() and good.shop.tolist() == table.shop.tolist()
    np.testing.assert_array_equal(good.prediction, predicted)
    np.testing.assert_allclose(good.loss, 0.5 * (table.sold - predicted) ** 2)
    assert good.error.isna().all() and wrong.prediction.isna().all()
    errors = dict(zip(wrong.sale, wrong.error, strict=True))
    words = {1001: "key is missing", 1002: "'price' is missing", 1003: "is inf", 3: "duplicate"}
    assert errors.keys() == words.keys() and all(words[sale] in errors[sale] for sale in words)
    assert_same_models(spark, tmp_path / "checkpoint", keyed)

    in_files(tmp_path / "in", sales(20))
    other = learn(stream(spark, tmp_path / "in"), RAPRegressor(tuner="logrms", memory=0.5), **NAMES, pages=5)
    with pytest.raises(Exception, match=r"the checkpoint was started with model=.RAPRegressor"):
        run(other, tmp_path)
    assert_same_models(spark, tmp_path / "checkpoint", keyed)


def test_history_and_other_partitions_give_the_same_bits(spark, tmp_path):
    """Half of the rows in a table, half in a stream of other files on another number of partitions."""
    table = sales()
    keyed, predicted = one_process(table)
    in_files(tmp_path / "history", table[:150], seed=1)
    in_files(tmp_path / "in", table[150:160], table[160:], seed=2)
    history = backfill(spark.read.parquet(str(tmp_path / "history")), MODEL, **NAMES, pages=5).localCheckpoint()
    counts = history.toPandas()
    assert counts.learnt.sum() == 150 and counts.refused.sum() == 0
    out = run(learn(stream(spark, tmp_path / "in"), MODEL, **NAMES, pages=5, initial=history), tmp_path, partitions=3)
    assert (out.status == "learnt").all()
    np.testing.assert_array_equal(out.prediction, predicted[150:])
    assert_same_models(spark, tmp_path / "checkpoint", keyed)
    pages = out.page.dropna()
    assert 0 < len(pages) <= 10 and all(page["bytes"] > 1000 for page in pages)


def test_labels_come_later_and_what_expires_comes_out(spark, tmp_path):
    """Classes; the last features get no label, and their time is short."""
    table = sales(120, shops=3)
    table["sold"] = np.where(table.sold > 3, 1, 0)
    text = COLUMNS.replace("sold DOUBLE", "sold INT")
    features, labels = table.assign(sold=pd.array([pd.NA] * 120, "Int32")), table.astype({"sold": "Int32"})
    labels[FEATURES] = None
    labels = labels.astype({"price": float, "rain": float, "holiday": "boolean"})
    labels["at"] += pd.Timedelta("1D")
    in_files(tmp_path / "in", features[:100], labels[:80])
    model = RAPClassifier(tuner="logrms")
    settings = dict(model=model, **NAMES, classes=[0, 1], pages=2)
    spark.conf.set(NO_DATA_BATCHES, "false")
    out = run(learn(stream(spark, tmp_path / "in", text), **settings, label_wait="1 hour"), tmp_path)
    spark.conf.set(NO_DATA_BATCHES, "true")
    assert out.status.value_counts().to_dict() == {"waiting": 100, "learnt": 80}
    keyed = KeyedClassifier(model, pooled=False).partial_fit(
        table[FEATURES].to_numpy(float)[:80], table.sold[:80], table.shop[:80].tolist(), classes=[0, 1]
    )
    assert_same_models(spark, tmp_path / "checkpoint", keyed)
    assert set(out.prediction) <= {0, 1} and out.prediction.dtype.kind == "i"

    in_files(tmp_path / "in", features[100:], labels[80:90])
    learnt = learn(stream(spark, tmp_path / "in", text), **settings, label_wait="1 second")
    writer = learnt.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))

    def until_expired():
        query = writer.trigger(processingTime="1 second").start(str(tmp_path / "out"))
        try:
            wait_for(lambda: (out_of(spark, tmp_path).status == "expired").sum() == 20, query)
        finally:
            query.stop()

    patiently(until_expired)
    out = out_of(spark, tmp_path)
    assert out.status.value_counts().to_dict() == {"waiting": 120, "learnt": 90, "expired": 20}
    expired = out[out.status == "expired"]
    assert expired.sale.tolist() == list(range(100, 120)) and (expired.error == "no label came within 1 second").all()
    served = out[(out.status == "waiting") & (out.sale >= 100)]
    assert [list(p) for p in expired.probabilities] == [list(p) for p in served.probabilities]


def wait_for(done, query=None, seconds=240):
    end = time.monotonic() + seconds
    while not done():
        if query is not None and query.exception() is not None:
            raise query.exception()
        assert time.monotonic() < end, "it takes too long"
        time.sleep(1)


def test_labels_by_kafka(spark, tmp_path, monkeypatch):
    """The example on a topic: stopped between features and labels, and resumed where it was."""
    pytest.importorskip("confluent_kafka", reason="needs confluent-kafka, for a mock cluster")
    from support import spark_kafka
    from support.kafka import Cluster

    cloudpickle.register_pickle_by_value(spark_kafka)
    spark.dataSource.register(spark_kafka.Kafka)
    name = DataStreamReader.format
    monkeypatch.setattr(DataStreamReader, "format", lambda self, kind: name(self, kind.replace("kafka", "mock_kafka")))
    cluster, table = Cluster(), sales(60, shops=3)
    rows = table.assign(at=table["at"].astype(str)).to_dict("records")
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), cluster.url("sales"), str(tmp_path), "1 hour"])

    cluster.put("sales", [{**row, "sold": None} for row in rows], 2)
    patiently(lambda: until_out(spark, tmp_path, {"waiting": 60}))
    cluster.put("sales", [{name: row[name] for name in ("shop", "sale", "at", "sold")} for row in rows], 2)
    other_schema = {"shop": "shop 1", "sale": 99, "at": rows[0]["at"], "cost": 1.0, "rain": 1.0, "holiday": True}
    cluster.put("sales", ["no row at all", {**other_schema, "sold": 1.0}, {**rows[0], "sale": 98, "price": "cheap"}], 2)
    out = patiently(lambda: until_out(spark, tmp_path, {"waiting": 60, "learnt": 60, "refused": 3}))
    assert out[out.status == "learnt"].sale.tolist() == list(range(60))
    assert out[out.sale == 99].error.str.contains("'price' is missing").all()
    assert "the key is missing" in out.error.tolist()
    keyed, _ = one_process(table, RAPRegressor(memory=500, tuner="logrms"))
    assert_same_models(spark, tmp_path / "checkpoint", keyed)


def until_out(spark, folder, counts):
    """The example, in a thread, until there are as many rows of each status."""
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(runpy.run_path, str(EXAMPLE), run_name="__main__")
        wait_for(lambda: spark.streams.active or job.done())
        for query in spark.streams.active or [job.result()]:
            try:
                wait_for(lambda: written(folder).status.value_counts().to_dict() == counts, query)
                last = max(int(path.name.partition("=")[2]) for path in folder.glob("predictions/batch=*"))
                wait_for((folder / "checkpoint" / "commits" / str(last)).exists, query)
            finally:
                query.stop()
    return written(folder)


def written(folder):
    """What the example has written, batches that are whole."""
    whole = [path.parent for path in folder.glob("predictions/*/_SUCCESS")]
    tables = [pd.read_parquet(path, columns=["sale", "status", "prediction", "error"]) for path in whole]
    return pd.concat(tables).sort_values("sale", ignore_index=True) if tables else pd.DataFrame({"status": []})


def test_killed_and_resumed_equals_never_interrupted(spark, tmp_path, monkeypatch, capsys):
    """The example by spark-submit, where all processes get SIGKILL in the middle of a batch, then in this session."""
    table = sales(240)
    in_files(tmp_path / "in", *(table[a : a + 80] for a in range(0, 240, 80)))
    submit = shutil.which("spark-submit", path=str(Path(sys.executable).parent)) or shutil.which("spark-submit")
    conf = [part for name, value in CONF.items() for part in ("--conf", f"{name}={value}")]
    command = [submit, *conf, str(EXAMPLE), str(tmp_path / "in"), str(tmp_path / "results")]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}

    commits = tmp_path / "results" / "checkpoint" / "commits"
    patiently(lambda: kill_after(commits / "0", command, environment, tmp_path / "log"))
    assert not (commits / "2").exists()
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), str(tmp_path / "in"), str(tmp_path / "results")])
    patiently(lambda: runpy.run_path(str(EXAMPLE), run_name="__main__"))
    printed = capsys.readouterr().out
    assert "'loss_over_running_mean': 0." in printed and "'learnt': 80" in printed

    out = written(tmp_path / "results")
    keyed, predicted = one_process(table, RAPRegressor(memory=500, tuner="logrms"))
    assert out.sale.tolist() == list(range(240)) and (out.status == "learnt").all()
    np.testing.assert_array_equal(out.prediction, predicted)
    assert_same_models(spark, tmp_path / "results" / "checkpoint", keyed)


def kill_after(commit, command, environment, log):
    with open(log, "w") as file:
        job = subprocess.Popen(command, env=environment, stdout=file, stderr=file, start_new_session=True)
        try:
            end = time.monotonic() + 240
            while not commit.exists():
                assert job.poll() is None and time.monotonic() < end, log.read_text()
                time.sleep(0.02)
        finally:
            kill_session(job)


@pytest.mark.parametrize(
    "change,complaint",
    [
        (dict(key="store"), "key='store' is not a column"),
        (dict(features=["price", "wind"]), "features='wind' is not a column"),
        (dict(features="price"), "must be a list"),
        (dict(features=["price", "sold"]), "'sold' is the target"),
        (dict(features=["price", "shop2"]), "'shop2' is of type string: cast it to numbers"),
        (dict(pages=0), "pages=0"),
        (dict(time="price"), "'price' is of type double: cast it to a timestamp"),
        (dict(label_wait="soon"), "label_wait='soon'"),
        (dict(label_wait="-1 hour"), "label_wait='-1 hour'"),
        (dict(classes=[0, 1]), "None with a RAPRegressor"),
        (dict(model=RAPRegressor(penalty_factor=[1.0])), "penalty_factor"),
        (dict(model=RAPRegressor(batch_size=3)), "batch_size"),
    ],
    ids=str,
)
def test_settings_are_checked_before_anything_starts(spark, tmp_path, change, complaint):
    (tmp_path / "in").mkdir()
    settings = {"model": MODEL, **NAMES, **change}
    with pytest.raises(ValueError, match=complaint):
        learn(stream(spark, tmp_path / "in", COLUMNS + ", shop2 STRING"), **settings)


def test_streams_are_learnt_and_tables_backfilled(spark, tmp_path):
    (tmp_path / "in").mkdir()
    with pytest.raises(ValueError, match="use backfill"):
        learn(spark.createDataFrame([], COLUMNS), MODEL, **NAMES)
    with pytest.raises(ValueError, match="use learn"):
        backfill(stream(spark, tmp_path / "in"), MODEL, **NAMES)
    with pytest.raises(TypeError, match="must be a RAPRegressor"):
        learn(stream(spark, tmp_path / "in"), "lasso", **NAMES)
