"""The client: each verb of `Recommender` as a request to the service."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict
from os import PathLike
from typing import Any, Literal, Self
from urllib.parse import quote

import msgspec

from unbasket.client import decoding
from unbasket.client.batch import Batch, event_line
from unbasket.client.results import (
    Caller,
    ErasedMany,
    Preview,
    ProofVerdict,
    ReceiptAudit,
    Recommendations,
    Retention,
    Token,
)
from unbasket.client.transport import Transport
from unbasket.domain.events import Event, Forget, Learn, rechecked
from unbasket.domain.id_text import parse_id
from unbasket.domain.ids import Id, Kind, checked
from unbasket.domain.results import (
    AvailabilityChange,
    Basket,
    Explanation,
    ItemCount,
    Learned,
    LearnedWeights,
    Neighbor,
    Product,
    Verification,
)
from unbasket.domain.times import Time, as_number
from unbasket.domain.validation import Filters, checked_cart, checked_history, checked_selection
from unbasket.params import Params
from unbasket.store import Erased, ErasedId, Receipt

_PAGE = 1000  # the most that the service returns at once


class Client:
    """A client of one service, with the verbs of `Recommender`; a context manager, safe to share among threads.

    `key` is an API key or a shopper's token. `ca` is a file of certificates to trust instead of the system's, and
    `certificate` has the files of the client's own certificate and its private key. `timeout` limits each wait for the
    network, in seconds.

    A request that fails for the moment (no connection, or 429, 502, 503, 504) is repeated up to `retries` times, after
    the wait that the service asks for. That is safe: a repeated learn changes nothing, and a repeated forget finds
    nothing more to remove. `learn_new` and `rename` are repeated only if they were not sent, or changed nothing.

    Arguments are checked before they are sent, with the engine's errors. An error of the service is a `ServiceError`,
    and often also the engine's exception, such as `UnknownUserError`.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        ca: str | PathLike[str] | None = None,
        certificate: tuple[str | PathLike[str], str | PathLike[str]] | None = None,
        timeout: float = 40,
        retries: int = 3,
    ) -> None:
        self._transport = Transport(url, key, ca=ca, certificate=certificate, timeout=timeout, retries=retries)
        self._send = self._transport.send

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Learning and forgetting ------------------------------------------------------------------------------------

    def learn(self, user: Id, items: Iterable[Id], *, basket: Id, time: Time | None = None) -> Learned | None:
        """Learn a basket, or edit the one of this id. Returns None if the key may not read.

        Without a time, the service takes its own clock's.
        """
        event = Learn.checked(user, items, basket, as_number(time))
        path = _path("users", event.user, "baskets", event.basket)
        return decoding.learned(self._send("PUT", path, body=_new_basket(event)))

    def learn_new(self, user: Id, items: Iterable[Id], *, time: Time | None = None) -> Id:
        """Learn a basket under an id that the service gives, and return the id. Prefer `learn`, which is repeatable."""
        event = Learn.checked(user, items, 0, as_number(time))
        path = _path("users", event.user, "baskets")
        basket: Id = self._send("POST", path, body=_new_basket(event), is_repeatable=False)["basket"]
        return basket

    def forget(self, user: Id, *, basket: Id | None = None, item: Id | None = None) -> Erased:
        """Forget a user, a basket, an item of a basket, or an item of all the user's baskets.

        Returns when the bytes are gone from every file of the service, with the receipt. If a lost response made the
        client repeat the request, the receipt may say that nothing was left to remove. The `secret` is empty if the
        receipt is that of an earlier request of the same day, which found nothing either.
        """
        event = Forget.checked(user, basket, item)
        parts: list[Id] = ["users", event.user]
        parts += [] if event.basket is None else ["baskets", event.basket]
        parts += [] if event.item is None else ["items", event.item]
        return decoding.erased(self._send("DELETE", _path(*parts)))

    def forget_category(self, user: Id, category: str) -> ErasedMany:
        """Forget all items of a category."""
        return decoding.erased_many(self._send("DELETE", _user(user) + f"/categories/{quote(category, safe='')}"))

    def apply(self, events: Iterable[Event]) -> list[Learned | Erased | None]:
        """Apply at most 10,000 events in one request, in order: all of them, or none if one is invalid."""
        return decoding.event_results(self._post_events(b"".join(map(event_line, rechecked(events)))))

    def batch(self) -> Batch:
        """Return a batch, which takes any number of events and sends them in bulk."""
        return Batch(self._post_events)

    def _post_events(self, lines: bytes) -> Any:
        return self._send("POST", "/v1/events", body=lines)

    def rename(self, user: Id, other: Id) -> ErasedId:
        """Merge a user, such as a guest, into another, such as an account."""
        body = {"to": checked(other, "user")}
        return decoding.erased_id(self._send("POST", _user(user) + "/rename", body=body, is_repeatable=False))

    def suppress(self, user: Id, item: Id) -> bool | None:
        """Never again recommend an item to a user. Returns whether that is new, or None if the key may not read."""
        changed: bool | None = self._send("PUT", _suppression(user, item))["changed"]
        return changed

    def allow(self, user: Id, item: Id) -> bool:
        """Undo `suppress`, without a trace. Returns whether the item was suppressed."""
        changed: bool = self._send("DELETE", _suppression(user, item))["changed"]
        return changed

    # Recommending -----------------------------------------------------------------------------------------------

    def recommend(
        self,
        user: Id,
        n: int = 10,
        *,
        exclude: Collection[Id] | None = None,
        only_new: bool = False,
        only: Collection[Id] | None = None,
        category: str | Collection[str] | None = None,
        cart: Collection[Id] | None = None,
        explain: bool = False,
        fields: Collection[str] = (),
    ) -> Recommendations:
        """Return the n best items for the user's next basket, best first; popular ones if the user is unknown.

        Filters and cart are as in `Recommender.recommend`. `fields` names further columns of the catalog, and `explain`
        asks for explanations of at most 100 items.
        """
        query = _filters(n, exclude, only, category)
        query |= {"only_new": only_new, "cart": _texts(checked_cart(cart) or ())}
        query |= {"explain": explain, "fields": list(fields)}
        found = self._send("GET", _user(user) + "/recommendations", query=query)
        return decoding.recommendations(found["recommendations"], popular=found["popular"])

    def recommend_for(
        self,
        baskets: Sequence[Iterable[Id]],
        n: int = 10,
        *,
        exclude: Collection[Id] | None = None,
        only_new: bool = False,
        only: Collection[Id] | None = None,
        category: str | Collection[str] | None = None,
        cart: Collection[Id] | None = None,
        fields: Collection[str] = (),
    ) -> Recommendations:
        """Recommend to a visitor by baskets, oldest first, that are not stored; popular items without any."""
        filters = Filters.checked(exclude or (), only, category)
        assert filters is not None
        body = {
            "baskets": checked_history(baskets, least=0),
            "cart": checked_cart(cart) or [],
            "n": n,
            "only_new": only_new,
            "exclude": filters.exclude,
            "only": None if filters.only is None else list(filters.only),
            "category": filters.categories,
            "fields": list(fields),
        }
        found = self._send("POST", "/v1/recommendations", body=body)
        return decoding.recommendations(found["recommendations"], popular=found["popular"])

    def preview_learn(self, user: Id, items: Iterable[Id], n: int = 10) -> Preview:
        """Preview how a basket would change the user's recommendations."""
        return self._preview(user, {"learn": {"items": checked_selection(items, "items")}}, n)

    def preview_forget(
        self, user: Id, n: int = 10, *, basket: Id | None = None, item: Id | None = None, category: str | None = None
    ) -> Preview:
        """Preview how a forget would change the user's recommendations."""
        _, basket, item = Forget.checked(user, basket, item)
        return self._preview(user, {"forget": {"basket": basket, "item": item, "category": category}}, n)

    def _preview(self, user: Id, change: Any, n: int) -> Preview:
        found = self._send("POST", _user(user) + "/preview", query={"n": n}, body=change)
        before, after = (
            decoding.recommendations(found[moment], popular=found[f"popular_{moment}"])
            for moment in ("before", "after")
        )
        return Preview(before, after)

    def popular(
        self,
        n: int = 10,
        *,
        exclude: Collection[Id] | None = None,
        only: Collection[Id] | None = None,
        category: str | Collection[str] | None = None,
        since: Time | None = None,
    ) -> list[ItemCount]:
        """Return the n items in most baskets, by exact count; with `since`, in baskets of that time or later."""
        query = _filters(n, exclude, only, category) | ({} if since is None else {"since": as_number(since)})
        found = self._send("GET", "/v1/popular", query=query)["items"]
        return [ItemCount(each["item"], each["baskets"]) for each in found]

    def explain(self, user: Id, item: Id) -> Explanation:
        """Split the item's score for the user into the share of each of their baskets, and the neighbors' share."""
        return decoding.explanation(self._send("GET", _path("users", user, "explanations", item)))

    def similar_users(self, user: Id, n: int = 10) -> list[Neighbor]:
        """Return the n nearest other users and their Euclidean distances."""
        found = self._send("GET", _user(user) + "/similar", query={"n": n})["similar"]
        return [Neighbor(each["user"], each["distance"]) for each in found]

    # Reading ----------------------------------------------------------------------------------------------------

    def history(self, user: Id) -> list[Basket]:
        """Return all baskets of the user, oldest first."""
        return decoding.history(self.export(user))

    def suppressed(self, user: Id) -> list[Id]:
        """Return the items that the user has suppressed."""
        return [each["item"] for each in self.export(user)["suppressed"]]

    def export(self, user: Id) -> dict[str, Any]:
        """Return everything held about the user, portable: the JSON of `unbasket export`, with a proof of it."""
        found: dict[str, Any] = self._send("GET", _user(user))
        return found

    def verify(self, user: Id) -> Verification:
        """Compare the live model of the user with a retrain from the remaining baskets, bit by bit."""
        ok, users, mismatches = self._send("POST", _user(user) + "/verify").values()
        return Verification(ok, users, tuple(mismatches))

    def users(self, prefix: str = "") -> Iterator[Id]:
        """Iterate over the users whose ids start with `prefix`, a page at a time."""
        return self._pages("/v1/users", "users", prefix=prefix)

    def items(self, query: str = "") -> Iterator[Product]:
        """Iterate over the items whose names or ids contain `query`, a page at a time."""
        return map(decoding.product, self._pages("/v1/items", "items", query=query))

    def categories(self) -> dict[str, int]:
        """Return the number of items in each category."""
        return {each["category"]: each["items"] for each in self._send("GET", "/v1/categories")["categories"]}

    def _pages(self, path: str, name: str, **query: Any) -> Iterator[Any]:
        query["limit"] = _PAGE
        while True:
            page = self._send("GET", path, query=query)
            yield from page[name]
            if page["next"] is None:
                return
            query["after"] = page["next"]

    # Availability -----------------------------------------------------------------------------------------------

    def hide(self, items: Iterable[Id]) -> int:
        """Stop recommending these items until they are shown again. Returns how many were not hidden before."""
        return self.set_availability(hide=items).hidden

    def show(self, items: Iterable[Id]) -> int:
        """Undo `hide` for these items. Returns how many were hidden before."""
        return self.set_availability(show=items).shown

    def set_availability(self, *, hide: Iterable[Id] = (), show: Iterable[Id] = ()) -> AvailabilityChange:
        """Hide items and show others: all of them, or none if one is invalid."""
        body = {"hide": checked_selection(hide, "hide"), "show": checked_selection(show, "show")}
        return AvailabilityChange(**self._send("POST", "/v1/items/availability", body=body))

    def hidden(self) -> Iterator[Id]:
        """Iterate over the hidden items, a page at a time."""
        return self._pages("/v1/items/availability", "hidden")

    # Privacy ----------------------------------------------------------------------------------------------------

    def receipts(self, order: Literal["oldest", "newest"] = "oldest") -> Iterator[Receipt]:
        """Iterate over all receipts, a page at a time."""
        return map(decoding.receipt, self._pages("/v1/receipts", "receipts", order=order))

    def receipt(self, number: int) -> Receipt:
        """Return the receipt of this number."""
        return decoding.receipt(self._send("GET", f"/v1/receipts/{number:d}"))

    def verify_receipts(self, receipts: Iterable[Receipt] | None = None) -> ReceiptAudit:
        """Verify all receipts of the service, or check given ones against them."""
        body = None if receipts is None else {"receipts": list(receipts)}
        return msgspec.convert(self._send("POST", "/v1/receipts/verify", body=body), ReceiptAudit)

    def checkpoint(self) -> str:
        """Return a signed checkpoint of all receipts and users, for an auditor to keep."""
        text: str = self._send("GET", "/v1/checkpoint", is_text=True)
        return text

    def prove(self, user: Id) -> dict[str, Any]:
        """Prove that the user's baskets and suppressions in the answer are all that is held about them.

        The answer is JSON with a checkpoint. Anyone can check it offline: `python -m unbasket.verifier FILE`.
        """
        proof: dict[str, Any] = self.export(user)["proof"]
        return proof

    def prove_absence(self, user: Id) -> dict[str, Any]:
        """Prove that nothing is held about a user; see `prove`."""
        proof: dict[str, Any] = self._send("GET", _user(user) + "/absence")
        return proof

    def prove_receipt(self, number: int) -> dict[str, Any]:
        """Prove that a receipt is in the log; see `prove`.

        Its requester can add `user` and `secret` to the answer, to prove that the receipt is about them.
        """
        proof: dict[str, Any] = self._send("GET", f"/v1/receipts/{number:d}/proof")
        return proof

    def verify_proof(self, text: str) -> ProofVerdict:
        """Have the service verify the content of a file: a proof, a checkpoint or receipts.

        `unbasket.verifier.verify` does the same without asking the service.
        """
        return ProofVerdict(**self._send("POST", "/v1/proofs/verify", body={"text": text}))

    def retain(self, rules: str, *, run: bool = False) -> Retention:
        """Count the purchases that retention rules in TOML would forget; with `run`, forget them."""
        found = self._send("POST", "/v1/retention", body={"rules": rules, "run": run})
        return msgspec.convert(found | {"forgotten": list(found["forgotten"].values())}, Retention)

    def token(self, user: Id, seconds: int = 600) -> Token:
        """Return a token with which one shopper can see and forget their own data, for this many seconds."""
        return Token(**self._send("POST", "/v1/tokens", body={"user": checked(user, "user"), "seconds": seconds}))

    # The model and the service ----------------------------------------------------------------------------------

    def params(self) -> Params:
        """Return the parameters of the model."""
        return Params(**self._send("GET", "/v1/params"))

    def change_params(self, params: Params) -> None:
        """Rebuild the model with other parameters; the old model answers until the new one is complete."""
        self._send("PUT", "/v1/params", body=asdict(params))

    def learned(self) -> LearnedWeights | None:
        """Return the weights that the model has learned; None with a number for alpha."""
        return decoding.learned_weights(self._send("GET", "/v1/learned"))

    def id_types(self) -> dict[Kind, Literal["number", "text"] | None]:
        """Return the type of each kind of id, or None without any."""
        found: dict[Kind, Literal["number", "text"] | None] = self._send("GET", "/v1/ids")
        return found

    def change_ids(
        self,
        *,
        user: Literal["text"] | None = None,
        basket: Literal["text"] | None = None,
        item: Literal["text"] | None = None,
    ) -> None:
        """Change ids of these kinds from numbers to texts; the old ids answer until all are changed."""
        self._send("PUT", "/v1/ids", body={"user": user, "basket": basket, "item": item})

    def stats(self) -> dict[str, Any]:
        """Return the service's statistics of the last minute and its sizes, as the HTTP API describes them."""
        found: dict[str, Any] = self._send("GET", "/v1/stats")
        return found

    def me(self) -> Caller:
        """Return the caller: the name and roles of the key, or the shopper of the token."""
        found = self._send("GET", "/v1/me")
        return Caller(found["key"], found["shopper"], frozenset(found["roles"]))


