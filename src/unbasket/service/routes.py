"""The table of routes, from which requests are matched and authorized and OpenAPI is generated, and its router."""

import re
from binascii import a2b_qp
from collections.abc import Callable, Generator, Iterable
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from unbasket.service.api_keys import Role
from unbasket.service.errors import CODES, ApiError
from unbasket.service.fast_path import BatchHandler
from unbasket.service.handlers import catalog, ops, privacy, recommendations, users
from unbasket.service.metrics import CONTENT_TYPE
from unbasket.service.request import Request
from unbasket.service.schemas import requests

JSON, NDJSON, TEXT = "application/json", "application/x-ndjson", "text/plain; charset=utf-8"

Handler = Callable[[Request], Any]
"""Returns the response, or the `Steps` to it if they take long."""

_MAX_LITERAL_PERCENTS = 100
_PARAMETER = re.compile(r"{(\w+)}")
_LITERAL_PERCENT = re.compile(rb"%(?![0-9A-Fa-f]{2})")


@dataclass(eq=False)
class Route:
    """A method and a path template with its handler, roles and schemas. The handler has its name and summary.

    `access` lists the roles that may use the route; without any, it is public. "own" also admits the shopper in the
    path. A handler runs on the event loop only if it always returns at once; a `batch_handler` responds to requests on
    the fast path, as long as they are short.
    """

    line: str
    access: str
    handler: Handler
    _: KW_ONLY
    runs_on: Literal["loop", "reader", "writer"] = "reader"
    status: int = 200
    query: type[msgspec.Struct] = requests.NoQuery
    body: Any = None
    body_is_optional: bool = False
    accepts_ndjson: bool = False
    batch_handler: BatchHandler | None = None
    media_type: str = JSON
    raises: tuple[str, ...] = ()  # codes of errors beyond those that `CODES` implies
    name: str = ""  # unique within the handler's module
    summary: str = ""

    method: str = field(init=False)
    path: str = field(init=False)
    roles: frozenset[Role] = field(init=False)
    own: bool = field(init=False)
    path_params: list[str] = field(init=False)
    has_etag: bool = field(init=False)

    def __post_init__(self) -> None:
        self.method, self.path = self.line.split()
        words = self.access.split()
        self.roles, self.own = frozenset(Role(word) for word in words if word != "own"), "own" in words
        self.path_params = _PARAMETER.findall(self.path)
        self.has_etag = self.method == "GET" and self.media_type == JSON
        self.name = self.name or self.handler.__name__
        self.summary = self.summary or (self.handler.__doc__ or "").partition("\n")[0].removesuffix(".")

    @property
    def errors(self) -> list[str]:
        """The codes of all errors that the route may return, by status."""
        occasions = {
            "any": True,
            "key": bool(self.roles),
            "path": bool(self.path_params),
            "body": self.body is not None,
            "thread": self.runs_on != "loop",
            "write": self.runs_on == "writer",
        }
        return [code for code, each in CODES.items() if occasions.get(each.occasion) or code in self.raises]

    @property
    def response(self) -> Any:
        """The type that the handler returns, at once or after its steps."""
        returned = get_type_hints(self.handler)["return"]
        kinds = get_args(returned) if isinstance(returned, UnionType) else [returned]
        [response] = {get_args(kind)[2] if get_origin(kind) is Generator else kind for kind in kinds}
        return response


_write = partial(Route, runs_on="writer")
_forget = partial(_write, access="privacy own", handler=users.forget)
_UNKNOWN, _CHANGING = ("unknown_user",), ("params_changing",)

