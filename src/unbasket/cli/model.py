"""The model's parameters, as options of commands that create a model."""

from typing import Annotated, Any, NamedTuple

import typer

_PANEL = "Parameters of a new model"


class Model(NamedTuple):
    """The options; None where the default is meant."""

    group_size: Annotated[int | None, typer.Option(help="Baskets in a group (7).", rich_help_panel=_PANEL)] = None
    basket_decay: Annotated[
        float | None,
        typer.Option(help="Weight of a basket, relative to the next one of its group (0.9).", rich_help_panel=_PANEL),
    ] = None
    group_decay: Annotated[
        float | None, typer.Option(help="Weight of a group, relative to the next one (0.7).", rich_help_panel=_PANEL)
    ] = None
    neighbors: Annotated[
        int | None, typer.Option(help="Similar users to learn from (300).", rich_help_panel=_PANEL)
    ] = None
    alpha: Annotated[
        float | None,
        typer.Option(
            help="Weight of a user's own baskets; the rest is that of similar users (0.7).", rich_help_panel=_PANEL
        ),
    ] = None
    grouping: Annotated[
        str | None, typer.Option(help="fixed, or varying as in the paper (fixed).", rich_help_panel=_PANEL)
    ] = None
    pool: Annotated[
        int | None,
        typer.Option(
            help="Look for similar users among so many only, for large shops (all users); see docs/pool.md.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    pool_seed: Annotated[
        int | None,
        typer.Option(help="The seed by which these are chosen (a new one).", rich_help_panel=_PANEL),
    ] = None

    def asked(self) -> dict[str, Any]:
        """The parameters that were given."""
        return {name: value for name, value in self._asdict().items() if value is not None}
