"""Batch import and export of states: the initial load, and moves to and from an engine.

A history is a row with a user and the user's `baskets`, oldest first, each with its id, its time or null, its items,
and whether it opens a group. An engine stores nothing else about a user's purchases.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.frames import read_baskets
from unbasket.domain.ids import Id
from unbasket.errors import InvalidFrameError
from unbasket.params import Params
from unbasket.spark.checkpoint import identify, require_number
from unbasket.spark.sources import item_type
from unbasket.spark.stream import STATE
from unbasket.spark.table import UPDATED
from unbasket.spark.user_state import decode, load_states

_BATCH = 1000  # users in a record batch


def load(history: DataFrame, params: Params) -> DataFrame:
    """Compute the state and the vector of every user in a history, for `maintain(..., loaded=...)`.

    The frame has one row per basket, with the columns user, basket, items, time and, under varying groups, optionally
    group; or one row per user, as returned by `histories`.
    """
    if "baskets" in history.columns:
        element = item_type(history.schema["baskets"].dataType.elementType).simpleString()  # type: ignore[attr-defined]
    elif "time" in history.columns:
        element = item_type(history.schema).simpleString()
    else:
        raise InvalidFrameError(
            f"a history needs the column 'time', since rows have no order here; it has {history.columns}"
        )
    user = history.schema["user"].dataType.simpleString()
    schema = f"user {user}, change string, items array<{element}>, weights array<double>, state binary"
    require_number(params)
    loaded = history.repartition("user").mapInArrow(partial(_load, params), schema)
    kinds = {"user": user, "basket": _basket_type(history.schema), "item": element}
    return loaded.withMetadata("state", {"kinds": kinds})  # for `maintain`, which can't see the ids of baskets


def _basket_type(schema: StructType) -> str:
    baskets: Any = schema["baskets"].dataType if "baskets" in schema.names else None
    field = schema["basket"] if baskets is None else baskets.elementType["basket"]
    return field.dataType.simpleString()


def _load(params: Params, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Load the users of one partition, which holds all of their baskets."""
    received = list(batches)
    if not received:
        return
    table = pa.Table.from_batches(received)
    if "baskets" in table.column_names:
        columns = BasketColumns.of(
            (row["user"], [(b["basket"], b["time"], b["items"], b["opens"]) for b in row["baskets"]])
            for row in table.to_pylist()
        )
        items = table.schema.field("baskets").type.value_type.field("items").type
    else:
        group = "group" if "group" in table.column_names else None
        names = {"user": "user", "basket": "basket", "item": "items", "time": "time"}
        columns = read_baskets(table, **names, group=group, group_size=params.group_size)
        items = table.schema.field("items").type
    fields = {"user": table.schema.field("user").type, "change": pa.string(), "items": items}
    schema = pa.schema([*fields.items(), ("weights", pa.list_(pa.float64())), ("state", pa.binary())])
    rows = (
        {"user": user, "change": UPDATED, **model.vector._asdict(), "state": model.state}
        for user, model in load_states(params, columns)
    )
    while some := list(islice(rows, _BATCH)):
        yield pa.RecordBatch.from_pylist(some, schema)


def histories(spark: SparkSession, checkpoint: str) -> DataFrame:
    """Read a checkpoint's state as of its last batch, one row per user."""
    kinds = identify(spark, checkpoint).kinds
    states = spark.read.format("statestore").option("stateVarName", STATE).load(checkpoint)
    basket = f"struct<basket: {kinds['basket']}, time: bigint, opens: boolean, items: array<{kinds['item']}>>"
    schema = f"user {kinds['user']}, baskets array<{basket}>"
    return states.selectExpr("user_map_value.state").mapInArrow(partial(_decode, kinds), schema)


def history_schema(kinds: dict[str, str]) -> pa.Schema:
    """Return the schema of histories with ids of these types, `string` or `bigint`."""
    user, basket, item = (pa.string() if kinds[name] == "string" else pa.int64() for name in ("user", "basket", "item"))
    fields = [("basket", basket), ("time", pa.int64()), ("opens", pa.bool_()), ("items", pa.list_(item))]
    return pa.schema([("user", user), ("baskets", pa.list_(pa.struct(fields)))])


def _decode(kinds: dict[str, str], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        columns = decode(batch["state"].to_pylist())
        opens = iter(columns.opens.tolist())
        found = columns.histories(np.arange(len(columns.users)))
        rows = [history_row(user, [(basket, next(opens)) for basket in baskets]) for user, baskets in found]
        yield pa.RecordBatch.from_pylist(rows, history_schema(kinds))


def history_row(user: Id, baskets: Iterable[tuple[tuple[Any, ...], bool]]) -> dict[str, Any]:
    """Build a history row from an engine's baskets, each with whether it opens a group."""
    return {
        "user": user,
        "baskets": [
            {"basket": basket, "time": time, "opens": bool(opens), "items": list(items)}
            for (basket, time, items), opens in baskets
        ],
    }
