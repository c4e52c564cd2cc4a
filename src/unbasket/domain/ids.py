"""External ids (the caller's str or int) and the dense internal codes that stand for them.

The order of ids, which breaks all ties, is: ints by value, then strs by code point. The core knows codes only, and each
code has a *label*, an int64 that sorts as its id does (order maintenance). An int below 2^62 is its own label; the
labels above are for larger ints and for strs. Such an id gets a label between its neighbors'; when no gap is left, ids
around it are relabeled.
"""

from collections.abc import Iterable, Iterator
from operator import eq
from operator import index as as_index
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sortedcontainers import SortedList

from unbasket.core.memory import GrowableArray
from unbasket.core.util import ShardedDict, are_plain
from unbasket.errors import InvalidIdError

Id = str | int
Kind = Literal["user", "item", "basket"]
"""The kind of thing that an id names."""

FREE = ""  # the name of an unused code; no id is empty

_LARGE = 2**62  # ints from here on are not their own labels
_LARGE_INTS = range(_LARGE, _LARGE + 2**61)  # the labels of these ints, and of strs
_TEXTS = range(_LARGE + 2**61, 2**63)
_FEW = 32  # smallest number of ids that are relabeled at once
_STEP = 2**16  # between the labels of ids that arrive in order
_CHUNK = 512  # ids that are checked in one step, in some milliseconds


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


def _checked_text(value: str, what: str) -> str:
    if not value:
        raise InvalidIdError(f"{what} id must not be empty")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidIdError(f"{what} id {value!r} is not valid Unicode: {error.reason}") from error
    return str.__str__(value)  # the value of a str Enum


def sort_key(value: Id) -> tuple[bool, Id]:
    """Return a sort key for an id: ints before strs."""
    return isinstance(value, str), value


def in_order(ids: list[Id]) -> list[Id]:
    """Return the ids in order. Sort keys, which cost more than the sort, are made for mixed types only."""
    try:
        return sorted(ids)
    except TypeError:
        return sorted(ids, key=sort_key)


