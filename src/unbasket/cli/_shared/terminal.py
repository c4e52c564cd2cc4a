"""The terminal: what commands print, progress bars, and errors as one clear line.

Everything that is printed passes through `printable` or `to_json`: a name in a shop's data must not move the cursor or
forge a line.
"""

import functools
import json
import signal
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, ParamSpec

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from unbasket.errors import StoreError, UnbasketError
from unbasket.files import write

console = Console()
errors = Console(stderr=True)

Arguments = ParamSpec("Arguments")
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

# Control and formatting characters, surrogates, which can't be encoded, and ends of lines and paragraphs
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_JOINERS = "\u200c\u200d"  # needed by some scripts, and by emoji
_ERROR_START, _ERROR_END = 700, 300  # characters shown of a long error: its start, and the remedy at its end


def printable(text: str) -> str:
    """Return a text in one line, with its control characters escaped as in Python.

    >>> print(printable(f"Milk{chr(27)}[31m{chr(10)}") == repr(f"Milk{chr(27)}[31m{chr(10)}")[1:-1])
    True
    """
    if text.isprintable():
        return text
    return "".join(c.encode("unicode_escape").decode() if _is_hidden(c) else c for c in text)


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN and character not in _JOINERS


def say(text: str = "") -> None:
    """Print one line."""
    console.print(printable(text), highlight=False, markup=False, soft_wrap=True)


def warn(text: str) -> None:
    """Print one line on standard error: something worth knowing, though the command succeeds."""
    _print_error(text, "yellow")


def message_of(error: UnbasketError) -> str:
    """Return an error's message without advice that only helps in Python."""
    return error.problem if isinstance(error, StoreError) else str(error)


def complain(problem: object) -> None:
    """Print one line on standard error: what went wrong."""
    _print_error(f"Error: {problem}", "red")


def _print_error(text: str, style: str) -> None:
    line = printable(text)
    if len(line) > _ERROR_START + _ERROR_END:
        line = f"{line[:_ERROR_START]} ... {line[-_ERROR_END:]}"
    errors.print(line, style=style, markup=False, highlight=False, soft_wrap=True)


def say_json(value: object) -> None:
    """Print data for programs."""
    typer.echo(to_json(value))


def reply(as_json: bool, facts: object, text: str) -> None:
    """Print facts as JSON, or else a line of text."""
    say_json(facts) if as_json else say(text)


def to_json(value: object) -> str:
    """Return indented JSON."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    if text.replace("\n", "").isprintable():  # only the layout has line breaks
        return text
    return "".join(json.dumps(c)[1:-1] if _is_hidden(c) and c != "\n" else c for c in text)


def say_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table. Numbers are aligned to the right, and fractions have four digits."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    rows = list(rows)
    for number, column in enumerate(columns):
        right = bool(rows) and all(isinstance(row[number], int | float) for row in rows)
        table.add_column(Text(printable(column)), justify="right" if right else "left", overflow="fold")
    for row in rows:  # a Text, since a name may look like markup
        table.add_row(*(Text(printable(f"{value:.4f}" if isinstance(value, float) else str(value))) for value in row))
    console.print(table)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "basket"), counted(2000, "basket")
    ('1 basket', '2,000 baskets')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


@contextmanager
def progress_bar(task: str, then: str | None = None) -> Iterator[Callable[[int, int | None], None]]:
    """Show a bar on standard error until the work is done. Yields a function to call with (done, expected or None).

    `then` names the work that follows when the bar is full. Nothing is drawn if standard error is not a terminal, not
    even the blank line that Rich would leave there.
    """
    from rich import progress as bars

    columns = (bars.TextColumn("{task.description}", markup=False), bars.BarColumn(), bars.MofNCompleteColumn())
    times = (bars.TimeElapsedColumn(), bars.TimeRemainingColumn())
    hidden = not errors.is_terminal
    with bars.Progress(*columns, *times, console=errors, transient=True, disable=hidden) as progress:
        tasks = [progress.add_task(printable(task), total=None)]

        def report(done: int, expected: int | None) -> None:
            progress.update(tasks[0], completed=done, total=expected)
            if then is not None and done == expected and len(tasks) == 1:
                progress.update(tasks[0], visible=False)
                tasks.append(progress.add_task(then, total=None))

        yield report


def write_file(path: Path, content: str | bytes) -> None:
    """Write a text or bytes into a file, which may exist. If it does not, only its owner can read it."""
    try:
        write(path, content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise UnbasketError(f"cannot write {path}: {error.strerror}") from error


@contextmanager
def needing(extra: str) -> Iterator[None]:
    """Explain how to install an extra of the package if an import in the block fails."""
    try:
        yield
    except ImportError as error:
        raise UnbasketError(f"{error}. Install what this command needs: pip install 'unbasket[{extra}]'") from error


@contextmanager
def _interrupting_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the block as Ctrl-C does: what it has begun is undone. An ignored signal stays so."""
    numbers = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) == signal.SIG_DFL]
    try:
        for number in numbers:
            signal.signal(number, signal.default_int_handler)
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def command(function: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Make a command answer bad input, and a lack of memory, threads or disk, with one line and exit code 2."""

    @functools.wraps(function)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        if isinstance(sys.stdout, TextIOWrapper):  # a terminal that knows ASCII only is not a reason to fail
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            with _interrupting_signals():
                function(*args, **kwargs)
        except UnbasketError as error:
            complain(message_of(error))
            raise typer.Exit(2) from error
        except MemoryError as error:
            complain("there is not enough memory for this. Close other programs, or use a larger machine")
            raise typer.Exit(2) from error
        except RuntimeError as error:
            if str(error) != "can't start new thread":
                raise
            complain("the system allows no more threads. End other programs, or raise the limit (ulimit -u)")
            raise typer.Exit(2) from error
        except BrokenPipeError:  # the reader of the output closed the pipe; Click exits quietly
            raise
        except OSError as error:
            complain(f"{error.filename}: {error.strerror}" if error.filename else error)
            raise typer.Exit(2) from error

    return run


class _PlainHelp:
    """A command whose help shows flags without a type: `--json`, not `--json <bool>`."""

    def get_params(self, ctx: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return parameters


class Command(_PlainHelp, TyperCommand):
    """A command."""


class Group(_PlainHelp, TyperGroup):
    """A group of commands."""


def subcommand(group: typer.Typer, name: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a function to a group of commands; see `command`."""
    return lambda function: group.command(name, cls=Command)(command(function))
