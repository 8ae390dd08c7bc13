"""A model for every shop: spark-submit examples/spark_job.py SALES RESULTS [LABEL_WAIT]

SALES is a folder of Parquet files, or kafka://BROKERS/TOPIC with rows as JSON (spark-submit then also takes
--packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0, as of your Spark). With LABEL_WAIT, "2 hours", the job goes
on for ever: sales without `sold` are predicted at once, and learnt when a row with the same shop and sale has it.
"""

import sys
from time import perf_counter

from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

from streamlasso import RAPRegressor
from streamlasso.spark import learn

COLUMNS = "shop STRING, sale BIGINT, at TIMESTAMP, price DOUBLE, rain DOUBLE, holiday BOOLEAN, sold DOUBLE"
METRICS = [
    *(f"count_if(status = '{status}') AS {status}" for status in ("learnt", "waiting", "refused", "expired")),
    "round(avg(loss) / avg(baseline), 4) AS loss_over_running_mean",
    "sum(page.waiting) AS labels_awaited",
    "round(sum(page.bytes) / 1e6, 3) AS page_megabytes",
]


def rows_of(sales):
    if not sales.startswith("kafka://"):
        return spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(sales)
    brokers, topic = sales.removeprefix("kafka://").split("/")
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", brokers).option("subscribe", topic)
    messages = source.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 100_000).load()
    return messages.select(expr(f"from_json(CAST(value AS STRING), '{COLUMNS}') AS row")).select("row.*")


def write(batch, number):
    """A batch that is repeated after a crash overwrites itself: every row is there once."""
    start = perf_counter()
    batch.persist().write.mode("overwrite").parquet(f"{results}/predictions/batch={number}")
    metrics = batch.agg(*map(expr, METRICS)).first().asDict()
    batch.unpersist()
    print({"batch": number, **metrics, "seconds": round(perf_counter() - start, 3)}, flush=True)


sales, results, *label_wait = sys.argv[1:]
spark = SparkSession.builder.appName("A model for every shop").getOrCreate()
learnt = learn(
    rows_of(sales),
    RAPRegressor(memory=500, tuner="logrms"),
    key="shop",
    features=["price", "rain", "holiday"],
    target="sold",
    id="sale",
    time="at",
    pages=64,
    label_wait=label_wait[0] if label_wait else None,
)
query = learnt.writeStream.foreachBatch(write).option("checkpointLocation", f"{results}/checkpoint")
when = {"processingTime": "1 second"} if label_wait else {"availableNow": True}
query.trigger(**when).start().awaitTermination()
