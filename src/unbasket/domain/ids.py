"""External ids (the caller's str or int) and the dense internal codes that stand for them.

One id is one person: in an engine, all ids of a kind (user, basket, item) have one type, that of the ids it holds. An
incoming id is converted to that type, if it spells an id of it: "17" is 17 among numbers, and 17 is "17" among texts.

The order of ids, which breaks all ties, is that of numbers by value and of texts by code point. The core knows codes
only, and each code has a *label*, an int64 that sorts as its id does (order maintenance). An int below 2^62 is its own
label; the labels above are for larger ints and for texts. Such an id gets a label between its neighbors'; when no gap
is left, ids around it are relabeled.
"""

from collections.abc import Collection, Iterable, Iterator
from operator import eq
from operator import index as as_index
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sortedcontainers import SortedList

from unbasket.core.memory import GrowableArray
from unbasket.core.util import ShardedDict, are_of_type, are_plain
from unbasket.errors import InvalidIdError

Id = str | int
Kind = Literal["user", "basket", "item"]
"""The kind of thing that an id names."""

KINDS: tuple[Kind, ...] = ("user", "basket", "item")

IdType = type[int] | type[str]
"""The type of all ids of a kind in an engine."""

FREE = ""  # the name of an unused code; no id is empty

_LARGE = 2**62  # ints from here on are not their own labels
_LABELS = range(_LARGE, 2**63)  # the labels of large ints, and of texts
_FEW = 32  # smallest number of ids that are relabeled at once
_STEP = 2**16  # between the labels of ids that arrive in order
_CHUNK = 512  # ids that are checked in one step, in some milliseconds


class IdTypes(NamedTuple):
    """The types of the ids that an engine holds; None for a kind of which it holds none."""

    user: IdType | None
    basket: IdType | None
    item: IdType | None

    def or_of(self, users: Iterable[Id], baskets: Iterable[Id], items: Iterable[Id]) -> Self:
        """Return the types, where those that are None are the types of these ids."""
        return type(self)(self.user or type_of(users), self.basket or type_of(baskets), self.item or type_of(items))


NO_TYPES = IdTypes(None, None, None)


def text_types(kinds: Collection[Kind]) -> IdTypes:
    """Return the types of a conversion of these kinds to texts."""
    return IdTypes(*(str if kind in kinds else None for kind in KINDS))


def type_of(ids: Iterable[Id]) -> IdType | None:
    """Return the type of a column of ids: numbers if all of them are, None without any."""
    types = {type(name) for name in ids}
    return None if not types else int if types == {int} else str


def in_type(name: Id, id_type: IdType | None, kind: Kind) -> Id:
    """Return the id of a type that a value spells, or raise an error with the way out.

    >>> in_type("17", int, "user"), in_type(17, str, "user"), in_type("017", str, "user")
    (17, '17', '017')
    >>> in_type("017", int, "user")
    Traceback (most recent call last):
    unbasket.errors.InvalidIdError: user id '017' is not written as a whole number such as 17...
    """
    if id_type is None or type(name) is id_type:
        return name
    if id_type is str:
        return str(name)
    number = whole_number(str(name))
    if number is None:
        raise InvalidIdError(
            f"{kind} id {name!r} is not written as a whole number such as 17, as all {kind} ids here are. To have "
            f'texts, change them first: `unbasket ids to-text --kind {kind}`, in Python change_ids({kind}="text")'
        )
    return number


def all_in_type(names: list[Id], id_type: IdType | None, kind: Kind) -> list[Id]:
    """Return ids of a type, in their order; without a type, they are a column of their own."""
    id_type = id_type or type_of(names)
    return names if are_of_type(names, id_type) else [in_type(name, id_type, kind) for name in names]


def whole_number(text: str) -> int | None:
    """Return the number of a text in canonical form, else None: 007 is a text, as in an imported CSV file."""
    if len(text) > 20 or not text.removeprefix("-").isdecimal():
        return None
    number = int(text)
    return number if str(number) == text and -(2**63) <= number < 2**63 else None


def checked(value: object, what: str) -> Id:
    """Return a value as an id, or raise an error that names it. NumPy's scalars become plain ints and strs."""
    if type(value) is int:
        number = value
    elif type(value) is str and value.isascii() and value:
        return value
    elif isinstance(value, str):
        return _checked_text(value, what)
    elif isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        raise InvalidIdError(f"{what} id must be a str or an int, not {value!r} ({type(value).__name__})")
    else:
        number = as_index(value)
    if not -(2**63) <= number < 2**63:
        raise InvalidIdError(f"{what} id {number} does not fit into 64 bits; use a str")
    return number


def checked_all(values: Iterable[object], what: str) -> list[Id]:
    """Return the values as ids, or raise an error that names the first invalid one."""
    ids: list[Any] = list(values)
    return ids if are_plain(ids) else [checked(value, what) for value in ids]


def in_order(ids: Iterable[Any]) -> list[Any]:
    """Return ids of one type in order."""
    return sorted(ids)


