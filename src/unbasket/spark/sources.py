"""Sources of events: streaming DataFrames with the fields of an event as columns.

A column of ids has either strings or integers, and so have the ids of a checkpoint. The column `sequence` (of any
comparable type) gives the order of a user's events within one micro-batch; equal ones keep the order of their
partition.

An event is applied as JSON, by the engine's own rules: unknown fields are refused, and so are ids that spell none of
the checkpoint's types. The text is the column `json`, or made from the fields. Spark itself reads only users from it,
which lead to a shard.
"""

from typing import Literal

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, DataType, LongType, StringType, StructField, StructType

from unbasket.errors import InvalidFrameError, SparkError

IdType = Literal["string", "long"]
Format = Literal["json", "parquet", "csv"]

FIELDS = ("event", "user", "basket", "item", "items", "time", "other")
JSON, FAULT = "json", "fault"
_ID_TYPES: dict[IdType, DataType] = {"string": StringType(), "long": LongType()}
_TEXTS = "event string, user string, basket string, item string, items array<string>, time long, other string"


def id_types(frame: DataFrame, *others: str) -> dict[str, str]:
    """Return the SQL types of the ids in a frame with a row per basket, which must have some other columns too."""
    held, needed = dict(frame.dtypes), [*others, "user", "basket", "items"]
    if not {*needed} <= held.keys() or not held["items"].startswith("array<"):
        raise InvalidFrameError(f"a frame with the columns {needed} is needed, items as arrays of ids; it has {held}")
    return {"user": held["user"], "basket": held["basket"], "item": held["items"][len("array<") : -1]}


def event_schema(user: IdType = "string", basket: IdType = "string", item: IdType = "string") -> StructType:
    """Return the schema of events, for any source: JSON and Parquet files, or the values of Kafka's messages."""
    users, baskets, items = _ID_TYPES[user], _ID_TYPES[basket], _ID_TYPES[item]
    types = (StringType(), users, baskets, items, ArrayType(items), LongType(), users)
    return StructType([*map(StructField, FIELDS, types)])


def read_files(
    spark: SparkSession, folder: str, schema: StructType, *, kind: Format = "json", most: int | None = None
) -> DataFrame:
    """Read the events in files as they appear in a folder: JSON lines, Parquet, or CSV with items separated by |.

    Files are read in the order of their modification times, at most `most` of them in a batch. Within a batch, events
    are applied in the order of file names and, within a file, of lines.
    """
    reader = spark.readStream.format("text" if kind == "json" else kind).option("header", True)
    if kind != "json":
        reader = reader.schema(schema if kind == "parquet" else _TEXTS.replace("array<string>", "string"))
    if most is not None:
        reader = reader.option("maxFilesPerTrigger", most)
    try:
        rows = reader.load(folder)
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        raise SparkError(f"{folder} does not exist. Create it: the files that appear in it are read") from None
    if kind == "json":
        rows = rows.where(sql.trim("value") != "")
    if kind == "csv":
        rows = rows.withColumn("items", sql.split("items", r"\|"))
    text = sql.col("value") if kind == "json" else sql.to_json(sql.struct(*FIELDS))
    place = sql.struct("_metadata.file_name", "_metadata.file_block_start")
    return with_fields(rows.select(text.cast("binary").alias(JSON), place.alias("sequence")), schema)


def with_fields(events: DataFrame, schema: StructType) -> DataFrame:
    """Add the fields of events in the column `json`, with null for values of other types."""
    texts = events.select("*", sql.from_json(sql.col(JSON).cast("string"), _TEXTS).alias("texts"))
    fields = {name: sql.col(f"texts.{name}").try_cast(schema[name].dataType) for name in FIELDS}
    return texts.withColumns(fields).drop("texts")


def routed(events: DataFrame, user_type: str, shards: int) -> DataFrame:
    """Return events as JSON, with a `fault` or null, their `sequence`, the users in it, their hashes, and the shard.

    Without a `sequence`, baskets are learned in the order of time, then baskets without a time, and then the other
    events are applied.
    """
    if JSON not in events.columns:
        fields = [name for name in FIELDS if name in events.columns]
        events = events.withColumn(JSON, sql.to_json(sql.struct(*fields)).cast("binary"))
    absent = {"time": "long", "other": "string", FAULT: "string"}
    events = events.withColumns({k: sql.lit(None).cast(kind) for k, kind in absent.items() if k not in events.columns})
    if "sequence" not in events.columns:
        comes_later = (sql.col("event") != "learn").cast("int")
        events = events.withColumn("sequence", sql.struct(comes_later, sql.coalesce("time", sql.lit(2**63 - 1))))
    users = {name: sql.col(name).try_cast(user_type) for name in ("user", "other")}
    events = events.withColumns({**users, "other_hash": sql.xxhash64(users["other"]), **route(users["user"], shards)})
    return events.drop("event", "basket", "item", "items", "time")


def route(user: Column, shards: int) -> dict[str, Column]:
    """Return the columns `hash` and `shard` of users."""
    own = sql.xxhash64(user)
    return {"hash": own, "shard": sql.pmod(own, sql.lit(shards))}
