"""Topics of Kafka: a source of events, and sinks for rejected messages and for recommendations.

    topic -> parse_messages -> events, and faults of other messages -> the state
                                         |                               |
                                 dead-letter topic          recommendations of users who changed

Spark's own connector reads and writes. The checkpoint has the offsets of a batch, by partition, before the batch
starts. A batch that is repeated after a crash has the same messages, so its number identifies them.
"""

from collections.abc import Mapping
from contextlib import ExitStack

from pyspark.errors import AnalysisException, IllegalArgumentException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from unbasket.domain.rejection import Reason
from unbasket.errors import SparkError
from unbasket.spark.batch import REJECTED, UPDATED
from unbasket.spark.prediction import histories, recommend
from unbasket.spark.sources import FAULT, JSON, with_fields
from unbasket.spark.state import State

_LARGEST = 900_000  # bytes of a rejected message: with its headers, it is below the default limit of a topic


class Kafka:
    """A cluster's brokers, with options of Kafka's Java client for reading and writing, such as those of TLS."""

    def __init__(self, brokers: str, client: Mapping[str, str] | None = None) -> None:
        options = {"isolation.level": "read_committed", **(client or {}), "bootstrap.servers": brokers}
        self._options = {f"kafka.{name}": value for name, value in options.items()}

    def read(
        self,
        spark: SparkSession,
        topic: str,
        schema: StructType,
        *,
        start: str = "earliest",
        most: int | None = None,
        accept_loss: bool = False,
    ) -> DataFrame:
        """Read the events of a topic, at most `most` messages in a batch.

        A new checkpoint starts at the earliest message, the latest one, or at offsets by partition in Spark's JSON.
        Messages that are gone before they were read are an error, unless the loss is accepted.
        """
        options = {"subscribe": topic, "startingOffsets": start, "failOnDataLoss": str(not accept_loss).lower()}
        reader = spark.readStream.format("kafka").options(**self._options, **options)
        if most is not None:
            reader = reader.option("maxOffsetsPerTrigger", most)
        try:
            return parse_messages(reader.load(), schema)
        except IllegalArgumentException as error:
            raise SparkError(f"topic {topic} can't be read: {error.getMessage()}") from None
        except AnalysisException as error:
            raise SparkError(
                f"Spark has no connector for Kafka: {error.getCondition()}. Its jars are those of "
                f"spark-sql-kafka-0-10_2.13, version {spark.version}; see docs/kafka.md"
            ) from None

    def write_rejected(self, topic: str, messages: DataFrame) -> None:
        """Write messages with faults to a dead-letter topic, as they are, with headers: the reason, and the place.

        A message that is too large for that is written without key and value, and a header has its size.
        """
        size = sql.length(JSON) + sql.coalesce(sql.length("key"), sql.lit(0))
        fits = size <= _LARGEST
        place = {name: sql.col(name) for name in ("topic", "partition", "offset")}
        facts = {"reason": sql.col(FAULT), **place, "size": sql.when(~fits, size)}
        headers = sql.array_compact(sql.array(*(_header(*fact) for fact in facts.items()))).alias("headers")
        content = [sql.when(fits, sql.col(column)).alias(name) for name, column in (("key", "key"), ("value", JSON))]
        self._write(messages.select(*content, headers), topic)

    def write_recommendations(self, topic: str, checkpoint: str, n: int, changes: DataFrame, batch: int) -> None:
        """Write n recommendations for each user whom a batch has changed; a user who is gone gets a tombstone.

        The key is the user. The value has the number of the batch, since a crash may write those of the last one again.
        """
        rows = changes.where(sql.col("change") != REJECTED).select("user", "change").collect()
        if not rows:
            return
        spark, state = changes.sparkSession, State.read(checkpoint)
        updated = [user for user, change in rows if change == UPDATED]
        removed = [(user,) for user, change in rows if change != UPDATED]
        with ExitStack() as stack:
            found = recommend(histories(spark, checkpoint), state.params, updated, n, until=stack)
            value = sql.to_json(sql.struct("user", sql.lit(batch).alias("batch"), "recommendations"))
            gone = spark.createDataFrame(removed, found.select("user").schema)
            messages = found.select("user", value.alias("value")).unionByName(gone, allowMissingColumns=True)
            self._write(messages.select(sql.col("user").cast("string").alias("key"), "value"), topic)

    def _write(self, messages: DataFrame, topic: str) -> None:
        messages.write.format("kafka").options(**self._options, topic=topic).save()


def _header(name: str, value: Column) -> Column:
    header = sql.struct(sql.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))
    return sql.when(value.isNotNull(), header)


def parse_messages(messages: DataFrame, schema: StructType) -> DataFrame:
    """Return the events in messages of Kafka's source: JSON in `value`, in the order of `partition` and `offset`.

    There must be a key, or else the message has a `fault`. One without a value is a tombstone, and left out.
    """
    without_key = sql.when(sql.col("key").isNull(), Reason.NO_KEY.value).alias(FAULT)
    place = sql.struct("partition", "offset").alias("sequence")
    columns = ("key", sql.col("value").alias(JSON), "topic", "partition", "offset", without_key, place)
    return with_fields(messages.where("value is not null").select(*columns), schema)
