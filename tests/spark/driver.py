"""A process that runs a stream until it is killed: python driver.py FOLDER."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from unbasket import Params
from unbasket.spark import event_schema, maintain, read_files, session

# Java's fast compiler only: no test runs long enough for the optimizing one to pay off.
QUICK_START = {"spark.driver.extraJavaOptions": "-Xss8m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}

# A busy machine is not a failure: Spark's default timeouts are 15, 60 and 120 seconds.
TIMEOUTS = {
    "spark.python.authenticate.socketTimeout": "600s",
    "spark.sql.streaming.stateStore.rocksdb.lockAcquireTimeoutMs": "600000",
    "spark.network.timeout": "600s",
}


PARAMS = Params(group_size=3, basket_decay=0.9, group_decay=0.7, alpha=0.8)


def start(spark: SparkSession, folder: Path) -> StreamingQuery:
    """Start or resume the stream of a folder's events into the folder's table."""
    events = read_files(spark, str(folder / "events"), event_schema(), most=1)
    stream = maintain(events, PARAMS, checkpoint=str(folder / "checkpoint"))
    return stream.into_table(str(folder / "table"), every="0 seconds")


def main(folder: Path) -> None:
    spark = session("local[2]", work=str(folder / "work"), settings={**QUICK_START, **TIMEOUTS})
    start(spark, folder).awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
