"""Calls about the whole shop: its users, items, categories, figures."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import asdict
from itertools import islice

import msgspec

from unbasket.domain.id_text import LiveIdReader, format_id, parse_id
from unbasket.domain.ids import Id, sort_key
from unbasket.service.handlers.users import described
from unbasket.service.request import Request
from unbasket.service.schemas.query_params import ItemsQuery, PageQuery, PopularQuery, UsersQuery
from unbasket.service.schemas.requests import Availability
from unbasket.service.schemas.responses import (
    CategoriesAnswer,
    Category,
    HiddenAnswer,
    ItemsAnswer,
    ModelParams,
    PopularAnswer,
    PopularItem,
    RestockedAnswer,
    StatsAnswer,
    UsersAnswer,
)


def users(request: Request) -> UsersAnswer:
    """A page of users."""
    query: UsersQuery = request.query
    found, following = _page(
        request.rec.users(), query.after, query.limit, lambda user: str(user).startswith(query.prefix)
    )
    return UsersAnswer(found, following)


def items(request: Request) -> ItemsAnswer:
    """A page of items by name or id."""
    query: ItemsQuery = request.query
    rec, wanted = request.rec, query.query.casefold()

    def matches(item: Id) -> bool:
        return not wanted or wanted in str(item).casefold() or wanted in (rec.catalog[item].name or "").casefold()

    found, following = _page(rec.items(), query.after, query.limit, matches)
    return ItemsAnswer([described(rec, item) for item in found], following)


def _page(ids: list[Id], after: str, limit: int, matches: Callable[[Id], bool]) -> tuple[list[Id], str | None]:
    """The next `limit` ids that match, behind `after`; and the `after` of the next page."""
    start = bisect_right(ids, sort_key(parse_id(after)), key=sort_key) if after else 0
    rest: Iterable[Id] = islice(ids, start, None)
    found = list(islice(filter(matches, rest), limit + 1))
    following = format_id(found[limit - 1]) if len(found) > limit else None
    return found[:limit], following


def hidden(request: Request) -> HiddenAnswer:
    """A page of hidden items."""
    query: PageQuery = request.query
    found, following = _page(request.rec.hidden(), query.after, query.limit, lambda _: True)
    return HiddenAnswer(found, following)


def restock(request: Request) -> RestockedAnswer:
    """Hide items, and show others."""
    body: Availability = request.body
    return RestockedAnswer(*request.rec.set_availability(hide=body.hide, show=body.show))


def categories(request: Request) -> CategoriesAnswer:
    """All categories."""
    found = sorted(request.rec.catalog.categories().items())
    return CategoriesAnswer([Category(name, len(members)) for name, members in found])


def popular(request: Request) -> PopularAnswer:
    """The items in most baskets."""
    query: PopularQuery = request.query
    catalog, ids = request.rec.catalog, LiveIdReader(request.rec)
    found = request.rec.popular(query.n, since=query.since, **query.filters(ids))
    return PopularAnswer(
        [PopularItem(item, count, catalog[item].name, catalog[item].category) for item, count in found]
    )


def stats(request: Request) -> StatsAnswer:
    """Live figures."""
    figures = msgspec.structs.asdict(request.metrics.figures())
    return StatsAnswer(**figures, params=ModelParams(**asdict(request.rec.params)))
