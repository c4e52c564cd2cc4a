"""Calls about one user: learn, forget, rename, suppress, show, verify."""

import time
import uuid
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import cast

from unbasket.domain.events import Event, Forget
from unbasket.domain.id_text import matches_id
from unbasket.domain.ids import Id
from unbasket.domain.results import Basket, Forgotten, Learned
from unbasket.errors import UnbasketError, UnknownUserError
from unbasket.service.api_keys import Role
from unbasket.service.errors import ApiError
from unbasket.service.request import Request
from unbasket.service.schemas.query_params import HowManyQuery
from unbasket.service.schemas.requests import (
    MAX_EVENTS,
    MAX_FORGETS,
    MAX_READ,
    ForgetEvent,
    LearnEvent,
    NewBasket,
    Renaming,
)
from unbasket.service.schemas.responses import (
    EventResult,
    EventsAnswer,
    ForgottenAnswer,
    ForgottenManyAnswer,
    HeldBasket,
    Item,
    LearnedAnswer,
    Removed,
    RenamedAnswer,
    SimilarAnswer,
    SimilarUser,
    SuppressedAnswer,
    UserAnswer,
    VerificationAnswer,
)
from unbasket.service.throttled_executor import Steps
from unbasket.store import DurableRecommender, Erased

_FEW = 10  # forgets that writers hardly wait for

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


def events(request: Request) -> Steps[EventsAnswer]:
    """Apply events, all or none."""
    body: list[LearnEvent | ForgetEvent] = request.body
    forgets = sum(isinstance(event, ForgetEvent) for event in body)
    if forgets < len(body):
        request.caller.check({Role.WRITE}, None)
    if forgets:
        request.caller.check({Role.PRIVACY}, None)
    if len(body) > MAX_EVENTS or forgets > MAX_FORGETS:
        raise too_many_events(f"{len(body):,} events, of which {forgets:,} forget,")
    apply = partial(_applied, request, body)
    return (yield apply) if forgets > _FEW else apply()


def _applied(request: Request, body: list[LearnEvent | ForgetEvent]) -> EventsAnswer:
    forgotten = Counter(event.user for event in body if isinstance(event, ForgetEvent))
    _check_cost(request.rec, forgotten)
    for user in forgotten:
        request.repeats.drop(user)
    results, seconds = _apply(request, [event.event() for event in body])
    return EventsAnswer([_event_result(result) for result in results], seconds)


def too_many_events(found: str) -> ApiError:
    """The refusal of what was found in a request."""
    return ApiError(
        "too_large",
        f"{found} are too many for one request: send at most {MAX_EVENTS:,}, of which at most {MAX_FORGETS:,} forget, "
        "and the rest in further requests",
    )


def _check_cost(rec: DurableRecommender, forgets: Counter[Id]) -> None:
    """Refuse what would keep other writers waiting: the proof of a forget reads all purchases of its user."""
    read = 0
    for user, count in forgets.items():
        read += count * _weight(history_of(rec, user))
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
        for basket in history_of(rec, event.user)
    )


def forget_category(request: Request) -> ForgottenManyAnswer:
    """Forget all items of a category, in one batch; of a very long history in several, between which others write."""
    start, user = time.perf_counter(), request.user
    wanted, history = set(request.rec.catalog.members(request.path["category"])), history_of(request.rec, user)
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


def history_of(rec: DurableRecommender, user: Id) -> list[Basket]:
    """The baskets of a user; none, if nothing is held about them."""
    try:
        return rec.history(user)
    except UnknownUserError:
        return []


# Renaming -------------------------------------------------------------------------------------------------------


def rename(request: Request) -> RenamedAnswer:
    """Merge a user into another."""
    body: Renaming = request.body
    request.repeats.drop(request.user)
    renamed = request.rec.rename(request.user, body.to)
    return RenamedAnswer(body.to, *renamed, renamed.receipt, renamed.seconds)


# Wishes ---------------------------------------------------------------------------------------------------------


def suppress(request: Request) -> SuppressedAnswer:
    """Never recommend an item to a user."""
    item = request.item
    return SuppressedAnswer(item, True, request.rec.suppress(request.user, item))


def allow(request: Request) -> SuppressedAnswer:
    """Let a suppressed item be recommended again: the one that the text in the path stands for."""
    rec, user, text = request.rec, request.user, request.path["item"]
    suppressed = rec.suppressed(user) if user in rec else []
    item = next((item for item in suppressed if matches_id(text, item)), request.item)
    return SuppressedAnswer(item, False, rec.allow(user, item))


# Looking inside -------------------------------------------------------------------------------------------------


def show(request: Request) -> UserAnswer:
    """Everything held about a user."""
    rec, user = request.rec, request.user
    baskets = [
        HeldBasket(basket.basket, basket.time, [described(rec, item) for item in basket.items])
        for basket in rec.history(user)
    ]
    return UserAnswer("unbasket user", 1, user, baskets, [described(rec, item) for item in rec.suppressed(user)])


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
