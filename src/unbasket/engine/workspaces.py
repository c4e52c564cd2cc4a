"""Workspaces of readers."""

from unbasket.core.model import FoldWorkspace
from unbasket.core.search import SearchWorkspace
from unbasket.engine.thread_pool import THREAD_POOL
from unbasket.errors import UnbasketError


class Workspace:
    """The workspaces of one reader at a time: of a search, and of a fold."""

    def __init__(self, made: "list[Workspace]", free: "list[Workspace]") -> None:
        self.search, self.fold = SearchWorkspace(), FoldWorkspace()
        self._made, self._free = made, free
        made.append(self)

    def __enter__(self) -> "Workspace":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or issubclass(kind, UnbasketError):
            self._free.append(self)
        else:  # an interrupt, for one: its residue would get into the next answer
            self._made.remove(self)


class WorkspacePool:
    """All workspaces, and those that are free. A list's append and pop need no lock."""

    def __init__(self) -> None:
        self._made: list[Workspace] = []
        self._free: list[Workspace] = []

    def take(self) -> Workspace:
        """Return a free workspace. If no other is in use, the thread pool shares its searches."""
        try:
            workspace = self._free.pop()
        except IndexError:
            workspace = Workspace(self._made, self._free)
        workspace.search.thread_pool = THREAD_POOL if len(self._made) - len(self._free) == 1 else None
        return workspace
