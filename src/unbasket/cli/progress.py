"""Progress bars of long work."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from unbasket.cli.terminal import errors


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int | None], None]]:
    """A bar on standard error, gone when the work is done; call what it yields with (done, expected or None).

    Nothing is drawn where standard error is no terminal: not even the blank line that Rich would leave there.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    hidden = not errors.is_terminal
    with Progress(*columns, TimeRemainingColumn(), console=errors, transient=True, disable=hidden) as progress:
        task = progress.add_task(what, total=None)

        def report(done: int, expected: int | None) -> None:
            progress.update(task, completed=done, total=expected)

        yield report
