"""The table of calls: what is routed, who may call it and what OpenAPI says are all read from here."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import msgspec

from unbasket.service import lists, operations, privacy, recommending, shoppers
from unbasket.service.access import Role
from unbasket.service.errors import CODES
from unbasket.service.express import Quick
from unbasket.service.metrics import CONTENT_TYPE
from unbasket.service.request import Request
from unbasket.service.shapes import answers, bodies, queries
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
    query: type[msgspec.Struct] = queries.NoQuery,
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
        shoppers.learn,
        answers.LearnedAnswer,
        body=bodies.NewBasket,
        place="writer",
    ),
    _call(
        "POST /v1/users/{user}/baskets",
        "write",
        "Learn a basket under an id that the service gives",
        shoppers.learn_new,
        answers.LearnedAnswer,
        status=201,
        body=bodies.NewBasket,
        place="writer",
    ),
    _call(
        "POST /v1/events",
        "write privacy",
        "Learn and forget in bulk, all or nothing: learns need the role write, forgets the role privacy",
        shoppers.events,
        answers.EventsAnswer,
        body=bodies.Events,
        takes_lines=True,
        place="writer",
    ),
    _call(
        "DELETE /v1/users/{user}",
        "privacy own",
        "Forget the user",
        shoppers.forget_user,
        answers.ForgottenAnswer,
        place="writer",
    ),
    _call(
        "DELETE /v1/users/{user}/baskets/{basket}",
        "privacy own",
        "Forget a basket",
        shoppers.forget_basket,
        answers.ForgottenAnswer,
        place="writer",
    ),
    _call(
        "DELETE /v1/users/{user}/baskets/{basket}/items/{item}",
        "privacy own",
        "Forget an item of a basket",
        shoppers.forget_basket_item,
        answers.ForgottenAnswer,
        place="writer",
    ),
    _call(
        "DELETE /v1/users/{user}/items/{item}",
        "privacy own",
        "Forget an item of all of the user's baskets",
        shoppers.forget_item,
        answers.ForgottenAnswer,
        place="writer",
    ),
    _call(
        "DELETE /v1/users/{user}/categories/{category}",
        "privacy own",
        "Forget all items of a category, in one batch",
        shoppers.forget_category,
        answers.ForgottenManyAnswer,
        place="writer",
    ),
    _call(
        "GET /v1/users/{user}/recommendations",
        "read own",
        "Recommend items for the next basket; popular ones if nothing is held about the user",
        recommending.recommend,
        answers.RecommendationsAnswer,
        query=queries.RecommendationsQuery,
        quick=recommending.recommend_together,
    ),
    _call(
        "POST /v1/recommendations",
        "read",
        "Recommend to a visitor by baskets and a cart, of which nothing is stored",
        recommending.recommend_to_visitor,
        answers.VisitorAnswer,
        body=bodies.Visitor,
    ),
    _call(
        "POST /v1/users/{user}/preview",
        "read own",
        "How the recommendations would change, before anything is forgotten or learned",
        recommending.preview,
        answers.PreviewAnswer,
        query=queries.HowManyQuery,
        body=bodies.PreviewBody,
    ),
    _call(
        "GET /v1/users/{user}/explanations/{item}",
        "read own",
        "Why an item scores what it does",
        recommending.explain,
        answers.ExplanationAnswer,
        refusals=("unknown_user",),
    ),
    _call(
        "GET /v1/users/{user}",
        "privacy own",
        "Everything held about the user",
        shoppers.show,
        answers.UserAnswer,
        refusals=("unknown_user",),
    ),
    _call(
        "POST /v1/users/{user}/rename",
        "privacy",
        "Merge the user into another, such as a guest into an account",
        shoppers.rename,
        answers.RenamedAnswer,
        body=bodies.Renaming,
        place="writer",
        refusals=("unknown_user",),
    ),
    _call(
        "PUT /v1/users/{user}/suppressed/{item}",
        "write privacy own",
        "Never recommend an item to the user",
        shoppers.suppress,
        answers.SuppressedAnswer,
        place="writer",
        refusals=("unknown_user",),
    ),
    _call(
        "DELETE /v1/users/{user}/suppressed/{item}",
        "privacy own",
        "Let a suppressed item be recommended again",
        shoppers.allow,
        answers.SuppressedAnswer,
        place="writer",
    ),
    _call(
        "GET /v1/users/{user}/similar",
        "admin",
        "The nearest other users",
        shoppers.similar,
        answers.SimilarAnswer,
        query=queries.HowManyQuery,
        refusals=("unknown_user",),
    ),
    _call(
        "POST /v1/users/{user}/verify",
        "privacy own",
        "Compare the model of the user with a retrain, bit by bit",
        shoppers.verify,
        answers.VerificationAnswer,
    ),
    _call(
        "GET /v1/users",
        "privacy",
        "Users, a page at a time",
        lists.users,
        answers.UsersAnswer,
        query=queries.UsersQuery,
    ),
    _call(
        "GET /v1/items",
        "read",
        "Items with names and categories, a page at a time",
        lists.items,
        answers.ItemsAnswer,
        query=queries.ItemsQuery,
    ),
    _call(
        "GET /v1/items/availability",
        "read",
        "Items that are hidden, a page at a time",
        lists.hidden,
        answers.HiddenAnswer,
        query=queries.PageQuery,
    ),
    _call(
        "POST /v1/items/availability",
        "write",
        "Hide items that are out of stock, and show others again, all or nothing",
        lists.restock,
        answers.RestockedAnswer,
        body=bodies.Availability,
        place="writer",
    ),
    _call("GET /v1/categories", "read", "Categories of items", lists.categories, answers.CategoriesAnswer),
    _call(
        "GET /v1/popular",
        "read",
        "The items in most baskets",
        lists.popular,
        answers.PopularAnswer,
        query=queries.PopularQuery,
    ),
    _call(
        "GET /v1/receipts",
        "privacy",
        "Receipts of what was forgotten, a page at a time",
        privacy.receipts,
        answers.ReceiptsAnswer,
        query=queries.ReceiptsQuery,
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
        answers.AuditAnswer,
        body=bodies.GivenReceipts,
        body_is_optional=True,
    ),
    _call(
        "POST /v1/retention",
        "privacy",
        "Count what rules of retention forget, or forget it",
        privacy.retention,
        answers.RetentionAnswer,
        body=bodies.RetentionRequest,
        place="writer",
        refusals=("invalid_rules",),
    ),
    _call("GET /v1/params", "admin", "The parameters of the model", operations.params, answers.ModelParams),
    _call(
        "PUT /v1/params",
        "admin",
        "Change parameters of the model, which goes on answering until the new one is complete",
        operations.change_params,
        answers.ModelParams,
        body=bodies.ChangedParams,
        place="writer",
        refusals=("params_changing",),
    ),
    _call("GET /v1/stats", "admin", "Live figures and parameters", lists.stats, answers.StatsAnswer),
    _call(
        "GET /v1/me",
        "read write privacy admin own",
        "Who asks: the name and the roles of a key, or the shopper of a token",
        operations.me,
        answers.MeAnswer,
        place="loop",
    ),
    _call(
        "POST /v1/tokens",
        "privacy",
        "A short-lived token for one shopper",
        privacy.token,
        answers.TokenAnswer,
        status=201,
        body=bodies.TokenRequest,
    ),
    _call("GET /healthz", "", "Whether the process answers", operations.health, answers.HealthAnswer, place="loop"),
    _call(
        "GET /readyz",
        "",
        "Whether the shop is loaded; 503 with the progress while it is not",
        operations.ready,
        answers.ReadyAnswer,
        place="loop",
    ),
    _call("GET /metrics", "read", "Figures for Prometheus", operations.metrics, bytes, media_type=CONTENT_TYPE),
)
