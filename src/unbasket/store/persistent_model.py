"""The model of a durable engine and its rows on disk: a change happens in both."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import NamedTuple, Self

import msgspec
import numpy as np

from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.events import Change, Forget, Learn, Rename, Suppress
from unbasket.domain.ids import Id
from unbasket.domain.results import AvailabilityChange, Product, Progress
from unbasket.engine.model import EventResult, Model
from unbasket.errors import InvalidParamsError, StoreError
from unbasket.params import Params
from unbasket.store.basket_table import BasketTable
from unbasket.store.cursors import StoredCursors
from unbasket.store.item_tables import ProductTable, StoredSet
from unbasket.store.reader import Content
from unbasket.store.receipts import ReceiptSigner
from unbasket.store.write_request import Erased, ErasedId
from unbasket.store.writer import Database


class PersistentModel:
    """A model, and the rows of a database that hold its data. The caller begins and commits transactions."""

    def __init__(self, model: Model, database: Database, content: Content) -> None:
        """Fill an empty model with the content of a database."""
        self.model = model
        self._database = database
        baskets, rows, others = content
        self._baskets = BasketTable(model, database)
        self._baskets.load(baskets, rows)
        self._products = ProductTable(model.catalog, database, others["products"].items())
        model.drop_product = self._products.drop
        self._hidden = StoredSet(database, "hidden", others["hidden"].items())
        self._suppressed = StoredSet(database, "suppressed", others["suppressed"].items())
        self._cursors = StoredCursors(database)
        self._hide_stored()
        self._suppress_stored(model.state.users.codes)

    @classmethod
    def read(cls, database: Database, params: Params | None = None, progress: Progress | None = None) -> Self:
        """Return the model of a database. If parameters are given, they must be those that are stored."""
        content = database.reader.load(progress)
        stored, salt = stored_settings(database, content.others["settings"])
        if params is not None and params.seeded(stored.pool_seed or 0) != stored:
            raise InvalidParamsError(
                f"{database.path} has {stored}, not {params}. Leave them out, and change them with change_params; or "
                "use another file"
            )
        return cls(Model(stored, salt), database, content)

    def apply(
        self, events: Sequence[Change], cursors: Mapping[str, int], signer: ReceiptSigner, *, is_only: bool
    ) -> list[EventResult]:
        """Apply events to the model and move cursors; a forget or a rename gets a receipt. `write_changes` must follow.

        The only event of a transaction may commit it: then the disk writes while the model learns.
        """
        if is_only and isinstance(events[0], Learn) and self.model.comes_last(events[0]):
            self._cursors.move(cursors)
            return self._learn_last(events[0])
        results: list[EventResult] = []
        for kind, adjacent in groupby(events, type):
            run = list(adjacent)
            results += self.model.apply(run) if kind is Learn else [self._change(event, signer) for event in run]
        self._cursors.move(cursors)
        return results

    def write_changes(self) -> None:
        """Write to the rows what events have changed in the model."""
        self._baskets.write_changes()
        self._products.write_changes()

    def _change(self, event: Change, signer: ReceiptSigner) -> EventResult:
        """Apply an event that may change suppressions."""
        users = (event.user, event.other) if isinstance(event, Rename) else (event.user,)
        before = self._suppressions(users)
        if isinstance(event, Forget | Rename):
            result: EventResult = self._apply_with_receipt(event, signer)
        else:
            [result] = self.model.apply([event])
        after = self._suppressions(users)
        for pair in before - after:
            self._suppressed.remove(pair)
        for pair in after - before:
            self._suppressed.add(pair)
        return result

    def _learn_last(self, event: Learn) -> list[EventResult]:
        """Learn a basket that comes last, as most do: its row needs nothing from the model, and is written first.

        It takes 130 µs: 160 if the disk does not start early, 170 if the model learns first.
        """
        row = self._baskets.commit_last(event)
        result = self.model.apply([event])
        self._baskets.put_last(row)
        return result

    def _apply_with_receipt(self, event: Forget | Rename, signer: ReceiptSigner) -> Erased | ErasedId:
        record = self.model.apply_with_proof(event)
        erased = Erased(*record.result) if isinstance(event, Forget) else ErasedId(*record.result)
        erased.receipt, erased.secret = signer.issue(event, record)
        self._database.append("receipts", erased.receipt.to_row())
        return erased

    def _suppressions(self, users: Iterable[Id]) -> set[tuple[Id, Id]]:
        suppressed = self.model.state.suppressed
        return {(user, item) for user in users for item in suppressed.get(user, ())}

    def load(self, columns: BasketColumns, progress: Progress | None) -> None:
        """Learn many baskets: of new users at once, of known users one by one."""
        known = np.array([user in self.model.state.users for user in columns.users], np.bool_)
        for user, baskets in columns.histories(np.flatnonzero(known)):
            self.model.apply([Learn(user, list(items), basket, time) for basket, time, items in baskets])
        self.write_changes()
        self._baskets.append_new(columns.select(np.flatnonzero(~known)) if known.any() else columns, progress)

    def describe(self, products: Iterable[Product]) -> None:
        """Put products into the catalog."""
        changed = self._products.write(products)
        with self.model.lock.writing:
            for product in changed:
                self.model.catalog.put(product)

    def set_availability(self, hide: Sequence[Id], show: Sequence[Id]) -> AvailabilityChange:
        """Hide items and show others."""
        with self.model.lock.writing:
            hidden, shown = self.model.availability.change(hide, show)
        for item in hidden:
            self._hidden.add((item,))
        for item in shown:
            self._hidden.remove((item,))
        return AvailabilityChange(len(hidden), len(shown))

    @property
    def cursors(self) -> dict[str, int]:
        """The position of each cursor, by its name."""
        return self._cursors.positions

    def restore(self, users: set[Id], touched: dict[str, list[int]]) -> None:
        """Restore the model from disk: the two differ in these users at most, and in items of the rows `touched`."""
        self._baskets.restore(users, touched["baskets"])
        with self.model.lock.writing:
            self._products.restore(touched["products"])
        self._hidden.restore(touched["hidden"])
        self._hide_stored()
        self._suppressed.restore(touched["suppressed"])
        self._suppress_stored(users)
        self._cursors.restore()

    def _hide_stored(self) -> None:
        """Hide the items that are hidden on disk, and no others."""
        stored, availability = [item for (item,) in self._hidden], self.model.availability
        with self.model.lock.writing:
            availability.change(stored, set(availability).difference(stored))

    def _suppress_stored(self, users: Collection[Id]) -> None:
        """Suppress for these users, who have no suppressions yet, the items that are suppressed on disk."""
        self.model.apply([Suppress(user, item) for user, item in self._suppressed if user in users])


class Settings(NamedTuple):
    """The parameters of a database, and the salt of its digest."""

    params: Params
    salt: bytes

    def to_json(self) -> bytes:
        """Encode the payload of a row."""
        return msgspec.json.encode({**asdict(self.params), "salt": self.salt.hex()})


def stored_settings(database: Database, rows: dict[int, bytes]) -> Settings:
    """Return the settings in the newest of these rows."""
    if not rows:
        raise StoreError(f"{database.path} has no parameters: it was not created completely. Open it for writing")
    fields = msgspec.json.decode(rows[max(rows)])
    salt = bytes.fromhex(fields.pop("salt"))
    return Settings(Params(**fields), salt)