def _text(name: Id) -> str:
    r"""Return an id as text that the service parses to the same id: in JSON's quotes if it looks like another one.

    >>> [_text(name) for name in (17, "17", "ann", '"ann"', "..")]
    ['17', '"17"', 'ann', '"\\"ann\\""', '".."']
    """
    text = str(name)
    is_plain = parse_id(text) == name and text not in (".", "..")  # which a URL takes for folders
    return text if is_plain else json.dumps(text, ensure_ascii=False)


def _texts(ids: Iterable[Id]) -> list[str]:
    return [_text(name) for name in ids]


_FOLDERS: dict[Id, Kind] = {
    "users": "user",
    "baskets": "basket",
    "items": "item",
    "explanations": "item",
    "suppressed": "item",
}


def _path(*parts: Id) -> str:
    """Return a path of folders, each followed by an id."""
    segments = [
        str(part) if place % 2 == 0 else quote(_text(checked(part, _FOLDERS[parts[place - 1]])), safe="")
        for place, part in enumerate(parts)
    ]
    return "/".join(["/v1", *segments])


def _user(user: Id) -> str:
    return _path("users", user)


def _suppression(user: Id, item: Id) -> str:
    return _path("users", user, "suppressed", item)


def _new_basket(event: Learn) -> dict[str, Any]:
    return {"items": event.items} | ({} if event.time is None else {"time": event.time})


def _filters(
    n: int, exclude: Collection[Id] | None, only: Collection[Id] | None, category: str | Collection[str] | None
) -> dict[str, Any]:
    """Return filters as query parameters. Empty ones can't be sent, so n is 0 if they allow no item."""
    filters = Filters.checked(exclude or (), only, category)
    assert filters is not None
    allows_none = filters.only in ([], frozenset()) or filters.categories == []
    return {
        "n": 0 if allows_none else n,
        "exclude": _texts(filters.exclude),
        "only": _texts(filters.only or ()),
        "category": filters.categories or [],
    }
