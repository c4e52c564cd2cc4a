"""Handlers about all users and items: pages, categories, availability, popularity, stats."""

from bisect import bisect_right
from collections.abc import Callable
from itertools import islice
from typing import Any

from unbasket.domain.id_text import format_id, parse_id
from unbasket.domain.ids import Id, Kind
from unbasket.service.handlers import ops
from unbasket.service.handlers.users import described
from unbasket.service.request import Request
from unbasket.service.schemas import requests, responses


def users(request: Request) -> responses.UsersResponse:
    """Return a page of users."""
    query: requests.UsersQuery = request.query
    return responses.UsersResponse(
        *_page(request, "user", request.rec.users(), lambda user: str(user).startswith(query.prefix))
    )


def items(request: Request) -> responses.ItemsResponse:
    """Return a page of items with names and categories."""
    query: requests.ItemsQuery = request.query
    rec, wanted = request.rec, query.query.casefold()

    def matches(item: Id) -> bool:
        return not wanted or wanted in str(item).casefold() or wanted in (rec.catalog[item].name or "").casefold()

    found, next_after = _page(request, "item", rec.items(), matches)
    return responses.ItemsResponse([described(rec, item) for item in found], next_after)


def _page(
    request: Request, kind: Kind, ids: list[Any], matches: Callable[[Id], bool] = lambda _: True
) -> tuple[list[Id], str | None]:
    """Return the next `limit` ids after `after` that match, and the `after` of the next page."""
    after, limit = request.query.after, request.query.limit
    start = bisect_right(ids, request.rec.canonical_id(parse_id(after), kind)) if after else 0
    found = list(islice(filter(matches, islice(ids, start, None)), limit + 1))
    return found[:limit], format_id(found[limit - 1]) if len(found) > limit else None


def hidden(request: Request) -> responses.HiddenResponse:
    """Return a page of hidden items."""
    return responses.HiddenResponse(*_page(request, "item", request.rec.hidden()))


def set_availability(request: Request) -> responses.AvailabilityResponse:
    """Hide items that are out of stock and show others again, all or nothing."""
    body: requests.Availability = request.body
    return responses.AvailabilityResponse(*request.rec.set_availability(hide=body.hide, show=body.show))


def categories(request: Request) -> responses.CategoriesResponse:
    """Return the categories of items."""
    found = sorted(request.rec.catalog.categories().items())
    return responses.CategoriesResponse([responses.Category(name, len(members)) for name, members in found])


def popular(request: Request) -> responses.PopularResponse:
    """Return the items in most baskets."""
    query: requests.PopularQuery = request.query
    catalog = request.rec.catalog
    found = request.rec.popular(query.n, since=query.since, **query.filters())
    return responses.PopularResponse(
        [responses.PopularItem(item, count, catalog[item].name, catalog[item].category) for item, count in found]
    )


def stats(request: Request) -> responses.StatsResponse:
    """Return live statistics and parameters."""
    return request.shared.metrics.stats(ops.params(request))
