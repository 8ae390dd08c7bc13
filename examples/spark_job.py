"""A model for every shop, from a folder of Parquet files that grows: spark-submit examples/spark_job.py SALES RESULTS

Kafka: `spark.readStream.format("kafka")` and `from_json` instead of `parquet`; the rest stays (docs/many.md).
"""

import sys
from time import perf_counter

from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

from streamlasso import RAPRegressor
from streamlasso.spark import learn

METRICS = [
    *(f"count_if(status = '{status}') AS {status}" for status in ("learnt", "waiting", "refused", "expired")),
    "round(avg(loss) / avg(baseline), 4) AS loss_over_running_mean",
    "sum(page.waiting) AS labels_awaited",
    "round(sum(page.bytes) / 1e6, 3) AS page_megabytes",
    "round(sum(page.packing), 3) AS packing",
    "round(sum(page.learning), 3) AS learning",
]


def write(batch, number):
    """A batch that is repeated after a crash overwrites itself: every row is there once."""
    start = perf_counter()
    batch.persist().write.mode("overwrite").parquet(f"{results}/predictions/batch={number}")
    metrics = batch.agg(*map(expr, METRICS)).first().asDict()
    batch.unpersist()
    print({"batch": number, **metrics, "seconds": round(perf_counter() - start, 3)}, flush=True)


sales, results = sys.argv[1:3]
spark = SparkSession.builder.appName("A model for every shop").getOrCreate()
columns = "shop STRING, sale BIGINT, at TIMESTAMP, price DOUBLE, rain DOUBLE, holiday BOOLEAN, sold DOUBLE"
stream = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1).parquet(sales)
model = RAPRegressor(memory=500, tuner="logrms")
features = ["price", "rain", "holiday"]
learnt = learn(stream, model, key="shop", features=features, target="sold", id="sale", time="at", pages=64)
query = learnt.writeStream.foreachBatch(write).option("checkpointLocation", f"{results}/checkpoint")
query.trigger(availableNow=True).start().awaitTermination()
