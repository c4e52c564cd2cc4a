"""Handlers about one user: learn, forget, rename, suppress, show, verify."""

import time
import uuid
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import cast

from unbasket.domain.events import Event, Forget
from unbasket.domain.id_text import spells
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
    EventsResponse,
    ForgottenManyResponse,
    ForgottenResponse,
    HeldBasket,
    Item,
    LearnedResponse,
    Removed,
    RenamedResponse,
    SimilarResponse,
    SimilarUser,
    SuppressedResponse,
    UserResponse,
    VerificationResponse,
)
from unbasket.service.throttled_executor import Steps
from unbasket.store import DurableRecommender, Erased

_FEW = 10  # forgets that do not delay other writers

# Learning -------------------------------------------------------------------------------------------------------


def learn(request: Request) -> LearnedResponse:
    """Learn a basket, or edit the basket with this id."""
    return _learn(request, request.basket)


def learn_new(request: Request) -> LearnedResponse:
    """Learn a basket under a generated id."""
    return _learn(request, str(uuid.uuid4()))


def _learn(request: Request, basket: Id) -> LearnedResponse:
    body: NewBasket = request.body
    result = request.rec.learn(request.user, body.items, basket=basket, time=body.time)
    request.results.append(result)
    return LearnedResponse(result.value, basket)


def events(request: Request) -> Steps[EventsResponse]:
    """Apply events, all or nothing."""
    body: list[LearnEvent | ForgetEvent] = request.body
    forgets = sum(isinstance(event, ForgetEvent) for event in body)
    if forgets < len(body):
        request.caller.check({Role.WRITE}, None)
    if forgets:
        request.caller.check({Role.PRIVACY}, None)
    if len(body) > MAX_EVENTS or forgets > MAX_FORGETS:
        raise too_many_events(f"{len(body):,} events, of which {forgets:,} forget,")
    apply = partial(_apply_batch, request, body)
    return (yield apply) if forgets > _FEW else apply()


def _apply_batch(request: Request, body: list[LearnEvent | ForgetEvent]) -> EventsResponse:
    forgotten = Counter(event.user for event in body if isinstance(event, ForgetEvent))
    _check_cost(request.rec, forgotten)
    for user in forgotten:
        request.empty_receipts.discard(user)
    results, seconds = _apply(request, [event.event() for event in body])
    return EventsResponse([_event_result(result) for result in results], seconds)


def too_many_events(found: str) -> ApiError:
    """Return the error for a request with too many events."""
    return ApiError(
        "too_large",
        f"{found} are too many for one request: send at most {MAX_EVENTS:,}, of which at most {MAX_FORGETS:,} forget, "
        "and the rest in further requests",
    )


def _check_cost(rec: DurableRecommender, forgets: Counter[Id]) -> None:
    """Raise if the forgets would block other writers: the proof of each reads all purchases of its user."""
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
    """Return the cost of reading a history, in purchases: a basket costs about as much as ten."""
    return sum(10 + len(basket.items) for basket in history)


def _event_result(result: Learned | Forgotten) -> EventResult:
    if isinstance(result, Learned):
        return EventResult(result=result.value)
    return EventResult(receipt=cast(Erased, result).receipt)


def _apply(request: Request, events: Sequence[Event]) -> tuple[list[Learned | Forgotten], float]:
    """Return the results of the events, and the seconds until they were durable."""
    start = time.perf_counter()
    results = request.rec.apply(events) if events else []
    request.results += results
    return results, time.perf_counter() - start


# Forgetting -----------------------------------------------------------------------------------------------------


def forget_user(request: Request) -> ForgottenResponse:
    """Forget a user."""
    return _forget(request, Forget(request.user, None, None))


def forget_basket(request: Request) -> ForgottenResponse:
    """Forget a basket."""
    return _forget(request, Forget(request.user, request.basket, None))


def forget_basket_item(request: Request) -> ForgottenResponse:
    """Forget an item of a basket."""
    return _forget(request, Forget(request.user, request.basket, request.item))


def forget_item(request: Request) -> ForgottenResponse:
    """Forget an item of all baskets."""
    return _forget(request, Forget(request.user, None, request.item))


def _forget(request: Request, event: Forget) -> ForgottenResponse:
    if not _matches(request.rec, event):
        return _forget_nothing(request, event)
    request.empty_receipts.discard(event.user)
    return _forgotten(request, event)


