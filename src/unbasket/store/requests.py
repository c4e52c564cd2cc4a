"""Requests: events of a caller who waits for them to be on disk, and what comes of them."""

from collections.abc import Sequence
from time import perf_counter

from unbasket.domain.events import Allow, Change, Forget, Rename
from unbasket.domain.ids import Id
from unbasket.domain.results import Forgotten, Learned, Renamed
from unbasket.errors import UnbasketError
from unbasket.store.receipts import Receipt


class Erased(Forgotten):
    """A `Forgotten` whose bytes are gone from every file, the receipt that says so, and how long it took."""

    receipt: Receipt
    seconds: float


class ErasedId(Renamed):
    """A `Renamed` whose old id is gone from every file, the receipt that says so, and how long it took."""

    receipt: Receipt
    seconds: float


Outcome = Learned | Forgotten | Renamed | bool


class Request:
    """Events of one caller, who waits for them to be on disk."""

    def __init__(self, events: Sequence[Change]) -> None:
        self.events = events
        self.start = perf_counter()
        self.results: list[Outcome] = []
        self.error: UnbasketError | None = None
        self.erasures: int | None = None  # there had been, if this request still waits for the next one

    @property
    def forgets(self) -> bool:
        """Whether something is to be erased."""
        return any(type(event) in (Forget, Allow, Rename) for event in self.events)

    @property
    def users(self) -> set[Id]:
        """Those whom the events are about."""
        return {event.user for event in self.events} | {
            event.other for event in self.events if isinstance(event, Rename)
        }

    @property
    def erased(self) -> list[Erased | ErasedId]:
        """The results of its forgets and renames."""
        return [result for result in self.results if isinstance(result, Erased | ErasedId)]
