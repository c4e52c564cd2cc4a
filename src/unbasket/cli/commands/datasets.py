"""`unbasket datasets`: the published datasets, those that are here, and how to prepare the others."""

from pathlib import Path
from typing import Annotated

import typer

from unbasket.cli._shared.terminal import AsJson, Group, command, counted, progress_bar, say, say_json, subcommand
from unbasket.datasets import load, locate
from unbasket.datasets import prepare as prepare_file
from unbasket.datasets.published import FOLDER_VARIABLE, data_folders

app = typer.Typer(cls=Group, rich_markup_mode="markdown")


@app.callback(invoke_without_command=True)
@command
def datasets(context: typer.Context, as_json: AsJson = False) -> None:
    """List the published datasets, where they are and how to get the others; prepare one from its raw download."""
    if context.invoked_subcommand is not None:
        return
    found = locate()
    if as_json:
        say_json([location._asdict() for location in found])
        return
    for name, place, _ in found:  # not a table, which would break long paths
        say(f"{name:16} {place or 'not here'}")
    for location in found:
        if location.remedy is not None:
            say(location.remedy)


@subcommand(app)
def prepare(
    name: Annotated[str, typer.Argument(metavar="NAME", help="tafeng, instacart, valuedshopper or coop100.")],
    raw: Annotated[
        Path,
        typer.Argument(
            metavar="RAW", help="The download: a file, Instacart's folder, or the history of a TIFU-kNN CSV pair."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"The file to write. By default NAME.parquet, in the folder that {FOLDER_VARIABLE} names, or else in "
            "data/ of a checkout, or else in the current folder.",
        ),
    ] = None,
) -> None:
    """Make a dataset's prepared file from its raw download, for the commands that take datasets by name."""
    with progress_bar("reading", then="writing") as report:
        path = prepare_file(name, raw, output, progress=report)
    made = load(path).statistics()
    say(f"{path}: {counted(made.users, 'user')}, {counted(made.baskets, 'basket')}, {counted(made.items, 'item')}")
    if path.resolve() not in [(folder / f"{name}.parquet").resolve() for folder in data_folders()]:
        say(f"To use it by its name: save it as {name}.parquet, and set {FOLDER_VARIABLE} to its folder")
