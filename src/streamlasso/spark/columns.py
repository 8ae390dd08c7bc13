"""Columns as users name them, and as a page takes them.

Spark's Python worker spends some microseconds on each value that it hands over. So the rows of a page travel there as
one value, an Arrow stream, and come back as one array for each column. Keys and ids are text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 (Spark's own habit)
from pyspark.sql import types as T  # noqa: N812

from streamlasso.spark.job import Job
from streamlasso.spark.page import Events

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
NUMBERS = (*WHOLE, T.FloatType, T.DoubleType, T.DecimalType, T.BooleanType)
TIMES = (T.TimestampType, T.TimestampNTZType, T.DateType)
#: What a page says about itself; numbers in this order.
NOTES = {"number": "int", "keys": "int", "bytes": "bigint", "waiting": "int"}


def events(df: DataFrame, job: Job, key: str, target: str, id: str, time: str | None) -> DataFrame:
    """The rows of `df`: `page`, and `rows` of it for `unpacked`."""
    kinds = {field.name: field.dataType for field in df.schema.fields}
    used = {"key": key, "target": target, "id": id, "time": time}
    for what, name in [*used.items(), *(("features", name) for name in job.features)]:
        if name is not None and name not in kinds:
            raise ValueError(f"{what}={name!r} is not a column: there are {', '.join(map(repr, kinds))}")
    for name in {target, id, key} & set(job.features):
        raise ValueError(f"features: {name!r} is the target, the id or the key; leave it out")
    for what in ("key", "id"):
        _refuse_kind(what, used[what], kinds, (T.StringType, T.DecimalType, T.BooleanType, *WHOLE, *TIMES), "text")
    for name in job.features:
        _refuse_kind("features", name, kinds, NUMBERS, "numbers")
    if job.classes is None:
        _refuse_kind("target", target, kinds, NUMBERS, "numbers")
    text = _column(df, key).cast("string")
    when, has_time = _time(df, time, kinds)
    name = _column(df, id)
    table = df.select(
        F.pmod(F.xxhash64(text), F.lit(job.pages)).cast("int").alias("page"),
        text.alias("key"),
        name.cast("string").alias("id"),
        (F.coalesce(name.cast("long"), F.lit(0)) if isinstance(kinds[id], WHOLE) else F.lit(0).cast("long")).alias(
            "number"
        ),
        when.alias("time"),
        has_time.alias("has_time"),
        F.array(*(_column(df, feature).cast("double") for feature in job.features)).alias("x"),
        _column(df, target).cast("double" if job.classes is None else "string").alias("y"),
    )
    return table.mapInArrow(_packed, "page INT, rows BINARY")


def _packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One row for each page of a batch."""
    for batch in batches:
        pages = batch.column("page").to_numpy()
        order = np.argsort(pages, kind="stable")
        rows = batch.drop_columns("page").take(pa.array(order))
        numbers, first = np.unique(pages[order], return_index=True)
        n_rows = np.diff(first, append=len(pages))
        parts = [_stream(rows.slice(a, n)) for a, n in zip(first.tolist(), n_rows.tolist(), strict=True)]
        yield pa.RecordBatch.from_pydict({"page": numbers, "rows": pa.array(parts, pa.binary())})


def _stream(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    return sink.getvalue().to_pybytes()


def unpacked(job: Job, parts: Iterable[bytes]) -> Events:
    """The rows of a page."""
    table = pa.Table.from_batches([pa.ipc.open_stream(part).read_next_batch() for part in parts])
    keys, ids, order, time, has_time = (table[name].to_pylist() for name in ("key", "id", "number", "time", "has_time"))
    # A null becomes nan, in a copy.
    values = pa.concat_arrays(table["x"].chunks).flatten().to_numpy(zero_copy_only=False)
    y = table["y"].to_numpy() if job.classes is None else table["y"].to_pylist()
    return Events(keys, ids, order, time, has_time, values.reshape(-1, len(job.features)), y)


def out_schema(job: Job) -> str:
    """What a worker gives: a row for each page."""
    kinds = {"key": "STRING", "id": "STRING", "prediction": "DOUBLE" if job.classes is None else "STRING"}
    kinds |= {"loss": "DOUBLE", "baseline": "DOUBLE", "status": "STRING", "error": "STRING"}
    if job.classes is not None:
        kinds["probabilities"] = "ARRAY<DOUBLE>"
    return ", ".join(f"{name} ARRAY<{kind}>" for name, kind in {**kinds, "page": "BIGINT"}.items())


def results(out: DataFrame, job: Job, df: DataFrame, key: str, target: str, id: str) -> DataFrame:
    """What the user gets: keys, ids and classes have the types that they came with."""
    kinds = {field.name: field.dataType for field in df.schema.fields}
    notes = F.struct(*(F.col("page")[i].cast(kind).alias(name) for i, (name, kind) in enumerate(NOTES.items())))
    names = [name for name in out.columns if name != "page"]
    rows = out.select("page", F.posexplode(F.arrays_zip(*names)).alias("place", "row")).select("page", "place", "row.*")
    return rows.select(
        rows["key"].cast(kinds[key]).alias(key),
        rows["id"].cast(kinds[id]).alias(id),
        (rows["prediction"] if job.classes is None else rows["prediction"].cast(kinds[target])).alias("prediction"),
        *(name for name in names if name == "probabilities"),
        "loss",
        "baseline",
        "status",
        "error",
        F.when(rows["place"] == 0, notes).alias("page"),
    )


def text_of(value: Any) -> str:
    """What Spark makes of a class when it is cast to text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _time(df: DataFrame, time: str | None, kinds: dict[str, Any]) -> tuple[Column, Column]:
    """Whole numbers that grow with time, and whether there is one."""
    if time is None:
        return F.lit(0).cast("long"), F.lit(True)
    _refuse_kind("time", time, kinds, (*WHOLE, *TIMES), "a timestamp")
    when = _column(df, time)
    number = when.cast("long") if isinstance(kinds[time], WHOLE) else F.unix_micros(when.cast("timestamp"))
    return F.coalesce(number, F.lit(0).cast("long")), when.isNotNull()


def _refuse_kind(what: str, name: Any, kinds: dict[str, Any], allowed: tuple[type, ...], wanted: str) -> None:
    if not isinstance(kinds[name], allowed):
        raise ValueError(f"{what}: column {name!r} is of type {kinds[name].simpleString()}: cast it to {wanted}")


def _column(df: DataFrame, name: str) -> Column:
    return df["`" + name.replace("`", "``") + "`"]
