"""The port between an engine and the storage of its events.

    event -> journal -> model
               |
             (disk)

An engine hands every event to its journal. The journal applies it to the model and returns when it is kept, so a
durable engine is an engine with another journal.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.events import Change
from unbasket.domain.ids import Id
from unbasket.domain.results import AvailabilityChange, Product, Progress
from unbasket.engine.model import EventResult, Model
from unbasket.params import Params


class Journal(Protocol):
    """The one way to change a model. Events have been checked before.

    A method returns when the model has applied the change and the journal keeps it. If it raises an error, nothing has
    happened, unless the error says otherwise.
    """

    @property
    def model(self) -> Model:
        """The model that applies the events."""

    def apply(self, events: Sequence[Change]) -> list[EventResult]:
        """Apply events in order: all of them, or none. Suppress, Allow and Rename come alone."""

    def load(self, columns: BasketColumns, group: str | None, progress: Progress | None) -> None:
        """Learn many baskets at once. `group` is the column that their groups come from, if one was named."""

    def describe(self, products: Iterable[Product]) -> None:
        """Put products into the catalog."""

    def set_availability(self, hide: Sequence[Id], show: Sequence[Id]) -> AvailabilityChange:
        """Hide items and show others: all of them, or none."""

    def change_params(self, params: Params, progress: Progress | None) -> None:
        """Rebuild the model with other parameters."""


class InMemoryJournal:
    """The journal of an engine in memory: it applies events, and keeps them nowhere."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.apply = model.apply

    def load(self, columns: BasketColumns, group: str | None, progress: Progress | None) -> None:
        self.model.load(columns, group)
        if progress is not None:
            progress(len(columns.owners), len(columns.owners))

    def describe(self, products: Iterable[Product]) -> None:
        with self.model.lock.writing:
            for product in products:
                self.model.catalog.put(product)

    def set_availability(self, hide: Sequence[Id], show: Sequence[Id]) -> AvailabilityChange:
        with self.model.lock.writing:
            return AvailabilityChange(len(self.model.availability.hide(hide)), len(self.model.availability.show(show)))

    def change_params(self, params: Params, progress: Progress | None) -> None:
        with self.model.rebuilt(params, progress) as swap:
            swap()
