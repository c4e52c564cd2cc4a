"""The application. A command's module is imported only when the command runs: `--help` stays quick."""

import ast
import pkgutil
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any

import typer

from unbasket.cli._shared.terminal import Command, Group, command, say

_USERS = "Its users"
PANELS = {
    "A shop's database": ("import", "items", "ids", "params", "retain", "backup", "receipts", "serve", "keys"),
    _USERS: (
        *("recommend", "explain", "learn", "forget", "suppress", "allow", "rename"),
        *("history", "export", "access", "prove-absence", "verify"),
    ),
    "More than one machine": ("consume", "spark"),
    "Trying and measuring": ("demo", "datasets", "evaluate", "tune", "reproduce"),
}
COMMANDS = {name: panel for panel, names in PANELS.items() for name in names}
# The modules whose names differ from their command's.
_MODULES = {"import": "import_", "allow": "suppress", "export": "history", "prove-absence": "access"}


def _function(name: str) -> str:
    """Return the name of a command's function."""
    return "import_" if name == "import" else name.replace("-", "_")


def summary(name: str) -> str:
    """Return the first paragraph of a command's docstring without importing its module.

    For all commands, parsing the sources takes 20 ms; importing the modules takes 500 ms.
    """
    source = pkgutil.get_data("unbasket.cli.commands", f"{_MODULES.get(name, name)}.py")
    assert source is not None, "the loader of an installed package can read its files"
    functions = (node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef))
    docstring = next(ast.get_docstring(node) for node in functions if node.name == _function(name))
    return (docstring or "").partition("\n\n")[0].replace("\n", " ")


def load(name: str) -> Any:
    """Import a command, or a group of commands, with its options."""
    module = import_module(f"unbasket.cli.commands.{_MODULES.get(name, name)}")
    if hasattr(module, "app"):
        group = typer.main.get_group(module.app)  # get_command would offer to install completions
        group.name = name
        return group
    epilog = import_module("unbasket.domain.id_text").RULE if COMMANDS[name] == _USERS else None
    single = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown")
    single.command(name, cls=Command, epilog=epilog)(command(getattr(module, _function(name))))
    return typer.main.get_command(single)


class _LazyGroup(Group):
    """A group that lists commands by their docstrings and imports only the command that runs."""

    def list_commands(self, _ctx: Any) -> list[str]:
        self.commands = {
            name: Command(name, help=summary(name), rich_help_panel=panel) for name, panel in COMMANDS.items()
        }
        return list(COMMANDS)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in COMMANDS:
            return args[0], load(args[0]), args[1:]
        self.list_commands(ctx)  # for the error, which suggests similar names
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=_LazyGroup,
    help="Next-basket recommendations that learn a basket in microseconds and forget it completely.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"unbasket {version('unbasket')}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Define the options that come before a command."""
