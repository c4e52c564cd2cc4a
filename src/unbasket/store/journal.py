"""The journal of a durable engine: every event is on disk before it is acknowledged.

    event -> model -> rows -> commit -> sync -> (forgets) erase -> acknowledged

Callers in many threads share commits: whoever finds the disk free writes for all who wait.
"""

import sqlite3
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from functools import partial
from secrets import randbelow
from threading import Lock
from time import perf_counter, sleep
from typing import TypeVar, cast

import msgspec

from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.events import Allow, Change, Event, Forget, Learn, Rename, Suppress
from unbasket.domain.ids import Id
from unbasket.domain.progress import Progress
from unbasket.domain.results import AvailabilityChange, Forgotten, Learned, Product
from unbasket.errors import (
    BasketConflictError,
    ClosedError,
    ErasureBlockedError,
    StoreError,
    UnbasketError,
    UncertainError,
    UnknownUserError,
)
from unbasket.params import MAX_SEED, Params
from unbasket.store.group_commit import Batches
from unbasket.store.lock import WriterLock
from unbasket.store.persistent_model import PersistentModel
from unbasket.store.receipts import ReceiptSigner
from unbasket.store.requests import ErasedId, Outcome, Request
from unbasket.store.sqlite_errors import explanation
from unbasket.store.wal import log_of
from unbasket.store.writer import PATIENCE, PAUSE, Database

Result = TypeVar("Result")

_ERASURES = 10_000  # the newest ones, whose times are remembered


