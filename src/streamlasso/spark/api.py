"""`learn`, `backfill` and `models`: Spark's tables in and out."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor

from streamlasso.estimators import RAPClassifier, RAPRegressor
from streamlasso.estimators.multiclass import modelled
from streamlasso.keyed import KeyedClassifier, KeyedRegressor
from streamlasso.spark import columns
from streamlasso.spark.job import MOST_BYTES, Job
from streamlasso.spark.page import EXPIRED, Pages, Results, State

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The state of a page, by the name of Spark's state variable. Bytes are base64: Spark hands bytes to Python as text in
#: which every other byte takes two.
PAGE = "page"
STATE = "settings STRING, models STRING, marks STRING, ids STRING, waiting STRING, timer BIGINT"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"


def learn(
    df: DataFrame,
    model: RAPRegressor | RAPClassifier,
    *,
    key: str,
    features: Sequence[str],
    target: str,
    id: str,
    time: str | None = None,
    pages: int = 4096,
    label_wait: str | timedelta | None = None,
    classes: Sequence[Any] | None = None,
    initial: DataFrame | None = None,
) -> DataFrame:
    """Predict each row of a stream with the model of its key, then learn it.

    The models of all keys with the same hash modulo `pages` are one value in Spark's state store, which is RocksDB with
    a changelog (set here where the session has another one). Rows of a batch are learnt by time and id. So models are
    the same, to the bit, for any number of partitions, after any crash, and in one process with `KeyedRegressor`.

    Parameters
    ----------
    df : DataFrame
        A stream.
    model : RAPRegressor or RAPClassifier
        The settings of all models.
    key, target, id : str
        Columns. `id` names a row within its key: rows that come twice are refused.
    features : list of str
        Columns of numbers.
    time : str, default=None
        A column of times, dates or whole numbers.
    pages : int, default=4096
        Values in the state store; fixed for a checkpoint. A page of about a megabyte is best, and one larger than 64 MB
        takes no more keys.
    label_wait : str or timedelta, default=None
        How long features without a target wait for it, "2 hours", by the clock of the cluster. The label is a row with
        the same key and id, and a target; what else it holds is ignored.
    classes : list, default=None
        All classes, for a `RAPClassifier`.
    initial : DataFrame, default=None
        What `backfill` gave; used when the checkpoint is new.

    Returns
    -------
    DataFrame
        One row for each that came in, and one more for each that expires: key, id, `prediction` (before learning, when
        the features came), for classes `probabilities`, `loss`, `baseline` (the loss of the running mean of the key),
        `status` (learnt, waiting, refused, expired), `error`, and `page`, which the first row of each page in a batch
        has: number, keys, bytes and waiting.

    Examples
    --------
    A whole job is `examples/spark_job.py`.

    >>> from streamlasso.spark import learn
    >>> query = learn(
    ...     events, RAPRegressor(tuner="logrms"), key="shop", features=["price", "rain"], target="sold", id="sale"
    ... ).writeStream.option("checkpointLocation", "models").toTable("predictions")  # doctest: +SKIP
    """
    if not df.isStreaming:
        raise ValueError("df is a table, and learn takes a stream: use backfill for history, or spark.readStream")
    wait_ms = _milliseconds(label_wait)
    job = _job(model, features, pages, classes, wait_ms=wait_ms)
    table = columns.events(df, job, key, target, id, time)
    _use_rocksdb(df.sparkSession)
    out = table.groupBy("page").transformWithState(
        _Processor(job, label_wait),
        columns.out_schema(job),
        "Append",
        "none" if label_wait is None else "ProcessingTime",
        initialState=None if initial is None else initial.select("page", *_state_names()).groupBy("page"),
    )
    return columns.results(out, job, df, key, target, id)


def backfill(
    df: DataFrame,
    model: RAPRegressor | RAPClassifier,
    *,
    key: str,
    features: Sequence[str],
    target: str,
    id: str,
    time: str | None = None,
    pages: int = 4096,
    classes: Sequence[Any] | None = None,
) -> DataFrame:
    """Learn a table of history, all pages in parallel, for `learn(..., initial=...)` with the same settings.

    Returns one row per page: its state, and how many rows were `learnt` and `refused`, with the first `error`. Rows are
    learnt by time and id, as in a stream, and those of a page are in memory at once.

    Examples
    --------
    >>> from streamlasso.spark import backfill, learn
    >>> settings = dict(model=RAPRegressor(), key="shop", features=["price"], target="sold", id="sale", time="at")
    >>> history = backfill(spark.table("sales"), **settings).localCheckpoint()  # doctest: +SKIP
    >>> history.selectExpr("sum(learnt)", "sum(refused)").show()  # doctest: +SKIP
    >>> learnt = learn(events, **settings, initial=history)  # doctest: +SKIP
    """
    if df.isStreaming:
        raise ValueError("df is a stream, and backfill takes a table: use learn for a stream")
    job = _job(model, features, pages, classes)
    table = columns.events(df, job, key, target, id, time)

    def learnt(number: tuple[int], frame: pd.DataFrame) -> pd.DataFrame:
        state, results = Pages(job).learn(None, columns.unpacked(job, frame["rows"]))
        errors = [error for error in results.error if error is not None]
        stored = [None] * len(State._fields) if state is None else _stored(state)
        values = dict(zip(_state_names(), stored, strict=True))
        counts = {"learnt": len(results.error) - len(errors), "refused": len(errors), "error": next(iter(errors), None)}
        return pd.DataFrame([{"page": number[0], **values, **counts}])

    schema = f"page INT, {STATE}, learnt BIGINT, refused BIGINT, error STRING"
    return table.groupBy("page").applyInPandas(learnt, schema)


def models(spark: SparkSession, checkpoint: str) -> DataFrame:
    """What every key has learnt, as of the last batch of the checkpoint of a `learn`.

    Returns one row per key, and per class where there are three or more: `key` (as text), `class`, `rows`,
    `effective_size`, `lam`, `intercept`, `coefficients` by feature, and `model`, bytes for `RAPRegressor.from_bytes` or
    `RAPClassifier.from_bytes`.

    Examples
    --------
    >>> from streamlasso.spark import models
    >>> models(spark, "checkpoint").where("coefficients['price'] > 0").show()  # doctest: +SKIP
    """
    _use_rocksdb(spark)
    state = spark.read.format("statestore").option("path", checkpoint).option("stateVarName", PAGE).load()
    schema = (
        "key STRING, class STRING, rows BIGINT, effective_size DOUBLE, lam DOUBLE, intercept DOUBLE, "
        "coefficients MAP<STRING, DOUBLE>, model BINARY"
    )
    return state.select("value.settings", "value.models").mapInPandas(_learnt_models, schema)


# --- in a worker ------------------------------------------------------------------------------------------------------


class _Processor(StatefulProcessor):
    """A page at a time: state in, rows out, state back."""

    def __init__(self, job: Job, label_wait: Any) -> None:
        self._job, self._label_wait = job, label_wait
        self._made: Pages | None = None

    @property
    def _pages(self) -> Pages:
        self._made = self._made or Pages(self._job)
        return self._made

    def init(self, handle: Any) -> None:
        self._handle = handle
        self._state = handle.getValueState(PAGE, STATE)

    def handleInitialState(self, key: Any, initialState: Row, timerValues: Any) -> None:
        state = _state([initialState[name] for name in _state_names()])
        if state is not None:
            self._pages.job.refuse_other(state.settings)
            self._state.update(_stored(state))

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        before = _state(self._state.get())
        events = columns.unpacked(self._job, [row["rows"] for row in rows])
        after, results = self._pages.learn(before, events, timerValues.getCurrentProcessingTimeInMs())
        if after is not None and after != before:
            self._set_timer(before, after)
            self._state.update(_stored(after))
        yield self._row(results, self._notes(int(key[0]), after))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        before = _state(self._state.get())
        if before is None:
            return
        after, expired = self._pages.expire(before, timerValues.getCurrentProcessingTimeInMs())
        if after.timer:
            self._handle.registerTimer(after.timer)
        self._state.update(_stored(after))
        if expired:
            yield self._expired(expired, self._notes(int(key[0]), after))

    def _set_timer(self, before: State | None, after: State) -> None:
        set_before = before.timer if before is not None else 0
        if after.timer != set_before:
            if set_before:
                self._handle.deleteTimer(set_before)
            if after.timer:
                self._handle.registerTimer(after.timer)

    def _expired(self, rows: list[tuple[str, str, np.ndarray]], notes: list[int]) -> Row:
        n = len(rows)
        results = Results([key for key, _, _ in rows], [name for _, name, _ in rows])
        predicted, probabilities = self._job.predictions(np.array([eta for _, _, eta in rows]))
        results.prediction, results.status = predicted, [EXPIRED] * n
        results.probabilities = probabilities or [None] * n
        results.error = [f"no label came within {self._label_wait}"] * n
        return self._row(results, notes)

    def _notes(self, number: int, state: State | None) -> list[int]:
        """In the order of the columns' struct `page`."""
        if state is None:
            return [number, 0, 0, 0]
        n_keys = len(state.marks) // (8 + 8 * self._job.n_learners)
        return [number, n_keys, state.n_bytes, state.n_waiting]

    def _row(self, results: Results, notes: list[int]) -> Row:
        """As `columns.out_schema` has it."""
        classes = {} if self._job.classes is None else {"probabilities": results.probabilities}
        return Row(
            key=results.keys,
            id=results.ids,
            prediction=results.prediction,
            loss=results.loss,
            baseline=results.baseline,
            status=results.status,
            error=results.error,
            page=notes,
            **classes,
        )


