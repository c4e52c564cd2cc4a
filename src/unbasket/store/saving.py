"""Memory to disk: rows for baskets that are new or have changed, each at a place that keeps the order."""

from collections.abc import Iterable, Iterator

import numpy as np

from unbasket.core import UNTIMED
from unbasket.engine.memory import Memory, Record
from unbasket.exchange.events import Learn
from unbasket.exchange.ids import Id
from unbasket.exchange.orders import Orders
from unbasket.store.database import Database, Progress
from unbasket.store.rows import STEP, BasketRow, decode_basket, encode_basket, place_of


def save(memory: Memory, database: Database, user: Id) -> None:
    """Write what an event has changed of a user, and blank the rows that it has outdated."""
    outdated, positions, count = memory.take_changes(user)
    database.blank("baskets", *outdated)
    for run in _runs(positions):
        if run.stop == count:  # a row that is appended has the highest place of all
            _write(memory, database, user, run, None)
        elif not _squeeze_in(memory, database, user, run):
            _write_from(memory, database, user, run.start)
            break


def append_basket(event: Learn, database: Database, *, alone: bool) -> int:
    """Write a basket that comes last, as most do; that needs nothing from memory. Returns its row."""
    payload = encode_basket(BasketRow(event.user, event.basket, event.time, 0, False, event.items))
    return database.append_alone(payload) if alone else database.append("baskets", payload)


def save_orders(orders: Orders, database: Database, progress: Progress | None) -> Orders:
    """Write the baskets of users who are new; returns the orders with the numbers of their rows."""
    payloads = map(encode_basket, _basket_rows(orders))
    rows = database.append_baskets(_watched(payloads, len(orders.baskets), progress))
    return orders._replace(rows=np.arange(rows.start, rows.stop))


def _watched(payloads: Iterable[bytes], total: int, progress: Progress | None) -> Iterator[bytes]:
    for done, payload in enumerate(payloads, 1):
        yield payload
        if progress is not None and (done % 4096 == 0 or done == total):
            progress(done, total)


def _basket_rows(orders: Orders) -> Iterator[BasketRow]:
    place, items = 0, [orders.items[code] for code in orders.purchases.tolist()]
    columns = (orders.owners, orders.baskets, orders.times, orders.opens, orders.sizes)
    for owner, name, time, opens, size in zip(*(column.tolist() for column in columns), strict=True):
        yield BasketRow(
            orders.users[owner],
            orders.names[name],
            None if time == UNTIMED else time,
            0,
            bool(opens),
            items[place : place + size],
        )
        place += size


def _runs(positions: list[int]) -> list[range]:
    """Positions that follow each other, as ranges."""
    runs: list[range] = []
    for position in positions:
        if runs and runs[-1].stop == position:
            runs[-1] = range(runs[-1].start, position + 1)
        else:
            runs.append(range(position, position + 1))
    return runs


def _squeeze_in(memory: Memory, database: Database, user: Id, run: range) -> bool:
    """Write adjacent baskets between those before and after them; false if there is no room."""
    above = _place(memory, database, user, run.stop)
    below = _place(memory, database, user, run.start - 1) if run.start else above - STEP * (len(run) + 1)
    if above - below <= len(run):
        return False
    places = [below + (above - below) * i // (len(run) + 1) for i in range(1, len(run) + 1)]
    _write(memory, database, user, run, places)
    return True


def _write_from(memory: Memory, database: Database, user: Id, first: int) -> None:
    """Write all baskets from a position on anew, behind everything else."""
    records = memory.records(user, first)
    database.blank("baskets", *(record.row for record in records if record.row))
    _write(memory, database, user, range(first, first + len(records)), None)


def _place(memory: Memory, database: Database, user: Id, position: int) -> int:
    [record] = memory.records(user, position, position + 1)
    return place_of(record.row, decode_basket(database.payload("baskets", record.row)))


def _write(memory: Memory, database: Database, user: Id, run: range, places: list[int] | None) -> None:
    """Append rows for the baskets at these positions, at the given places or else at the rows' own."""
    for i, record in enumerate(memory.records(user, run.start, run.stop)):
        shift = 0 if places is None else places[i] - database.next_row("baskets") * STEP
        row = database.append("baskets", encode_basket(_basket_row(memory, user, record, shift)))
        memory.save(user, run.start + i, row)


def _basket_row(memory: Memory, user: Id, record: Record, shift: int) -> BasketRow:
    items = [memory.items.names[code] for code in record.items]
    return BasketRow(user, record.basket, record.time, shift, record.opens, items)
