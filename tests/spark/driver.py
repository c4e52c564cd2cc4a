"""A process that runs a stream until it is killed: python driver.py FOLDER."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from unbasket import Params
from unbasket.spark import event_schema, maintain, read_files, session

# Java's quick compiler alone: no test runs for so long that the thorough one pays.
QUICK_START = {"spark.driver.extraJavaOptions": "-Xss8m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}

# A busy machine is no failure: by default, Spark gives up on what does not answer within 15, 60 or 120 seconds.
PATIENCE = {
    "spark.python.authenticate.socketTimeout": "600s",
    "spark.sql.streaming.stateStore.rocksdb.lockAcquireTimeoutMs": "600000",
    "spark.network.timeout": "600s",
}


PARAMS = Params(group_size=3, basket_decay=0.9, group_decay=0.7)


def start(spark: SparkSession, folder: Path) -> StreamingQuery:
    """The stream of a folder's events into the folder's table, from where it was left."""
    events = read_files(spark, str(folder / "events"), event_schema(), most=1)
    stream = maintain(events, PARAMS, checkpoint=str(folder / "checkpoint"))
    return stream.into_table(str(folder / "table"), every="0 seconds")


def main(folder: Path) -> None:
    spark = session("local[2]", work=str(folder / "work"), settings={**QUICK_START, **PATIENCE})
    start(spark, folder).awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
