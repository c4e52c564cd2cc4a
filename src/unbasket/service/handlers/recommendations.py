"""Handlers for recommendations to users and visitors, previews of changes, and explanations."""

from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest

from unbasket.domain.id_text import parse_id
from unbasket.domain.ids import Id
from unbasket.domain.privacy import PrivacyThreshold
from unbasket.domain.results import Basket, Explanation
from unbasket.errors import UnknownUserError
from unbasket.service.errors import ApiError
from unbasket.service.executor import Steps, in_one_step
from unbasket.service.handlers.users import history_of
from unbasket.service.request import Request
from unbasket.service.schemas import requests, responses
from unbasket.store import DurableRecommender

_FEW = 50  # recommendations that a short request may ask for


def recommend(request: Request) -> responses.RecommendationsResponse | Steps[responses.RecommendationsResponse]:
    """Recommend items for the next basket; popular ones if the user is unknown."""
    query: requests.RecommendationsQuery = request.query
    if query.explain and query.n > requests.MAX_EXPLAINED:
        raise ApiError("invalid_query", f"with `explain`, `n` is at most {requests.MAX_EXPLAINED}, not {query.n}")
    if query.explain and query.cart:
        raise ApiError("invalid_query", "`explain` covers stored baskets only: leave out `cart`")
    _check_shopper_items(request, "invalid_query", "the cart", query.cart)
    return (in_one_step(_recommend) if query.explain else _recommend)(request, query)


def _check_shopper_items(request: Request, code: str, owner: str, items: Sequence[object]) -> None:
    """Raise if a shopper sends more items than a token allows: the cost of a request grows with them."""
    if request.caller.shopper is not None and len(items) > requests.MAX_SHOPPER_ITEMS:
        raise ApiError(
            code,
            f"{owner} has {len(items):,} items: with a shopper's token, send at most {requests.MAX_SHOPPER_ITEMS}",
        )


def _recommend(request: Request, query: requests.RecommendationsQuery) -> responses.RecommendationsResponse:
    rec, user = request.rec, request.spelled_user
    filters, cart, privacy = query.filters(), [parse_id(text) for text in query.cart], request.privacy
    try:
        found = rec.recommend(user, query.n, only_new=query.only_new, cart=cart or None, privacy=privacy, **filters)
        why = rec.explain_many(user, [item for item, _ in found], privacy=privacy) if query.explain else []
    except UnknownUserError:
        popular = request.shared.settings.cold_start.items(rec, query.n, privacy=privacy, **filters)
        return responses.RecommendationsResponse(request.user, True, _recommended(rec, popular, query.fields))
    return responses.RecommendationsResponse(
        request.user, False, _recommended(rec, found, query.fields, [_explained(request, each) for each in why])
    )


def recommend_batch(batch: list[Request], timeout: float | None) -> list[responses.RecommendationsResponse | None]:
    """Recommend for a batch of requests; None for each that takes more than one search."""
    groups: dict[tuple[int, bool, PrivacyThreshold | None], list[int]] = {}
    for number, request in enumerate(batch):
        query: requests.RecommendationsQuery = request.query
        if query.n <= _FEW and not (query.explain or query.exclude or query.only or query.category or query.cart):
            groups.setdefault((query.n, query.only_new, request.privacy), []).append(number)
    rec, found = batch[0].rec, list[responses.RecommendationsResponse | None]([None] * len(batch))
    for (n, only_new, privacy), numbers in groups.items():
        users = [batch[number].spelled_user for number in numbers]
        answers = rec.recommend_batch(users, n, only_new=only_new, privacy=privacy, timeout=timeout)
        for number, answer in zip(numbers, answers, strict=True):
            if answer is not None:
                recommended = _recommended(rec, answer[1], batch[number].query.fields)
                found[number] = responses.RecommendationsResponse(answer[0], False, recommended)
    return found


