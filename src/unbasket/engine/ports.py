"""The port between an engine and the storage of its events.

    event -> journal -> model
               |
             (disk)

An engine hands every event to its journal. The journal applies it to the model and returns when it is kept, so a
durable engine is an engine with another journal.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from unbasket.core.util import RecoveringLock
from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.events import Change
from unbasket.domain.ids import Id, Kind
from unbasket.domain.results import AvailabilityChange, Product, Progress
from unbasket.engine.model import EventResult, Model
from unbasket.errors import BusyError, UnbasketError
from unbasket.params import Params


class Journal(Protocol):
    """The one way to change a model. Events have been checked before; ids get the types of the model here.

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

    def set_availability(self, hide: list[Id], show: list[Id]) -> AvailabilityChange:
        """Hide items and show others: all of them, or none."""

    def change_params(self, params: Params, progress: Progress | None) -> None:
        """Rebuild the model with other parameters."""

    def change_ids(self, kinds: Sequence[Kind]) -> None:
        """Replace the model by one whose ids of these kinds are texts."""


class InMemoryJournal:
    """The journal of an engine in memory: it applies events, and keeps them nowhere.

    One caller writes at a time, so the types of ids do not change while a batch of events is applied. A change that an
    interrupt tears is completed or undone by the next call.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._lock = RecoveringLock(UnbasketError)

    @property
    def model(self) -> Model:
        if self._lock.is_torn:
            with self._writing:
                pass
        return self._model

    @property
    def _writing(self) -> AbstractContextManager[None]:
        return self._lock.after(self._recover)

    def _recover(self) -> None:
        self._model = self._model.recovered()

    def apply(self, events: Sequence[Change]) -> list[EventResult]:
        with self._writing:
            return self._model.apply(self._model.canonical_events(events))

    def load(self, columns: BasketColumns, group: str | None, progress: Progress | None) -> None:
        with self._writing:
            self._model.load(columns.in_types(self._model.id_types()), group)
        if progress is not None:
            progress(len(columns.owners), len(columns.owners))

    def describe(self, products: Iterable[Product]) -> None:
        with self._writing:
            described = self._model.canonical_products(products)
            with self._model.lock.writing:
                self._model.catalog.put_all(described)

    def set_availability(self, hide: list[Id], show: list[Id]) -> AvailabilityChange:
        with self._writing:
            items = self._model.canonical_availability(hide, show)
            with self._model.lock.writing:
                hidden, shown = self._model.availability.change(*items)
        return AvailabilityChange(len(hidden), len(shown))

    def change_params(self, params: Params, progress: Progress | None) -> None:
        model = self.model
        with model.rebuilding:
            swap = model.rebuilt(params, progress)
            with self._writing:
                if self._model is not model:
                    raise model_replaced()
                swap()

    def change_ids(self, kinds: Sequence[Kind]) -> None:
        with self._writing:
            self._model = self._model.with_texts(kinds)


def model_replaced() -> BusyError:
    """Return the error of a rebuild whose model was replaced meanwhile."""
    return BusyError("the types of ids were changed meanwhile, or another change was interrupted. Try again")
