"""Calls that recommend: to a user, to a visitor, after a change that is only tried out; and why."""

from collections import Counter
from collections.abc import Sequence
from functools import partial

from unbasket.domain.id_text import LiveIdReader
from unbasket.domain.ids import Id, sort_key
from unbasket.domain.results import Basket, Explanation, Recommendation
from unbasket.errors import UnknownUserError
from unbasket.service.errors import ApiError
from unbasket.service.handlers.users import history_of
from unbasket.service.request import Request
from unbasket.service.schemas.query_params import MAX_EXPLAINED, HowManyQuery, RecommendationsQuery
from unbasket.service.schemas.requests import ForgetPart, Preview, Visitor
from unbasket.service.schemas.responses import (
    BasketPart,
    ExplanationAnswer,
    PreviewAnswer,
    RecommendationsAnswer,
    Recommended,
    VisitorAnswer,
)
from unbasket.service.throttled_executor import Steps
from unbasket.store import DurableRecommender

_FEW = 50  # items that are recommended in no time


def recommend(request: Request) -> Steps[RecommendationsAnswer]:
    """Recommend; to somebody unknown without a cart, what the shop's fallback says."""
    query: RecommendationsQuery = request.query
    _check_explain(query)
    work = partial(_recommend, request, query)
    return (yield work) if query.explain else work()


def _recommend(request: Request, query: RecommendationsQuery) -> RecommendationsAnswer:
    rec, user, ids = request.rec, request.user, LiveIdReader(request.rec)
    filters, cart = query.filters(ids), [ids.item(text) for text in query.cart]
    try:
        found = rec.recommend(user, query.n, only_new=query.only_new, cart=cart, **filters)
        reasons = _reasons(rec, user, found) if query.explain else None
    except UnknownUserError:
        popular = request.fallback.items(rec, query.n, **filters)
        return RecommendationsAnswer(user, True, _recommended(rec, popular, query.fields))
    return RecommendationsAnswer(user, False, _recommended(rec, found, query.fields, reasons))


def _check_explain(query: RecommendationsQuery) -> None:
    if query.explain and query.n > MAX_EXPLAINED:
        raise ApiError("invalid_query", f"with `explain`, `n` is at most {MAX_EXPLAINED}, not {query.n}")
    if query.explain and query.cart:
        raise ApiError("invalid_query", "`explain` is about the baskets that are held: leave out `cart`")


def recommend_together(requests: list[Request]) -> list[RecommendationsAnswer | None]:
    """The same for requests that came together; None where one search in the engine does not do."""
    if len(requests) == 1:  # by the longer way, it would take a sixth more of the processor
        return [_recommend_alone(requests[0])]
    rec, users = requests[0].rec, [_known(request) for request in requests]
    asked: dict[tuple[int, bool], list[Id]] = {}
    for request, user in zip(requests, users, strict=True):
        if user is not None:
            asked.setdefault((request.query.n, request.query.only_new), []).append(user)
    try:
        found = {kind: rec.recommend_many(some, kind[0], only_new=kind[1]) for kind, some in asked.items()}
    except UnknownUserError:  # who was there just now
        return [None] * len(requests)
    return [_answered(request, user, found) for request, user in zip(requests, users, strict=True)]


def _recommend_alone(request: Request) -> RecommendationsAnswer | None:
    query: RecommendationsQuery = request.query
    if _takes_longer(query):
        return None
    for user in request.possible_users():
        try:
            found = request.rec.recommend(user, query.n, only_new=query.only_new)
        except UnknownUserError:
            continue
        return RecommendationsAnswer(user, False, _recommended(request.rec, found, query.fields))
    return None


def _known(request: Request) -> Id | None:
    """The user, if something is held about them, and nothing is asked for that takes longer."""
    if _takes_longer(request.query):
        return None
    return next((user for user in request.possible_users() if user in request.rec), None)


def _takes_longer(query: RecommendationsQuery) -> bool:
    return bool(query.n > _FEW or query.explain or query.exclude or query.only or query.category or query.cart)


def _answered(
    request: Request, user: Id | None, found: dict[tuple[int, bool], dict[Id, list[Recommendation]]]
) -> RecommendationsAnswer | None:
    query: RecommendationsQuery = request.query
    best = None if user is None else found[query.n, query.only_new].get(user)
    if user is None or best is None:
        return None
    return RecommendationsAnswer(user, False, _recommended(request.rec, best, query.fields))


