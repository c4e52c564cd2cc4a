"""Sources of events: streaming DataFrames with the fields of an event.

A column of ids has either strings or integers, and so have the ids of a checkpoint. Events of the other type are
converted as in an engine; an id that does not spell one of the type is a `fault`, by which its event is rejected. The
column `sequence` (of any comparable type) gives the order of a user's events within one micro-batch.
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

FIELDS = ("event", "user", "basket", "item", "items", "time", "other")
FAULT = "fault"
_KIND_OF = {"user": "user", "basket": "basket", "item": "item", "other": "user"}  # columns of ids
_WHOLE_NUMBER = "^(0|-?[1-9][0-9]{0,18})$"
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
        "other": _ID_TYPES[user],
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
        return in_types(rows.select(*FIELDS, sequence.alias("sequence")), id_types(schema))
    spelled = _with_texts(schema)
    with _existing(folder):
        texts = reader.text(folder, wholetext=True)
    numbered = sql.posexplode(sql.split("value", r"\r?\n")).alias("number", "line")
    lines = texts.select(sql.col("_metadata.file_name").alias("file"), numbered).where("trim(line) != ''")
    event = _from_csv(spelled) if kind == "csv" else sql.from_json("line", spelled)
    if kind == "csv":
        lines = lines.where("number > 0")
    parsed = lines.select(event.alias("event"), sql.struct("file", "number").alias("sequence"))
    return in_types(parsed.select(*(f"event.{name}" for name in FIELDS), "sequence"), id_types(schema))


def _with_texts(schema: StructType) -> StructType:
    """Return the schema with texts as ids: Spark itself would read 017 as 17, and A-5 as null."""
    kinds = {name: StringType() for name in _KIND_OF} | {"items": ArrayType(StringType())}
    return StructType([StructField(field.name, kinds.get(field.name, field.dataType)) for field in schema])


def id_types(schema: StructType) -> dict[str, str]:
    """Return the SQL types of the ids of events."""
    return {name: schema[name].dataType.simpleString() for name in ("user", "basket", "item")}


def in_types(events: DataFrame, kinds: dict[str, str]) -> DataFrame:
    """Return events whose ids have these types. A value that spells no id of its type is null, and makes a `fault`."""
    known = sql.col(FAULT) if FAULT in events.columns else sql.lit(None).cast("string")
    texts = {name: sql.col(name).cast("string") for name in _KIND_OF}
    faults = [
        sql.when(~_spells(text), sql.format_string(f"{kind} id '%s' is not a whole number, as in this stream", text))
        for kind, text in zip(_KIND_OF.values(), texts.values(), strict=True)
        if kinds[kind] != "string"
    ]
    items = sql.col("items").cast("array<string>")
    if kinds["item"] != "string":
        wrong = sql.filter(items, lambda text: ~_spells(text))
        named = sql.format_string("item id '%s' is not a whole number, as in this stream", wrong[0])
        faults.append(sql.when(sql.size(wrong) > 0, named))
    typed = {name: _as_type(text, kinds[_KIND_OF[name]]) for name, text in texts.items()}
    typed["items"] = sql.transform(items, lambda text: _as_type(text, kinds["item"]))
    return events.withColumns({FAULT: sql.coalesce(known, *faults), **typed})


def _spells(text: Column) -> Column:
    """Return whether a text, which may be null, spells a whole number of 64 bits as it is usually written."""
    return text.isNull() | (text.rlike(_WHOLE_NUMBER) & text.try_cast("bigint").isNotNull())


def _as_type(text: Column, kind: str) -> Column:
    return text if kind == "string" else text.try_cast(kind)


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
    event = sql.from_json(sql.col("value").cast("string"), _with_texts(schema)).alias("event")
    parsed = messages.select(event, sql.struct("partition", "offset").alias("sequence"))
    return in_types(parsed.select(*(f"event.{name}" for name in FIELDS), "sequence"), id_types(schema))


def ordered(events: DataFrame) -> DataFrame:
    """Return all fields of the events, their `fault` if an id has one, and their `sequence`.

    Without a `sequence`, baskets are learned in the order of time, then baskets without a time in any order, and then
    the other events are applied.
    """
    missing = [name for name in ("event", "user", "basket", "items") if name not in events.columns]
    if missing:
        raise InvalidFrameError(f"the stream of events has no column {missing[0]!r}; it has {events.columns}")
    optional = {"time": LongType(), "item": item_type(events.schema), "other": events.schema["user"].dataType}
    absent = [sql.lit(None).cast(kind).alias(name) for name, kind in optional.items() if name not in events.columns]
    events = events.select("*", *absent)
    if "sequence" not in events.columns:
        comes_later = (sql.col("event") != "learn").cast("int")
        events = events.withColumn("sequence", sql.struct(comes_later, sql.coalesce("time", sql.lit(2**63 - 1))))
    if FAULT not in events.columns:
        events = events.withColumn(FAULT, sql.lit(None).cast("string"))
    return events.select(*FIELDS, FAULT, "sequence")
