"""Validation of arguments. Each function returns the normalized value, or raises an error that names it."""

import operator
from collections.abc import Collection, Iterable
from typing import NamedTuple, Self

from unbasket.core.index import MAX_BASKET
from unbasket.core.model import UNTIMED
from unbasket.core.util import are_plain, distinct
from unbasket.domain.ids import Id, Kind, checked_all
from unbasket.errors import InvalidBasketError, InvalidRequestError


def _is_list(value: object) -> bool:
    """Return whether a value is iterable and not text; `isinstance(value, Iterable)` would take a microsecond."""
    return type(value) is list or (hasattr(value, "__iter__") and not isinstance(value, (str, bytes)))


def checked_items(items: Iterable[Id], owner: str, *names: Id) -> list[Id]:
    """Return the distinct items of a basket. The format `owner` tells of it in an error, with `names` filled in."""
    if not _is_list(items):
        raise InvalidBasketError(f"{owner.format(*names)} must be a list of item ids, not {items!r}")
    basket = distinct(items if type(items) is list and are_plain(items) else checked_all(items, "item"))
    if not 0 < len(basket) <= MAX_BASKET:
        raise InvalidBasketError(f"{owner.format(*names)} has {len(basket)} items; it must have 1 to {MAX_BASKET}")
    return basket


def checked_history(baskets: Iterable[Iterable[Id]], least: int = 1) -> list[list[Id]]:
    """Return the distinct items of each basket of a history, which must have at least `least` baskets."""
    if not _is_list(baskets):
        raise InvalidBasketError(f"a history must be a list of baskets, not {baskets!r}")
    history = [checked_items(basket, f"basket number {number}") for number, basket in enumerate(baskets, 1)]
    if len(history) < least:
        raise InvalidBasketError("a history must have at least one basket; popular() needs none")
    return history


def checked_time(time: object) -> int | None:
    """Return a time; None means the order of arrival."""
    if time is None or (type(time) is int and UNTIMED < time < 2**63):
        return time
    if not hasattr(time, "__index__") or isinstance(time, bool):
        raise InvalidBasketError(
            f"time must be a whole number or None, not {time!r}; `learn` and `fit` also take dates and datetimes"
        )
    if not UNTIMED < operator.index(time) < 2**63:
        raise InvalidBasketError(f"time {time!r} does not fit into 64 bits")
    return operator.index(time)


def checked_count(n: object) -> int:
    """Return the number of results to return."""
    if type(n) is int and n >= 0:
        return n
    if not hasattr(n, "__index__") or isinstance(n, bool) or operator.index(n) < 0:
        raise InvalidRequestError(f"n must be a whole number of at least 0, not {n!r}")
    return operator.index(n)


def checked_users(users: Iterable[Id]) -> list[Id]:
    """Return the users of a batch query."""
    return checked_selection(users, "users", "user")


def checked_selection(ids: Iterable[Id], what: str, kind: Kind = "item") -> list[Id]:
    """Return the ids of a selection; ids may be unknown or repeated."""
    if not _is_list(ids):
        raise InvalidRequestError(f"{what} must be a list of {kind} ids, not {ids!r}")
    return checked_all(ids, kind)


def checked_cart(cart: Collection[Id] | None) -> list[Id] | None:
    """Return the distinct items of a cart, or None if it is empty."""
    if cart is None or (_is_list(cart) and not len(cart)):
        return None
    return checked_items(cart, "the cart")


class Filters(NamedTuple):
    """Items to leave out, the only items to allow, the only categories to allow. None is no condition.

    An item must meet all conditions. Unknown items and categories are valid: they may have been forgotten. The items of
    a frozen set are validated later, when they are looked up, since that happens once.
    """

    exclude: list[Id]
    only: list[Id] | frozenset[Id] | None
    categories: list[str] | None

    @classmethod
    def checked(
        cls, exclude: Collection[Id] | None, only: Collection[Id] | None, category: str | Collection[str] | None
    ) -> Self | None:
        """Return the filters, or None without any; raise an error that names an invalid value."""
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
