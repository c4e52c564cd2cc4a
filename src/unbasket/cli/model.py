"""The model's parameters as options of commands that create something."""

from typing import Annotated, Any

import typer

_MODEL = "Model of what is created"

GroupSize = Annotated[int | None, typer.Option(help="Baskets in a group (7).", rich_help_panel=_MODEL)]
BasketDecay = Annotated[
    float | None, typer.Option(help="What a basket weighs beside the next of its group (0.9).", rich_help_panel=_MODEL)
]
GroupDecay = Annotated[
    float | None, typer.Option(help="What a group weighs beside the next (0.7).", rich_help_panel=_MODEL)
]
Neighbors = Annotated[int | None, typer.Option(help="Similar users to learn from (300).", rich_help_panel=_MODEL)]
Alpha = Annotated[
    float | None,
    typer.Option(help="Weight of the own baskets; the neighbors' is the rest (0.7).", rich_help_panel=_MODEL),
]
Grouping = Annotated[
    str | None, typer.Option(help="fixed, or varying as in the paper (fixed).", rich_help_panel=_MODEL)
]


def asked(**given: Any) -> dict[str, Any]:
    """The parameters that were given."""
    return {name: value for name, value in given.items() if value is not None}