def _forget_nothing(request: Request, event: Forget) -> ForgottenResponse:
    """Return an empty receipt: today's for the same event, if there is one."""
    number = request.empty_receipts.find(event)
    if number is not None:
        return ForgottenResponse(Removed(0, 0, 0), request.rec.receipts(number, number)[0], 0.0)
    try:
        response = _forgotten(request, event)
    except UnbasketError:  # a basket may have been learned since, and its erasure failed
        request.empty_receipts.discard(event.user)
        raise
    if not response.removed.purchases:
        request.empty_receipts.add(event, response.receipt.number)
    return response


def _forgotten(request: Request, event: Forget) -> ForgottenResponse:
    [result], seconds = _apply(request, [event])
    erased = cast(Erased, result)
    return ForgottenResponse(Removed.of(erased), erased.receipt, seconds)


def _matches(rec: DurableRecommender, event: Forget) -> bool:
    """Return whether there is anything to forget."""
    return any(
        event.basket in (None, basket.basket) and (event.item is None or event.item in basket.items)
        for basket in history_of(rec, event.user)
    )


def forget_category(request: Request) -> ForgottenManyResponse:
    """Forget all items of a category in one batch, or of a very long history in several, between which others write."""
    start, user = time.perf_counter(), request.user
    wanted, history = set(request.rec.catalog.members(request.path["category"])), history_of(request.rec, user)
    matching = list(dict.fromkeys(item for basket in history for item in basket.items if item in wanted))
    size = max(1, MAX_READ // max(1, _weight(history)))
    request.empty_receipts.discard(user)
    erased: list[Erased] = []
    for first in range(0, len(matching), size):
        results, _ = _apply(request, [Forget(user, None, item) for item in matching[first : first + size]])
        erased += cast(list[Erased], results)
    seconds = time.perf_counter() - start
    total = Forgotten(*map(sum, zip(Forgotten(0, 0, 0), *erased, strict=True)))
    return ForgottenManyResponse(Removed.of(total), [each.receipt for each in erased], seconds)


def history_of(rec: DurableRecommender, user: Id) -> list[Basket]:
    """Return the baskets of a user, known or not."""
    try:
        return rec.history(user)
    except UnknownUserError:
        return []


# Renaming -------------------------------------------------------------------------------------------------------


def rename(request: Request) -> RenamedResponse:
    """Merge a user into another."""
    body: Renaming = request.body
    request.empty_receipts.discard(request.user)
    renamed = request.rec.rename(request.user, body.to)
    return RenamedResponse(body.to, *renamed, renamed.receipt, renamed.seconds)


# Suppressions ---------------------------------------------------------------------------------------------------------


def suppress(request: Request) -> SuppressedResponse:
    """Suppress an item for a user."""
    item = request.item
    return SuppressedResponse(item, True, request.rec.suppress(request.user, item))


def allow(request: Request) -> SuppressedResponse:
    """Allow a suppressed item again: the one that the text in the path means."""
    rec, user, text = request.rec, request.user, request.path["item"]
    suppressed = rec.suppressed(user) if user in rec else []
    item = next((item for item in suppressed if spells(text, item)), request.item)
    return SuppressedResponse(item, False, rec.allow(user, item))


# Reading -------------------------------------------------------------------------------------------------


def show(request: Request) -> UserResponse:
    """Return everything stored about a user."""
    rec, user = request.rec, request.user
    baskets = [
        HeldBasket(basket.basket, basket.time, [described(rec, item) for item in basket.items])
        for basket in rec.history(user)
    ]
    return UserResponse("unbasket user", 1, user, baskets, [described(rec, item) for item in rec.suppressed(user)])


def described(rec: DurableRecommender, item: Id) -> Item:
    """Return an item with its name and category."""
    product = rec.catalog[item]
    return Item(item, product.name, product.category)


def similar(request: Request) -> SimilarResponse:
    """Return the nearest users."""
    query: HowManyQuery = request.query
    user = request.user
    return SimilarResponse(user, [SimilarUser(*found) for found in request.rec.similar_users(user, query.n)])


def verify(request: Request) -> VerificationResponse:
    """Compare the user's model with a retrained one, bit by bit."""
    ok, users, mismatches = request.rec.verify(request.user)
    return VerificationResponse(ok, users, list(mismatches))
