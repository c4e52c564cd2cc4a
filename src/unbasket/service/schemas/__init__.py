"""Schemas of requests and responses, for handlers and OpenAPI; here, the types that they share."""

from collections.abc import Iterable, Sequence
from itertools import chain
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
from msgspec import Meta

Number = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Id = Annotated[str, Meta(min_length=1)] | Number
Time = Annotated[int, Meta(ge=-(2**63) + 1, le=2**63 - 1)]
Moment = (
    Time
    | Annotated[
        str,
        Meta(
            description="A time or a date in ISO 8601; UTC without a zone.", extra_json_schema={"format": "date-time"}
        ),
    ]
)
Items = Annotated[list[Id], Meta(min_length=1, max_length=8192)]
Count = Annotated[int, Meta(ge=0)]
HowMany = Annotated[int, Meta(ge=0, le=1000)]
PageSize = Annotated[int, Meta(ge=1, le=1000)]


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of query parameters and request bodies: an unknown field is an error."""

    def ids(self) -> Iterable[str | int | None]:
        """Return the ids of users, baskets and items in a body."""
        return ()


def allowed_fields(schema: Any, steps: Sequence[str]) -> list[str]:
    """Return the fields of the objects that a schema has at a path: `[...]` is an element, other steps are fields."""
    kind = get_origin(schema)
    if kind is Annotated:
        return allowed_fields(get_args(schema)[0], steps)
    if kind in (Union, UnionType):
        return list(dict.fromkeys(chain.from_iterable(allowed_fields(part, steps) for part in get_args(schema))))
    if kind is list:
        return allowed_fields(get_args(schema)[0], steps[1:]) if steps else []
    if not (isinstance(schema, type) and issubclass(schema, msgspec.Struct)):
        return []
    fields = {field.name: field.type for field in msgspec.structs.fields(schema)}
    if steps:
        return allowed_fields(fields.get(steps[0]), steps[1:])
    tag = schema.__struct_config__.tag_field
    return [tag, *fields] if tag else list(fields)