class DiskJournal:
    """Keeps the events of an engine in a database."""

    def __init__(self, database: Database, holdings: PersistentModel) -> None:
        self.model = holdings.model
        self._database, self._holdings = database, holdings
        self._writer: tuple[WriterLock, ReceiptSigner] | None = None
        self._batches: Batches[Request] = Batches()
        self._turn = Lock()
        self._awaiting = 0  # requests whose erasure a reader blocks
        self._intact = True
        self._closed = False
        self.seconds_to_erasure: dict[int, float] = {}  # of receipts, by number, since the file was opened
        self._farewell = f"{database.path} was closed. Open it again"
        self._finalize: Callable[[], object] = lambda: None

    def allow_writing(self, lock: WriterLock, notary: ReceiptSigner) -> None:
        """Take over the right to write; without it, nothing can be changed."""
        self._writer = lock, notary
        self._finalize = weakref.finalize(self, _close, self._database, lock)  # also when nobody calls close()

    @property
    def is_writable(self) -> bool:
        """Whether it was opened for writing."""
        return self._writer is not None

    @property
    def notary(self) -> ReceiptSigner:
        """Who writes the receipts; an error if nothing can be written."""
        if self._closed:
            raise ClosedError(self._farewell)
        if self._writer is None:
            raise StoreError(f"{self._database.path} was opened with read_only=True: it can't be changed here")
        if not self._intact:
            raise StoreError(f"{self._database.path} had an error and takes nothing more. Open it again")
        return self._writer[1]

    # Events -----------------------------------------------------------------------------------------------------

    def learn(self, event: Learn) -> Learned:
        """A basket."""
        if not self._batches.enter():
            return cast(Learned, self.apply([event])[0])
        try:  # alone, as most events are, it takes a shorter way
            with self._turn:
                learned = self._atomically({event.user}, partial(self._holdings.learn, event, alone=True))
                self._tidy()
        finally:
            self._batches.leave()
        return learned

    def forget(self, event: Forget) -> Forgotten:
        """Something to forget."""
        return cast(Forgotten, self.apply([event])[0])

    def suppress(self, event: Suppress) -> bool:
        """An item not to recommend to a user."""
        return cast(bool, self._submit([event])[0])

    def allow(self, event: Allow) -> bool:
        """A suppressed item to recommend again; returns when its bytes are gone."""
        return cast(bool, self._submit([event])[0])

    def rename(self, event: Rename) -> ErasedId:
        """A user who becomes another; returns when the bytes of the old id are gone."""
        return cast(ErasedId, self._submit([event])[0])

    def apply(self, events: Sequence[Event]) -> list[Learned | Forgotten]:
        """Events in their order, in one transaction and with one erasure: all of them, or none."""
        return cast(list[Learned | Forgotten], self._submit(events))

    def _submit(self, events: Sequence[Change]) -> list[Outcome]:
        request = Request(events)
        self._batches.submit(request, self.serve)
        if request.erasures is not None:
            self._await_erasure(request, request.erasures)
        if request.error is not None:
            raise request.error
        return request.results

    def serve(self, requests: list[Request]) -> None:
        """Apply the events of all who wait, and bring them to disk together."""
        try:
            with self._turn:
                self._bring_to_disk(requests)
        except UnbasketError as error:
            for request in requests:  # one each: a shared error would mix the threads' tracebacks
                request.error = type(error)(*error.args)
        except BaseException as error:
            for request in requests:
                request.error = UncertainError(
                    f"{self._database.path}: writing was interrupted by {error!r}: it may have happened, or not. Check"
                )
            raise

    def _bring_to_disk(self, requests: list[Request]) -> None:
        def write() -> None:
            notary = self.notary
            for request in requests:
                try:
                    request.results = [self._holdings.apply(event, notary) for event in request.events]
                except (UnknownUserError, BasketConflictError) as error:  # of a single event, which changed nothing
                    request.error = error

        forgetting = [request for request in requests if request.forgets]
        users = set[Id]().union(*(request.users for request in requests))
        self._atomically(users, write, erasing=len(forgetting) > 0)
        if not forgetting:
            self._tidy()
        elif self._database.try_to_erase():
            for request in forgetting:
                self._note_erasure(request)
            self._database.compact()
        elif self._database.has_reader:
            for request in forgetting:
                request.erasures = self._database.erasures
        else:
            for request in forgetting:
                request.error = self._blocked()

    # Erasure ----------------------------------------------------------------------------------------------------

    def _tidy(self) -> None:
        """Erase what an edit has outdated, or a reader has kept, unless a forget sees to that anyway; and compact."""
        if not self._awaiting and self._database.try_to_erase():
            self._database.compact()

    def _await_erasure(self, request: Request, before: int) -> None:
        """Try again until readers have gone. FullVerification else may write between the attempts."""
        deadline = perf_counter() + PATIENCE
        with self._turn:
            self._awaiting += 1
        try:
            while request.error is None and not self._is_erased(request, before):
                if perf_counter() < deadline:
                    sleep(PAUSE)
                else:
                    request.error = self._blocked()
        finally:
            with self._turn:
                self._awaiting -= 1

    def _is_erased(self, request: Request, before: int) -> bool:
        """Whether somebody has erased what a request forgot, or this attempt does; an error if waiting is no use."""
        with self._turn:
            erased = self._database.erasures > before or self._database.try_to_erase()
            if erased:
                self._note_erasure(request)
            elif not self._database.has_reader:
                request.error = self._blocked()
        return erased

    def _blocked(self) -> ErasureBlockedError:
        return ErasureBlockedError(
            f"{self._database.path}: what was forgotten is out of the database, but its bytes are still in the files: "
            f"{self._database.hindrance}. The next forget, or closing, removes them"
        )

    def _note_erasure(self, request: Request) -> None:
        for erased in request.erased:
            erased.seconds = self.seconds_to_erasure[erased.receipt.number] = perf_counter() - request.start
        while len(self.seconds_to_erasure) > _ERASURES:
            del self.seconds_to_erasure[next(iter(self.seconds_to_erasure))]

    # Bulk -------------------------------------------------------------------------------------------------------

    def load(self, orders: BasketColumns, group: str | None, progress: Progress | None) -> None:
        """Many baskets at once, in one transaction."""
        with self._turn:
            self.model.check_groups(orders, group)
            self._atomically(set(orders.users), partial(self._holdings.load, orders, progress))
            self._tidy()

    def describe(self, products: Iterable[Product]) -> None:
        """What is known of items."""
        with self._turn:
            self._atomically(set(), partial(self._holdings.describe, products))
            self._tidy()

    def set_availability(self, hide: Sequence[Id], show: Sequence[Id]) -> AvailabilityChange:
        """Items to hide, and items to show, in one transaction."""
        with self._turn:
            restocked = self._atomically(set(), partial(self._holdings.set_availability, hide, show))
            self._tidy()
        return restocked

    def change_params(self, params: Params, progress: Progress | None) -> None:
        """Other parameters. What is on disk are those that answer, before and after."""
        seed = self.model.state.params.pool_seed
        seeded = params.seeded(randbelow(MAX_SEED + 1) if seed is None else seed)
        with self.model.renewed(seeded, progress) as take_over, self._turn:
            self._atomically(set(), partial(self._database.append, "settings", msgspec.json.encode(asdict(seeded))))
            take_over()
            self._tidy()

    # Transactions -----------------------------------------------------------------------------------------------

    def _atomically(self, users: set[Id], write: Callable[[], Result], *, erasing: bool = False) -> Result:
        """Do what `write` does to these users on disk and in memory; if it fails, undo it in both.

        If `erasing`, it is erased at once, if nothing is in the way: that brings it to disk, too.
        """
        notary = self.notary
        try:
            result = write()
            self._database.commit()
        except BaseException as error:
            self._intact = False
            self._recover(users, notary, refused=isinstance(error, sqlite3.Error | StoreError))
            self._intact = True
            if isinstance(error, sqlite3.Error):
                raise explanation(self._database.path, error) from error
            raise
        if erasing:
            self._database.try_to_erase()
        self._sync()
        return result

    def _sync(self) -> None:
        assert self._writer is not None
        try:
            self._database.check_names()  # while the disk writes
            self._database.sync()
        except UncertainError:
            self._intact = False  # nobody knows what of the log is on disk, and syncing it again would not tell
            raise
        self._writer[0].note(self._database.tables.rows)

    def _recover(self, users: set[Id], notary: ReceiptSigner, refused: bool) -> None:
        """After an error, go back to what is on disk.

        If the disk refused, it has what it had before: rows that are known, or that were to be erased. After an
        interrupt, anything may be there, and all rows are read.
        """
        try:
            touched = self._database.roll_back()
            self._holdings.restore(users, touched if refused else None)
            notary.resume(self._database.tables.last_payload("receipts"))
        except StoreError as error:
            raise UncertainError(
                f"{self._database.path}: writing failed, and then finding out what is on disk. Open it again ({error})"
            ) from error

    # The end ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Bring everything into one file, and allow others to write to it. Closing again does nothing."""
        with self._turn:
            if self._closed:
                return
            self._closed = True
            self.model.close(self._farewell)
            self._finalize()


def _close(database: Database, lock: WriterLock) -> None:
    try:
        database.close(lock.unsign)
    finally:
        if not log_of(database.path).exists():  # SQLite removes a log when all of it is in the database
            lock.unsign()
        lock.release()
