"""What the commands share: consoles, what is printed on them, and errors as one clear line.

Everything that is printed passes through `printable` or `to_json`: a name in a shop's data must not move the cursor or
forge a line.
"""

import functools
import json
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, ParamSpec

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from unbasket.errors import StoreError, UnbasketError
from unbasket.files import write

console = Console()
errors = Console(stderr=True)

Arguments = ParamSpec("Arguments")
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

# Control and formatting characters, halves of characters, which can't be encoded, and ends of lines and paragraphs
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_JOINERS = "\u200c\u200d"  # which some scripts, and emoji, need
_ERROR_START, _ERROR_END = 700, 300  # what is shown of a long error: its start, and the remedy at its end


def printable(text: str) -> str:
    """A text in one line, with its control characters shown as Python writes them.

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
    """Print one line on standard error: something that a person should know, though all went well."""
    _print_error(text, "yellow")


def message_of(error: UnbasketError) -> str:
    """What an error says to somebody at a terminal, who can't do what it advises those who write Python."""
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


def to_json(value: object) -> str:
    """JSON that people can read as well."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    if text.replace("\n", "").isprintable():  # line breaks are those of the layout
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


def counted(number: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "basket"), counted(2000, "basket")
    ('1 basket', '2,000 baskets')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def write_file(path: Path, text: str) -> None:
    """Write a text into a file, which may exist. If it does not, only its owner can read it."""
    try:
        write(path, text.encode())
    except OSError as error:
        raise UnbasketError(f"cannot write {path}: {error.strerror}") from error


@contextmanager
def needing(extra: str) -> Iterator[None]:
    """Around imports that only an extra of the package brings."""
    try:
        yield
    except ImportError as error:
        raise UnbasketError(f"{error}. Install what this command needs: pip install 'unbasket[{extra}]'") from error


def command(function: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """A command that answers bad input, and a machine that is too small, with one line and exit code 2."""

    @functools.wraps(function)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        if isinstance(sys.stdout, TextIOWrapper):  # a terminal that knows ASCII only is not a reason to fail
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            function(*args, **kwargs)
        except UnbasketError as error:
            complain(message_of(error))
            raise typer.Exit(2) from error
        except MemoryError as error:
            complain("there is not enough memory for this. Close other programs, or use a larger machine")
            raise typer.Exit(2) from error
        except BrokenPipeError:  # whoever reads the output has seen enough; Click ends quietly
            raise
        except OSError as error:
            complain(f"{error.filename}: {error.strerror}" if error.filename else error)
            raise typer.Exit(2) from error

    return run
