"""The application and its commands."""

import typer

from unbasket.cli.demo import demo
from unbasket.cli.evaluate import evaluate
from unbasket.cli.reproduce import reproduce
from unbasket.cli.terminal import command
from unbasket.cli.tune import tune

app = typer.Typer(
    help="Next-basket recommendations that learn a basket in microseconds and forget it completely.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def unbasket() -> None:
    """Keeps the commands by their names, even while there is only one."""


for function in (demo, evaluate, tune, reproduce):
    app.command()(command(function))
