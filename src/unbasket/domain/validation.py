"""Checks of what callers pass in. Each returns the value as the engine wants it, or raises and names it."""

import operator
from collections.abc import Collection, Iterable
from typing import NamedTuple, Self

from unbasket.core import MAX_BASKET, UNTIMED
from unbasket.domain.ids import Id, checked_all
from unbasket.errors import InvalidBasketError, InvalidRequestError


def _is_list(value: object) -> bool:
    """Whether a value can be iterated and is not text. Asking whether it is an `Iterable` would take a microsecond."""
    return hasattr(value, "__iter__") and not isinstance(value, (str, bytes))


def checked_items(items: Iterable[Id], whose: str) -> list[Id]:
    """The distinct items of a basket."""
    if not _is_list(items):
        raise InvalidBasketError(f"{whose} must be a list of item ids, not {items!r}")
    distinct = list(dict.fromkeys(checked_all(items, "item")))
    if not 0 < len(distinct) <= MAX_BASKET:
        raise InvalidBasketError(f"{whose} has {len(distinct)} items; it must have 1 to {MAX_BASKET}")
    return distinct


def checked_history(baskets: Iterable[Iterable[Id]], least: int = 1) -> list[list[Id]]:
    """The distinct items of each of a history's baskets, of which there must be at least so many."""
    if not _is_list(baskets):
        raise InvalidBasketError(f"a history must be a list of baskets, not {baskets!r}")
    history = [checked_items(basket, f"basket number {number}") for number, basket in enumerate(baskets, 1)]
    if len(history) < least:
        raise InvalidBasketError("a history must have at least one basket; popular() needs none")
    return history


def checked_time(time: object) -> int | None:
    """A time, or None: the order of arrival."""
    if time is None:
        return None
    if not hasattr(time, "__index__") or isinstance(time, bool):
        raise InvalidBasketError(
            f"time must be a whole number or None, not {time!r}; for a datetime, give int(moment.timestamp())"
        )
    if not UNTIMED < operator.index(time) < 2**63:
        raise InvalidBasketError(f"time {time!r} does not fit into 64 bits")
    return operator.index(time)


def checked_count(n: object) -> int:
    """How many answers are wanted."""
    if type(n) is int and n >= 0:
        return n
    if not hasattr(n, "__index__") or isinstance(n, bool) or operator.index(n) < 0:
        raise InvalidRequestError(f"n must be a whole number of at least 0, not {n!r}")
    return operator.index(n)


def checked_users(users: Iterable[Id]) -> list[Id]:
    """The users to answer for."""
    if not _is_list(users):
        raise InvalidRequestError(f"users must be a list of user ids, not {users!r}")
    return checked_all(users, "user")


def checked_selection(items: Iterable[Id], what: str) -> list[Id]:
    """The items of a selection; some may be unknown, or come twice."""
    if not _is_list(items):
        raise InvalidRequestError(f"{what} must be a list of item ids, not {items!r}")
    return checked_all(items, "item")


def checked_cart(cart: Collection[Id] | None) -> list[Id] | None:
    """The distinct items of a cart; an empty one is none."""
    if cart is None or (_is_list(cart) and not len(cart)):
        return None
    return checked_items(cart, "the cart")


class Filters(NamedTuple):
    """Items to leave out; the only ones to choose from; the categories to choose from. None is no condition.

    An item must meet all conditions. Some items and categories may be unknown: nothing is known of what was forgotten.
    A frozen set is checked when its items are looked up, since that is done once.
    """

    exclude: list[Id]
    only: list[Id] | frozenset[Id] | None
    categories: list[str] | None

    @classmethod
    def checked(
        cls, exclude: Collection[Id] | None, only: Collection[Id] | None, category: str | Collection[str] | None
    ) -> Self | None:
        """The filters, or an error that names what is wrong with them; None if there are none."""
        if exclude is None and only is None and category is None:
            return None
        return cls(
            checked_selection(exclude or [], "exclude"),
            only if only is None or isinstance(only, frozenset) else checked_selection(only, "only"),
            None if category is None else _categories(category),
        )


def _categories(category: str | Collection[str]) -> list[str]:
    names = [category] if isinstance(category, str) else category
    if not hasattr(names, "__iter__") or not all(isinstance(name, str) for name in names):
        raise InvalidRequestError(f"category must be a name or a list of names, not {category!r}")
    return list(dict.fromkeys(names))
