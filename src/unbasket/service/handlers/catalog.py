"""Handlers about all users and items: pages, categories, availability, popularity, stats."""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import asdict
from itertools import islice

import msgspec

from unbasket.domain.id_text import LiveIdReader, read_spelled, spell
from unbasket.domain.ids import Id, sort_key
from unbasket.service.handlers.users import described
from unbasket.service.request import Request
from unbasket.service.schemas.query_params import ItemsQuery, PageQuery, PopularQuery, UsersQuery
from unbasket.service.schemas.requests import Availability
from unbasket.service.schemas.responses import (
    AvailabilityResponse,
    CategoriesResponse,
    Category,
    HiddenResponse,
    ItemsResponse,
    ModelParams,
    PopularItem,
    PopularResponse,
    StatsResponse,
    UsersResponse,
)


def users(request: Request) -> UsersResponse:
    """Return a page of users."""
    query: UsersQuery = request.query
    found, next_after = _page(
        request.rec.users(), query.after, query.limit, lambda user: str(user).startswith(query.prefix)
    )
    return UsersResponse(found, next_after)


def items(request: Request) -> ItemsResponse:
    """Return a page of items by name or id."""
    query: ItemsQuery = request.query
    rec, wanted = request.rec, query.query.casefold()

    def matches(item: Id) -> bool:
        return not wanted or wanted in str(item).casefold() or wanted in (rec.catalog[item].name or "").casefold()

    found, next_after = _page(rec.items(), query.after, query.limit, matches)
    return ItemsResponse([described(rec, item) for item in found], next_after)


def _page(ids: list[Id], after: str, limit: int, matches: Callable[[Id], bool]) -> tuple[list[Id], str | None]:
    """Return the next `limit` ids after `after` that match, and the `after` of the next page."""
    start = bisect_right(ids, sort_key(read_spelled(after)), key=sort_key) if after else 0
    found = list(islice(filter(matches, islice(ids, start, None)), limit + 1))
    next_after = spell(found[limit - 1]) if len(found) > limit else None
    return found[:limit], next_after


def hidden(request: Request) -> HiddenResponse:
    """Return a page of hidden items."""
    query: PageQuery = request.query
    found, next_after = _page(request.rec.hidden(), query.after, query.limit, lambda _: True)
    return HiddenResponse(found, next_after)


def change_availability(request: Request) -> AvailabilityResponse:
    """Hide items and show others."""
    body: Availability = request.body
    return AvailabilityResponse(*request.rec.restock(hide=body.hide, show=body.show))


def categories(request: Request) -> CategoriesResponse:
    """Return all categories."""
    found = sorted(request.rec.catalog.categories().items())
    return CategoriesResponse([Category(name, len(members)) for name, members in found])


def popular(request: Request) -> PopularResponse:
    """Return the items in most baskets."""
    query: PopularQuery = request.query
    catalog, ids = request.rec.catalog, LiveIdReader(request.rec)
    found = request.rec.popular(query.n, since=query.since, **query.filters(ids))
    return PopularResponse(
        [PopularItem(item, count, catalog[item].name, catalog[item].category) for item, count in found]
    )


def stats(request: Request) -> StatsResponse:
    """Return the stats of the last minute."""
    stats = msgspec.structs.asdict(request.metrics.stats())
    return StatsResponse(**stats, params=ModelParams(**asdict(request.rec.params)))
