"""Sources of events: streaming DataFrames with the fields of an event.

A column of ids has either strings or integers. The column `sequence` (of any comparable type) gives the order of a
user's events within one micro-batch.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, DataType, LongType, StringType, StructField, StructType

from unbasket.errors import InvalidFrameError, SparkError

IdType = Literal["string", "long"]
Format = Literal["json", "parquet", "csv"]

FIELDS = ("event", "user", "basket", "item", "items", "time")
_ID_TYPES: dict[IdType, DataType] = {"string": StringType(), "long": LongType()}


def item_type(schema: StructType) -> DataType:
    """Return the type of items in a frame with a column of item lists."""
    lists = schema["items"].dataType
    if not isinstance(lists, ArrayType):
        raise InvalidFrameError(f"the column 'items' has type {lists.simpleString()}; it must be an array of item ids")
    return lists.elementType


def event_schema(user: IdType = "string", basket: IdType = "string", item: IdType = "string") -> StructType:
    """Return the schema of events, for any source: JSON and Parquet files, or the values of Kafka's messages."""
    types = {
        "event": StringType(),
        "user": _ID_TYPES[user],
        "basket": _ID_TYPES[basket],
        "item": _ID_TYPES[item],
        "items": ArrayType(_ID_TYPES[item]),
        "time": LongType(),
    }
    return StructType([StructField(name, types[name]) for name in FIELDS])


def read_files(
    spark: SparkSession, folder: str, schema: StructType, *, kind: Format = "json", most: int | None = None
) -> DataFrame:
    """Read the events in files as they appear in a folder: JSON lines, Parquet, or CSV.

    Files are read in the order of their modification times, at most `most` of them in a batch. Within a batch, events
    are applied in the order of file names and, within a file, of lines. To number the lines, Spark reads each file as
    one text, so keep files below some 100 MB.
    """
    reader = spark.readStream if most is None else spark.readStream.option("maxFilesPerTrigger", most)
    if kind == "parquet":
        sequence = sql.struct("_metadata.file_name", "_metadata.row_index")
        with _existing(folder):
            rows = reader.schema(schema).parquet(folder)
        return rows.select(*FIELDS, sequence.alias("sequence"))
    with _existing(folder):
        texts = reader.text(folder, wholetext=True)
    numbered = sql.posexplode(sql.split("value", r"\r?\n")).alias("number", "line")
    lines = texts.select(sql.col("_metadata.file_name").alias("file"), numbered).where("trim(line) != ''")
    event = _from_csv(schema) if kind == "csv" else sql.from_json("line", schema)
    if kind == "csv":
        lines = lines.where("number > 0")
    parsed = lines.select(event.alias("event"), sql.struct("file", "number").alias("sequence"))
    return parsed.select(*(f"event.{name}" for name in FIELDS), "sequence")


@contextmanager
def _existing(folder: str) -> Iterator[None]:
    """Raise a one-line error if the folder does not exist."""
    try:
        yield
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        raise SparkError(f"{folder} does not exist. Create it: the files that appear in it are read") from None


def _from_csv(schema: StructType) -> Column:
    """Parse a line of CSV as an event: fields in the order of `FIELDS`, items separated by |."""
    flat = StructType([StructField("items", StringType()) if field.name == "items" else field for field in schema])
    fields = sql.from_csv("line", flat.simpleString().removeprefix("struct<").removesuffix(">").replace(":", " "))
    return fields.withField("items", sql.split(fields["items"], r"\|").cast(schema["items"].dataType))


def parse_messages(messages: DataFrame, schema: StructType) -> DataFrame:
    """Parse messages from Kafka's source: JSON in `value`, in the order of `partition` and `offset`."""
    event = sql.from_json(sql.col("value").cast("string"), schema).alias("event")
    parsed = messages.select(event, sql.struct("partition", "offset").alias("sequence"))
    return parsed.select(*(f"event.{name}" for name in FIELDS), "sequence")


def ordered(events: DataFrame) -> DataFrame:
    """Return all fields of the events, and their `sequence`.

    Without a `sequence`, baskets are learned in the order of time, then baskets without a time in any order, and then
    forgets are applied.
    """
    missing = [name for name in ("event", "user", "basket", "items") if name not in events.columns]
    if missing:
        raise InvalidFrameError(f"the stream of events has no column {missing[0]!r}; it has {events.columns}")
    optional = {"time": LongType(), "item": item_type(events.schema)}
    absent = [sql.lit(None).cast(kind).alias(name) for name, kind in optional.items() if name not in events.columns]
    events = events.select("*", *absent)
    if "sequence" not in events.columns:
        is_forget = (sql.col("event") == "forget").cast("int")
        events = events.withColumn("sequence", sql.struct(is_forget, sql.coalesce("time", sql.lit(2**63 - 1))))
    return events.select(*FIELDS, "sequence")
