"""What a durable engine holds, in memory and on disk: a change happens in both."""

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.events import Allow, Change, Forget, Learn, Rename, Suppress
from unbasket.domain.ids import Id
from unbasket.domain.progress import Progress
from unbasket.domain.results import AvailabilityChange, Learned, Product
from unbasket.engine.model import Model
from unbasket.store.basket_table import BasketRows
from unbasket.store.product_table import CatalogRows
from unbasket.store.reader import Loaded
from unbasket.store.receipts import ReceiptSigner
from unbasket.store.requests import Erased, ErasedId, Outcome
from unbasket.store.stored_set import EntryRows
from unbasket.store.writer import Database


class PersistentModel:
    """A model, and the rows of a database that hold what it knows. Transactions are the caller's."""

    def __init__(self, model: Model, database: Database, loaded: Loaded) -> None:
        """Fill a model that is empty with what was loaded from a database."""
        self.model = model
        self._database = database
        baskets, others = loaded
        self._baskets = BasketRows(model, database)
        self._baskets.read(baskets)
        self._products = CatalogRows(model.catalog, database, others["products"].items())
        self._hidden = EntryRows(database, "hidden", others["hidden"].items())
        self._suppressed = EntryRows(database, "suppressed", others["suppressed"].items())
        self._note_hidden()
        self._note_suppressed(model.state.users.codes)

    # Events -----------------------------------------------------------------------------------------------------

    def apply(self, event: Change, notary: ReceiptSigner) -> Outcome:
        """An event; the notary writes the receipt of what is forgotten."""
        match event:
            case Learn():
                return self.learn(event)
            case Forget():
                return self._forget(event, notary)
            case Allow():
                return self._allow(event)
            case Suppress():
                return self._suppress(event)
            case Rename():
                return self._rename(event, notary)

    def learn(self, event: Learn, *, alone: bool = False) -> Learned:
        """A basket; `alone`, if no other event shares its transaction."""
        if not self.model.comes_last(event):
            learned = self.model.learn(event)
            self._follow()
            return learned
        row = self._baskets.append(event, alone=alone)  # first, as a disk writes while the model learns
        learned = self.model.learn(event)
        self._baskets.note(row)
        return learned

    def _suppress(self, event: Suppress) -> bool:
        is_new = self.model.suppress(event)
        if is_new:
            self._suppressed.add((event.user, event.item))
        return is_new

    def _allow(self, event: Allow) -> bool:
        was_there = self.model.allow(event)
        if was_there:
            self._suppressed.drop((event.user, event.item))
        return was_there

    def _forget(self, event: Forget, notary: ReceiptSigner) -> Erased:
        suppressed = set(self.model.state.suppressed.get(event.user, ()))
        proof = self.model.forget_with_proof(event)
        self._follow()
        for item in suppressed if event.user not in self.model.state.users else ():
            self._suppressed.drop((event.user, item))
        erased = Erased(*proof.forgotten)
        erased.receipt = notary.certify(event, proof)
        self._database.append("receipts", erased.receipt.to_json())
        return erased

    def _rename(self, event: Rename, notary: ReceiptSigner) -> ErasedId:
        suppressed = self.model.state.suppressed
        old, kept = set(suppressed.get(event.user, ())), set(suppressed.get(event.other, ()))
        renamed, proof = self.model.rename_with_proof(event)
        self._follow()
        for item in old:
            self._suppressed.drop((event.user, item))
        for item in old - kept:
            self._suppressed.add((event.other, item))
        erased = ErasedId(*renamed)
        erased.receipt = notary.certify(event, proof)
        self._database.append("receipts", erased.receipt.to_json())
        return erased

    def _follow(self) -> None:
        """Write what an event has changed, and drop what is known of items that nobody has any longer."""
        vanished = self._baskets.follow()
        if vanished:
            with self.model.lock.writing:
                for item in vanished:
                    self._products.drop(item)

    # Bulk -------------------------------------------------------------------------------------------------------

    def load(self, orders: BasketColumns, progress: Progress | None) -> None:
        """Many baskets: new users at once, further baskets of known users one by one."""
        known = np.array([user in self.model.state.users for user in orders.users], np.bool_)
        for user, baskets in orders.histories(np.flatnonzero(known)):
            for basket, time, items in baskets:
                self.learn(Learn(user, list(items), basket, time))
        self._baskets.write(orders.select(np.flatnonzero(~known)) if known.any() else orders, progress)

    def describe(self, products: Iterable[Product]) -> None:
        """What is known of items."""
        with self.model.lock.writing:
            self._products.save(products)

    def set_availability(self, hide: Sequence[Id], show: Sequence[Id]) -> AvailabilityChange:
        """Items to hide, and items to show."""
        with self.model.lock.writing:
            hidden, shown = self.model.availability.hide(hide), self.model.availability.show(show)
        for item in hidden:
            self._hidden.add((item,))
        for item in shown:
            self._hidden.drop((item,))
        return AvailabilityChange(len(hidden), len(shown))

    # After an error ---------------------------------------------------------------------------------------------

    def restore(self, users: set[Id], touched: dict[str, list[int]] | None) -> None:
        """Go back to what is on disk: it may say other things of these users, and of items, than the model does.

        What has changed is in the rows of each table that were `touched`, or anywhere.
        """
        rows = touched or {}
        self._baskets.restore(users, rows.get("baskets"))
        with self.model.lock.writing:
            self._products.restore(rows.get("products"))
        self._hidden.restore(rows.get("hidden"))
        self._note_hidden()
        self._suppressed.restore(rows.get("suppressed"))
        self._note_suppressed(users)

    def _note_hidden(self) -> None:
        """Make the model hide what is hidden on disk, and nothing else."""
        on_disk = [item for (item,) in self._hidden]
        with self.model.lock.writing:
            self.model.availability.show(set(self.model.availability).difference(on_disk))
            self.model.availability.hide(on_disk)

    def _note_suppressed(self, users: Collection[Id]) -> None:
        """Make the model suppress for these users what is suppressed on disk; it has nothing of that yet."""
        for user, item in self._suppressed:
            if user in users:
                self.model.suppress(Suppress(user, item))
