"""The events of one caller on their way to disk, and their results."""

from collections.abc import Mapping, Sequence
from time import perf_counter
from types import MappingProxyType

from unbasket.domain.events import Allow, Change, Forget, Rename
from unbasket.domain.ids import Id
from unbasket.domain.results import Forgotten, Renamed
from unbasket.engine.model import EventResult
from unbasket.errors import UnbasketError
from unbasket.store.receipts import Receipt

_ERASING = {Forget, Allow, Rename}

NO_CURSORS: Mapping[str, int] = MappingProxyType({})
"""The cursors of a caller that reads no stream."""


class Erased(Forgotten):
    """A `Forgotten` whose bytes are gone from every file, the receipt that says so, and how long it took.

    The `secret` proves whom the receipt is about. It is kept nowhere: give it to the requester with the receipt.
    """

    receipt: Receipt
    secret: str
    seconds: float


class ErasedId(Renamed):
    """A `Renamed` whose old id is gone from every file, the receipt that says so, its secret, and how long it took."""

    receipt: Receipt
    secret: str
    seconds: float


class WriteRequest:
    """Events of one caller, who waits for them to be on disk, their results, and the cursors that move with them."""

    def __init__(self, events: Sequence[Change], cursors: Mapping[str, int] = NO_CURSORS) -> None:
        self.events = events
        self.cursors = cursors
        self.start = perf_counter()
        self.results: list[EventResult] = []
        self.error: UnbasketError | None = None
        self.is_served = False  # False in the end if the caller that wrote for others was interrupted
        self.erasures: int | None = None  # erasures before this request, if it still waits for the next one

    @property
    def erases(self) -> bool:
        """Whether acknowledging the request takes an erasure."""
        return not _ERASING.isdisjoint(map(type, self.events))

    @property
    def users(self) -> set[Id]:
        """The users that the events change."""
        return {event.user for event in self.events} | {
            event.other for event in self.events if isinstance(event, Rename)
        }

    @property
    def forgets(self) -> list[tuple[Id, Receipt]]:
        """The users of its forgets and renames, and their receipts."""
        erased = self.erased  # none after an error
        erasing = [event.user for event in self.events if isinstance(event, Forget | Rename)] if erased else []
        return [(user, result.receipt) for user, result in zip(erasing, erased, strict=True)]

    @property
    def erased(self) -> list[Erased | ErasedId]:
        """The results of its forgets and renames."""
        return [result for result in self.results if isinstance(result, Erased | ErasedId)] if self.erases else []
