"""Where questions are worked on."""

from unbasket.core import FoldSpace, SearchSpace
from unbasket.engine.helpers import HELPERS


class Desk:
    """Work spaces for one question at a time: of a search, and of a fold."""

    def __init__(self, free: "list[Desk]") -> None:
        self.search, self.fold = SearchSpace(), FoldSpace()
        self._free = free

    def __enter__(self) -> "Desk":
        return self

    def __exit__(self, *_: object) -> None:
        self._free.append(self)


class Desks:
    """All desks that were made, and those that nobody uses. Adding to a list and taking from it needs no lock."""

    def __init__(self) -> None:
        self._made: list[Desk] = []
        self._free: list[Desk] = []

    def take(self) -> Desk:
        """A desk that no other thread uses until it is left; if none uses any, other cores help to search."""
        try:
            desk = self._free.pop()
        except IndexError:
            desk = Desk(self._free)
            self._made.append(desk)
        desk.search.helpers = HELPERS if len(self._made) - len(self._free) == 1 else None
        return desk