def _checked_text(value: str, what: str) -> str:
    if not value:
        raise InvalidIdError(f"{what} id must not be empty")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidIdError(f"{what} id {value!r} is not valid Unicode: {error.reason}") from error
    return str.__str__(value)  # the value of a str Enum


class Ids:
    """A two-way map between ids and codes. Codes of removed ids are reused."""

    def __init__(self, kind: Kind) -> None:
        self.type: IdType | None = None  # of all ids; None without any
        self.codes: ShardedDict[Id, int] = ShardedDict()
        self.names: list[Id] = []
        self.order = GrowableArray(1)  # the labels, as the core reads them
        self.labels: npt.NDArray[np.int64] = np.asarray(self.order)
        self.changes = 0  # number of changes so far, by which caches see that they are stale
        self._kind: Kind = kind
        self._free: list[int] = []
        self._labeled: SortedList[Any] = SortedList()  # those that are not their own labels
        self._newest = 0  # the latest label

    def __len__(self) -> int:
        return len(self.codes)

    def __contains__(self, name: object) -> bool:
        return name in self.codes

    def knows(self, name: Id) -> bool:
        """Return whether an id has a code, or is in the order without one, which would be residue."""
        is_labeled = not _is_own_label(name) and self.type in (None, type(name)) and name in self._labeled
        return name in self.codes or is_labeled

    def find(self, name: object) -> int | None:
        """Return the code of an id in any spelling, or None if it is unknown."""
        code = self.codes.get(name) if type(name) is self.type else None
        return self.codes.get(self.canonical(name)) if code is None else code

    def canonical(self, name: object) -> Id:
        """Return an id as it is held here, or would be; raise an error for any other value."""
        return in_type(checked(name, self._kind), self.type, self._kind)

    def looks(self) -> Iterator[bool]:
        """Check chunk by chunk that codes and names agree, and that labels sort as the names do.

        Ids may be added and removed between two chunks: each chunk checks invariants that always hold.
        """
        for names in self.codes.lists():
            for first in range(0, len(names), _CHUNK):
                yield all(self._is_right(name) for name in names[first : first + _CHUNK] if name in self.codes)
        for first in range(0, len(self.names), _CHUNK):
            names = self.names[first : first + _CHUNK]
            yield all(name == FREE or self.codes.get(name) == code for code, name in enumerate(names, first))
        for first in range(0, len(self._labeled), _CHUNK):
            yield all(name in self.codes for name in self._labeled.islice(first, first + _CHUNK))

    def _is_right(self, name: Id) -> bool:
        """Return whether an id is the name of its code, and both the id and its label are in order."""
        if type(name) is not self.type:
            return False
        code, ids = self.codes[name], self._labeled
        if code >= len(self.names) or self.names[code] != name:
            return False
        if _is_own_label(name):
            return bool(self.labels[code] == name)
        position = ids.bisect_left(name)
        if position == len(ids) or ids[position] != name:
            return False
        below = self.codes.get(ids[position - 1]) if position > 0 else None
        rises = position == 0 or (below is not None and self.labels[below] < self.labels[code])
        return rises and int(self.labels[code]) in _LABELS

    def sorted(self) -> list[Id]:
        """Return all ids in order."""
        own = filter(_is_own_label, self.codes) if self._labeled else self.codes
        return [*np.sort(np.fromiter(own, np.int64)).tolist(), *self._labeled]

    def add(self, name: Id) -> int:
        """Return the code of an id, after assigning one to a new id."""
        code = self.codes.get(name)
        if code is None:
            code = self._claim(name)
            if _is_own_label(name):
                self.labels[code] = name
            else:
                self._labeled.add(name)
                self._label(name, code)
        return code

    def add_all(self, names: Iterable[Id]) -> list[int]:
        """Add many ids at the cost of one sort. Returns their codes."""
        new = [name for name in dict.fromkeys(names) if name not in self.codes]
        self._claim_all(new)
        ints = [name for name in new if _is_own_label(name)]
        self.labels[[self.codes[name] for name in ints]] = ints
        others = new if not ints else [name for name in new if not _is_own_label(name)]
        if 4 * len(others) < len(self._labeled):
            for name in others:
                self._labeled.add(name)
                self._label(name, self.codes[name])
        else:
            self._labeled.update(others)
            self._spread(0, len(self._labeled), _LABELS.start - 1, _LABELS.stop)
        return [self.codes[name] for name in names]

    def remove(self, name: Id) -> None:
        """Remove an id and free its code."""
        code = self.codes.pop(name)
        if self._newest == self.labels[code]:
            self._newest = 0
        self.names[code] = FREE
        self.labels[code] = 0
        self.changes += 1
        self._free.append(code)
        if not _is_own_label(name):
            self._labeled.remove(name)
        if not self.codes:
            self.type = None

    def _claim(self, name: Id) -> int:
        if self._free:
            code = self._free.pop()
            self.names[code] = name
        else:
            code = len(self.names)
            self.names.append(name)
            self._make_room()
        self.codes[name] = code
        self.type = type(name)
        self.changes += 1
        return code

    def _claim_all(self, names: list[Id]) -> None:
        free = [self._free.pop() for _ in range(min(len(self._free), len(names)))]
        for code, name in zip(free, names, strict=False):
            self.names[code] = name
        first = len(self.names)
        self.names += names[len(free) :]
        self._make_room()
        self.changes += 1
        for name, code in zip(names, [*free, *range(first, len(self.names))], strict=True):
            self.codes[name] = code
        if names:
            self.type = type(names[0])

    def _make_room(self) -> None:
        count = len(self.names)
        if count > len(self.labels):
            self.labels = np.zeros(0, np.int64)  # without a view, the array can grow in place
            self.order = self.order.extended(count + count // 4 + 8)
            self.labels = np.asarray(self.order)

    def _label(self, name: Id, code: int) -> None:
        """Assign a label to an id that is in the sorted list already."""
        ids = self._labeled
        position = ids.bisect_left(name)
        below = self._label_of(ids[position - 1]) if position > 0 else _LABELS.start - 1
        above = self._label_of(ids[position + 1]) if position + 1 < len(ids) else _LABELS.stop
        if above - below < 2:
            self._spread_around(position)
            return
        label = (below + above) // 2
        if below == self._newest or (position + 1 == len(ids) and position > 0):
            label = min(label, below + _STEP)
        elif above == self._newest or (position == 0 and len(ids) > 1):
            label = max(label, above - _STEP)
        self.labels[code] = self._newest = label

    def _label_of(self, name: Id) -> int:
        return int(self.labels[self.codes[name]])

    def _spread_around(self, position: int) -> None:
        """Relabel the smallest neighborhood of a position that has wide enough gaps.

        Twice as many ids need gaps twice as wide, which leaves both halves far from full: an id is relabeled a
        logarithmic number of times on average, wherever new ids arrive.
        """
        ids, count = self._labeled, _FEW
        while True:
            first, end = max(position - count // 2, 0), min(position + count // 2, len(ids))
            below = self._label_of(ids[first - 1]) if first > 0 else _LABELS.start - 1
            above = self._label_of(ids[end]) if end < len(ids) else _LABELS.stop
            if above - below > count * (end - first + 1) or end - first == len(ids):
                self._spread(first, end, below, above)
                return
            count *= 2

    def _spread(self, first: int, end: int, below: int, above: int) -> None:
        """Assign evenly spaced labels between two others to the ids at these positions."""
        step = (above - below) // (end - first + 1)
        codes = [self.codes[name] for name in self._labeled.islice(first, end)]
        self.labels[codes] = below + step * np.arange(1, end - first + 1)
        self._newest = 0


def _is_own_label(name: Id) -> bool:
    return isinstance(name, int) and name < _LARGE


class BasketIds:
    """The ids of baskets as keys: a number is its own key; each text is stored once, with the number of its uses."""

    def __init__(self) -> None:
        self._codes: ShardedDict[str, int] = ShardedDict()
        self._names: list[str] = []
        self._uses: list[int] = []
        self._free: list[int] = []

    @property
    def names(self) -> list[str] | None:
        """The texts by key; None if keys are numbers."""
        return self._names if self._codes else None

    def key(self, name: Id) -> int:
        """Return the key of an id; of a text that no basket has, a key that no basket has."""
        return name if isinstance(name, int) else self._codes.get(name, -1)

    def name(self, key: int) -> Id:
        """Return the id of a key."""
        return self._names[key] if self._codes else key

    def claim(self, name: Id) -> int:
        """Return the key of an id for one more basket."""
        return name if isinstance(name, int) else self._claim_text(name, 1)

    def claim_all(self, names: list[str], codes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the keys of baskets whose ids are texts, given as positions in a list."""
        uses = np.bincount(codes, minlength=len(names)).tolist()
        keys = [self._claim_text(*use) if use[1] else 0 for use in zip(names, uses, strict=True)]
        return np.array(keys, np.int64)[codes]

    def _claim_text(self, text: str, uses: int) -> int:
        code = self._codes.get(text)
        if code is None:
            if self._free:
                code = self._free.pop()
                self._names[code] = text
            else:
                code = len(self._names)
                self._names.append(text)
                self._uses.append(0)
            self._codes[text] = code
        self._uses[code] += uses
        return code

    def release(self, name: Id) -> None:
        """Remove one use of an id; a text is removed with the last one."""
        if isinstance(name, int):
            return
        code = self._codes[name]
        self._uses[code] -= 1
        if self._uses[code] == 0:
            del self._codes[name]
            self._names[code] = FREE
            self._free.append(code)

    def is_consistent(self, uses: list[int]) -> bool:
        """Return whether codes and names agree, and each text has the given number of uses; without texts, none."""
        if not uses:
            return not self._codes and not any(self._names) and not any(self._uses)
        coded = {code: name for name, code in self._codes.items()}
        names = [coded.get(code, FREE) for code in range(len(self._names))]
        return names == self._names and uses == self._uses and all(map(eq, map(bool, names), map(bool, uses)))
