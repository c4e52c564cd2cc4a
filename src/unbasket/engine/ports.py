"""The port between an engine and whoever keeps its events.

    event -> journal -> model
               |
               disk, or nothing

An engine hands every event to its journal. The journal has the model apply it, and returns when it is kept: a durable
engine is an engine with another journal.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.events import Allow, Event, Forget, Learn, Rename, Suppress
from unbasket.domain.ids import Id
from unbasket.domain.products import Product
from unbasket.domain.progress import Progress
from unbasket.domain.results import Forgotten, Learned, Renamed, Restocked
from unbasket.engine.model import Model
from unbasket.params import Params


class Journal(Protocol):
    """Takes events, which have been checked, and answers when the model has applied them and they are kept.

    If it raises an error, nothing has happened, unless the error says otherwise.
    """

    @property
    def model(self) -> Model:
        """The model that applies the events."""

    def learn(self, event: Learn) -> Learned:
        """A basket."""

    def forget(self, event: Forget) -> Forgotten:
        """Something to forget."""

    def apply(self, events: Sequence[Event]) -> list[Learned | Forgotten]:
        """Events in their order: all of them, or none."""

    def suppress(self, event: Suppress) -> bool:
        """An item not to recommend to a user; answers whether that is new."""

    def allow(self, event: Allow) -> bool:
        """A suppressed item to recommend again; answers whether it was suppressed."""

    def rename(self, event: Rename) -> Renamed:
        """A user who becomes another."""

    def load(self, orders: BasketColumns, group: str | None, progress: Progress | None) -> None:
        """Many baskets at once. `group` is the column that their groups come from, if one was named."""

    def describe(self, products: Iterable[Product]) -> None:
        """What is known of items."""

    def restock(self, hide: Sequence[Id], show: Sequence[Id]) -> Restocked:
        """Items to hide, and items to show: all of them, or none."""

    def change_params(self, params: Params, progress: Progress | None) -> None:
        """Other parameters."""


class NoJournal:
    """The journal of an engine in memory: events are applied, and kept nowhere."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def learn(self, event: Learn) -> Learned:
        """A basket."""
        learned = self.model.learn(event)
        self._drop_vanished()
        return learned

    def forget(self, event: Forget) -> Forgotten:
        """Something to forget."""
        forgotten = self.model.forget(event)
        self._drop_vanished()
        return forgotten

    def apply(self, events: Sequence[Event]) -> list[Learned | Forgotten]:
        """Events in their order; checked events do not fail."""
        return [self.learn(event) if isinstance(event, Learn) else self.forget(event) for event in events]

    def suppress(self, event: Suppress) -> bool:
        """An item not to recommend to a user."""
        return self.model.suppress(event)

    def allow(self, event: Allow) -> bool:
        """A suppressed item to recommend again."""
        return self.model.allow(event)

    def rename(self, event: Rename) -> Renamed:
        """A user who becomes another."""
        return self.model.rename(event)

    def load(self, orders: BasketColumns, group: str | None, progress: Progress | None) -> None:
        """Many baskets at once."""
        self.model.load(orders, group)
        self._drop_vanished()
        if progress is not None:
            progress(len(orders.owners), len(orders.owners))

    def describe(self, products: Iterable[Product]) -> None:
        """What is known of items."""
        with self.model.lock.writing:
            for product in products:
                self.model.catalog.put(product)

    def restock(self, hide: Sequence[Id], show: Sequence[Id]) -> Restocked:
        """Items to hide, and items to show."""
        with self.model.lock.writing:
            return Restocked(len(self.model.stock.hide(hide)), len(self.model.stock.show(show)))

    def change_params(self, params: Params, progress: Progress | None) -> None:
        """Other parameters."""
        with self.model.renewed(params, progress) as take_over:
            take_over()

    def _drop_vanished(self) -> None:
        """Forget what is known of items that nobody has any longer."""
        if self.model.state.orphaned_items:
            with self.model.lock.writing:
                for item in self.model.state.take_orphaned_items():
                    self.model.catalog.drop(item)
