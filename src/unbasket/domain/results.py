"""Results of the engine, its progress, and the products of its catalog."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from unbasket.domain.ids import Id

Progress = Callable[[int, int], object]
"""A callback of a long operation, called with (done, total)."""

ReadingProgress = Callable[[int, int | None], object]
"""Called with (done, total), or None for a total that is unknown."""


class Recommendation(NamedTuple):
    """An item for the next basket. The score is the item's entry of the paper's prediction vector p."""

    item: Id
    score: float


class Basket(NamedTuple):
    """A stored basket. Items are in the order of their ids, since a basket is a set."""

    basket: Id
    time: int | None
    items: tuple[Id, ...]


class Neighbor(NamedTuple):
    """Another user, and their Euclidean distance."""

    user: Id
    distance: float


class ItemCount(NamedTuple):
    """An item and the number of stored baskets that hold it."""

    item: Id
    count: int  # type: ignore[assignment]  # hides tuple.count


class BasketShare(NamedTuple):
    """The share of a score that comes from one of the user's own baskets."""

    basket: Id
    time: int | None
    share: float


class Explanation(NamedTuple):
    """The shares of an item's score: those of the user's baskets and of the neighbors sum to it.

    The baskets' shares sum to `weight` times `alpha` times `factor`. The weight is that of the item in the user's own
    baskets. The factor, if the model has learned it, says how readily people buy the item again; otherwise it is 1.
    Neighbors are counted, never named, since their baskets are their personal data.
    """

    item: Id
    score: float
    baskets: tuple[BasketShare, ...]
    neighbors_share: float
    neighbors_with_item: int
    neighbors: int
    weight: float
    alpha: float
    factor: float


class ItemFactor(NamedTuple):
    """An item, how readily it is bought again (1: as most things), and the number of people who bought it."""

    item: Id
    factor: float
    buyers: int


class LearnedWeights(NamedTuple):
    """The weights that a model has learned: alpha, the users behind it, and the items with extreme factors.

    `most` has the largest factors, largest first, and `least` the smallest, smallest first. Only items that at least 20
    people bought are listed: fewer would say too much about a person.
    """

    alpha: float
    users: int
    most: tuple[ItemFactor, ...]
    least: tuple[ItemFactor, ...]


class Learned(StrEnum):
    """The effect of a `learn`."""

    ADDED = "added"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"


class Forgotten(NamedTuple):
    """The numbers of purchases (items of baskets), baskets and users that a `forget` removed.

    False in a condition if there was nothing to forget.
    """

    purchases: int
    baskets: int
    users: int

    def __bool__(self) -> bool:
        return self.purchases > 0


class Renamed(NamedTuple):
    """The numbers of purchases and baskets that moved to the other user."""

    purchases: int
    baskets: int


class AvailabilityChange(NamedTuple):
    """The numbers of items that became hidden, and that became shown."""

    hidden: int
    shown: int


class Sizes(NamedTuple):
    """The size of an engine's data. `entries` counts the weights of items in users' vectors."""

    users: int
    items: int
    baskets: int
    purchases: int
    entries: int


class Verification(NamedTuple):
    """The outcome of comparing the live model, bit by bit, with one retrained from the remaining baskets.

    For an unknown user, it has 0 `users`, and every record was checked for an owner.
    """

    ok: bool
    users: int
    mismatches: tuple[str, ...]


Value = str | int | float | bool | None


class Product(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An item's name and category, if known, and all further columns of the shop's own."""

    item: Id
    name: str | None = None
    category: str | None = None
    further: dict[str, Any] = {}

    def value(self, column: str) -> Value:
        """Return the value of a column, or None."""
        value: Value = getattr(self, column) if column in ("name", "category") else self.further.get(column)
        return value
