"""The model's parameters: as options of commands that create a model, and as text."""

from typing import Annotated, Any, NamedTuple

import typer

from unbasket.errors import InvalidParamsError
from unbasket.params import Params, check_names

_PANEL = "Parameters of a new model"
_USUAL = Params()


class Model(NamedTuple):
    """The options; None where the default is meant."""

    group_size: Annotated[
        int | None, typer.Option(help=f"Baskets in a group ({_USUAL.group_size}).", rich_help_panel=_PANEL)
    ] = None
    basket_decay: Annotated[
        float | None,
        typer.Option(
            help=f"Weight of a basket, relative to the next one of its group ({_USUAL.basket_decay}).",
            rich_help_panel=_PANEL,
        ),
    ] = None
    group_decay: Annotated[
        float | None,
        typer.Option(
            help=f"Weight of a group, relative to the next one ({_USUAL.group_decay}).", rich_help_panel=_PANEL
        ),
    ] = None
    neighbors: Annotated[
        int | None, typer.Option(help=f"Similar users to learn from ({_USUAL.neighbors}).", rich_help_panel=_PANEL)
    ] = None
    alpha: Annotated[
        float | None,
        typer.Option(
            help=f"Weight of a user's own baskets; the rest is that of similar users ({_USUAL.alpha}).",
            rich_help_panel=_PANEL,
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


def parse_params(text: str) -> dict[str, Any]:
    """The parameters that a text names.

    >>> parse_params("Params(group_size=7, alpha=0.5)")
    {'group_size': 7, 'alpha': 0.5}
    """
    inner = text.strip().removeprefix("Params(").removesuffix(")")
    named = {}
    for part in filter(None, (part.strip() for part in inner.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise InvalidParamsError(f"params must be written as name=value, not {part!r}")
        named[name] = _value(value)
    check_names(named)
    return named


def _value(text: str) -> int | float | str | None:
    """None, or a number if it is one; `Params` checks whether it fits the parameter."""
    if text == "None":
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip("'\"")
