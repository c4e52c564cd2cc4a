"""Progress bars of long work."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from unbasket.cli._shared.terminal import errors, printable


@contextmanager
def progress_bar(what: str, then: str | None = None) -> Iterator[Callable[[int, int | None], None]]:
    """A bar on standard error, gone when the work is done; call what it yields with (done, expected or None).

    `then` says what goes on when the bar is full. Nothing is drawn where standard error is not a terminal: not even
    the blank line that Rich would leave there.
    """
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    hidden = not errors.is_terminal
    with Progress(*columns, TimeRemainingColumn(), console=errors, transient=True, disable=hidden) as progress:
        tasks = [progress.add_task(printable(what), total=None)]

        def report(done: int, expected: int | None) -> None:
            progress.update(tasks[0], completed=done, total=expected)
            if then is not None and done == expected and len(tasks) == 1:
                progress.update(tasks[0], visible=False)
                tasks.append(progress.add_task(then, total=None))

        yield report
