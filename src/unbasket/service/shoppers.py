"""Calls about one user: learn, recommend, preview, explain, show, forget, verify."""

import time
import uuid
from collections import Counter
from collections.abc import Sequence
from typing import cast

from unbasket.errors import UnbasketError, UnknownUserError
from unbasket.exchange.events import Event, Forget
from unbasket.exchange.ids import Id, sort_key
from unbasket.exchange.results import Basket, Explanation, Forgotten, Learned
from unbasket.exchange.spelling import LiveIdReader
from unbasket.service.access import Role
from unbasket.service.errors import ApiError
from unbasket.service.request import Request
from unbasket.service.shapes.answers import (
    BasketPart,
    EventResult,
    EventsAnswer,
    ExplanationAnswer,
    ForgottenAnswer,
    ForgottenManyAnswer,
    HeldBasket,
    Item,
    LearnedAnswer,
    PreviewAnswer,
    RecommendationsAnswer,
    Recommended,
    Removed,
    SimilarAnswer,
    SimilarUser,
    UserAnswer,
    VerificationAnswer,
)
from unbasket.service.shapes.bodies import (
    MAX_EVENTS,
    MAX_FORGETS,
    MAX_READ,
    ForgetEvent,
    ForgetPart,
    LearnEvent,
    NewBasket,
    Preview,
)
from unbasket.service.shapes.queries import MAX_EXPLAINED, HowManyQuery, RecommendationsQuery
from unbasket.store import DurableRecommender, Erased

_FEW = 50  # items that are recommended in no time

# Learning -------------------------------------------------------------------------------------------------------


def learn(request: Request) -> LearnedAnswer:
    """Learn a basket, or edit the one of this id."""
    return _learn(request, request.basket)


def learn_new(request: Request) -> LearnedAnswer:
    """Learn a basket under an id that the service gives."""
    return _learn(request, str(uuid.uuid4()))


def _learn(request: Request, basket: Id) -> LearnedAnswer:
    body: NewBasket = request.body
    result = request.rec.learn(request.user, body.items, basket=basket, time=body.time)
    request.results.append(result)
    return LearnedAnswer(result.value, basket)


def events(request: Request) -> EventsAnswer:
    """Apply events, all or none."""
    body: list[LearnEvent | ForgetEvent] = request.body
    forgets = sum(isinstance(event, ForgetEvent) for event in body)
    if forgets < len(body):
        request.caller.check({Role.WRITE}, None)
    if forgets:
        request.caller.check({Role.PRIVACY}, None)
    if len(body) > MAX_EVENTS or forgets > MAX_FORGETS:
        raise ApiError(
            "too_large",
            f"{len(body):,} events, of which {forgets:,} forget, are too many for one request: send at most "
            f"{MAX_EVENTS:,}, of which at most {MAX_FORGETS:,} forget, and the rest in further requests",
        )
    _check_cost(request.rec, Counter(event.user for event in body if isinstance(event, ForgetEvent)))
    for event in body:
        if isinstance(event, ForgetEvent):
            request.repeats.drop(event.user)
    results, seconds = _apply(request, [event.event() for event in body])
    return EventsAnswer([_event_result(result) for result in results], seconds)


def _check_cost(rec: DurableRecommender, forgets: Counter[Id]) -> None:
    """Refuse what would keep other writers waiting: the proof of a forget reads all purchases of its user."""
    read = 0
    for user, count in forgets.items():
        read += count * _weight(_history(rec, user))
        if read > MAX_READ:
            raise ApiError(
                "too_large",
                f"these {forgets.total():,} forgets are too many for one request: each reads all purchases of its "
                "user, and these users have very many. Send fewer at a time",
            )


def _weight(history: list[Basket]) -> int:
    """How long it takes to read a history, in purchases: a basket takes about as long as ten."""
    return sum(10 + len(basket.items) for basket in history)


def _event_result(result: Learned | Forgotten) -> EventResult:
    if isinstance(result, Learned):
        return EventResult(result=result.value)
    return EventResult(receipt=cast(Erased, result).receipt)


def _apply(request: Request, events: Sequence[Event]) -> tuple[list[Learned | Forgotten], float]:
    """What the events did, and the seconds until it was on disk, or gone from it."""
    start = time.perf_counter()
    results = request.rec.apply(events) if events else []
    request.results += results
    return results, time.perf_counter() - start


