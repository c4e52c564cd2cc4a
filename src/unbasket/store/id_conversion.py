"""Texts as ids in place of numbers: every row that names such an id is written again, in one transaction.

A database of an earlier version may hold numbers and texts as ids of one kind, so that 17 and "17" are one user twice.
It is not opened as it is, but can be converted: then each such pair is merged as `Recommender.rename` does.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
import numpy as np

from unbasket.core.codec import ColumnRowWriter
from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.ids import KINDS, Id, IdTypes, Kind, in_order, in_type
from unbasket.domain.results import Basket
from unbasket.engine.histories import HistoryState
from unbasket.errors import BasketConflictError, MixedIdsError
from unbasket.params import Params
from unbasket.store.item_tables import decode_product, decode_tuple
from unbasket.store.reader import Content, DatabaseReader
from unbasket.store.row_codec import TABLE_SEEDS, decode_basket, position_of
from unbasket.store.writer import Database

_SHOWN = 5  # pairs that an error names


def rewrite(database: Database, baskets: BasketColumns, types: IdTypes) -> Content:
    """Replace all baskets by these, and convert the ids of all other rows; the caller commits."""
    database.zero("baskets", *[row for row, _ in database.reader.payloads("baskets")])
    writer = ColumnRowWriter(baskets, TABLE_SEEDS["baskets"], database.reader.row_key)
    rows = database.append_baskets(writer, len(baskets.owners), None)
    others = {table: _rewrite_table(database, table, convert, types) for table, convert in _CONVERSIONS.items()}
    return Content(baskets, np.arange(rows.start, rows.stop), others)


def _rewrite_table(
    database: Database, table: str, convert: Callable[[bytes, IdTypes], tuple[object, bytes]], types: IdTypes
) -> dict[int, bytes]:
    """Convert the rows of a table; of two that have the same key then, the newer one stays."""
    payloads = dict(database.reader.payloads(table))
    converted = dict(convert(payload, types) for payload in payloads.values())
    database.zero(table, *payloads)
    return {database.append(table, payload): payload for payload in converted.values()}


def _converted_product(payload: bytes, types: IdTypes) -> tuple[object, bytes]:
    product = decode_product(payload)
    product = msgspec.structs.replace(product, item=in_type(product.item, types.item, "item"))
    return product.item, msgspec.msgpack.encode(product)


def _converted_hidden(payload: bytes, types: IdTypes) -> tuple[object, bytes]:
    [item] = decode_tuple(payload)
    payload = msgspec.msgpack.encode((in_type(item, types.item, "item"),))
    return payload, payload


def _converted_suppression(payload: bytes, types: IdTypes) -> tuple[object, bytes]:
    user, item = decode_tuple(payload)
    payload = msgspec.msgpack.encode((in_type(user, types.user, "user"), in_type(item, types.item, "item")))
    return payload, payload


_CONVERSIONS: dict[str, Callable[[bytes, IdTypes], tuple[object, bytes]]] = {
    "products": _converted_product,
    "hidden": _converted_hidden,
    "suppressed": _converted_suppression,
}


# Databases that hold both types -------------------------------------------------------------------------------------


def mixed_ids(reader: DatabaseReader) -> dict[Kind, list[int]]:
    """Return the kinds of which there are numbers and texts; for each, the numbers that are also there as texts."""
    held: dict[Kind, set[Id]] = {kind: set() for kind in KINDS}
    for kind, name in _ids_in(reader):
        held[kind].add(name)
    found: dict[Kind, list[int]] = {}
    for kind, names in held.items():
        numbers = [name for name in names if isinstance(name, int)]
        if 0 < len(numbers) < len(names):
            found[kind] = sorted(number for number in numbers if str(number) in names)
    return found


def _ids_in(reader: DatabaseReader) -> Iterator[tuple[Kind, Id]]:
    for _, payload in reader.payloads("baskets"):
        basket = decode_basket(payload)
        yield "user", basket.user
        yield "basket", basket.basket
        yield from (("item", item) for item in basket.items)
    yield from (("item", decode_product(payload).item) for _, payload in reader.payloads("products"))
    for table in ("hidden", "suppressed"):
        yield from (("item", decode_tuple(payload)[-1]) for _, payload in reader.payloads(table))


def mixed_error(reader: DatabaseReader) -> MixedIdsError:
    """Return the error for a database that holds both types of a kind: it names the pairs and the way out."""
    found = mixed_ids(reader)
    kinds = " ".join(f"--kind {kind}" for kind in found)
    return MixedIdsError(
        f"{reader.path} holds numbers and texts as ids of one kind, as earlier versions allowed: "
        f"{'; '.join(_pairs(kind, numbers) for kind, numbers in found.items())}. "
        f"`unbasket ids to-text --db {reader.path} {kinds}` makes all of them texts, and merges each pair",
        f"In Python: unbasket.open(..., to_text={list(found)})",
    )


def _pairs(kind: Kind, numbers: list[int]) -> str:
    if not numbers:
        return f"{kind}s, none of them twice"
    named = ", ".join(f"{number} and {str(number)!r}" for number in numbers[:_SHOWN])
    further = f", and {len(numbers) - _SHOWN:,} more" if len(numbers) > _SHOWN else ""
    return f"{kind}s, of which {len(numbers):,} are there twice: {named}{further}"


def merged_baskets(reader: DatabaseReader, types: IdTypes, params: Params) -> tuple[BasketColumns, int]:
    """Return all baskets with ids of these types, and the number of pairs of users that were merged."""
    histories: dict[Id, list[Basket]] = {
        user: _converted_baskets(user, rows, types) for user, rows in _rows_by_user(reader).items()
    }
    state, guests = HistoryState(params), dict[Id, Id]()
    for user in histories:
        name = in_type(user, types.user, "user")
        if name != user and name in histories:
            guests[user] = name
    own = [(in_type(user, types.user, "user"), baskets) for user, baskets in histories.items() if user not in guests]
    state.load(BasketColumns.of((user, [(*basket, False) for basket in baskets]) for user, baskets in own).by_id())
    for guest, user in guests.items():
        _check_conflict(guest, user, histories)
        for basket, time, items in histories[guest]:
            state.learn(user, list(items), basket, time)
    return state.columns(state.users.sorted()), len(guests)


def _rows_by_user(reader: DatabaseReader) -> dict[Id, list[Basket]]:
    """Return the baskets of each user, oldest first, with the ids on disk."""
    rows = defaultdict[Id, list[tuple[int, Basket]]](list)
    for row, payload in reader.payloads("baskets"):
        stored = decode_basket(payload)
        basket = Basket(stored.basket, stored.time, tuple(stored.items))
        rows[stored.user].append((position_of(row, stored), basket))
    return {user: [basket for _, basket in sorted(own, key=lambda each: each[0])] for user, own in rows.items()}


def _converted_baskets(user: Id, baskets: Sequence[Basket], types: IdTypes) -> list[Basket]:
    converted: dict[Id, Basket] = {}
    for basket in baskets:
        name = in_type(basket.basket, types.basket, "basket")
        if name in converted:
            raise _conflict(f"baskets {name!r} and {int(name)} of user {user!r} are one basket twice")
        items = dict.fromkeys(in_type(item, types.item, "item") for item in basket.items)
        converted[name] = Basket(name, basket.time, tuple(items))
    return list(converted.values())


def _check_conflict(guest: Id, user: Id, histories: dict[Id, list[Basket]]) -> None:
    common = _names(histories[guest]) & _names(histories[user])
    if common:
        raise _conflict(
            f"users {guest!r} and {user!r} are one user twice, and both have a basket {in_order(common)[0]!r}"
        )


def _names(baskets: Iterable[Basket]) -> set[Id]:
    return {basket.basket for basket in baskets}


def _conflict(problem: str) -> BasketConflictError:
    return BasketConflictError(
        f"{problem}. Nothing was changed. Forget one of the two with the version that wrote the database, and try again"
    )
