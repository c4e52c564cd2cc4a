"""The durable engine: the in-memory one, with every event on disk before it is acknowledged."""

import sqlite3
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from functools import partial
from os import PathLike
from pathlib import Path
from threading import Lock
from time import perf_counter, sleep
from types import TracebackType
from typing import Self, TypeVar, cast

import numpy as np

from unbasket.engine.locks import ClosedLock, ReadWriteLock
from unbasket.engine.recommender import Progress, Recommender
from unbasket.engine.verification import Witness
from unbasket.errors import ClosedError, ErasureBlockedError, StoreError, UnbasketError, UncertainError
from unbasket.exchange.events import Event, Forget, Learn, rechecked
from unbasket.exchange.ids import Id
from unbasket.exchange.orders import Orders
from unbasket.exchange.products import Product
from unbasket.exchange.results import Forgotten, Learned
from unbasket.params import Params
from unbasket.store.batches import Batches
from unbasket.store.catalog import CatalogRows
from unbasket.store.database import PATIENCE, PAUSE, Database
from unbasket.store.faults import explanation
from unbasket.store.loading import orders_of
from unbasket.store.lock import WriterLock
from unbasket.store.log import log_of
from unbasket.store.receipts import Notary, Receipt
from unbasket.store.rows import decode_basket
from unbasket.store.saving import append_basket, save, save_orders

Result = TypeVar("Result")

_ERASURES = 10_000  # the newest ones, whose times the engine remembers


class Erased(Forgotten):
    """A `Forgotten` whose bytes are gone from every file, the receipt that says so, and how long it took."""

    receipt: Receipt
    seconds: float


