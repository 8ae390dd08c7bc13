"""Columns as users name them, and as a page takes them.

Keys and ids travel as text: whole numbers with a null among them would become floats in pandas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 (Spark's own habit)
from pyspark.sql import types as T  # noqa: N812

from streamlasso.spark.job import Job

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
NUMBERS = (*WHOLE, T.FloatType, T.DoubleType, T.DecimalType, T.BooleanType)
TIMES = (T.TimestampType, T.TimestampNTZType, T.DateType)
#: What a page says about itself; numbers in this order.
NOTES = {"number": "int", "keys": "int", "bytes": "bigint", "waiting": "int", "packing": "double", "learning": "double"}


def events(df: DataFrame, job: Job, key: str, target: str, id: str, time: str | None) -> DataFrame:
    """The columns of `Events`, and the page."""
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
    return df.select(
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


def out_schema(job: Job) -> str:
    """What a worker gives."""
    prediction = "DOUBLE" if job.classes is None else "STRING"
    schema = (
        f"key STRING, id STRING, prediction {prediction}, loss DOUBLE, baseline DOUBLE, status STRING, error STRING, "
        "page ARRAY<DOUBLE>"
    )
    return schema if job.classes is None else f"{schema}, probabilities ARRAY<DOUBLE>"


def results(out: DataFrame, job: Job, df: DataFrame, key: str, target: str, id: str) -> DataFrame:
    """What the user gets: keys, ids and classes have the types that they came with."""
    kinds = {field.name: field.dataType for field in df.schema.fields}
    notes = F.struct(*(out["page"][i].cast(kind).alias(name) for i, (name, kind) in enumerate(NOTES.items())))
    classes = [] if job.classes is None else [out["probabilities"]]
    return out.select(
        out["key"].cast(kinds[key]).alias(key),
        out["id"].cast(kinds[id]).alias(id),
        (out["prediction"] if job.classes is None else out["prediction"].cast(kinds[target])).alias("prediction"),
        *classes,
        "loss",
        "baseline",
        "status",
        "error",
        F.when(out["page"].isNotNull(), notes).alias("page"),
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
