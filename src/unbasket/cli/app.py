"""The application and its commands. A command's module is imported when the command is run: `--help` is quick."""

from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from unbasket.cli._shared.terminal import command, say

_SHOP, _USERS, _LARGE, _LAB = "A shop's database", "Its users", "More than one machine", "Trying and measuring"


class _Command(NamedTuple):
    """Where a command is, and how the list of commands shows it: the first lines of its own help."""

    place: str
    panel: str
    help: str


COMMANDS = {
    "import": _Command(
        "import_.import_purchases", _SHOP, "Import purchases into a database, which is created if it does not exist."
    ),
    "items": _Command(
        "items.items",
        _SHOP,
        "Import the names and categories of items, which other commands then show; hide items that are out of stock.",
    ),
    "params": _Command("params.params", _SHOP, "Show the parameters of a database's model, or change some of them."),
    "retain": _Command(
        "retain.retain",
        _SHOP,
        "Forget what the shop's rules say: baskets that are too old, items of sensitive categories.",
    ),
    "backup": _Command(
        "backup.backup", _SHOP, "Write a checked copy of the database as it is now. A service may go on meanwhile."
    ),
    "receipts": _Command(
        "receipts.receipts",
        _SHOP,
        "List, export and verify the signed receipts of what was forgotten. They name no person.",
    ),
    "serve": _Command(
        "serve.serve", _SHOP, "Serve the HTTP API and the page from a database, until SIGTERM or Ctrl-C."
    ),
    "keys": _Command(
        "keys.keys",
        _SHOP,
        "Make, list and remove the keys that callers of the service show. A running service notices.",
    ),
    "recommend": _Command("recommend.recommend", _USERS, "Recommend items for a user's next basket, the best first."),
    "explain": _Command(
        "explain.explain",
        _USERS,
        "Say where an item's score for a user comes from: which of their baskets, and how many similar users.",
    ),
    "learn": _Command("learn.learn", _USERS, "Learn a basket that a user has bought, or edit the one of this id."),
    "forget": _Command(
        "forget.forget",
        _USERS,
        "Forget a user, one of their baskets, an item of a basket, or an item of all their baskets.",
    ),
    "suppress": _Command("suppress.suppress", _USERS, "Never recommend an item to a user, until it is allowed again."),
    "allow": _Command(
        "suppress.allow",
        _USERS,
        "Let a suppressed item be recommended to a user again, and forget that it was suppressed.",
    ),
    "rename": _Command(
        "rename.rename",
        _USERS,
        "Merge a user into another, such as a guest into an account: the baskets of one are the other's then.",
    ),
    "history": _Command("history.history", _USERS, "List a user's baskets, oldest first."),
    "export": _Command(
        "export.export",
        _USERS,
        "Write everything that is held about a user as JSON: baskets with their ids, times, items and names of items.",
    ),
    "verify": _Command(
        "verify.verify",
        _USERS,
        "Train a model from the baskets that remain, and compare the live one with it, bit by bit.",
    ),
    "spark": _Command(
        "spark.spark",
        _LARGE,
        "The model on Spark: a stream of events into a table of vectors, recommendations from it, and an audit.",
    ),
    "demo": _Command(
        "demo.demo",
        _LAB,
        "Serve a shop to play with, to this machine only: households of The Complete Journey and what they bought.",
    ),
    "evaluate": _Command("evaluate.evaluate", _LAB, "Predict each user's next basket and score the predictions."),
    "tune": _Command(
        "tune.tune", _LAB, "Search for the five parameters that best predict baskets hidden for validation."
    ),
    "reproduce": _Command(
        "reproduce.reproduce",
        _LAB,
        "Reproduce the paper's evaluation: report.html, and every table and figure as CSV, LaTeX, SVG and PNG.",
    ),
}


def load(name: str) -> Any:
    """A command, or a group of them, with its options."""
    module, attribute = COMMANDS[name].place.split(".")
    found = getattr(import_module(f"unbasket.cli.commands.{module}"), attribute)
    if isinstance(found, typer.Typer):
        group = typer.main.get_group(found)  # get_command would offer to install completions
        group.name = name
        return group
    epilog = import_module("unbasket.domain.id_text").RULE if COMMANDS[name].panel == _USERS else None
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown")
    alone.command(name, epilog=epilog)(command(found))
    return typer.main.get_command(alone)


class _Commands(TyperGroup):
    """Replaces a command by the real one when it is run."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in COMMANDS:
            self.commands[args[0]] = load(args[0])
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=_Commands,
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
    """The options that come before a command."""


def _in_its_place() -> None:
    """Never runs: see `_Commands`."""


for _name, _command in COMMANDS.items():
    app.command(_name, rich_help_panel=_command.panel, help=_command.help)(_in_its_place)