class _Request:
    """Events of one caller, who waits for them to be on disk."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self.start = perf_counter()
        self.results: list[Learned | Forgotten] = []
        self.error: UnbasketError | None = None
        self.erasures: int | None = None  # there had been, if this request still waits for the next one

    @property
    def forgets(self) -> bool:
        return Forget in map(type, self.events)

    @property
    def erased(self) -> list[Erased]:
        return [result for result in self.results if isinstance(result, Erased)]


class DurableRecommender(Recommender):
    """A `Recommender` whose baskets are in a file; see `unbasket.open`.

    What a reader sees may be a moment ahead of the disk; what a writer is told is on disk. Callers in many threads
    share commits: whoever finds the disk free writes for all who wait.
    """

    def __init__(
        self, params: Params, database: Database, orders: Orders, products: Iterable[tuple[int, bytes]]
    ) -> None:
        super().__init__(params)
        super()._load(orders)
        self._products = CatalogRows(self.catalog, products)
        self._database = database
        self._writer: tuple[WriterLock, Notary] | None = None
        self._batches: Batches[_Request] = Batches()
        self._turn = Lock()
        self._awaiting = 0  # requests whose erasure a reader blocks
        self._intact = True
        self._closed = False
        self.seconds_to_erasure: dict[int, float] = {}  # of receipts, by number, since the file was opened
        self._farewell = f"{database.path} was closed. Open it again"
        self._finalize: Callable[[], object] = lambda: None

    def allow_writing(self, lock: WriterLock, notary: Notary) -> None:
        """Take over the right to write; without it, the engine only answers questions."""
        self._writer = lock, notary
        self._finalize = weakref.finalize(self, _close, self._database, lock)  # also when nobody calls close()

    @property
    def _notary(self) -> Notary:
        if self._closed:
            raise ClosedError(self._farewell)
        if self._writer is None:
            raise StoreError(f"{self._database.path} was opened with read_only=True: it can't be changed here")
        if not self._intact:
            raise StoreError(f"{self._database.path} had an error and takes nothing more. Open it again")
        return self._writer[1]

    def _title(self) -> str:
        return f"{super()._title()} {self._database.path}"

    # Events -----------------------------------------------------------------------------------------------------

    def apply(self, events: Iterable[Event]) -> list[Learned | Forgotten]:
        """Apply events, in their order, in one transaction and with one erasure: all of them or none."""
        return self._submit(rechecked(events))

    def _learn(self, event: Learn) -> Learned:
        if not self._batches.enter():
            return cast(Learned, self._submit([event])[0])
        try:  # alone, as most events are, it takes a shorter way
            with self._turn:
                learned = self._atomically({event.user}, partial(self._apply_learn, event, alone=True))
                self._tidy()
        finally:
            self._batches.leave()
        return learned

    def _forget(self, event: Forget) -> Forgotten:
        return cast(Forgotten, self._submit([event])[0])

    def _submit(self, events: Sequence[Event]) -> list[Learned | Forgotten]:
        request = _Request(events)
        self._batches.submit(request, self._serve)
        if request.erasures is not None:
            self._await_erasure(request, request.erasures)
        if request.error is not None:
            raise request.error
        return request.results

    def _serve(self, requests: list[_Request]) -> None:
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

    def _bring_to_disk(self, requests: list[_Request]) -> None:
        def write() -> None:
            for request in requests:
                request.results = [self._apply(event) for event in request.events]

        self._atomically({event.user for request in requests for event in request.events}, write)
        forgetting = [request for request in requests if request.forgets]
        if not forgetting:
            self._tidy()
        elif self._database.try_to_erase():
            for request in forgetting:
                self._note_erasure(request)
        elif self._database.has_reader:
            for request in forgetting:
                request.erasures = self._database.erasures
        else:
            for request in forgetting:
                request.error = self._blocked()

    def _tidy(self) -> None:
        """Erase what an edit has outdated, or a reader has kept, unless a forget sees to that anyway."""
        if not self._awaiting:
            self._database.try_to_erase()

    def _await_erasure(self, request: _Request, before: int) -> None:
        """Try again until readers have gone. Everybody else may write between the attempts."""
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

    def _is_erased(self, request: _Request, before: int) -> bool:
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

    def _note_erasure(self, request: _Request) -> None:
        for erased in request.erased:
            erased.seconds = self.seconds_to_erasure[erased.receipt.number] = perf_counter() - request.start
        while len(self.seconds_to_erasure) > _ERASURES:
            del self.seconds_to_erasure[next(iter(self.seconds_to_erasure))]

    def _apply(self, event: Event) -> Learned | Forgotten:
        return self._apply_learn(event) if isinstance(event, Learn) else self._apply_forget(event)

    def _apply_learn(self, event: Learn, *, alone: bool = False) -> Learned:
        if not self._comes_last(event):
            learned = self._add_basket(event)
            self._save(event.user)
            return learned
        row = append_basket(event, self._database, alone=alone)  # first, as a disk writes while memory learns
        return self._add_basket(event, row)

    def _comes_last(self, event: Learn) -> bool:
        """Whether its row can be written before memory learns it. Under varying groups only memory knows its group."""
        if self.params.grouping == "varying":
            return False
        with self._lock.reading:  # as a question about unknown items may let memory grow meanwhile
            return self._memory.comes_last(event.user, event.basket, event.time)

    def _apply_forget(self, event: Forget) -> Erased:
        before = self.digest()
        with self._lock.reading, self._digesting:
            witness = Witness(self._memory, self._digest, event)
        forgotten = super()._forget(event)
        self._save(event.user)
        after = self.digest()
        with self._lock.reading, self._digesting, self._borrowed_spaces() as (_, space):
            verified = witness.confirms(space)
        erased = Erased(*forgotten)
        erased.receipt = self._notary.certify(event, forgotten, before, after, verified=verified)
        self._database.append("receipts", erased.receipt.to_json())
        return erased

    def _save(self, user: Id) -> None:
        with self._lock.writing:  # also since a question may lend codes to items that nobody has
            save(self._memory, self._database, user)

    # Bulk -------------------------------------------------------------------------------------------------------

    def _load(self, orders: Orders, group: str | None = None, progress: Progress | None = None) -> None:
        with self._turn:
            self._check_groups(orders, group)
            self._atomically(set(orders.users), partial(self._add_orders, orders, progress))
            self._tidy()

    def _add_orders(self, orders: Orders, progress: Progress | None) -> None:
        known = np.array([user in self._memory.users for user in orders.users], np.bool_)
        for user, baskets in orders.histories(np.flatnonzero(known)):
            for basket, time, items in baskets:
                self._apply_learn(Learn(user, list(items), basket, time))
        super()._load(save_orders(orders.select(np.flatnonzero(~known)), self._database, progress))

    def _describe(self, products: Iterable[Product]) -> None:
        with self._turn:
            self._atomically(set(), partial(super()._describe, products))
            self._tidy()

    def _put_product(self, product: Product) -> None:
        self._products.save(product, self._database)

    def _drop_product(self, item: Id) -> None:
        self._products.drop(item, self._database)

    def receipts(self, first: int = 1, last: int = 2**62) -> list[Receipt]:
        """The receipts of these numbers, oldest first."""
        with closing(Database(self._database.path, read_only=True, trusted=True)) as database:
            return [Receipt.from_json(payload) for _, payload in database.payloads("receipts", first, last)]

    @property
    def receipt_count(self) -> int:
        """The number of the newest receipt."""
        if self._writer is not None:
            return self._notary.count
        with closing(Database(self._database.path, read_only=True, trusted=True)) as database:
            return database.next_row("receipts") - 1

    def backup(self, target: str | PathLike[str]) -> None:
        """Write a copy of the database as it is now. Learning goes on meanwhile; forgetting waits for the end."""
        with closing(Database(self._database.path, read_only=True)) as database:
            database.back_up(Path(target))

    # Transactions -----------------------------------------------------------------------------------------------

    def _atomically(self, users: set[Id], write: Callable[[], Result]) -> Result:
        """Do what `write` does to these users on disk and in memory; if it fails, undo it in both."""
        notary = self._notary
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
        self._settle()
        return result

    def _settle(self) -> None:
        assert self._writer is not None
        try:
            self._database.check_names()  # while the disk writes
            self._database.settle()
        except UncertainError:
            self._intact = False  # nobody knows what of the log is on disk, and syncing it again would not tell
            raise
        self._writer[0].note(self._database.rows)

    def _recover(self, users: set[Id], notary: Notary, refused: bool) -> None:
        """After an error, go back to what is on disk."""
        try:
            self._restore(users, refused)
            notary.resume(self._database.last_payload("receipts"))
        except StoreError as error:
            raise UncertainError(
                f"{self._database.path}: writing failed, and then finding out what is on disk. Open it again ({error})"
            ) from error

    def _restore(self, users: set[Id], refused: bool) -> None:
        """Make memory say of these users what the disk says.

        If the disk refused, it has what it had before: rows that memory knows, or that were to be erased. After an
        interrupt, anything may be there, and all rows are read.
        """
        touched = self._database.roll_back()
        with self._lock.writing:
            for user in users:
                if user in self._memory.users:
                    self._digest.wipe(self._memory.users.codes[user])
                    self._memory.forget(user, None, None)
        known = {*self._memory.discard_changes(), *touched["baskets"]}
        rows = self._database.found("baskets", sorted(known)) if refused else self._database.payloads("baskets")
        super()._load(orders_of({row: body for row, body in rows if decode_basket(body).user in users}))
        self._memory.vanished.clear()
        if refused:
            self._products.restore(touched["products"], self._database.found("products", touched["products"]))
        else:
            self._products.reload(self._database.payloads("products"))

    # The end ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Bring everything into one file, and allow others to write to it. Closing again does nothing."""
        with self._turn:
            if self._closed:
                return
            self._closed = True
            self._lock = cast(ReadWriteLock, ClosedLock(self._farewell))
            self._finalize()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _close(database: Database, lock: WriterLock) -> None:
    try:
        database.close(lock.unsign)
    finally:
        if not log_of(database.path).exists():  # SQLite removes a log when all of it is in the database
            lock.unsign()
        lock.release()
