"""Ids where everything is text: on the command line, in CSV files, in addresses."""

import json
from collections.abc import Callable, Iterable
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


class Holder(Protocol):
    """What holds ids: an engine."""

    def __contains__(self, user: object) -> bool: ...

    def users(self) -> list[Id]: ...

    def items(self) -> list[Id]: ...

    def history(self, user: Id) -> list[Basket]: ...

    def has_item(self, item: Id) -> bool: ...

    def has_texts(self, kind: Kind) -> bool: ...

    def has_basket_like(self, user: Id, basket: int) -> bool: ...


class IdReader:
    """Reads texts as the ids that an engine holds."""

    def __init__(self, rec: Holder) -> None:
        self._rec = rec

    def user(self, text: str) -> Id:
        """The user that a text means."""
        return self._users.read(text)

    def item(self, text: str) -> Id:
        """The item that a text means."""
        return self._items.read(text)

    def basket(self, user: Id, text: str) -> Id:
        """The user's basket that a text means; for a user without baskets, those of all users tell the kind of id."""
        if user not in self._rec:
            return self._baskets_of_all.read(text)
        return _Held(basket.basket for basket in self._rec.history(user)).read(text)

    @cached_property
    def _users(self) -> "_Held":
        return _Held(self._rec.users())

    @cached_property
    def _items(self) -> "_Held":
        return _Held(self._rec.items())

    @cached_property
    def _baskets_of_all(self) -> "_Held":
        return _Held(basket.basket for user in self._rec.users() for basket in self._rec.history(user))


class LiveIdReader:
    """Reads texts as the ids that an engine holds now, for a service: the engine changes, and a shop may be large.

    The rule is that of `IdReader` with one difference: for a user without baskets, 17 is the number only if nobody's
    basket has a text as its id, since looking through all baskets would take too long.
    """

    def __init__(self, rec: Holder) -> None:
        self._rec = rec

    def user(self, text: str) -> Id:
        """The user that a text means."""
        return _read(text, lambda number: number in self._rec or not self._rec.has_texts("user"))

    def item(self, text: str) -> Id:
        """The item that a text means."""
        return _read(text, lambda number: self._rec.has_item(number) or not self._rec.has_texts("item"))

    def basket(self, user: Id, text: str) -> Id:
        """The basket of a user that a text means."""

        def is_number(number: int) -> bool:
            try:
                return self._rec.has_basket_like(user, number)
            except UnknownUserError:
                return not self._rec.has_texts("basket")

        return _read(text, is_number)


def format_id(name: Id) -> str:
    """A text that always means this id, whatever an engine holds; a number is written as it is.

    >>> format_id("ann"), format_id("17"), format_id(17)
    ('ann', '"17"', '17')
    """
    if isinstance(name, int):
        return str(name)
    doubtful = _whole_number(name) is not None or _quoted(name) is not None
    return json.dumps(name, ensure_ascii=False) if doubtful else name


def parse_id(text: str) -> Id:
    """The id that `format_id` wrote as this text.

    >>> [parse_id(format_id(name)) for name in ("ann", "17", 17)]
    ['ann', '17', 17]
    """
    return _read(text, lambda _: True)


def matches_id(text: str, name: Id) -> bool:
    """Whether a text may stand for this id: as it is, or a text in JSON's quotes.

    >>> matches_id("17", 17), matches_id("17", "17"), matches_id('"17"', "17"), matches_id('"17"', 17)
    (True, True, True, False)
    """
    return text == str(name) or (isinstance(name, str) and _quoted(text) == name)


def _read(text: str, is_number: Callable[[int], bool]) -> Id:
    quoted = _quoted(text)
    if quoted is not None:
        return quoted
    number = _whole_number(text)
    return number if number is not None and is_number(number) else text


class _Held:
    """The ids of one kind, and the rule by which a text is one of them.

    >>> _Held([17, "ann"]).read("17"), _Held([17, "ann"]).read("18"), _Held([17]).read("18"), _Held([17]).read('"17"')
    (17, '18', 18, '17')
    """

    def __init__(self, ids: Iterable[Id]) -> None:
        self._ids = set(ids)
        self._has_text = any(isinstance(name, str) for name in self._ids)

    def read(self, text: str) -> Id:
        return _read(text, lambda number: number in self._ids or not self._has_text)


def _quoted(text: str) -> str | None:
    """The text in a JSON string; None if this is not one."""
    if not text.lstrip(" \t\n\r").startswith('"'):  # the parser's error would be slow, and other JSON may be deep
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _whole_number(text: str) -> int | None:
    """The number that a text spells as it would be printed: 007 is text, as it is when a CSV file is imported."""
    if len(text) > 20 or not text.removeprefix("-").isdecimal():
        return None
    try:
        number = int(text)
    except ValueError:
        return None
    return number if str(number) == text and -(2**63) <= number < 2**63 else None