def _state(values: Any) -> State | None:
    """None for a page without any."""
    if values is None or values[0] is None:
        return None
    settings, models, marks, ids, waiting, timer = values
    return State(settings, b64decode(models), b64decode(marks), b64decode(ids), waiting, int(timer))


def _stored(state: State) -> tuple[Any, ...]:
    """As STATE has it."""
    settings, *parts, waiting, timer = state
    return settings, *(b64encode(part).decode() for part in parts), waiting, timer


def _state_names() -> list[str]:
    return list(State._fields)


def _learnt_models(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for frame in frames:
        for settings, data in zip(frame["settings"], frame["models"], strict=True):
            rows = list(_models_of(json.loads(settings), b64decode(data)))
            if rows:
                yield pd.DataFrame(rows)


def _models_of(settings: dict[str, Any], data: bytes) -> Iterator[dict[str, Any]]:
    classes, features = settings["classes"], settings["features"]
    keyed = (KeyedRegressor if classes is None else KeyedClassifier).from_bytes(data)
    for key in keyed:
        model = keyed.model(key)
        model._name(features)
        for name, learner in zip([None] if classes is None else modelled(classes), model.learners_, strict=True):
            yield {
                "key": key,
                "class": name,
                "rows": learner.n_seen,
                "effective_size": learner.effective_size,
                "lam": learner.lam,
                "intercept": learner.intercept,
                "coefficients": dict(zip(features, learner.coef.tolist(), strict=True)),
                "model": model.to_bytes(),
            }


# --- settings ---------------------------------------------------------------------------------------------------------


def _job(model: Any, features: Any, pages: Any, classes: Any, **others: Any) -> Job:
    if not isinstance(model, RAPRegressor | RAPClassifier):
        raise TypeError(f"model={model!r} must be a RAPRegressor or a RAPClassifier")
    if isinstance(features, str) or not len(features) or len(set(features)) < len(features):
        raise ValueError(f"features={features!r} must be a list of columns, each once")
    if not isinstance(pages, int | np.integer) or pages < 1:
        raise ValueError(f"pages={pages!r} must be a whole number, 1 or larger")
    if isinstance(model, RAPClassifier) != (classes is not None):
        raise ValueError("classes: use a list of all classes with a RAPClassifier, and None with a RAPRegressor")
    texts = None if classes is None else {columns.text_of(value): value for value in classes}
    job = Job(model, tuple(features), texts, int(pages), most_bytes=MOST_BYTES, **others)
    assert job.settings  # which looks at all of them
    return job


def _milliseconds(label_wait: Any) -> int | None:
    if label_wait is None:
        return None
    try:
        wait = pd.Timedelta(label_wait)
    except ValueError:
        wait = pd.Timedelta(0)
    if isinstance(label_wait, int | float) or not wait > pd.Timedelta(0):
        raise ValueError(f"label_wait={label_wait!r} is not a time to wait: use '2 hours' or a timedelta")
    return int(wait.total_seconds() * 1000)


def _use_rocksdb(spark: SparkSession) -> None:
    """transformWithState works with no other state store."""
    if spark.conf.get(PROVIDER, "") != ROCKSDB:
        spark.conf.set(PROVIDER, ROCKSDB)
        spark.conf.set(CHANGELOG, "true")
