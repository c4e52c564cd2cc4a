"""Sources of events: streaming DataFrames with the fields of an event.

A column of ids has either strings or integers, and so have the ids of a checkpoint. Events of the other type are
converted as in an engine; an id that does not spell one of the type is a `fault`, by which its event is rejected. The
column `sequence` (of any comparable type) gives the order of a user's events within one micro-batch; equal ones keep
the order of their partition.
"""

from typing import Literal

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, DataType, LongType, StringType, StructField, StructType

from unbasket.errors import InvalidFrameError, SparkError

IdType = Literal["string", "long"]
Format = Literal["json", "parquet", "csv"]

FIELDS = ("event", "user", "basket", "item", "items", "time", "other")
FAULT = "fault"
_KIND_OF = {"user": "user", "basket": "basket", "item": "item", "other": "user", "items": "item"}  # columns of ids
_ID_TYPES: dict[IdType, DataType] = {"string": StringType(), "long": LongType()}


def item_type(schema: StructType, column: str = "items") -> DataType:
    """Return the type of items in a frame with a column of item lists."""
    lists = schema[column].dataType
    if not isinstance(lists, ArrayType):
        raise InvalidFrameError(
            f"the column {column!r} has type {lists.simpleString()}; it must be an array of item ids"
        )
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
        "other": _ID_TYPES[user],
    }
    return StructType([StructField(name, types[name]) for name in FIELDS])


def read_files(
    spark: SparkSession, folder: str, schema: StructType, *, kind: Format = "json", most: int | None = None
) -> DataFrame:
    """Read the events in files as they appear in a folder: JSON lines, Parquet, or CSV with items separated by |.

    Files are read in the order of their modification times, at most `most` of them in a batch. Within a batch, events
    are applied in the order of file names and, within a file, of lines.
    """
    reader = spark.readStream if most is None else spark.readStream.option("maxFilesPerTrigger", most)
    lists = StringType() if kind == "csv" else ArrayType(StringType())
    stored = schema if kind == "parquet" else _with_texts(schema, lists)
    try:
        rows = reader.format(kind).schema(stored).option("header", True).load(folder)
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        raise SparkError(f"{folder} does not exist. Create it: the files that appear in it are read") from None
    rows = rows.select("*", sql.struct("_metadata.file_name", "_metadata.file_block_start").alias("sequence"))
    if kind == "csv":
        rows = rows.withColumn("items", sql.split("items", r"\|"))
    return in_types(rows, id_types(schema))


def _with_texts(schema: StructType, lists: DataType) -> StructType:
    """Return the schema with texts as ids: Spark itself would read 017 as 17, and A-5 as null."""
    kinds = {**dict.fromkeys(_KIND_OF, StringType()), "items": lists}
    return StructType([StructField(field.name, kinds.get(field.name, field.dataType)) for field in schema])


def id_types(schema: StructType) -> dict[str, str]:
    """Return the SQL types of the ids of events."""
    return {name: schema[name].dataType.simpleString() for name in ("user", "basket", "item")}


def in_types(events: DataFrame, kinds: dict[str, str]) -> DataFrame:
    """Return events whose ids have these types. A value that spells no id of its type is null, and makes a `fault`."""
    faults = [sql.col(FAULT) if FAULT in events.columns else sql.lit(None).cast("string")]
    typed = {}
    for name, kind in _KIND_OF.items():
        text, held = ("array<string>", f"array<{kinds[kind]}>") if name == "items" else ("string", kinds[kind])
        given = sql.col(name).cast(text)
        typed[name] = given.try_cast(held)
        if kinds[kind] != "string":
            spelled = typed[name].cast(text)
            wrong = sql.array_except(given, spelled)[0] if name == "items" else given
            fault = sql.format_string(f"{kind} id '%s' is not a whole number, as in this stream", wrong)
            faults.append(sql.when(~spelled.eqNullSafe(given), fault))
    return events.withColumns({FAULT: sql.coalesce(*faults), **typed})


def ordered(events: DataFrame) -> DataFrame:
    """Return events with all their fields, their `fault` if an id has one, and their `sequence`.

    Without a `sequence`, baskets are learned in the order of time, then baskets without a time, and then the other
    events are applied.
    """
    missing = [name for name in ("event", "user", "basket", "items") if name not in events.columns]
    if missing:
        raise InvalidFrameError(f"the stream of events has no column {missing[0]!r}; it has {events.columns}")
    types = {"time": LongType(), "item": item_type(events.schema), "other": events.schema["user"].dataType}
    absent = {name: kind for name, kind in {**types, FAULT: StringType()}.items() if name not in events.columns}
    events = events.withColumns({name: sql.lit(None).cast(kind) for name, kind in absent.items()})
    if "sequence" not in events.columns:
        comes_later = (sql.col("event") != "learn").cast("int")
        events = events.withColumn("sequence", sql.struct(comes_later, sql.coalesce("time", sql.lit(2**63 - 1))))
    return events
