"""The application and its commands."""

from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated

import typer

from unbasket.cli.backup import backup
from unbasket.cli.demo import demo
from unbasket.cli.evaluate import evaluate
from unbasket.cli.explain import explain
from unbasket.cli.export import export
from unbasket.cli.forget import forget
from unbasket.cli.history import history
from unbasket.cli.importing import import_purchases
from unbasket.cli.items import items
from unbasket.cli.keys import keys
from unbasket.cli.learn import learn
from unbasket.cli.receipts import receipts
from unbasket.cli.recommend import recommend
from unbasket.cli.reproduce import reproduce
from unbasket.cli.retain import retain
from unbasket.cli.serve import serve
from unbasket.cli.spark import spark
from unbasket.cli.terminal import command, say
from unbasket.cli.tune import tune
from unbasket.cli.verify import verify
from unbasket.spelling import RULE

app = typer.Typer(
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


_SHOP, _USERS, _LARGE, _LAB = "A shop's database", "Its users", "More than one machine", "Trying and measuring"


def _add(panel: str, *functions: Callable[..., None], epilog: str | None = None) -> None:
    for function in functions:
        app.command(rich_help_panel=panel, epilog=epilog)(command(function))


app.command("import", rich_help_panel=_SHOP)(command(import_purchases))
_add(_SHOP, items, retain, backup)
app.add_typer(receipts, name="receipts", rich_help_panel=_SHOP)
_add(_SHOP, serve)
app.add_typer(keys, name="keys", rich_help_panel=_SHOP)
_add(_USERS, recommend, explain, learn, forget, history, export, verify, epilog=RULE)
app.add_typer(spark, name="spark", rich_help_panel=_LARGE)
_add(_LAB, demo, evaluate, tune, reproduce)