def recommend_to_visitor(request: Request) -> VisitorAnswer:
    """Recommend to somebody without an account, by baskets and a cart that are not stored."""
    body: Visitor = request.body
    rec, filters = request.rec, body.filters()
    if not body.baskets and not body.cart:
        popular = request.fallback.items(rec, body.n, **filters)
        return VisitorAnswer(True, _recommended(rec, popular, body.fields))
    found = rec.recommend_for(body.baskets, body.n, only_new=body.only_new, cart=body.cart, **filters)
    return VisitorAnswer(False, _recommended(rec, found, body.fields))


def _reasons(rec: DurableRecommender, user: Id, found: Sequence[tuple[Id, float]]) -> list[ExplanationAnswer]:
    return [_explained(rec, reason) for reason in rec.explain_many(user, [item for item, _ in found])]


def _recommended(
    rec: DurableRecommender,
    found: Sequence[tuple[Id, float]],
    fields: Sequence[str] = (),
    reasons: list[ExplanationAnswer] | None = None,
) -> list[Recommended]:
    if not fields and not reasons:  # what most ask for: an item, and what it is called
        return [
            Recommended(item, float(score))
            if (product := rec.catalog.get(item)) is None
            else Recommended(item, float(score), product.name, product.category)
            for item, score in found
        ]
    products = [rec.catalog[item] for item, _ in found]
    why: Sequence[ExplanationAnswer | None] = reasons or [None] * len(found)
    return [
        Recommended(
            item,
            float(score),
            product.name,
            product.category,
            {field: product.value(field) for field in fields} or None,
            reason,
        )
        for (item, score), product, reason in zip(found, products, why, strict=True)
    ]


def preview(request: Request) -> PreviewAnswer:
    """The recommendations as they would be after a change. Nothing is stored."""
    body: Preview = request.body
    query: HowManyQuery = request.query
    rec, user = request.rec, request.user
    held = history_of(rec, user)
    history = [set(basket.items) for basket in held]
    if body.learn and not body.forget:
        changed = [*history, set(body.learn.items)]
    elif body.forget and not body.learn:
        changed = _left(rec, held, body.forget)
    else:
        raise ApiError("invalid_body", "a preview has either `forget` or `learn`")
    before: Sequence[tuple[Id, float]] = (
        rec.recommend_for(history, query.n, user=user) if history else request.fallback.items(rec, query.n)
    )
    after: Sequence[tuple[Id, float]] = (
        rec.recommend_for(changed, query.n, user=user) if changed else _fallback_without(request, held, query.n)
    )
    return PreviewAnswer(
        _recommended(rec, before), _recommended(rec, after), popular_before=not history, popular_after=not changed
    )


def _left(rec: DurableRecommender, history: list[Basket], part: ForgetPart) -> list[set[Id]]:
    """What a forget would leave of a history."""
    wanted = None if part.category is None else set(rec.catalog.members(part.category))

    def goes(basket: Basket, item: Id) -> bool:
        return part.basket in (None, basket.basket) and part.item in (None, item) and (wanted is None or item in wanted)

    left = [{item for item in basket.items if not goes(basket, item)} for basket in history]
    return [basket for basket in left if basket]


def _fallback_without(request: Request, history: list[Basket], n: int) -> list[tuple[Id, int]]:
    """What somebody unknown would get if this history were forgotten."""
    fallback = request.fallback
    own = Counter(item for basket in history if fallback.counts(basket) for item in basket.items)
    found = fallback.items(request.rec, n + len(own))
    left = [(item, count - own[item]) for item, count in found if count > own[item]]
    return sorted(left, key=lambda pair: (-pair[1], sort_key(pair[0])))[:n]


def explain(request: Request) -> ExplanationAnswer:
    """Why an item scores what it does."""
    return _explained(request.rec, request.rec.explain(request.user, request.item))


def _explained(rec: DurableRecommender, reason: Explanation) -> ExplanationAnswer:
    product = rec.catalog[reason.item]
    return ExplanationAnswer(
        reason.item,
        reason.score,
        [BasketPart(*share) for share in reason.baskets],
        reason.neighbors_share,
        reason.neighbors_with_item,
        reason.neighbors,
        product.name,
        product.category,
    )
