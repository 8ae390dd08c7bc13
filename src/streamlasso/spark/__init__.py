"""A model for every key of a stream in Spark: shops, meters or patients by the million, on as many machines."""

try:
    import google.protobuf  # noqa: F401
    import pandas  # noqa: F401
    import pyspark  # noqa: F401
except ImportError as error:
    raise ImportError('streamlasso.spark needs pyspark: pip install "streamlasso[spark]", and Java 17') from error

from streamlasso.spark.api import backfill, learn, models

__all__ = ["backfill", "learn", "models"]
