"""Options that several commands share, defined once: a named tuple whose fields are options."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, get_type_hints


def with_options(**groups: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a command take groups of options: `with_options(reading=Reading)` fills its argument `reading`.

    To Typer, the command has the fields of `Reading` as arguments, in the place of `reading`.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def run(**given: Any) -> None:
            for argument, group in groups.items():
                given[argument] = group(**{name: given.pop(name) for name in group._fields})
            function(**given)

        parameters = []
        for parameter in inspect.signature(function).parameters.values():
            own = [
                parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            ]  # a default may come before an argument without one
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