def recommend_to_visitor(request: Request) -> responses.VisitorResponse:
    """Recommend to a visitor by baskets and a cart, without storing them."""
    body: requests.Visitor = request.body
    rec, filters, privacy = request.rec, body.filters(), request.shared.settings.privacy
    if not body.baskets and not body.cart:
        popular = request.shared.settings.cold_start.items(rec, body.n, privacy=privacy, **filters)
        return responses.VisitorResponse(True, _recommended(rec, popular, body.fields))
    found = rec.recommend_for(body.baskets, body.n, only_new=body.only_new, cart=body.cart, privacy=privacy, **filters)
    return responses.VisitorResponse(False, _recommended(rec, found, body.fields))


def _recommended(
    rec: DurableRecommender,
    found: Sequence[tuple[Id, float]],
    fields: Sequence[str] = (),
    reasons: Sequence[responses.ExplanationResponse] = (),
) -> list[responses.Recommended]:
    catalog = rec.catalog
    return [
        responses.Recommended(
            item,
            float(score),
            product.name,
            product.category,
            {field: product.value(field) for field in fields} if fields else None,
            reason,
        )
        for (item, score), reason in zip_longest(found, reasons)
        for product in [catalog[item]]
    ]


def preview(request: Request) -> responses.PreviewResponse:
    """Preview how a forget or a learn would change the recommendations."""
    body: requests.Preview = request.body
    n: int = request.query.n
    rec, user, privacy = request.rec, request.user, request.privacy
    stored = history_of(rec, user)
    history = [set(basket.items) for basket in stored]
    if body.learn and not body.forget:
        _check_shopper_items(request, "too_large", "the basket", body.learn.items)
        changed = [*history, set(body.learn.items)]
    elif body.forget and not body.learn:
        changed = _remaining(request, stored, body.forget)
    else:
        raise ApiError("invalid_body", "a preview has either `forget` or `learn`")
    found: list[Sequence[tuple[Id, float]]] = [
        rec.recommend_for(baskets, n, user=user, privacy=privacy) if baskets else _fallback_without(request, without, n)
        for baskets, without in ((history, []), (changed, stored))
    ]
    before, after = (_recommended(rec, each) for each in found)
    return responses.PreviewResponse(before, after, popular_before=not history, popular_after=not changed)


def _remaining(request: Request, history: list[Basket], part: requests.ForgetPart) -> list[set[Id]]:
    """Return the baskets that a forget would leave."""
    wanted = None if part.category is None else set(request.rec.catalog.members(part.category))
    one_basket = None if part.basket is None else request.rec.canonical_id(part.basket, "basket")
    one_item = None if part.item is None else request.rec.canonical_id(part.item, "item")

    def matches(basket: Basket, item: Id) -> bool:
        return one_basket in (None, basket.basket) and one_item in (None, item) and (wanted is None or item in wanted)

    remaining = [{item for item in basket.items if not matches(basket, item)} for basket in history]
    return [basket for basket in remaining if basket]


def _fallback_without(request: Request, history: list[Basket], n: int) -> list[tuple[Id, int]]:
    """Return the fallback recommendations as they would be without this history."""
    fallback = request.shared.settings.cold_start
    own = Counter(item for basket in history if fallback.counts(basket) for item in basket.items)
    found = fallback.items(request.rec, n + len(own))
    remaining = [(item, count - own[item]) for item, count in found if count > own[item]]
    best = sorted(remaining, key=lambda pair: (-pair[1], pair[0]))[:n]
    shown = [(item, request.privacy.count(count) if request.privacy else count) for item, count in best]
    return [(item, count) for item, count in shown if count]


def explain(request: Request) -> responses.ExplanationResponse:
    """Explain the score of an item."""
    return _explained(request, request.rec.explain(request.user, request.path_id("item"), privacy=request.privacy))


def _explained(request: Request, reason: Explanation) -> responses.ExplanationResponse:
    product = request.rec.catalog[reason.item]
    return responses.ExplanationResponse.of(reason, product, hides_few=request.privacy is not None)
