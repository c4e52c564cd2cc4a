"""Ids on the command line and in CSV files, where everything is text."""

import json
from collections.abc import Iterable
from functools import cached_property

from unbasket.ids import Id
from unbasket.recommender import Recommender

RULE = (
    "Ids: 17 is the number 17 if the database holds that number, or no text as an id of this kind (user, item or "
    "basket); else it is text. '\"17\"', with the inner quotes, is always text."
)
"""The rule, for the help of commands."""


class IdReader:
    """Reads texts as the ids that an engine holds."""

    def __init__(self, rec: Recommender) -> None:
        self._rec = rec

    def user(self, text: str) -> Id:
        """The user that a text means."""
        return self._users.read(text)

    def item(self, text: str) -> Id:
        """The item that a text means."""
        return self._items.read(text)

    def basket(self, user: Id, text: str) -> Id:
        """The basket of a user that a text means; of a user who has none, the other users' ids tell the kind."""
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


class _Held:
    """The ids of one kind, and the rule by which a text is one of them.

    >>> _Held([17, "ann"]).read("17"), _Held([17, "ann"]).read("18"), _Held([17]).read("18"), _Held([17]).read('"17"')
    (17, '18', 18, '17')
    """

    def __init__(self, ids: Iterable[Id]) -> None:
        self._ids = set(ids)
        self._has_text = any(isinstance(name, str) for name in self._ids)

    def read(self, text: str) -> Id:
        quoted = _quoted(text)
        if quoted is not None:
            return quoted
        number = _whole_number(text)
        if number is not None and (number in self._ids or not self._has_text):
            return number
        return text


def _quoted(text: str) -> str | None:
    """The text in a JSON string; None if it is none."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _whole_number(text: str) -> int | None:
    """The number that a text writes as one would print it: 007 is text, as it is when a CSV file is imported."""
    try:
        number = int(text)
    except ValueError:
        return None
    return number if str(number) == text and -(2**63) <= number < 2**63 else None
