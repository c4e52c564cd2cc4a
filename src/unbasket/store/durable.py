"""The durable engine: a `Recommender` with a journal on disk."""

from contextlib import closing
from os import PathLike
from pathlib import Path
from typing import Self, cast

from unbasket.domain.events import Rename
from unbasket.domain.ids import Id
from unbasket.domain.results import Progress
from unbasket.engine.recommender import Recommender
from unbasket.store.backup import write_copy
from unbasket.store.journal import DiskJournal
from unbasket.store.presence import Presence
from unbasket.store.receipts import Receipt
from unbasket.store.write_request import ErasedId
from unbasket.store.writer import Database


class DurableRecommender(Recommender):
    """A `Recommender` whose baskets are in a file; see `unbasket.open`.

    A method that writes returns when the change is on disk. A reader may see it a moment earlier.
    """

    _journal: DiskJournal

    def __init__(self, path: Path, journal: DiskJournal) -> None:
        super().__init__(journal=journal)
        self._path = path

    @property
    def seconds_to_erasure(self) -> dict[int, float]:
        """The seconds until the bytes of each forget were gone, by receipt number, since the file was opened."""
        return self._journal.seconds_to_erasure

    def rename(self, user: Id, other: Id) -> ErasedId:
        """Merge a user into another; see `Recommender.rename`. Returns when the old id is gone from every file."""
        return cast(ErasedId, self._journal.apply([Rename.checked(user, other)])[0])

    def receipts(self, first: int = 1, last: int = 2**62) -> list[Receipt]:
        """Return the receipts of these numbers, oldest first."""
        with closing(Database(self._path, read_only=True)) as database:
            return [Receipt.from_json(payload) for _, payload in database.reader.payloads("receipts", first, last)]

    @property
    def receipt_count(self) -> int:
        """The number of the newest receipt."""
        if self._journal.is_writable:
            return self._journal.receipt_count
        with closing(Database(self._path, read_only=True)) as database:
            return database.reader.next_row("receipts") - 1

    def presence(self, user: Id) -> Presence:
        """Return the user's presence now, known or not, for `was_forgotten` later. The engine must be writable."""
        return self._journal.forgets.presence(user)

    def was_forgotten(self, user: Id, since: Presence) -> bool:
        """Return whether the user was forgotten since: all of them, their last basket, or their id by a rename."""
        return self._journal.forgets.ended(user, since, self.receipts)

    def backup(self, target: str | PathLike[str], *, progress: Progress | None = None) -> None:
        """Write a copy of the database as it is when this ends: data that is forgotten meanwhile is not in it.

        Other threads learn and forget all along. `progress` is called with (rows copied, rows in all).
        """
        with closing(Database(self._path, read_only=True)) as database:
            write_copy(database.reader, Path(target), progress)

    def close(self) -> None:
        """Bring everything into one file, and let other processes write to it. Closing again does nothing."""
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _title(self) -> str:
        return f"{super()._title()} {self._path}"
