"""Histories as rows of an Arrow table, in the state's files and in frames: the columns user, baskets and suppressed.

`baskets` is a list of (basket, time, opens, items), oldest first: all that an engine stores of purchases. `opens` says
whether a basket opens a group, under varying groups, and `suppressed` are the items that the user does not want.
Ids of a kind have one type, and items are in the order of ids, so equal histories are equal bytes. In files, a row
begins with the hash of the user, and a row without baskets is a tombstone: the user is gone.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unbasket.core.model import UNTIMED, FoldWorkspace, queries
from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.ids import Id, IdTypes, in_order
from unbasket.engine.histories import HistoryState
from unbasket.params import Params

Kinds = dict[str, str]
"""The SQL type of ids of each kind, `string` or `bigint`."""


def arrow_type(kind: str) -> pa.DataType:
    """Return the Arrow type of ids of an SQL type."""
    return pa.string() if kind == "string" else pa.int64()


def types_of(kinds: Kinds) -> IdTypes:
    """Return the types of ids in Python."""
    return IdTypes(*(str if kinds[kind] == "string" else int for kind in ("user", "basket", "item")))


def history_schema(kinds: Kinds) -> pa.Schema:
    """Return the schema of histories with ids of these types."""
    user, basket, item = (arrow_type(kinds[name]) for name in ("user", "basket", "item"))
    fields = [("basket", basket), ("time", pa.int64()), ("opens", pa.bool_()), ("items", pa.list_(item))]
    return pa.schema([("user", user), ("baskets", pa.list_(pa.struct(fields))), ("suppressed", pa.list_(item))])


def stored_schema(kinds: Kinds) -> pa.Schema:
    """Return the schema of the state's files."""
    return pa.schema([("hash", pa.int64()), *history_schema(kinds)])


def history_row(user: Id, baskets: Iterable[tuple[tuple[Any, ...], bool]], suppressed: Iterable[Id]) -> dict[str, Any]:
    """Build a row from an engine's baskets, each with whether it opens a group, and the user's suppressed items."""
    return {
        "user": user,
        "baskets": [
            {"basket": basket, "time": time, "opens": bool(opens), "items": list(items)}
            for (basket, time, items), opens in baskets
        ],
        "suppressed": list(suppressed),
    }


def load_rows(state: HistoryState, rows: pa.Table) -> None:
    """Load the histories in a table of distinct new users; tombstones are skipped."""
    counts = flat(rows["baskets"]).value_lengths().to_numpy(zero_copy_only=False)
    if len(counts) and not counts.all():
        rows = rows.filter(pa.array(counts > 0))
    columns = columns_of(rows)
    state.load(columns)
    pairs = zip(columns.users, rows["suppressed"].to_pylist(), strict=True)
    state.suppressed |= {user: set(items) for user, items in pairs if items}


def columns_of(rows: pa.Table) -> BasketColumns:
    """Return the baskets of the users in a table."""
    lists = flat(rows["baskets"])
    baskets = lists.flatten()
    items, names = baskets.field("items"), baskets.field("basket")
    bought = items.flatten().dictionary_encode()
    texts = names.dictionary_encode() if pa.types.is_string(names.type) else None
    counts = lists.value_lengths().to_numpy(zero_copy_only=False)
    return BasketColumns(
        users=rows["user"].to_pylist(),
        items=bought.dictionary.to_pylist(),
        baskets=None if texts is None else texts.dictionary.to_pylist(),
        owners=np.repeat(np.arange(len(counts), dtype=np.uint32), counts),
        keys=(names if texts is None else texts.indices).to_numpy().astype(np.int64),
        times=pc.fill_null(baskets.field("time"), UNTIMED).to_numpy(),
        sizes=items.value_lengths().to_numpy().astype(np.int64),
        opens=baskets.field("opens").to_numpy(zero_copy_only=False).astype(np.int64),
        purchases=bought.indices.to_numpy().astype(np.uint32),
    )


def rows_of(state: HistoryState, users: list[Id], kinds: Kinds) -> pa.Table:
    """Return the rows of users; one who is not in the state gets a tombstone."""
    schema = history_schema(kinds)
    known = [user for user in users if user in state.users]
    columns = state.columns(known)
    items = pa.array(columns.items, arrow_type(kinds["item"])).take(pa.array(columns.purchases))
    names = pa.array(columns.keys)
    if columns.baskets is not None:
        names = pa.array(columns.baskets, pa.string()).take(names)
    untimed = columns.times == UNTIMED
    basket = schema.field("baskets").type.value_type
    fields = [
        names.cast(basket.field("basket").type),
        pa.array(columns.times, mask=untimed),
        pa.array(columns.opens.astype(bool)),
        pa.ListArray.from_arrays(offsets(columns.sizes), items),
    ]
    counts = np.zeros(len(users), np.int64)
    counts[[user in state.users for user in users]] = np.bincount(columns.owners, minlength=len(known))
    baskets = pa.ListArray.from_arrays(offsets(counts), pa.StructArray.from_arrays(fields, fields=list(basket)))
    suppressed = [in_order(state.suppressed.get(user, ())) for user in users]
    return pa.table([pa.array(users, schema.field("user").type), baskets, suppressed], schema=schema)


def vector_table(rows: pa.Table, params: Params) -> pa.Table:
    """Fold histories into vectors (Eq. uservector): user, items in the order of ids, and weights before rounding.

    A tombstone has neither items nor weights.
    """
    state = HistoryState(params)
    load_rows(state, rows)
    users = rows["user"].to_pylist()
    is_known = np.array([user in state.users for user in users], bool)
    owners = np.array([state.users.codes[user] for user in users if user in state.users], np.int64)
    ends, codes, weights, _ = queries.vectors(state.histories, FoldWorkspace(), state.rule, owners)
    lengths = np.zeros(len(users), np.int64)
    lengths[is_known] = np.diff(ends, prepend=0)
    order = np.lexsort((state.items.labels[codes], np.repeat(np.arange(len(users)), lengths)))
    names = pa.array(state.items.names, rows.schema.field("suppressed").type.value_type).take(pa.array(codes[order]))
    columns, is_gone = (names, pa.array(weights[order])), pa.array(~is_known)
    lists = [pa.ListArray.from_arrays(offsets(lengths), values, mask=is_gone) for values in columns]
    return pa.table([flat(rows["user"]), *lists], names=["user", "items", "weights"])


def flat(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def offsets(lengths: Any) -> pa.Array:
    """Return the offsets of lists with these lengths, for an Arrow list column."""
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
