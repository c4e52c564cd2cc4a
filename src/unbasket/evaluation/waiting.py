"""A line that says how far long work is, in a terminal or in a notebook, and that is gone when the work is done."""

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from time import monotonic
from typing import Any

from unbasket.domain.progress import Progress

_SECONDS = 0.2  # between two versions of the line


@contextmanager
def progress_line(what: str) -> Iterator[Progress]:
    """Show what is being done, such as "trials: 3 of 50"; call what it yields with (done, total)."""
    write = _writer()
    last = monotonic()
    write(f"{what} …")

    def report(done: int, total: int) -> None:
        nonlocal last
        if monotonic() - last > _SECONDS:
            write(f"{what}: {done:,} of {total:,}")
            last = monotonic()

    try:
        yield report
    finally:
        write("")


def _writer() -> Callable[[str], object]:
    """What replaces the line by another one: in a notebook, in a terminal, or nothing where neither would see it."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if hasattr(shell, "kernel"):
        return _NotebookLine().write
    if sys.stderr.isatty():
        return lambda text: print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)  # noqa: T201
    return lambda _: None


class _NotebookLine:
    """An output of the cell that is replaced by the next one."""

    def __init__(self) -> None:
        self._handle: Any = None

    def write(self, text: str) -> None:
        content = {"text/plain": text, "text/html": escape(text)}  # HTML, since no text is still a box to some
        if self._handle is None:
            display = importlib.import_module("IPython.display").display
            self._handle = display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)
