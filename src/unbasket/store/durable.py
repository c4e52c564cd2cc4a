"""The durable engine: an engine whose journal is a file."""

from contextlib import closing
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self

from unbasket.domain.events import Rename
from unbasket.domain.ids import Id
from unbasket.domain.progress import Progress
from unbasket.engine.recommender import Recommender
from unbasket.store.backup import write_copy
from unbasket.store.journal import DiskJournal
from unbasket.store.receipts import Receipt
from unbasket.store.requests import ErasedId
from unbasket.store.writer import Database


class DurableRecommender(Recommender):
    """A `Recommender` whose baskets are in a file; see `unbasket.open`.

    What a reader sees may be a moment ahead of the disk; what a writer is told is on disk.
    """

    _journal: DiskJournal

    def __init__(self, path: Path, journal: DiskJournal) -> None:
        super().__init__(journal=journal)
        self._path = path

    @property
    def seconds_to_erasure(self) -> dict[int, float]:
        """How long forgets took until their bytes were gone, by the numbers of their receipts, since the opening."""
        return self._journal.seconds_to_erasure

    def rename(self, user: Id, other: Id) -> ErasedId:
        """Merge a user into another; see `Recommender.rename`. Returns when the old id is gone from every file."""
        return self._journal.rename(Rename.checked(user, other))

    def receipts(self, first: int = 1, last: int = 2**62) -> list[Receipt]:
        """The receipts of these numbers, oldest first."""
        with closing(Database(self._path, read_only=True)) as database:
            return [Receipt.from_json(payload) for _, payload in database.tables.payloads("receipts", first, last)]

    @property
    def receipt_count(self) -> int:
        """The number of the newest receipt."""
        if self._journal.is_writable:
            return self._journal.notary.count
        with closing(Database(self._path, read_only=True)) as database:
            return database.tables.next_row("receipts") - 1

    def backup(self, target: str | PathLike[str], *, progress: Progress | None = None) -> None:
        """Write a copy of the database as it is when this ends: what is forgotten meanwhile is not in it.

        Others learn and forget all along. `progress` is called with (rows copied, rows in all).
        """
        with closing(Database(self._path, read_only=True)) as database:
            write_copy(database.tables, Path(target), progress)

    def close(self) -> None:
        """Bring everything into one file, and allow others to write to it. Closing again does nothing."""
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _title(self) -> str:
        return f"{super()._title()} {self._path}"
