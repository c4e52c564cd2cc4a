"""The table of calls: what is routed, who may call it and what OpenAPI says are all read from here."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import msgspec

from unbasket.service.api_keys import Role
from unbasket.service.errors import CODES
from unbasket.service.fast_path import Quick
from unbasket.service.handlers import catalog, ops, privacy, recommendations, users
from unbasket.service.metrics import CONTENT_TYPE
from unbasket.service.request import Request
from unbasket.service.schemas import query_params, requests, responses
from unbasket.store import Receipt

JSON, NDJSON = "application/json", "application/x-ndjson"

Handler = Callable[[Request], Any]
"""Returns the answer, or the `Steps` to it if they may take long."""
Place = Literal["loop", "reader", "writer"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Call:
    """One call. Without roles, it is open to everybody; `own` also opens it to the shopper whom it is about.

    A handler runs where nobody else has to wait for it: on the event loop only if it always takes next to no time, and
    there is no body. What `quick` can answer may be answered in the express lane.
    """

    method: str
    path: str
    summary: str
    roles: frozenset[Role]
    own: bool
    handler: Handler
    answer: Any
    status: int
    query: type[msgspec.Struct]
    body: Any
    body_is_optional: bool
    takes_lines: bool
    place: Place
    quick: Quick | None
    media_type: str
    refusals: tuple[str, ...]

    @cached_property
    def places(self) -> list[str]:
        """The names of the ids in the path."""
        return re.findall(r"{(\w+)}", self.path)

    @property
    def errors(self) -> list[str]:
        """The codes of all errors that it may be answered with, by status; `refusals` are those of few calls."""
        occasions = {
            "any": True,
            "key": bool(self.roles),
            "path": bool(self.places),
            "body": self.body is not None,
            "thread": self.place != "loop",
            "write": self.place == "writer",
        }
        return [code for code, each in CODES.items() if occasions.get(each.occasion) or code in self.refusals]

    @property
    def name(self) -> str:
        """The call in words that need no escaping, for OpenAPI."""
        return self.handler.__name__


def _call(
    line: str,
    who: str,
    summary: str,
    handler: Handler,
    answer: Any,
    *,
    status: int = 200,
    query: type[msgspec.Struct] = query_params.NoQuery,
    body: Any = None,
    body_is_optional: bool = False,
    takes_lines: bool = False,
    place: Place = "reader",
    quick: Quick | None = None,
    media_type: str = JSON,
    refusals: tuple[str, ...] = (),
) -> Call:
    method, path = line.split()
    words = who.split()
    own = "own" in words
    return Call(
        method=method,
        path=path,
        summary=summary,
        roles=frozenset(Role(word) for word in words if word != "own"),
        own=own,
        handler=handler,
        answer=answer,
        status=status,
        query=query,
        body=body,
        body_is_optional=body_is_optional,
        takes_lines=takes_lines,
        place=place,
        quick=quick,
        media_type=media_type,
        refusals=refusals,
    )


CALLS = (
    _call(
        "PUT /v1/users/{user}/baskets/{basket}",
        "write",
        "Learn a basket, or edit the one of this id",
        users.learn,
        responses.LearnedAnswer,
        body=requests.NewBasket,
        place="writer",
    ),
    _call(
        "POST /v1/users/{user}/baskets",
        "write",
        "Learn a basket under an id that the service gives",
        users.learn_new,
        responses.LearnedAnswer,
        status=201,
        body=requests.NewBasket,
        place="writer",
    ),
    _call(
        "POST /v1/events",
        "write privacy",
        "Learn and forget in bulk, all or nothing: learns need the role write, forgets the role privacy",
        users.events,
        responses.EventsAnswer,
        body=requests.Events,
        takes_lines=True,
        place="writer",
    ),
    _call(
        "DELETE /v1/users/{user}",
        "privacy own",
        "Forget the user",
        users.forget_user,
        responses.ForgottenAnswer,
        place="writer",
    ),
    _call(
        "DELETE /v1/users/{user}/baskets/{basket}",
        "privacy own",
        "Forget a basket",
        users.forget_basket,
        responses.ForgottenAnswer,
        place="writer",
    ),
    _call(
        "DELETE /v1/users/{user}/baskets/{basket}/items/{item}",
        "privacy own",
        "Forget an item of a basket",
        users.forget_basket_item,
        responses.ForgottenAnswer,
        place="writer",
    ),
    _call(
        "DELETE /v1/users/{user}/items/{item}",
        "privacy own",
        "Forget an item of all of the user's baskets",
        users.forget_item,
        responses.ForgottenAnswer,
        place="writer",
    ),
    _call(
        "DELETE /v1/users/{user}/categories/{category}",
        "privacy own",
        "Forget all items of a category, in one batch",
        users.forget_category,
        responses.ForgottenManyAnswer,
        place="writer",
    ),
    _call(
        "GET /v1/users/{user}/recommendations",
        "read own",
        "Recommend items for the next basket; popular ones if nothing is held about the user",
        recommendations.recommend,
        responses.RecommendationsAnswer,
        query=query_params.RecommendationsQuery,
        quick=recommendations.recommend_together,
    ),
    _call(
        "POST /v1/recommendations",
        "read",
        "Recommend to a visitor by baskets and a cart, of which nothing is stored",
        recommendations.recommend_to_visitor,
        responses.VisitorAnswer,
        body=requests.Visitor,
    ),
    _call(
        "POST /v1/users/{user}/preview",
        "read own",
        "How the recommendations would change, before anything is forgotten or learned",
        recommendations.preview,
        responses.PreviewAnswer,
        query=query_params.HowManyQuery,
        body=requests.PreviewBody,
    ),
    _call(
        "GET /v1/users/{user}/explanations/{item}",
        "read own",
        "Why an item scores what it does",
        recommendations.explain,
        responses.ExplanationAnswer,
        refusals=("unknown_user",),
    ),
    _call(
        "GET /v1/users/{user}",
        "privacy own",
        "Everything held about the user",
        users.show,
        responses.UserAnswer,
        refusals=("unknown_user",),
    ),
    _call(
        "POST /v1/users/{user}/rename",
        "privacy",
        "Merge the user into another, such as a guest into an account",
        users.rename,
        responses.RenamedAnswer,
        body=requests.Renaming,
        place="writer",
        refusals=("unknown_user",),
    ),
    _call(
        "PUT /v1/users/{user}/suppressed/{item}",
        "write privacy own",
        "Never recommend an item to the user",
        users.suppress,
        responses.SuppressedAnswer,
        place="writer",
        refusals=("unknown_user",),
    ),
    _call(
        "DELETE /v1/users/{user}/suppressed/{item}",
        "privacy own",
        "Let a suppressed item be recommended again",
        users.allow,
        responses.SuppressedAnswer,
        place="writer",
    ),
    _call(
        "GET /v1/users/{user}/similar",
        "admin",
        "The nearest other users",
        users.similar,
        responses.SimilarAnswer,
        query=query_params.HowManyQuery,
        refusals=("unknown_user",),
    ),
    _call(
        "POST /v1/users/{user}/verify",
        "privacy own",
        "Compare the model of the user with a retrain, bit by bit",
        users.verify,
        responses.VerificationAnswer,
    ),
    _call(
        "GET /v1/users",
        "privacy",
        "Users, a page at a time",
        catalog.users,
        responses.UsersAnswer,
        query=query_params.UsersQuery,
    ),
    _call(
        "GET /v1/items",
        "read",
        "Items with names and categories, a page at a time",
        catalog.items,
        responses.ItemsAnswer,
        query=query_params.ItemsQuery,
    ),
    _call(
        "GET /v1/items/availability",
        "read",
        "Items that are hidden, a page at a time",
        catalog.hidden,
        responses.HiddenAnswer,
        query=query_params.PageQuery,
    ),
    _call(
        "POST /v1/items/availability",
        "write",
        "Hide items that are out of stock, and show others again, all or nothing",
        catalog.restock,
        responses.RestockedAnswer,
        body=requests.Availability,
        place="writer",
    ),
    _call("GET /v1/categories", "read", "Categories of items", catalog.categories, responses.CategoriesAnswer),
    _call(
        "GET /v1/popular",
        "read",
        "The items in most baskets",
        catalog.popular,
        responses.PopularAnswer,
        query=query_params.PopularQuery,
    ),
    _call(
        "GET /v1/receipts",
        "privacy",
        "Receipts of what was forgotten, a page at a time",
        privacy.receipts,
        responses.ReceiptsAnswer,
        query=query_params.ReceiptsQuery,
    ),
    _call(
        "GET /v1/receipts/{number}",
        "privacy",
        "One receipt",
        privacy.receipt,
        Receipt,
        refusals=("unknown_receipt",),
    ),
    _call(
        "POST /v1/receipts/verify",
        "privacy",
        "Check all receipts, and that given ones are among them",
        privacy.verify_receipts,
        responses.AuditAnswer,
        body=requests.GivenReceipts,
        body_is_optional=True,
    ),
    _call(
        "POST /v1/retention",
        "privacy",
        "Count what rules of retention forget, or forget it",
        privacy.retention,
        responses.RetentionAnswer,
        body=requests.RetentionRequest,
        place="writer",
        refusals=("invalid_rules",),
    ),
    _call("GET /v1/params", "admin", "The parameters of the model", ops.params, responses.ModelParams),
    _call(
        "PUT /v1/params",
        "admin",
        "Change parameters of the model, which goes on answering until the new one is complete",
        ops.change_params,
        responses.ModelParams,
        body=requests.ChangedParams,
        place="writer",
        refusals=("params_changing",),
    ),
    _call("GET /v1/stats", "admin", "Live figures and parameters", catalog.stats, responses.StatsAnswer),
    _call(
        "GET /v1/me",
        "read write privacy admin own",
        "Who asks: the name and the roles of a key, or the shopper of a token",
        ops.me,
        responses.MeAnswer,
        place="loop",
    ),
    _call(
        "POST /v1/tokens",
        "privacy",
        "A short-lived token for one shopper",
        privacy.token,
        responses.TokenAnswer,
        status=201,
        body=requests.TokenRequest,
    ),
    _call("GET /healthz", "", "Whether the process answers", ops.health, responses.HealthAnswer, place="loop"),
    _call(
        "GET /readyz",
        "",
        "Whether the shop is loaded; 503 with the progress while it is not",
        ops.ready,
        responses.ReadyAnswer,
        place="loop",
    ),
    _call("GET /metrics", "read", "Figures for Prometheus", ops.metrics, bytes, media_type=CONTENT_TYPE),
)
