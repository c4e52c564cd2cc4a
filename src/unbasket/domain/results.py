"""What the engine answers with."""

from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from unbasket.domain.ids import Id


class Recommendation(NamedTuple):
    """An item to put into the next basket. The score is the item's entry of the paper's prediction vector p."""

    item: Id
    score: float


class Basket(NamedTuple):
    """One remembered basket. Items are in the order of their ids, since a basket is a set."""

    basket: Id
    time: int | None
    items: tuple[Id, ...]


class Neighbor(NamedTuple):
    """Another user, and the Euclidean distance to them."""

    user: Id
    distance: float


class ItemCount(NamedTuple):
    """An item and the number of remembered baskets that hold it."""

    item: Id
    count: int  # type: ignore[assignment]  # it hides tuple.count, which nobody needs here


class BasketShare(NamedTuple):
    """The part of a score that comes from one of the user's own baskets."""

    basket: Id
    time: int | None
    share: float


class Explanation(NamedTuple):
    """Why an item scores what it does: the baskets' shares and the neighbors' share sum to the score.

    Neighbors are counted, never named: their baskets are not the business of the user who asks.
    """

    item: Id
    score: float
    baskets: tuple[BasketShare, ...]
    neighbors_share: float
    neighbors_with_item: int
    neighbors: int


class Learned(StrEnum):
    """What a `learn` did."""

    ADDED = "added"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"


class Forgotten(NamedTuple):
    """What a `forget` removed: purchases (items of baskets), baskets that vanished, users that vanished.

    False in a condition when there was nothing to forget.
    """

    purchases: int
    baskets: int
    users: int

    def __bool__(self) -> bool:
        return self.purchases > 0


class Renamed(NamedTuple):
    """How many purchases and baskets of a user are another's now."""

    purchases: int
    baskets: int


class AvailabilityChange(NamedTuple):
    """How many items were hidden, and how many shown, that had not been so before."""

    hidden: int
    shown: int


class Sizes(NamedTuple):
    """How much an engine holds. Entries are the weights of items in users' vectors: what the index is made of."""

    users: int
    items: int
    baskets: int
    purchases: int
    entries: int


class Verification(NamedTuple):
    """The outcome of comparing the live model, bit by bit, with one retrained from what remains.

    It has 0 `users` if the one asked for is not there: then every record was checked to belong to somebody who is.
    """

    ok: bool
    users: int
    mismatches: tuple[str, ...]


Value = str | int | float | bool | None


class Product(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An item's name and category, as far as they are known, and its further columns."""

    item: Id
    name: str | None = None
    category: str | None = None
    further: dict[str, Any] = {}

    def value(self, column: str) -> Value:
        """What a column says of the item; None if it says nothing."""
        if column in ("name", "category"):
            return self.name if column == "name" else self.category
        value: Value = self.further.get(column)
        return value