class Ids:
    """A two-way map between ids and codes. Codes of removed ids are reused."""

    def __init__(self) -> None:
        self.codes: ShardedDict[Id, int] = ShardedDict()
        self.names: list[Id] = []
        self.order = GrowableArray(1)  # the labels, as the core reads them
        self.labels: npt.NDArray[np.int64] = np.asarray(self.order)
        self.changes = 0  # number of changes so far, by which caches see that they are stale
        self._free: list[int] = []
        self._ints: SortedList[int] = SortedList()
        self._large_ints: SortedList[int] = SortedList()
        self._texts: SortedList[str] = SortedList()
        self._newest = 0  # the latest label

    def __len__(self) -> int:
        return len(self.codes)

    def __contains__(self, name: object) -> bool:
        return name in self.codes

    def knows(self, name: Id) -> bool:
        """Return whether an id has a code, or is in the order without one, which would be residue."""
        return name in self.codes or name in self._sorted_of(name)

    def has_texts(self) -> bool:
        """Return whether any id is a str."""
        return bool(self._texts)

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
        yield len(self.codes) == sum(len(ids) for ids, _ in self._orders())

    def _is_right(self, name: Id) -> bool:
        """Return whether an id is the name of its code, and both the id and its label are in order."""
        code, ids = self.codes[name], self._sorted_of(name)
        position = ids.bisect_left(name)
        if code >= len(self.names) or self.names[code] != name or position == len(ids) or ids[position] != name:
            return False
        if ids is self._ints:
            return bool(self.labels[code] == name)
        below = self.codes.get(ids[position - 1]) if position > 0 else None
        rises = position == 0 or (below is not None and self.labels[below] < self.labels[code])
        return rises and int(self.labels[code]) in (_TEXTS if ids is self._texts else _LARGE_INTS)

    def sorted(self) -> list[Id]:
        """Return all ids in order."""
        return [*self._ints, *self._large_ints, *self._texts]

    def add(self, name: Id) -> int:
        """Return the code of an id, after assigning one to a new id."""
        code = self.codes.get(name)
        if code is None:
            code = self._claim(name)
            self._sorted_of(name).add(name)
            self._label(name, code)
        return code

    def add_all(self, names: Iterable[Id]) -> list[int]:
        """Add many ids at the cost of one sort. Returns their codes."""
        new = [name for name in dict.fromkeys(names) if name not in self.codes]
        self._claim_all(new)
        numbers = [name for name in new if not isinstance(name, str)]
        parts: list[list[Any]] = [
            [name for name in numbers if name < _LARGE],
            [name for name in numbers if name >= _LARGE],
            [name for name in new if isinstance(name, str)],
        ]
        for (ids, labels), mine in zip(self._orders(), parts, strict=True):
            if labels is not None and 4 * len(mine) < len(ids):
                for name in mine:
                    ids.add(name)
                    self._label(name, self.codes[name])
                continue
            ids.update(mine)
            if labels is None:
                self.labels[[self.codes[name] for name in mine]] = mine
            else:
                self._spread(ids, 0, len(ids), labels.start - 1, labels.stop)
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
        self._sorted_of(name).remove(name)

    def _orders(self) -> "list[tuple[SortedList[Any], range | None]]":
        """Return the sorted lists of ids, each with its range of labels, or None for ids that are their own labels."""
        return [(self._ints, None), (self._large_ints, _LARGE_INTS), (self._texts, _TEXTS)]

    def _sorted_of(self, name: Id) -> "SortedList[Any]":
        if isinstance(name, str):
            return self._texts
        return self._ints if name < _LARGE else self._large_ints

    def _claim(self, name: Id) -> int:
        if self._free:
            code = self._free.pop()
            self.names[code] = name
        else:
            code = len(self.names)
            self.names.append(name)
            self._make_room()
        self.codes[name] = code
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

    def _make_room(self) -> None:
        count = len(self.names)
        if count > len(self.labels):
            self.labels = np.zeros(0, np.int64)  # without a view, the array can grow in place
            self.order = self.order.extended(count + count // 4 + 8)
            self.labels = np.asarray(self.order)

    def _label(self, name: Id, code: int) -> None:
        """Assign a label to an id that is in the sorted list already."""
        if isinstance(name, int) and name < _LARGE:
            self.labels[code] = name
            return
        ids, labels = (self._texts, _TEXTS) if isinstance(name, str) else (self._large_ints, _LARGE_INTS)
        position = ids.bisect_left(name)
        below = self._label_of(ids[position - 1]) if position > 0 else labels.start - 1
        above = self._label_of(ids[position + 1]) if position + 1 < len(ids) else labels.stop
        if above - below < 2:
            self._spread_around(ids, position, labels)
            return
        label = (below + above) // 2
        if below == self._newest or (position + 1 == len(ids) and position > 0):
            label = min(label, below + _STEP)
        elif above == self._newest or (position == 0 and len(ids) > 1):
            label = max(label, above - _STEP)
        self.labels[code] = self._newest = label

    def _label_of(self, name: Id) -> int:
        return int(self.labels[self.codes[name]])

    def _spread_around(self, ids: "SortedList[Any]", position: int, labels: range) -> None:
        """Relabel the smallest neighborhood of a position that has wide enough gaps.

        Twice as many ids need gaps twice as wide, which leaves both halves far from full: an id is relabeled a
        logarithmic number of times on average, wherever new ids arrive.
        """
        count = _FEW
        while True:
            first, end = max(position - count // 2, 0), min(position + count // 2, len(ids))
            below = self._label_of(ids[first - 1]) if first > 0 else labels.start - 1
            above = self._label_of(ids[end]) if end < len(ids) else labels.stop
            if above - below > count * (end - first + 1) or end - first == len(ids):
                self._spread(ids, first, end, below, above)
                return
            count *= 2

    def _spread(self, ids: "SortedList[Any]", first: int, end: int, below: int, above: int) -> None:
        """Assign evenly spaced labels between two others to the ids at these positions."""
        step = (above - below) // (end - first + 1)
        codes = [self.codes[name] for name in ids.islice(first, end)]
        self.labels[codes] = below + step * np.arange(1, end - first + 1)
        self._newest = 0


class Texts:
    """Str ids of baskets, each stored once under a code, with the number of baskets that use it."""

    def __init__(self) -> None:
        self.codes: ShardedDict[str, int] = ShardedDict()
        self.names: list[str] = []
        self._uses: list[int] = []
        self._free: list[int] = []

    def claim(self, text: str, uses: int = 1) -> int:
        """Add uses to a text. Returns its code."""
        code = self.codes.get(text)
        if code is None:
            if self._free:
                code = self._free.pop()
                self.names[code] = text
            else:
                code = len(self.names)
                self.names.append(text)
                self._uses.append(0)
            self.codes[text] = code
        self._uses[code] += uses
        return code

    def is_consistent(self, uses: list[int]) -> bool:
        """Return whether codes and names agree, and each text has the given number of uses."""
        coded = {code: name for name, code in self.codes.items()}
        names = [coded.get(code, FREE) for code in range(len(self.names))]
        return names == self.names and uses == self._uses and all(map(eq, map(bool, names), map(bool, uses)))

    def release(self, code: int) -> None:
        """Remove one use of a text; the text is removed with the last one."""
        self._uses[code] -= 1
        if self._uses[code] == 0:
            del self.codes[self.names[code]]
            self.names[code] = FREE
            self._free.append(code)
