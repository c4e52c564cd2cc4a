"""The baskets on disk: one row for each, at a position that keeps the order of its user's history."""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from unbasket.core.arrays import Int64s
from unbasket.core.codec import BasketRowWriter
from unbasket.core.model import RowIds
from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.events import Learn
from unbasket.domain.ids import Id
from unbasket.domain.results import Progress
from unbasket.engine.model import Model
from unbasket.store.row_codec import STEP, TABLE_SEEDS, BasketRow, decode_basket, encode_basket, position_of
from unbasket.store.writer import Database


class BasketTable:
    """The row of each basket of a model. Changes of the model's histories are written to the rows."""

    def __init__(self, model: Model, database: Database) -> None:
        self._model, self._state = model, model.state
        self._database = database
        self._row_ids = RowIds()
        self._state.histories.notes_changes = True

    def append_new(self, columns: BasketColumns, progress: Progress | None) -> None:
        """Append the baskets of users who are new, and load them into the model."""
        writer = BasketRowWriter(columns, TABLE_SEEDS["baskets"], self._database.reader.row_key)
        rows = self._database.append_baskets(writer, len(columns.owners), progress)
        self.load(columns, np.arange(rows.start, rows.stop))

    def load(self, columns: BasketColumns, rows: Int64s) -> None:
        """Load baskets that are in these rows into the model, which knows none of their users."""
        self._model.load(columns)
        owners = [self._state.users.codes[user] for user in columns.users]
        self._row_ids.load(np.array(owners, np.int64), columns.ends_by_user()[0], rows)
        self._model.fingerprint()  # hashes users now: otherwise the first forget would wait for it

    def restore(self, users: set[Id], rows: Iterable[int]) -> None:
        """Restore the baskets of users from disk after an error: from `rows` and the rows of the model's baskets."""
        self._model.discard(users)
        known = self._row_ids.drop_orphans(self._state.histories)
        self._state.histories.take_changes()
        found = self._database.reader.payloads_of("baskets", sorted({*known, *rows}))
        baskets = ((row, decode_basket(payload)) for row, payload in found)
        self.load(*columns_of((row, basket) for row, basket in baskets if basket.user in users))

    def append_last(self, event: Learn, *, commit: bool) -> int:
        """Append a basket that comes last in its user's history, before the model learns it; return the row."""
        payload = encode_basket(BasketRow(event.user, event.basket, event.time, 0, False, event.items))
        return self._database.append_committed(payload) if commit else self._database.append("baskets", payload)

    def put_last(self, row: int) -> None:
        """Note the row of the basket that the model has just learned."""
        for owner, index, removed, inserted in self._state.histories.take_changes():
            self._row_ids.splice(owner, index, removed, inserted)
            self._row_ids.put(owner, index, row)

    def write_changes(self) -> None:
        """Append rows for baskets that are new or changed, and zero the rows that this has outdated."""
        with self._model.lock.reading:
            outdated, changed = list[int](), dict[int, int]()
            for owner, index, removed, inserted in self._state.histories.take_changes():
                outdated += self._row_ids.splice(owner, index, removed, inserted)
                changed[owner] = min(index, changed.get(owner, index))
            self._database.zero("baskets", *outdated)
            for owner, first in changed.items():
                self._append_missing(owner, first)

    def _append_missing(self, owner: int, first: int) -> None:
        """Append the baskets of a user, from an index on, that are in no row."""
        missing, count = self._row_ids.missing(owner, first)
        user = self._state.users.names[owner]
        for run in _runs(missing):
            if run.stop == count:  # an appended row has the highest position of all
                self._append(user, owner, run, None)
            elif not self._append_between(user, owner, run):
                self._append_again(user, owner, run.start)
                break

    def _append_between(self, user: Id, owner: int, run: range) -> bool:
        """Append adjacent baskets at positions between their neighbors'; return False if there is no room."""
        above = self._position(owner, run.stop)
        below = self._position(owner, run.start - 1) if run.start else above - STEP * (len(run) + 1)
        if above - below <= len(run):
            return False
        positions = [below + (above - below) * i // (len(run) + 1) for i in range(1, len(run) + 1)]
        self._append(user, owner, run, positions)
        return True

    def _append_again(self, user: Id, owner: int, first: int) -> None:
        """Append all baskets from an index on, behind everything else, and zero their former rows."""
        rows = self._row_ids.of(owner, first)
        self._database.zero("baskets", *(row for row in rows if row))
        self._append(user, owner, range(first, first + len(rows)), None)

    def _position(self, owner: int, index: int) -> int:
        row = self._row_ids.of(owner, index, index + 1)[0]
        return position_of(row, decode_basket(self._database.reader.payload("baskets", row)))

    def _append(self, user: Id, owner: int, run: range, positions: list[int] | None) -> None:
        """Append rows for the baskets at these indexes, at the given positions or else at the rows' own."""
        for i, record in enumerate(self._state.records(user, run.start, run.stop)):
            shift = 0 if positions is None else positions[i] - self._database.reader.next_row("baskets") * STEP
            items = [self._state.items.names[code] for code in record.items]
            basket = BasketRow(user, record.basket, record.time, shift, record.opens, items)
            self._row_ids.put(owner, run.start + i, self._database.append("baskets", encode_basket(basket)))


def _runs(indexes: list[int]) -> list[range]:
    runs: list[range] = []
    for index in indexes:
        if runs and runs[-1].stop == index:
            runs[-1] = range(runs[-1].start, index + 1)
        else:
            runs.append(range(index, index + 1))
    return runs


def columns_of(rows: Iterable[tuple[int, BasketRow]]) -> tuple[BasketColumns, Int64s]:
    """Return the columns of a few baskets, as `DatabaseReader.load` does."""
    histories = defaultdict[Id, list[tuple[int, int, BasketRow]]](list)
    for row, basket in rows:
        histories[basket.user].append((position_of(row, basket), row, basket))
    for history in histories.values():
        history.sort(key=lambda positioned: positioned[0])
    columns = BasketColumns.of(
        (user, [(b.basket, b.time, b.items, b.opens) for _, _, b in history]) for user, history in histories.items()
    )
    return columns, np.array([row for history in histories.values() for _, row, _ in history], np.int64)
