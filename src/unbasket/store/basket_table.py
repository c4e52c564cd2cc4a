"""The baskets on disk: one row for each, at a position that keeps the order of its user's history."""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from unbasket.core.arrays import Int64s, Place
from unbasket.core.codec import ColumnRowWriter, HistoryRowWriter
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
        writer = ColumnRowWriter(columns, *self._sealing)
        rows = self._database.append_baskets(writer, len(columns.owners), progress)
        self.load(columns, np.arange(rows.start, rows.stop))

    @property
    def _sealing(self) -> tuple[int, bytes | None]:
        """The seed of the rows' checksums, and the key of their seals."""
        return TABLE_SEEDS["baskets"], self._database.reader.row_key

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

    def commit_last(self, event: Learn) -> int:
        """Append and commit a basket that comes last in its user's history, before the model learns it."""
        payload = encode_basket(BasketRow(event.user, event.basket, event.time, 0, False, event.items))
        return self._database.append_committed(payload)

    def put_last(self, row: int) -> None:
        """Note the row of the basket that the model has just learned."""
        _, changed = self._row_ids.follow(self._state.histories.take_changes())
        self._row_ids.put(self._row_ids.missing_last(changed)[0], row)

    def write_changes(self) -> None:
        """Append rows for baskets that are new or changed, and zero the rows that this has outdated.

        Many events may have come since the last call. A basket that was learned and forgotten since gets no row.
        """
        with self._model.lock.reading:
            outdated, changed = self._row_ids.follow(self._state.histories.take_changes())
            self._database.zero("baskets", *outdated)
            last, others = self._row_ids.missing_last(changed)
            self._append(last)
            for owner, first in others.items():
                self._append_missing(owner, first)

    def _append_missing(self, owner: int, first: int) -> None:
        """Append the baskets of a user, from an index on, that are in no row."""
        missing, baskets = self._row_ids.missing(owner, first)
        for run in _runs(missing):
            if run.stop == baskets:  # an appended row has the highest position of all
                self._append([(owner, index, 0) for index in run])
            elif not self._append_between(owner, run):
                self._append_again(owner, run.start)
                break

    def _append_between(self, owner: int, run: range) -> bool:
        """Append adjacent baskets at positions between their neighbors'; return False if there is no room."""
        above = self._position(owner, run.stop)
        below = self._position(owner, run.start - 1) if run.start else above - STEP * (len(run) + 1)
        if above - below <= len(run):
            return False
        first, gaps = self._database.reader.next_row("baskets"), len(run) + 1
        positions = [below + (above - below) * i // gaps for i in range(1, gaps)]
        self._append([(owner, run[i], position - (first + i) * STEP) for i, position in enumerate(positions)])
        return True

    def _append_again(self, owner: int, first: int) -> None:
        """Append all baskets from an index on, behind everything else, and zero their former rows."""
        rows = self._row_ids.of(owner, first)
        self._database.zero("baskets", *(row for row in rows if row))
        self._append([(owner, index, 0) for index in range(first, first + len(rows))])

    def _position(self, owner: int, index: int) -> int:
        row = self._row_ids.of(owner, index, index + 1)[0]
        return position_of(row, decode_basket(self._database.reader.payload("baskets", row)))

    def _append(self, places: list[Place]) -> None:
        """Append rows for the baskets at these places."""
        if not places:
            return
        state = self._state
        writer = HistoryRowWriter(
            state.histories, places, state.users.names, state.items.names, state.baskets.names, *self._sealing
        )
        rows = self._database.append_baskets(writer, len(places), None)
        self._row_ids.put(places, rows.start)


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
