"""Histories as an Arrow table with a row per user: the form in which a shop moves to Spark, and is held there.

    user | baskets: (basket, time, opens, items), oldest first | suppressed items

That is all that an engine stores of purchases. `opens` says whether a basket opens a group, under varying groups, and a
row without baskets is a tombstone: the user is gone. Suppressed items are in the order of ids.
"""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unbasket.core.model import UNTIMED
from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.ids import Id, IdTypes, in_order


def history_schema(types: IdTypes) -> pa.Schema:
    """Return the schema of histories with ids of these types."""
    user, basket, item = (pa.int64() if held is int else pa.string() for held in types)
    fields = [("basket", basket), ("time", pa.int64()), ("opens", pa.bool_()), ("items", pa.list_(item))]
    return pa.schema([("user", user), ("baskets", pa.list_(pa.struct(fields))), ("suppressed", pa.list_(item))])


def to_table(columns: BasketColumns, suppressed: Mapping[Id, Collection[Id]], types: IdTypes) -> pa.Table:
    """Return the histories of users, with the items that they do not want."""
    schema = history_schema(types)
    fields = schema.field("baskets").type.value_type
    names, purchases = pa.array(columns.keys), pa.array(columns.purchases)
    if columns.baskets is not None:
        names = pa.array(columns.baskets, pa.string()).take(names)
    items = pa.array(columns.items, schema.field("suppressed").type.value_type).take(purchases)
    baskets = [
        names.cast(fields.field("basket").type),
        pa.array(columns.times, mask=columns.times == UNTIMED),
        pa.array(columns.opens.astype(bool)),
        to_lists(items, columns.sizes),
    ]
    counts = np.bincount(columns.owners, minlength=len(columns.users))
    lists = to_lists(pa.StructArray.from_arrays(baskets, fields=list(fields)), counts)
    unwanted = [in_order(suppressed.get(user, ())) for user in columns.users]
    return pa.table([pa.array(columns.users, schema.field("user").type), lists, unwanted], schema=schema)


def to_lists(values: pa.Array, lengths: Any) -> pa.ListArray:
    """Return adjacent values as lists of these lengths."""
    return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)), values)


def to_columns(table: pa.Table) -> tuple[BasketColumns, dict[Id, set[Id]]]:
    """Return the baskets of users, and the items that they do not want. There must be no tombstones."""
    users, lists = table["user"].to_pylist(), table["baskets"].combine_chunks()
    baskets = lists.flatten()
    items, names = baskets.field("items"), baskets.field("basket")
    bought = items.flatten().dictionary_encode()
    texts = names.dictionary_encode() if pa.types.is_string(names.type) else None
    columns = BasketColumns(
        users=users,
        items=bought.dictionary.to_pylist(),
        baskets=None if texts is None else texts.dictionary.to_pylist(),
        owners=np.repeat(np.arange(len(users), dtype=np.uint32), lists.value_lengths().to_numpy(zero_copy_only=False)),
        keys=(names if texts is None else texts.indices).to_numpy().astype(np.int64),
        times=pc.fill_null(baskets.field("time"), UNTIMED).to_numpy(),
        sizes=items.value_lengths().to_numpy().astype(np.int64),
        opens=baskets.field("opens").to_numpy(zero_copy_only=False).astype(np.int64),
        purchases=bought.indices.to_numpy().astype(np.uint32),
    )
    suppressed = zip(users, table["suppressed"].to_pylist(), strict=True)
    return columns, {user: set(items) for user, items in suppressed if items}