# fmt: off
ROUTES = (
    _write("PUT /v1/users/{user}/baskets/{basket}", "write", users.learn, body=requests.NewBasket),
    _write("POST /v1/users/{user}/baskets", "write", users.learn_new, status=201, body=requests.NewBasket),
    _write("POST /v1/events", "write privacy", users.events, body=requests.Events, accepts_ndjson=True),
    _forget("DELETE /v1/users/{user}", name="forget_user", summary="Forget the user"),
    _forget("DELETE /v1/users/{user}/baskets/{basket}", name="forget_basket", summary="Forget a basket"),
    _forget("DELETE /v1/users/{user}/baskets/{basket}/items/{item}",
            name="forget_basket_item", summary="Forget an item of a basket"),
    _forget("DELETE /v1/users/{user}/items/{item}",
            name="forget_item", summary="Forget an item of all of the user's baskets"),
    _write("DELETE /v1/users/{user}/categories/{category}", "privacy own", users.forget_category),
    Route("GET /v1/users/{user}/recommendations", "read own", recommendations.recommend,
          query=requests.RecommendationsQuery, batch_handler=recommendations.recommend_batch),
    Route("POST /v1/recommendations", "read", recommendations.recommend_to_visitor, body=requests.Visitor),
    Route("POST /v1/users/{user}/preview", "read own", recommendations.preview,
          query=requests.HowManyQuery, body=requests.PreviewBody),
    Route("GET /v1/users/{user}/explanations/{item}", "read own", recommendations.explain, raises=_UNKNOWN),
    Route("GET /v1/users/{user}", "privacy own", users.show, raises=_UNKNOWN),
    Route("GET /v1/users/{user}/absence", "privacy own", users.absence),
    _write("POST /v1/users/{user}/rename", "privacy", users.rename, body=requests.Renaming, raises=_UNKNOWN),
    _write("PUT /v1/users/{user}/suppressed/{item}", "write privacy own", users.suppress, raises=_UNKNOWN),
    _write("DELETE /v1/users/{user}/suppressed/{item}", "privacy own", users.allow),
    Route("GET /v1/users/{user}/similar", "admin", users.similar, query=requests.HowManyQuery, raises=_UNKNOWN),
    Route("POST /v1/users/{user}/verify", "privacy own", users.verify),
    Route("GET /v1/users", "privacy", catalog.users, query=requests.UsersQuery),
    Route("GET /v1/items", "read", catalog.items, query=requests.ItemsQuery),
    Route("GET /v1/items/availability", "read", catalog.hidden, query=requests.PageQuery),
    _write("POST /v1/items/availability", "write", catalog.set_availability, body=requests.Availability),
    Route("GET /v1/categories", "read", catalog.categories),
    Route("GET /v1/popular", "read", catalog.popular, query=requests.PopularQuery),
    Route("GET /v1/receipts", "privacy", privacy.receipts, query=requests.ReceiptsQuery),
    Route("GET /v1/receipts/{number}", "privacy", privacy.receipt, raises=("unknown_receipt",)),
    Route("GET /v1/receipts/{number}/proof", "privacy", privacy.receipt_proof, raises=("unknown_receipt",)),
    Route("GET /v1/checkpoint", "read", privacy.checkpoint, media_type=TEXT),
    Route("POST /v1/receipts/verify", "privacy", privacy.verify_receipts,
          body=requests.GivenReceipts, body_is_optional=True),
    Route("POST /v1/proofs/verify", "privacy", privacy.verify_proof, body=requests.ProofFile),
    _write("POST /v1/retention", "privacy", privacy.retention, body=requests.RetentionRequest,
           raises=("invalid_rules",)),
    Route("GET /v1/params", "admin", ops.params),
    _write("PUT /v1/params", "admin", ops.change_params, body=requests.ChangedParams, raises=_CHANGING),
    Route("GET /v1/learned", "admin", ops.learned),
    Route("GET /v1/ids", "admin", ops.id_types),
    _write("PUT /v1/ids", "admin", ops.change_ids, body=requests.ChangedIds, raises=_CHANGING),
    Route("GET /v1/stats", "admin", catalog.stats),
    Route("GET /v1/me", "read write privacy admin own", ops.me, runs_on="loop", raises=("not_ready", "store_failed")),
    Route("POST /v1/tokens", "privacy", privacy.token, status=201, body=requests.TokenRequest,
          raises=("wrong_clock",)),
    Route("GET /healthz", "", ops.health, runs_on="loop"),
    Route("GET /readyz", "", ops.ready, runs_on="loop"),
    Route("GET /metrics", "read", ops.metrics, media_type=CONTENT_TYPE),
)
# fmt: on


class Router:
    """The path templates by their number of segments. They match undecoded paths, since an id may contain a slash."""

    def __init__(self, routes: Iterable[Route]) -> None:
        by_path: dict[str, dict[str, Route]] = {}
        for route in routes:
            by_path.setdefault(route.path, {})[route.method] = route
        self._templates: dict[int, list[tuple[list[bytes | None], dict[str, Route]]]] = {}  # None: a parameter
        for path in sorted(by_path, key=lambda path: path.count("{")):  # literal ones first
            template = [None if segment.startswith("{") else segment.encode() for segment in path.split("/")]
            self._templates.setdefault(len(template), []).append((template, by_path[path]))
        self._most = max(self._templates)

    def find(self, method: str, raw_path: bytes) -> tuple[Route, dict[str, str]]:
        """Return the route of a method and an undecoded path, and its decoded path parameters. HEAD is as GET."""
        found, routes = self._match(raw_path)
        route = routes.get("GET" if method == "HEAD" else method)
        if route is None:
            methods = self.methods(raw_path)
            raise ApiError("method_not_allowed", f"this address has {methods} only", {"allow": methods})
        try:
            return route, dict(zip(route.path_params, [unescaped(each).decode() for each in found], strict=True))
        except UnicodeDecodeError:
            raise ApiError("invalid_path", "a part of the path is not UTF-8 when decoded") from None

    def methods(self, raw_path: bytes) -> str:
        """Return the methods of a path, as in the header Allow."""
        _, routes = self._match(raw_path)
        return ", ".join(sorted({*routes, "OPTIONS", *(["HEAD"] if "GET" in routes else [])}))

    def _match(self, raw_path: bytes) -> tuple[list[bytes], dict[str, Route]]:
        """Return the parameters in a path, and the routes by method."""
        segments = raw_path.split(b"/", self._most)
        for template, routes in self._templates.get(len(segments), ()):
            found = [segment for segment, literal in zip(segments, template, strict=True) if segment != literal]
            if len(found) == template.count(None) and all(found):
                return found, routes
        raise ApiError("not_found", "there is no such address; /openapi.json describes all")


def unescaped(path: bytes) -> bytes:
    """Decode the percent escapes of a path. A few literal percent signs are kept.

    `urllib.parse` would take a millisecond for a path full of escapes. Quoted-printable escapes, which differ in one
    character, are decoded in C.
    """
    if b"%" not in path:
        return path
    escaped, others = _LITERAL_PERCENT.subn(b"=25", path.replace(b"=", b"=3D"), _MAX_LITERAL_PERCENTS + 1)
    if others > _MAX_LITERAL_PERCENTS:
        raise ApiError("malformed_request", f"more than {_MAX_LITERAL_PERCENTS} of the % in the path begin no escape")
    return a2b_qp(escaped.replace(b"%", b"="))