# Forgetting -----------------------------------------------------------------------------------------------------


def forget_user(request: Request) -> ForgottenAnswer:
    """Forget a user."""
    return _forget(request, Forget(request.user, None, None))


def forget_basket(request: Request) -> ForgottenAnswer:
    """Forget a basket."""
    return _forget(request, Forget(request.user, request.basket, None))


def forget_basket_item(request: Request) -> ForgottenAnswer:
    """Forget an item of a basket."""
    return _forget(request, Forget(request.user, request.basket, request.item))


def forget_item(request: Request) -> ForgottenAnswer:
    """Forget an item of all baskets."""
    return _forget(request, Forget(request.user, None, request.item))


def _forget(request: Request, event: Forget) -> ForgottenAnswer:
    if not _finds(request.rec, event):
        return _forget_nothing(request, event)
    request.repeats.drop(event.user)
    return _forgotten(request, event)


def _forget_nothing(request: Request, event: Forget) -> ForgottenAnswer:
    """A receipt for nothing. Whoever asks again on the same day gets the earlier one."""
    number = request.repeats.earlier(event)
    if number is not None:
        return ForgottenAnswer(Removed(0, 0, 0), request.rec.receipts(number, number)[0], 0.0)
    try:
        answer = _forgotten(request, event)
    except UnbasketError:  # there may be something by now, whose erasure has failed
        request.repeats.drop(event.user)
        raise
    if not answer.removed.purchases:
        request.repeats.note(event, answer.receipt.number)
    return answer


def _forgotten(request: Request, event: Forget) -> ForgottenAnswer:
    [result], seconds = _apply(request, [event])
    erased = cast(Erased, result)
    return ForgottenAnswer(Removed.of(erased), erased.receipt, seconds)


def _finds(rec: DurableRecommender, event: Forget) -> bool:
    """Whether there is anything to forget."""
    return any(
        event.basket in (None, basket.basket) and (event.item is None or event.item in basket.items)
        for basket in _history(rec, event.user)
    )


