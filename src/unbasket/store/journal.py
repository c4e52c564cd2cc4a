"""The journal of a durable engine: every event is on disk before it is acknowledged.

    events -> model and rows -> commit -> sync, or (forgets) truncating checkpoint -> acknowledged

Callers in many threads share commits: one of them writes for all that wait.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from functools import partial
from pathlib import Path
from secrets import randbelow
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Literal, TypeVar
from weakref import WeakSet, finalize

from unbasket.core.util import GroupCommit, RecoveringLock
from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.events import Change
from unbasket.domain.ids import Id, Kind, text_types
from unbasket.domain.results import AvailabilityChange, Forgotten, Product, Progress
from unbasket.engine.model import ErasureRecord, EventResult, Model
from unbasket.engine.ports import model_replaced
from unbasket.errors import (
    BasketConflictError,
    ClosedError,
    ErasureBlockedError,
    InvalidEventError,
    InvalidIdError,
    StoreError,
    UnbasketError,
    UncertainError,
    UnknownUserError,
)
from unbasket.files import fsync
from unbasket.params import MAX_SEED, Params
from unbasket.store.id_conversion import rewrite
from unbasket.store.lock import WriterLock
from unbasket.store.persistent_model import PersistentModel, Settings
from unbasket.store.presence import Forgets
from unbasket.store.receipts import Receipt, ReceiptSigner
from unbasket.store.signing import SigningKeys, next_keys_of
from unbasket.store.wal import wal_path
from unbasket.store.write_request import NO_CURSORS, WriteRequest
from unbasket.store.writer import PAUSE, TIMEOUT, Database

if TYPE_CHECKING:
    from unbasket.store.proofs import Prover  # imports cryptography, which takes long

Result = TypeVar("Result")

_ERASURES = 10_000  # the newest ones, whose times are kept


class DiskJournal:
    """A journal that keeps events in a database.

    A forget is acknowledged when its rows are zeroed in place, the commit is on disk, and a truncating checkpoint has
    emptied the write-ahead log. A reader of old pages blocks the checkpoint: the forget then waits for that reader
    while other callers go on writing, and fails with an `ErasureBlockedError` after TIMEOUT.
    """

    forgets: Forgets  # of a database that was opened for writing

    def __init__(self, database: Database, persistent: PersistentModel) -> None:
        self._file = _OpenFile(database)
        self._persistent = persistent
        self._signer: ReceiptSigner | None = None  # None: read only
        self._group_commit: GroupCommit[WriteRequest] = GroupCommit()
        self._lock = RecoveringLock(UnbasketError)
        self._proving = RecoveringLock(UnbasketError)
        self._awaiting: WeakSet[WriteRequest] = WeakSet()  # whose erasure a reader blocks
        self._is_intact = True
        self._is_closed = False
        self.seconds_to_erasure: dict[int, float] = {}  # by receipt number, since the file was opened
        self._closed_message = f"{database.path} was closed. Open it again"
        self._finalize = finalize(self, _close, self._file)  # also without a call of close()

    def allow_writing(self, lock: WriterLock, signer: ReceiptSigner) -> None:
        """Take the lock and the signer that writing needs; without them, every change is an error."""
        self._file.lock, self._signer = lock, signer
        self.forgets = Forgets(self._persistent.model.digest.salt, signer.count)

    @property
    def _database(self) -> Database:
        return self._file.database

    @property
    def model(self) -> Model:
        """The model; after an interrupted change, it is read from disk again first."""
        if self._is_closed:  # perhaps not completely, after an interrupt
            self._persistent.model.close(self._closed_message)
        self.recover()
        return self._persistent.model

    def recover(self) -> None:
        """Open the file again if a change was interrupted."""
        if self._lock.is_torn and not self._is_closed:
            with self._writing:
                pass

    @property
    def receipt_count(self) -> int:
        """The number of the newest receipt."""
        self.recover()
        return self.signer.count

    @property
    def _writing(self) -> AbstractContextManager[None]:
        return self._lock.after(self._reopen)

    @property
    def is_writable(self) -> bool:
        """Whether the database was opened for writing."""
        return self._signer is not None

    @property
    def signer(self) -> ReceiptSigner:
        """The signer of receipts; an error if nothing can be written."""
        if self._is_closed:
            raise ClosedError(self._closed_message)
        if self._signer is None:
            raise StoreError(f"{self._database.path} was opened with read_only=True: it can't be changed here")
        if not self._is_intact or self._database.has_failed:
            raise StoreError(f"{self._database.path} had an error and takes nothing more. Open it again")
        return self._signer

    # Events -----------------------------------------------------------------------------------------------------

    def apply(self, events: Sequence[Change], cursors: Mapping[str, int] = NO_CURSORS) -> list[EventResult]:
        """Apply events in order and move cursors, in one transaction and with one erasure: all of it, or nothing."""
        request = WriteRequest(events, cursors)
        self._group_commit.submit(request, self.serve)
        if not request.is_served:
            raise UncertainError(
                f"{self._database.path}: writing was interrupted in another thread: it may have happened, or not. Check"
            )
        if request.erasures is not None:
            self._await_erasure(request, request.erasures)
        if request.error is not None:
            raise request.error
        return request.results

    def serve(self, requests: list[WriteRequest]) -> None:
        """Apply the events of all requests, and bring them to disk together."""
        try:
            with self._writing:
                self._write_requests(requests)
        except UnbasketError as error:
            requests[0].error = error
            for request in requests[1:]:  # one each: a shared error would mix the threads' tracebacks
                request.error = type(error)(*error.args)
                request.error.__cause__ = error.__cause__
        for request in requests:
            request.is_served = True

    def _write_requests(self, requests: list[WriteRequest]) -> None:
        users = (user for request in requests for user in request.users)
        self._commit(users, partial(self._apply_requests, requests))
        self.forgets.note(forget for request in requests for forget in request.forgets)
        erasing = [request for request in requests if request.erases]
        self._make_durable(erases=len(erasing) > 0)
        for request in erasing:
            if self._database.is_erased:
                self._note_erasure(request)
            else:
                request.erasures = self._database.erasures
        self._database.compact()

    def _apply_requests(self, requests: list[WriteRequest]) -> None:
        signer = self.signer
        is_only = len(requests) == len(requests[0].events) == 1
        for request in requests:
            try:
                request.events = self.model.canonical_events(request.events)
                request.results = self._persistent.apply(request.events, request.cursors, signer, is_only=is_only)
            except (InvalidIdError, InvalidEventError) as error:  # before the first event
                request.error = error
            except (UnknownUserError, BasketConflictError) as error:  # of a single event, which changed nothing
                request.error = error
        self._persistent.write_changes()

    @property
    def cursors(self) -> dict[str, int]:
        """The position of each cursor that is stored, by its name."""
        self.recover()
        return dict(self._persistent.cursors)

    # Erasure ----------------------------------------------------------------------------------------------------

    def _await_erasure(self, request: WriteRequest, before: int) -> None:
        """Try to erase again until readers have ended. Other callers may write between the attempts."""
        deadline = perf_counter() + TIMEOUT
        self._awaiting.add(request)
        try:
            while request.error is None and not self._is_erased(request, before):
                if perf_counter() < deadline:
                    sleep(PAUSE)
                else:
                    request.error = self._blocked()
        finally:
            self._awaiting.discard(request)

    def _is_erased(self, request: WriteRequest, before: int) -> bool:
        """Return whether another caller has erased for this request, or this attempt does.

        If no reader is in the way, waiting is no use: the request gets an error.
        """
        with self._writing:
            erased = self._database.erasures > before or self._database.try_to_erase()
            if erased:
                self._note_erasure(request)
            elif not self._database.has_reader:
                request.error = self._blocked()
        return erased

    def _blocked(self) -> ErasureBlockedError:
        return ErasureBlockedError(
            f"{self._database.path}: what was forgotten is out of the database, but its bytes are still in the files: "
            f"{self._database.obstacle}. The next forget, or closing, removes them"
        )

    def _note_erasure(self, request: WriteRequest) -> None:
        for erased in request.erased:
            erased.seconds = self.seconds_to_erasure[erased.receipt.number] = perf_counter() - request.start
        while len(self.seconds_to_erasure) > _ERASURES:
            del self.seconds_to_erasure[next(iter(self.seconds_to_erasure))]

    # Bulk -------------------------------------------------------------------------------------------------------

    def load(self, columns: BasketColumns, group: str | None, progress: Progress | None) -> None:
        """Learn many baskets in one transaction."""
        with self._writing:
            columns = columns.in_types(self.model.id_types())
            self.model.check_groups(columns, group)
            self._write(columns.users, partial(self._persistent.load, columns, progress))

    def describe(self, products: Iterable[Product]) -> None:
        """Put products into the catalog, in one transaction."""
        with self._writing:
            self._write((), partial(self._persistent.describe, self.model.canonical_products(products)))

    def set_availability(self, hide: list[Id], show: list[Id]) -> AvailabilityChange:
        """Hide items and show others, in one transaction."""
        with self._writing:
            items = self.model.canonical_availability(hide, show)
            return self._write((), partial(self._persistent.set_availability, *items))

    def change_params(self, params: Params, progress: Progress | None) -> None:
        """Rebuild the model with other parameters. They are on disk before the model is swapped."""
        model = self.model
        seed = model.state.params.pool_seed
        seeded = params.seeded(randbelow(MAX_SEED + 1) if seed is None else seed)
        with model.rebuilding:
            swap = model.rebuilt(seeded, progress)
            with self._writing:
                if self._persistent.model is not model:
                    raise model_replaced()
                payload = Settings(seeded, model.digest.salt).to_json()
                self._write((), partial(self._database.append, "settings", payload))
                swap()

    def change_ids(self, kinds: Sequence[Kind]) -> None:
        """Change ids of these kinds from numbers to texts. The old model answers until the new one is on disk."""
        with self._writing:
            held = self.model.id_types()._asdict()
            numbers = [kind for kind in kinds if held[kind] is int]
            if numbers:
                self._persistent = self._write((), partial(self._convert, numbers))

    def _convert(self, kinds: Sequence[Kind]) -> PersistentModel:
        old, types = self.model, text_types(kinds)
        columns = old.state.columns(old.state.users.sorted()).in_types(types)
        content = rewrite(self._database, columns, types)
        new = PersistentModel(Model(old.state.params, old.digest.salt), self._database, content)
        kept = new.model.state.sizes() == old.state.sizes()
        record = ErasureRecord(Forgotten(0, 0, 0), old.fingerprint(), new.model.fingerprint(), verified=kept)
        self._database.append("receipts", self.signer.issue_conversion(record).to_row())
        return new

    # Proofs -----------------------------------------------------------------------------------------------------

    def prove(self, prover: "Prover", make: Callable[[Model, int], Result]) -> Result:
        """Return a proof that `make` makes from the model and the number of receipts, all of which are on disk."""
        if not self.is_writable:
            return make(self._persistent.model, self._database.reader.totals.last["receipts"])
        with self._writing, self._proving.after(prover.reset):
            return make(self._persistent.model, self.signer.count)

    def read_receipts(self, first: int, last: int) -> Iterator[Receipt]:
        """Yield the receipts with these numbers; inside `prove`."""
        if self.is_writable:
            yield from self._database.reader.receipts(first, last)
        else:
            with closing(Database(self._database.path, read_only=True)) as database:
                yield from database.reader.receipts(first, last)

    def rotate_key(self, path: Path) -> SigningKeys:
        """Have the old key sign a new one in a receipt, and use the new one from then on. `path` is the keys' file."""
        with self._writing:
            signer, new = self.signer, self.signer.keys.successor()
            new.write(next_keys_of(path))  # a crash after the receipt finds it there
            self._note("key", new.public)
            next_keys_of(path).replace(path)
            fsync(path.parent)
            signer.keys = new
            return new

    def note_rollback(self, reason: str) -> None:
        """Issue a receipt with the reason why an older state of the database was accepted."""
        with self._writing:
            self._note("rollback", reason)

    def _note(self, scope: Literal["key", "rollback"], detail: str) -> None:
        digest = self._persistent.model.fingerprint()
        self._write(
            (), lambda: self._database.append("receipts", self.signer.issue_note(scope, detail, digest).to_row())
        )

    # Transactions -----------------------------------------------------------------------------------------------

    def _write(self, users: Iterable[Id], change: Callable[[], Result]) -> Result:
        """Change these users in one transaction, and return when that is on disk."""
        result = self._commit(users, change)
        self._make_durable(erases=False)
        self._database.compact()
        return result

    def _commit(self, users: Iterable[Id], change: Callable[[], Result]) -> Result:
        """Change these users in memory and on disk, and commit; if that fails, undo it in both."""
        signer = self.signer
        try:
            result = change()
            self._database.commit()
        except (sqlite3.Error, UnbasketError) as error:
            self._undo(set(users), signer)
            if isinstance(error, sqlite3.Error):
                raise self._database.failure(error) from error
            raise
        return result

    def _make_durable(self, *, erases: bool) -> None:
        """Bring the commit to disk: by an erasure if rows were zeroed and no reader is in the way, or by a sync.

        While requests wait for a reader, only a change that `erases` tries to.
        """
        assert self._file.lock is not None
        if erases or not self._awaiting:
            self._database.try_to_erase()
        try:
            self._database.check_names()
            self._database.sync()
        except UncertainError:
            self._is_intact = False  # how much of the log is on disk is unknown, and another sync would not tell
            raise
        self._file.lock.note_rows(self._database.reader.rows_written)

    def _undo(self, users: set[Id], signer: ReceiptSigner) -> None:
        """Restore the model from disk after an error: there is what was there before, in rows that are known."""
        try:
            touched = self._database.roll_back()
            self._persistent.restore(users, touched)
            signer.resume(self._database.reader.last_receipt())
        except StoreError as error:
            self._is_intact = False
            raise UncertainError(
                f"{self._database.path}: writing failed, and then finding out what is on disk. Open it again ({error})"
            ) from error

    def _reopen(self) -> None:
        """Open the file again, as after a crash: an interrupt came at some moment of a change, or of closing."""
        if self._is_closed and (self._file.lock is None or self._file.lock.is_released or self._database.has_failed):
            return  # there is nothing to write in closing
        signer = None if self._is_closed else self.signer  # an error if writing has ended
        if not self._database.is_in_place:
            raise self._database.moved()
        row_key = self._database.reader.row_key
        self._database.abandon()
        self._file.database = database = Database(self._database.path, read_only=False)
        database.reader.row_key = row_key
        database.try_to_erase()
        if signer is not None:
            self._persistent = PersistentModel.read(database)
            signer.resume(database.reader.last_receipt())

    # Closing ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Bring everything into one file, and release the writer lock. Closing again does nothing."""
        self._is_closed = True
        with self._writing:
            self._persistent.model.close(self._closed_message)
            _close(self._file)
            self._finalize.detach()


class _OpenFile:
    """A database and, for writing, its lock, which are closed in the end; after an interrupt, it is another one."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.lock: WriterLock | None = None


def _close(file: _OpenFile) -> None:
    """Close a file for good, unless that was done; one for reading is closed when it has been read."""
    lock, database = file.lock, file.database
    if lock is None or lock.is_released:
        return
    try:
        database.close(lock.mark_closed)
    finally:
        if not wal_path(database.path).exists():  # SQLite removes a log when all of it is in the database
            lock.mark_closed()
        lock.release()
