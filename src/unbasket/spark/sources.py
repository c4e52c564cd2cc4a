"""Where events come from, as streaming DataFrames with the contract's fields.

An id column is text or whole numbers, the same for all rows. The column `sequence` (of any type that can be compared)
says in which order a user's events of one micro-batch happen.
"""

from typing import Literal

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, DataType, LongType, StringType, StructField, StructType

from unbasket.errors import InvalidFrameError

IdType = Literal["string", "long"]
Format = Literal["json", "parquet", "csv"]

FIELDS = ("event", "user", "basket", "item", "items", "time")


def id_type(kind: IdType) -> DataType:
    """The type of a column of ids."""
    return StringType() if kind == "string" else LongType()


def item_type(schema: StructType) -> DataType:
    """The type of items in a frame with lists of them."""
    lists = schema["items"].dataType
    if not isinstance(lists, ArrayType):
        raise InvalidFrameError(f"the column 'items' has type {lists.simpleString()}; it must be an array of item ids")
    return lists.elementType


def event_schema(user: IdType = "string", basket: IdType = "string", item: IdType = "string") -> StructType:
    """The schema of events, for any source: of JSON and Parquet files, of Kafka's values."""
    types = {
        "event": StringType(),
        "user": id_type(user),
        "basket": id_type(basket),
        "item": id_type(item),
        "items": ArrayType(id_type(item)),
        "time": LongType(),
    }
    return StructType([StructField(name, types[name]) for name in FIELDS])


def read_files(
    spark: SparkSession, folder: str, schema: StructType, *, kind: Format = "json", most: int | None = None
) -> DataFrame:
    """The events in the files that appear in a folder: lines of JSON, Parquet, or CSV.

    Files come in the order of their modification times, at most so many in a batch; within a batch, events happen in
    the order of file names and, within a file, of lines. To know these, Spark reads a file of lines as one text: cut
    files at some 100 MB.
    """
    reader = spark.readStream if most is None else spark.readStream.option("maxFilesPerTrigger", most)
    if kind == "parquet":
        place = sql.struct("_metadata.file_name", "_metadata.row_index")
        return reader.schema(schema).parquet(folder).select(*FIELDS, place.alias("sequence"))
    texts = reader.text(folder, wholetext=True)
    numbered = sql.posexplode(sql.split("value", r"\r?\n")).alias("number", "line")
    lines = texts.select(sql.col("_metadata.file_name").alias("file"), numbered).where("trim(line) != ''")
    event = _from_csv(schema) if kind == "csv" else sql.from_json("line", schema)
    if kind == "csv":
        lines = lines.where("number > 0")
    parsed = lines.select(event.alias("event"), sql.struct("file", "number").alias("sequence"))
    return parsed.select(*(f"event.{name}" for name in FIELDS), "sequence")


def _from_csv(schema: StructType) -> Column:
    """A line of CSV as an event: the fields in the order of `FIELDS`, below a line with their names; items with |."""
    flat = StructType([StructField("items", StringType()) if field.name == "items" else field for field in schema])
    fields = sql.from_csv("line", flat.simpleString().removeprefix("struct<").removesuffix(">").replace(":", " "))
    return fields.withField("items", sql.split(fields["items"], r"\|").cast(schema["items"].dataType))


def parse_messages(messages: DataFrame, schema: StructType) -> DataFrame:
    """The events in messages as Kafka's source gives them: JSON in `value`, in order of `partition` and `offset`."""
    event = sql.from_json(sql.col("value").cast("string"), schema).alias("event")
    parsed = messages.select(event, sql.struct("partition", "offset").alias("sequence"))
    return parsed.select(*(f"event.{name}" for name in FIELDS), "sequence")


def ordered(events: DataFrame) -> DataFrame:
    """All fields of the events, and their `sequence`.

    Where there is none, baskets are learned in order of time, those without a time after them in no certain order, and
    then what is to be forgotten is forgotten.
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