def forget_category(request: Request) -> ForgottenManyAnswer:
    """Forget all items of a category, in one batch; of a very long history in several, between which others write."""
    start, user = time.perf_counter(), request.user
    wanted, history = _items_in(request.rec, request.path["category"]), _history(request.rec, user)
    held = list(dict.fromkeys(item for basket in history for item in basket.items if item in wanted))
    size = max(1, MAX_READ // max(1, _weight(history)))
    request.repeats.drop(user)
    erased: list[Erased] = []
    for first in range(0, len(held), size):
        results, _ = _apply(request, [Forget(user, None, item) for item in held[first : first + size]])
        erased += cast(list[Erased], results)
    seconds = time.perf_counter() - start
    total = Forgotten(*map(sum, zip(Forgotten(0, 0, 0), *erased, strict=True)))
    return ForgottenManyAnswer(Removed.of(total), [each.receipt for each in erased], seconds)


def _items_in(rec: DurableRecommender, category: str) -> set[Id]:
    return set(rec.catalog.categories().get(category, []))


def _history(rec: DurableRecommender, user: Id) -> list[Basket]:
    try:
        return rec.history(user)
    except UnknownUserError:
        return []


# Recommending ---------------------------------------------------------------------------------------------------


def recommend(request: Request) -> RecommendationsAnswer:
    """Recommend; popular items to somebody unknown."""
    query: RecommendationsQuery = request.query
    rec, user, ids = request.rec, request.user, LiveIdReader(request.rec)
    if query.explain and query.n > MAX_EXPLAINED:
        raise ApiError("invalid_query", f"with `explain`, `n` is at most {MAX_EXPLAINED}, not {query.n}")
    excluded = [ids.item(text) for text in query.exclude]
    try:
        found = rec.recommend(user, query.n, exclude=excluded, only_new=query.only_new)
        reasons = _reasons(rec, user, found) if query.explain else None
    except UnknownUserError:
        return RecommendationsAnswer(user, True, _popular(rec, query.n, excluded))
    return RecommendationsAnswer(user, False, _recommended(rec, found, reasons))


def recommend_quickly(request: Request) -> RecommendationsAnswer | None:
    """The same, or None if more than one search in the engine would be needed."""
    query: RecommendationsQuery = request.query
    if query.n > _FEW or query.explain or query.exclude:
        return None
    rec, user = request.rec, request.user
    try:
        found = rec.recommend(user, query.n, only_new=query.only_new)
    except UnknownUserError:
        return None
    return RecommendationsAnswer(user, False, _recommended(rec, found))


def _reasons(rec: DurableRecommender, user: Id, found: Sequence[tuple[Id, float]]) -> list[ExplanationAnswer]:
    return [_explained(rec, reason) for reason in rec.explain_many(user, [item for item, _ in found])]


def _recommended(
    rec: DurableRecommender, found: Sequence[tuple[Id, float]], reasons: list[ExplanationAnswer] | None = None
) -> list[Recommended]:
    products = [rec.catalog[item] for item, _ in found]
    why: Sequence[ExplanationAnswer | None] = reasons or [None] * len(found)
    return [
        Recommended(item, score, product.name, product.category, reason)
        for (item, score), product, reason in zip(found, products, why, strict=True)
    ]


def _popular(rec: DurableRecommender, n: int, excluded: Sequence[Id] = ()) -> list[Recommended]:
    banned = set(excluded)
    best = [(item, float(count)) for item, count in rec.popular(n + len(banned)) if item not in banned]
    return _recommended(rec, best[:n])


def _popular_without(rec: DurableRecommender, history: list[set[Id]], n: int) -> list[Recommended]:
    """What would be popular if this history were forgotten."""
    own = Counter(item for basket in history for item in basket)
    left = [(item, float(count - own[item])) for item, count in rec.popular(n + len(own)) if count > own[item]]
    return _recommended(rec, sorted(left, key=lambda pair: (-pair[1], sort_key(pair[0])))[:n])


def preview(request: Request) -> PreviewAnswer:
    """The recommendations as they would be after a change. Nothing is stored."""
    body: Preview = request.body
    query: HowManyQuery = request.query
    rec, user = request.rec, request.user
    held = _history(rec, user)
    history = [set(basket.items) for basket in held]
    if body.learn and not body.forget:
        changed = [*history, set(body.learn.items)]
    elif body.forget and not body.learn:
        changed = _left(rec, held, body.forget)
    else:
        raise ApiError("invalid_body", "a preview has either `forget` or `learn`")
    before = _for_history(rec, user, history, query.n)
    after = _for_history(rec, user, changed, query.n) if changed else _popular_without(rec, history, query.n)
    return PreviewAnswer(before, after, popular_before=not history, popular_after=not changed)


def _left(rec: DurableRecommender, history: list[Basket], part: ForgetPart) -> list[set[Id]]:
    """What a forget would leave of a history."""
    wanted = None if part.category is None else _items_in(rec, part.category)

    def goes(basket: Basket, item: Id) -> bool:
        return part.basket in (None, basket.basket) and part.item in (None, item) and (wanted is None or item in wanted)

    left = [{item for item in basket.items if not goes(basket, item)} for basket in history]
    return [basket for basket in left if basket]


def _for_history(rec: DurableRecommender, user: Id, history: list[set[Id]], n: int) -> list[Recommended]:
    return _recommended(rec, rec.recommend_for(history, n, user=user)) if history else _popular(rec, n)


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


# Looking inside -------------------------------------------------------------------------------------------------


def show(request: Request) -> UserAnswer:
    """Everything held about a user."""
    rec, user = request.rec, request.user
    baskets = [
        HeldBasket(basket.basket, basket.time, [described(rec, item) for item in basket.items])
        for basket in rec.history(user)
    ]
    return UserAnswer("unbasket user", 1, user, baskets)


def described(rec: DurableRecommender, item: Id) -> Item:
    """An item with its name and category."""
    product = rec.catalog[item]
    return Item(item, product.name, product.category)


def similar(request: Request) -> SimilarAnswer:
    """The nearest users."""
    query: HowManyQuery = request.query
    user = request.user
    return SimilarAnswer(user, [SimilarUser(*found) for found in request.rec.similar_users(user, query.n)])


def verify(request: Request) -> VerificationAnswer:
    """Compare with a retrain, bit by bit."""
    ok, users, mismatches = request.rec.verify(request.user)
    return VerificationAnswer(ok, users, list(mismatches))
