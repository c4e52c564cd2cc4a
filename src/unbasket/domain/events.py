"""Events that change a user's data: learn, forget, suppress, allow, rename."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import msgspec

from unbasket.core.index import MAX_BASKET
from unbasket.core.util import are_of_type, plain_learn
from unbasket.domain.decoding import decode_json
from unbasket.domain.ids import Id, IdTypes, all_in_type, checked, in_type
from unbasket.domain.validation import checked_items, checked_time
from unbasket.errors import InvalidBasketError, InvalidEventError


class Learn(NamedTuple):
    """A basket to add or edit."""

    user: Id
    items: list[Id]
    basket: Id
    time: int | None

    @classmethod
    def checked(cls, user: object, items: Iterable[Id], basket: object, time: object) -> Self:
        """Return the event, or raise an error that names the invalid value."""
        plain = plain_learn(cls, user, items, basket, time, MAX_BASKET)
        if plain is not None:
            return plain
        user, basket, time = checked(user, "user"), checked(basket, "basket"), checked_time(time)
        return cls(user, checked_items(items, "basket {!r} of user {!r}", basket, user), basket, time)

    def in_types(self, types: IdTypes) -> Self:
        """Return the event with ids of an engine's types; an error names an id that spells none."""
        user, items, basket, _ = self
        user_type, basket_type, item_type = types
        if type(user) is user_type and type(basket) is basket_type and are_of_type(items, item_type):
            return self
        return self._replace(
            user=in_type(user, user_type, "user"),
            items=list(dict.fromkeys(all_in_type(items, item_type, "item"))),
            basket=in_type(basket, basket_type, "basket"),
        )


class Forget(NamedTuple):
    """A user, a basket, an item of a basket, or an item of all the user's baskets to forget."""

    user: Id
    basket: Id | None
    item: Id | None

    @classmethod
    def checked(cls, user: object, basket: object, item: object) -> Self:
        """Return the event, or raise an error that names the invalid value."""
        return cls(
            checked(user, "user"),
            None if basket is None else checked(basket, "basket"),
            None if item is None else checked(item, "item"),
        )

    def in_types(self, types: IdTypes) -> Self:
        """Return the event with ids of an engine's types; an error names an id that spells none."""
        user, basket, item = self
        user_type, basket_type, item_type = types
        return type(self)(
            in_type(user, user_type, "user"),
            None if basket is None else in_type(basket, basket_type, "basket"),
            None if item is None else in_type(item, item_type, "item"),
        )


class Suppress(NamedTuple):
    """An item never to recommend to a user."""

    user: Id
    item: Id

    @classmethod
    def checked(cls, user: object, item: object) -> Self:
        """Return the event, or raise an error that names the invalid value."""
        return cls(checked(user, "user"), checked(item, "item"))

    def in_types(self, types: IdTypes) -> Self:
        """Return the event with ids of an engine's types; an error names an id that spells none."""
        return type(self)(in_type(self.user, types.user, "user"), in_type(self.item, types.item, "item"))


class Allow(Suppress):
    """A suppressed item to recommend to a user again."""


class Rename(NamedTuple):
    """A user to merge into another."""

    user: Id
    other: Id

    @classmethod
    def checked(cls, user: object, other: object) -> Self:
        """Return the event, or raise an error that names the invalid value."""
        return cls(checked(user, "user"), checked(other, "user"))

    def in_types(self, types: IdTypes) -> Self:
        """Return the event with ids of an engine's types; an error names an id that spells none, or equal ids."""
        event = type(self)(in_type(self.user, types.user, "user"), in_type(self.other, types.user, "user"))
        if event.user == event.other:
            raise InvalidEventError(f"user {event.user!r} can't be renamed to the same id")
        return event


Event = Learn | Forget
"""An event that callers may apply in bulk."""

Change = Event | Suppress | Allow | Rename


def in_types(events: Sequence[Change], types: IdTypes) -> list[Change]:
    """Return events with ids of an engine's types. A kind that has no type yet gets that of the ids to be learned."""
    if None in types:
        learned = [event for event in events if isinstance(event, Learn)]
        items = (item for event in learned for item in event.items)
        types = types.or_of((event.user for event in learned), (event.basket for event in learned), items)
    return [event.in_types(types) for event in events]


def rechecked(events: Iterable[Event]) -> list[Event]:
    """Return a caller's events, with every field validated."""
    valid: list[Event] = []
    for number, event in enumerate(events, 1):
        if not isinstance(event, Learn | Forget):
            raise InvalidEventError(f"event {number} must be a Learn or a Forget, not {event!r}")
        valid.append(Learn.checked(*event) if isinstance(event, Learn) else Forget.checked(*event))
    return valid


