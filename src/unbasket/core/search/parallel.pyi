from collections.abc import Callable
from typing import Any, Protocol

class Task(Protocol):
    """Something to do, which is begun by a helper or given up by the one who asked."""

    error: BaseException | None

    def give_up(self) -> bool: ...
    def wait(self) -> None: ...

class Helpers(Protocol):
    """Threads that may be asked for help."""

    count: int
    worth: int

    def task(self, work: Callable[[], object], /) -> Task: ...
    def ask(self, task: Any, /) -> None: ...
