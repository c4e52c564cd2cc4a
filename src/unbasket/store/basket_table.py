"""Memory to disk and back: the rows of baskets, each at a place that keeps the order of its user's history."""

from collections.abc import Iterable

import numpy as np

from unbasket.core import BasketRowWriter, RowIds
from unbasket.core.arrays import Int64s
from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.events import Learn
from unbasket.domain.ids import Id
from unbasket.domain.progress import Progress
from unbasket.engine.histories import Record
from unbasket.engine.model import Model
from unbasket.store.loading import BasketReader, orders_of
from unbasket.store.row_codec import SALTS, STEP, BasketRow, decode_basket, encode_basket, place_of
from unbasket.store.writer import Database


class BasketRows:
    """Which row of a database each basket of a model is in. It follows the model's changes."""

    def __init__(self, model: Model, database: Database) -> None:
        self._model, self._state = model, model.state
        self._database = database
        self._numbers = RowIds()
        self._state.histories.notes_changes = True

    # Bulk -------------------------------------------------------------------------------------------------------

    def read(self, reader: BasketReader) -> None:
        """Load what was read into the model, which is empty."""
        self._load(*reader.orders())

    def write(self, orders: BasketColumns, progress: Progress | None) -> None:
        """Write orders of users who are new, and load them into the model."""
        packer = BasketRowWriter(orders, SALTS["baskets"])
        rows = self._database.append_baskets(packer, len(orders.owners), progress)
        self._load(orders, np.arange(rows.start, rows.stop))

    def _load(self, orders: BasketColumns, rows: Int64s) -> None:
        self._model.load(orders)
        owners = [self._state.users.codes[user] for user in orders.users]
        self._numbers.load(np.array(owners, np.int64), orders.ends_by_user()[0], rows)
        self._model.fingerprint()  # the first forget costs what the second does

    def restore(self, users: set[Id], rows: Iterable[int] | None) -> None:
        """After an error, make the model say of these users what the disk says.

        That is in `rows` and those that the model's baskets are in, or anywhere: then all rows are read.
        """
        self._model.drop(users)
        known = self._numbers.drop_orphans(self._state.histories)
        self._state.histories.take_changes()
        self._state.take_orphaned_items()
        found = self._database.tables.payloads("baskets")
        if rows is not None:
            found = self._database.tables.found("baskets", sorted({*known, *rows}))
        baskets = ((row, decode_basket(payload)) for row, payload in found)
        self._load(*orders_of((row, basket) for row, basket in baskets if basket.user in users))

    # Events -----------------------------------------------------------------------------------------------------

    def append(self, event: Learn, *, alone: bool) -> int:
        """Write a basket that comes last, as most do; that needs nothing from memory. Returns its row."""
        payload = encode_basket(BasketRow(event.user, event.basket, event.time, 0, False, event.items))
        return self._database.append_alone(payload) if alone else self._database.append("baskets", payload)

    def note(self, row: int) -> None:
        """The basket that the model has just learned, behind all others of its user, is in this row."""
        for owner, position, removed, inserted in self._state.histories.take_changes():
            self._numbers.splice(owner, position, removed, inserted)
            self._numbers.put(owner, position, row)

    def follow(self) -> list[Id]:
        """Write what events have changed, and blank the rows that this has outdated.

        Returns the items that nobody has any longer.
        """
        with self._model.lock.reading:
            outdated, changed = list[int](), dict[int, int]()
            for owner, position, removed, inserted in self._state.histories.take_changes():
                outdated += self._numbers.splice(owner, position, removed, inserted)
                changed[owner] = min(position, changed.get(owner, position))
            self._database.blank("baskets", *outdated)
            for owner, first in changed.items():
                self._save(owner, first)
            return self._state.take_orphaned_items()

    def _save(self, owner: int, first: int) -> None:
        """Write the baskets of a user, from a position on, that are in no row."""
        positions, count = self._numbers.missing(owner, first)
        user = self._state.users.names[owner]
        for run in _runs(positions):
            if run.stop == count:  # a row that is appended has the highest place of all
                self._write(user, owner, run, None)
            elif not self._squeeze_in(user, owner, run):
                self._write_from(user, owner, run.start)
                break

    def _squeeze_in(self, user: Id, owner: int, run: range) -> bool:
        """Write adjacent baskets between those before and after them; false if there is no room."""
        above = self._place(owner, run.stop)
        below = self._place(owner, run.start - 1) if run.start else above - STEP * (len(run) + 1)
        if above - below <= len(run):
            return False
        places = [below + (above - below) * i // (len(run) + 1) for i in range(1, len(run) + 1)]
        self._write(user, owner, run, places)
        return True

    def _write_from(self, user: Id, owner: int, first: int) -> None:
        """Write all baskets from a position on anew, behind everything else."""
        rows = self._numbers.of(owner, first)
        self._database.blank("baskets", *(row for row in rows if row))
        self._write(user, owner, range(first, first + len(rows)), None)

    def _place(self, owner: int, position: int) -> int:
        row = self._numbers.of(owner, position, position + 1)[0]
        return place_of(row, decode_basket(self._database.tables.payload("baskets", row)))

    def _write(self, user: Id, owner: int, run: range, places: list[int] | None) -> None:
        """Append rows for the baskets at these positions, at the given places or else at the rows' own."""
        for i, record in enumerate(self._state.records(user, run.start, run.stop)):
            shift = 0 if places is None else places[i] - self._database.tables.next_row("baskets") * STEP
            row = self._database.append("baskets", encode_basket(self._basket_row(user, record, shift)))
            self._numbers.put(owner, run.start + i, row)

    def _basket_row(self, user: Id, record: Record, shift: int) -> BasketRow:
        items = [self._state.items.names[code] for code in record.items]
        return BasketRow(user, record.basket, record.time, shift, record.opens, items)


def _runs(positions: list[int]) -> list[range]:
    """Positions that follow each other, as ranges."""
    runs: list[range] = []
    for position in positions:
        if runs and runs[-1].stop == position:
            runs[-1] = range(runs[-1].start, position + 1)
        else:
            runs.append(range(position, position + 1))
    return runs