def learns_first(events: Sequence[Event]) -> list[Event]:
    """Return events with the learns first that no forget of the same user comes before; the others stay in order.

    Between users, no order is promised. Forgets in a row cost less: a digest before and after each covers all changes.

    >>> events = Forget("ann", 1, None), Learn("ann", ["milk"], 2, None), Learn("bob", ["tea"], 1, None)
    >>> [event.user for event in learns_first(events)]
    ['bob', 'ann', 'ann']
    """
    forgetting, learns, others = set[str](), list[Event](), list[Event]()  # 7 and "7" are one user
    for event in events:
        if type(event) is Learn and not (forgetting and str(event.user) in forgetting):  # without forgets, no text
            learns.append(event)
        else:
            forgetting.add(str(event.user))
            others.append(event)
    return learns + others


_FIELDS = {"learn": {"event", "user", "basket", "items", "time"}, "forget": {"event", "user", "basket", "item"}}


def parse_event(fields: Mapping[str, Any]) -> Event:
    """Return the event that a JSON object describes.

    >>> parse_event({"event": "learn", "user": "ann", "basket": 1, "items": ["milk"]})
    Learn(user='ann', items=['milk'], basket=1, time=None)
    >>> parse_event({"event": "forget", "user": "ann", "item": "milk"})
    Forget(user='ann', basket=None, item='milk')
    >>> parse_event({"event": "forget", "user": "ann", "items": "milk"})
    Traceback (most recent call last):
    unbasket.errors.InvalidEventError: a forget event has no field 'items'; it may have basket, event, item, user
    """
    if not isinstance(fields, Mapping):
        raise InvalidEventError(f"an event must be an object with the field 'event', not {fields!r}")
    kind = fields.get("event")
    if kind not in ("learn", "forget"):
        raise InvalidEventError(f"the field 'event' must be 'learn' or 'forget', not {kind!r}")
    unknown = sorted(set(fields) - _FIELDS[kind])
    if unknown:
        raise InvalidEventError(
            f"a {kind} event has no field {unknown[0]!r}; it may have {', '.join(sorted(_FIELDS[kind]))}"
        )
    missing = [name for name in ("user", "basket", "items") if kind == "learn" and fields.get(name) is None]
    if missing:
        raise InvalidEventError(f"a learn event needs the field {missing[0]!r}: {dict(fields)!r}")
    if kind == "learn":
        if isinstance(fields["items"], Mapping):  # its names are not items, though Python would iterate over them
            raise InvalidBasketError(f"items must be a list of item ids, not {fields['items']!r}")
        return Learn.checked(fields["user"], fields["items"], fields["basket"], fields.get("time"))
    return Forget.checked(fields.get("user"), fields.get("basket"), fields.get("item"))


_OTHERS: dict[str, tuple[type[Suppress] | type[Rename], str]] = {
    "suppress": (Suppress, "item"),
    "allow": (Allow, "item"),
    "rename": (Rename, "other"),
}


def parse_change(fields: Mapping[str, Any]) -> Change:
    """Return the change that an object describes: an event, or a suppress, allow or rename.

    >>> parse_change({"event": "suppress", "user": "ann", "item": "milk"})
    Suppress(user='ann', item='milk')
    >>> parse_change({"event": "rename", "user": "guest-9", "other": "ann"})
    Rename(user='guest-9', other='ann')
    >>> parse_change({"event": "rename", "user": "ann", "item": "milk"})
    Traceback (most recent call last):
    unbasket.errors.InvalidEventError: a rename event has the fields 'event', 'user' and 'other', not ['event', ...]
    """
    kind = fields.get("event") if isinstance(fields, Mapping) else None
    if not isinstance(kind, str) or kind not in _OTHERS:
        return parse_event(fields)
    change, field = _OTHERS[kind]
    if set(fields) != {"event", "user", field}:
        raise InvalidEventError(f"a {kind} event has the fields 'event', 'user' and {field!r}, not {sorted(fields)}")
    return change.checked(fields["user"], fields[field])


class _LearnFields(msgspec.Struct, tag_field="event", tag="learn", forbid_unknown_fields=True, gc=False):
    user: Id
    basket: Id
    items: list[Id]
    time: int | None = None


class _ForgetFields(msgspec.Struct, tag_field="event", tag="forget", forbid_unknown_fields=True, gc=False):
    user: Id
    basket: Id | None = None
    item: Id | None = None


_decoder = msgspec.json.Decoder(_LearnFields | _ForgetFields)


def decode_change(data: bytes) -> Change:
    """Return the change that JSON describes, as `parse_change` would.

    >>> decode_change(b'{"event": "forget", "user": "ann", "item": "milk"}')
    Forget(user='ann', basket=None, item='milk')
    """
    try:
        found = _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):  # decide by the rules of all other events
        fields: Any = decode_json(data, object)
        return parse_change(fields)
    if isinstance(found, _LearnFields):
        return Learn.checked(found.user, found.items, found.basket, found.time)
    return Forget.checked(found.user, found.basket, found.item)
