"""What the commands share: consoles, and errors as one clear line."""

import functools
from collections.abc import Callable
from typing import ParamSpec

import typer
from rich.console import Console

from unbasket.errors import UnbasketError

console = Console()
errors = Console(stderr=True)

Arguments = ParamSpec("Arguments")


def command(function: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """A command that answers bad input with one line and exit code 2, instead of a traceback."""

    @functools.wraps(function)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        try:
            function(*args, **kwargs)
        except UnbasketError as error:
            errors.print(f"Error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
            raise typer.Exit(2) from error

    return run
