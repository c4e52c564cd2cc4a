"""What the commands share: consoles, what is printed on them, and errors as one clear line."""

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, ParamSpec

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from unbasket.errors import UnbasketError
from unbasket.files import write

console = Console()
errors = Console(stderr=True)

Arguments = ParamSpec("Arguments")
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

say = functools.partial(console.print, highlight=False, markup=False, soft_wrap=True)
"""Print a line as it is, whatever is in it."""


def complain(problem: object) -> None:
    """One line on standard error."""
    errors.print(f"Error: {problem}", style="red", markup=False, highlight=False, soft_wrap=True)


def say_json(value: object) -> None:
    """Print data for programs."""
    typer.echo(to_json(value))


def to_json(value: object) -> str:
    """JSON that people can read as well."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def say_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table. Numbers stand to the right, fractions with four digits."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    rows = list(rows)
    for number, column in enumerate(columns):
        right = bool(rows) and all(isinstance(row[number], int | float) for row in rows)
        table.add_column(column, justify="right" if right else "left", overflow="fold")
    for row in rows:  # a Text, since a name may look like markup
        table.add_row(*(Text(f"{value:.4f}" if isinstance(value, float) else str(value)) for value in row))
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
    """A command that answers bad input with one line and exit code 2, instead of a traceback."""

    @functools.wraps(function)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        try:
            function(*args, **kwargs)
        except UnbasketError as error:
            complain(error)
            raise typer.Exit(2) from error

    return run
