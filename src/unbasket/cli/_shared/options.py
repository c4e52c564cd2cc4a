"""Groups of options that several commands share, and the parameters of a model as options and as text.

A group is a named tuple whose fields are options.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, NamedTuple, get_type_hints

import typer

from unbasket.errors import InvalidParamsError
from unbasket.params import Params, check_names


def with_options(**groups: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a command take groups of options: `with_options(reading=ReadingOptions)` fills its argument `reading`.

    Typer sees the fields of `ReadingOptions` as arguments of the command, in the position of `reading`.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def run(**given: Any) -> None:
            for argument, group in groups.items():
                given[argument] = group(**{name: given.pop(name) for name in group._fields})
            function(**given)

        parameters = []
        for parameter in inspect.signature(function).parameters.values():
            # keyword-only, since a parameter with a default may then come before one without
            own = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)]
            parameters += _parameters_of(groups[parameter.name]) if parameter.name in groups else own
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def _parameters_of(group: type[Any]) -> list[inspect.Parameter]:
    kind, hints = inspect.Parameter.KEYWORD_ONLY, get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(name, kind, default=group._field_defaults[name], annotation=hints[name])
        for name in group._fields
    ]


def _param(text: str) -> Any:
    return typer.Option(help=text, rich_help_panel="Parameters of a new model")


_DEFAULT = Params()


class ModelOptions(NamedTuple):
    """The parameters of a new model; None stands for the default."""

    group_size: Annotated[int | None, _param(f"Baskets in a group ({_DEFAULT.group_size}).")] = None
    basket_decay: Annotated[
        float | None, _param(f"Weight of a basket, relative to the next one of its group ({_DEFAULT.basket_decay}).")
    ] = None
    group_decay: Annotated[
        float | None, _param(f"Weight of a group, relative to the next one ({_DEFAULT.group_decay}).")
    ] = None
    neighbors: Annotated[int | None, _param(f"Similar users to learn from ({_DEFAULT.neighbors}).")] = None
    alpha: Annotated[
        str | None,
        _param(f"Weight of a user's own baskets, from 0 to 1, or learned from all baskets ({_DEFAULT.alpha})."),
    ] = None
    repurchase: Annotated[
        float | None,
        _param(f"Evidence for a learned factor of an item, in purchases ({_DEFAULT.repurchase})."),
    ] = None
    grouping: Annotated[
        str | None, _param("fixed, varying as in the paper, or count: --group-size is the number of groups (fixed).")
    ] = None
    pool: Annotated[
        int | None,
        _param("Look for similar users in a sample of this size, for large shops (all users); see docs/pool.md."),
    ] = None
    pool_seed: Annotated[int | None, _param("The seed of this sample (a new one).")] = None

    def given(self) -> dict[str, Any]:
        """Return the parameters that were given."""
        given = {name: value for name, value in self._asdict().items() if value is not None}
        return given | ({} if self.alpha is None else {"alpha": _parse_value(self.alpha)})


def parse_params(text: str) -> dict[str, Any]:
    """Parse parameters that are written as name=value.

    >>> parse_params("Params(group_size=7, alpha=0.5)")
    {'group_size': 7, 'alpha': 0.5}
    """
    inner = text.strip().removeprefix("Params(").removesuffix(")")
    named = {}
    for assignment in filter(None, map(str.strip, inner.split(","))):
        name, equals, value = map(str.strip, assignment.partition("="))
        if not equals:
            raise InvalidParamsError(f"params must be written as name=value, not {assignment!r}")
        named[name] = _parse_value(value)
    check_names(named)
    return named


def _parse_value(text: str) -> int | float | str | None:
    """Parse None, a number or a text; `Params` checks whether it fits the parameter."""
    if text == "None":
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip("'\"")
