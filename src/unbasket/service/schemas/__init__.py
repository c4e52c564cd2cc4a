"""Schemas of requests and responses, for handlers and OpenAPI; here, the types that they share."""

from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta

Number = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Id = Annotated[str, Meta(min_length=1)] | Number
Time = Annotated[int, Meta(ge=-(2**63) + 1, le=2**63 - 1)]
Items = Annotated[list[Id], Meta(min_length=1, max_length=8192)]
Count = Annotated[int, Meta(ge=0)]
HowMany = Annotated[int, Meta(ge=0, le=1000)]
PageSize = Annotated[int, Meta(ge=1, le=1000)]


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of query parameters and request bodies: an unknown field is an error."""

    def ids(self) -> Iterable[str | int | None]:
        """Return the ids of users, baskets and items in a body."""
        return ()
