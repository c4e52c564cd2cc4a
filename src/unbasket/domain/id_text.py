"""Ids as text: on the command line, in CSV files, in URLs."""

import json
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import Protocol

from unbasket.domain.ids import Id, Kind
from unbasket.domain.results import Basket
from unbasket.errors import UnknownUserError

RULE = (
    "Ids: 17 is the number 17 if the database holds that number, or no text as an id of this kind (user, item or "
    "basket); else it is text. '\"17\"', with the inner quotes, is always text."
)
"""The rule, for the help of commands."""


class IdSource(Protocol):
    """An engine, as far as its ids are concerned."""

    def __contains__(self, user: object) -> bool: ...

    def users(self) -> list[Id]: ...

    def history(self, user: Id) -> list[Basket]: ...

    def has_item(self, item: Id) -> bool: ...

    def has_texts(self, kind: Kind) -> bool: ...

    def has_basket_like(self, user: Id, basket: int) -> bool: ...


class LiveIdReader:
    """A parser of texts into the ids of an engine, by lookups whose cost does not grow with the engine.

    For a user without baskets, 17 is a number if no basket of any user has a str id.
    """

    def __init__(self, rec: IdSource) -> None:
        self._rec = rec

    def user(self, text: str) -> Id:
        """Parse a user id."""
        return _parse(text, lambda number: number in self._rec or not self._rec.has_texts("user"))

    def item(self, text: str) -> Id:
        """Parse an item id."""
        return _parse(text, lambda number: self._rec.has_item(number) or not self._rec.has_texts("item"))

    def basket(self, user: Id, text: str) -> Id:
        """Parse the id of a user's basket."""

        def is_number(number: int) -> bool:
            try:
                return self._rec.has_basket_like(user, number)
            except UnknownUserError:
                return not self._rec.has_texts("basket") or number in self._scanned_baskets

        return _parse(text, is_number)

    @property
    def _scanned_baskets(self) -> AbstractSet[Id]:
        return frozenset()


class IdReader(LiveIdReader):
    """A parser that also scans all baskets where needed, once: for programs that have the engine to themselves.

    For a user without baskets, 17 is a number also if another user has a basket 17.
    """

    @cached_property
    def _scanned_baskets(self) -> AbstractSet[Id]:
        return {basket.basket for user in self._rec.users() for basket in self._rec.history(user)}


def format_id(name: Id) -> str:
    """Return an unambiguous text of an id: a number as digits, a str in quotes if it could be read otherwise.

    >>> format_id("ann"), format_id("17"), format_id(17)
    ('ann', '"17"', '17')
    """
    if isinstance(name, int):
        return str(name)
    is_ambiguous = _whole_number(name) is not None or _unquoted(name) is not None
    return json.dumps(name, ensure_ascii=False) if is_ambiguous else name


def parse_id(text: str) -> Id:
    """Return the id of a text that `format_id` made.

    >>> [parse_id(format_id(name)) for name in ("ann", "17", 17)]
    ['ann', '17', 17]
    """
    return _parse(text, lambda _: True)


def matches_id(text: str, name: Id) -> bool:
    """Return whether a text may mean this id: as it is, or as a str in JSON's quotes.

    >>> matches_id("17", 17), matches_id("17", "17"), matches_id('"17"', "17"), matches_id('"17"', 17)
    (True, True, True, False)
    """
    return text == str(name) or (isinstance(name, str) and _unquoted(text) == name)


def _parse(text: str, is_number: Callable[[int], bool]) -> Id:
    unquoted = _unquoted(text)
    if unquoted is not None:
        return unquoted
    number = _whole_number(text)
    return number if number is not None and is_number(number) else text


def _unquoted(text: str) -> str | None:
    """Return the content of a JSON string; None for any other text."""
    if not text.lstrip(" \t\n\r").startswith('"'):  # a failing parser is slow, and other JSON may be nested deeply
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _whole_number(text: str) -> int | None:
    """Return the number of a text in canonical form, else None: 007 is text, as in an imported CSV file."""
    if len(text) > 20 or not text.removeprefix("-").isdecimal():
        return None
    number = int(text)
    return number if str(number) == text and -(2**63) <= number < 2**63 else None
