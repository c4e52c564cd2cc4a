"""Where questions are worked on."""

from unbasket.core import FoldSpace, SearchSpace
from unbasket.engine.helpers import HELPERS
from unbasket.errors import UnbasketError


class Desk:
    """Work spaces of one caller at a time: of a search, and of a fold."""

    def __init__(self, made: "list[Desk]", free: "list[Desk]") -> None:
        self.search, self.fold = SearchSpace(), FoldSpace()
        self._made, self._free = made, free
        made.append(self)

    def __enter__(self) -> "Desk":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or issubclass(kind, UnbasketError):
            self._free.append(self)
        else:  # an interrupt, for one: what it has left here would get into the next answer
            self._made.remove(self)


class Desks:
    """All desks, and those that nobody uses. Adding to a list and taking from it needs no lock."""

    def __init__(self) -> None:
        self._made: list[Desk] = []
        self._free: list[Desk] = []

    def take(self) -> Desk:
        """A desk that no other thread uses until it is left; if none uses any, other cores help to search."""
        try:
            desk = self._free.pop()
        except IndexError:
            desk = Desk(self._made, self._free)
        desk.search.helpers = HELPERS if len(self._made) - len(self._free) == 1 else None
        return desk
