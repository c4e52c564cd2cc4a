"""Where questions are worked on."""

from unbasket.core import FoldWorkspace, SearchWorkspace
from unbasket.engine.thread_pool import HELPERS
from unbasket.errors import UnbasketError


class Workspace:
    """Work spaces of one caller at a time: of a search, and of a fold."""

    def __init__(self, made: "list[Workspace]", free: "list[Workspace]") -> None:
        self.search, self.fold = SearchWorkspace(), FoldWorkspace()
        self._made, self._free = made, free
        made.append(self)

    def __enter__(self) -> "Workspace":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or issubclass(kind, UnbasketError):
            self._free.append(self)
        else:  # an interrupt, for one: what it has left here would get into the next answer
            self._made.remove(self)


class WorkspacePool:
    """All workspaces, and those that nobody uses. Adding to a list and taking from it needs no lock."""

    def __init__(self) -> None:
        self._made: list[Workspace] = []
        self._free: list[Workspace] = []

    def take(self) -> Workspace:
        """A workspace that no other thread uses until it is left; if none uses any, other cores help to search."""
        try:
            workspace = self._free.pop()
        except IndexError:
            workspace = Workspace(self._made, self._free)
        workspace.search.helpers = HELPERS if len(self._made) - len(self._free) == 1 else None
        return workspace
