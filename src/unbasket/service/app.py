"""The application: a request is routed, its sender identified, its input checked, and a handler answers.

path -> call -> caller may? -> query, body -> handler (in a thread) -> JSON
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as StarletteRequest
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, NoMatchFound, Route

from unbasket.errors import UnbasketError
from unbasket.service import decoding, logs, pages
from unbasket.service.calls import CALLS, JSON, Call
from unbasket.service.errors import ApiError, translated
from unbasket.service.limits import ClientGoneError, Rates, check_address, drain, read_body
from unbasket.service.metrics import Metrics
from unbasket.service.openapi import document
from unbasket.service.request import Request
from unbasket.service.routing import Router
from unbasket.service.security import Caller, Security
from unbasket.service.settings import Settings
from unbasket.service.shapes import LearnedAnswer, ReadyAnswer
from unbasket.service.shop import Shop

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}

_OURS = tuple({call.path.encode() if call.path.count("/") == 1 else b"/v1/" for call in CALLS})
_METHODS = {"GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH"}
_NOBODY = Caller("nobody")
_encode = msgspec.json.Encoder().encode


def create_app(
    shop: Shop, security: Security, metrics: Metrics | None = None, settings: Settings | None = None
) -> Starlette:
    """The application over a shop, which may still be loading."""
    api = Api(shop, security, metrics or Metrics(shop), settings or Settings(db=shop.db))
    described = _encode(document(CALLS))

    async def openapi(_: StarletteRequest) -> Response:
        return Response(described, headers=HEADERS, media_type=JSON)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        api.close()

    return Starlette(
        routes=[api, Route("/openapi.json", openapi, methods=["GET"]), *pages.routes()],
        exception_handlers={HTTPException: _refuse},
        lifespan=lifespan,
    )


async def _refuse(_: StarletteRequest, error: Exception) -> Response:
    """What Starlette refuses, in our shape: it routes the page."""
    assert isinstance(error, HTTPException)
    known = {404: "not_found", 405: "method_not_allowed"}
    refusal = ApiError(known.get(error.status_code, "internal"), error.detail, dict(error.headers or {}))
    return Response(_encode(refusal.answer()), refusal.status, HEADERS | refusal.headers, JSON)


class _Answer(NamedTuple):
    """What is sent."""

    status: int
    body: bytes
    media_type: str
    headers: dict[str, str]


class Api(BaseRoute):
    """All calls of the table, as one route."""

    def __init__(self, shop: Shop, security: Security, metrics: Metrics, settings: Settings) -> None:
        self._shop, self._security, self._metrics, self._settings = shop, security, metrics, settings
        self._router = Router(CALLS)
        self._addresses, self._keys = Rates(settings.rate), Rates(settings.rate)
        self._readers = ThreadPoolExecutor(settings.threads, "reader")
        self._writers = ThreadPoolExecutor(settings.threads, "writer")  # they wait for the disk, and share its commits

    def close(self) -> None:
        """Let what was begun come to its end."""
        self._readers.shutdown()
        self._writers.shutdown()

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether a path is ours, whatever its method."""
        ours = scope["type"] == "http" and scope["raw_path"].startswith(_OURS)
        return (Match.FULL if ours else Match.NONE), {}

    def url_path_for(self, name: str, /, **path_params: Any) -> Any:
        """Calls have no names to look up."""
        raise NoMatchFound(name, path_params)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        start = time.perf_counter()
        method, name = scope["method"], "unknown"
        try:
            check_address(scope["raw_path"], scope["query_string"])
            call, path = self._router.find(method, scope["raw_path"])
            name = call.path
            answer = await self._answer(call, path, scope, receive)
        except ClientGoneError:
            return
        except UnbasketError as error:
            refusal = translated(error)
            answer = _Answer(refusal.status, _encode(refusal.answer()), JSON, refusal.headers)
        except Exception as error:  # noqa: BLE001 - a mistake of ours must not take the service down
            answer = self._failed(name, error)
        seconds = time.perf_counter() - start
        self._metrics.observe(name, method if method in _METHODS else "other", answer.status, seconds)
        if method != "GET" or answer.status >= 400:
            number = secrets.token_hex(8)
            answer.headers["x-request-id"] = number
            logs.answered(method, name, answer.status, seconds, number)
        await _send(answer, receive, send)

    def _failed(self, name: str, error: Exception) -> _Answer:
        logs.failure("a call failed", error, call=name)
        fault = ApiError("internal", "the service made a mistake, which its log describes")
        return _Answer(fault.status, _encode(fault.answer()), JSON, {})

    async def _answer(self, call: Call, path: dict[str, str], scope: Scope, receive: Receive) -> _Answer:
        headers = dict(scope["headers"])
        caller = self._admitted(call, path, scope, headers) if call.roles else _NOBODY
        query = decoding.read_query(scope["query_string"], call.query)
        body = None
        if call.body is not None:
            settings = self._settings
            data = await read_body(receive, headers.get(b"content-length"), settings.max_body, settings.timeout)
            body = decoding.read_body(data, headers.get(b"content-type", b"").decode("latin-1"), call)
        request = Request(self._shop, self._security, self._metrics, caller, path, query, body)
        return _good(call, await self._run(call, request), scope)

    def _admitted(self, call: Call, path: dict[str, str], scope: Scope, headers: dict[bytes, bytes]) -> Caller:
        """Who asks, if he may."""
        client = scope.get("client")
        self._addresses.take(client[0] if client else "")
        authorization = headers.get(b"authorization")
        caller = self._security.identify(
            None if authorization is None else authorization.decode("latin-1"),
            headers.get(b"host", b"").decode("latin-1"),
        )
        self._keys.take(caller.name)
        caller.check(call.roles, path.get("user") if call.own else None)
        return caller

    async def _run(self, call: Call, request: Request) -> Any:
        if call.quick(request):
            return call.handler(request)
        loop = asyncio.get_running_loop()

        def work() -> Any:
            try:
                return call.handler(request)
            finally:
                if request.results:
                    with suppress(RuntimeError):  # the loop is closed: nobody asks for figures any more
                        loop.call_soon_threadsafe(self._metrics.happened, request.results)

        try:
            async with asyncio.timeout(self._settings.timeout):
                return await loop.run_in_executor(self._writers if call.waits_for_disk else self._readers, work)
        except TimeoutError:
            raise ApiError("timed_out", f"this takes longer than {self._settings.timeout:g} s") from None


def _good(call: Call, answer: Any, scope: Scope) -> _Answer:
    body = answer if isinstance(answer, bytes) else _encode(answer)
    if isinstance(answer, ReadyAnswer) and not answer.ready:
        return _Answer(503, body, JSON, {"retry-after": "1"})
    headers = {}
    if call.status == 201 and isinstance(answer, LearnedAnswer):
        headers["location"] = f"{scope['raw_path'].decode('latin-1')}/{answer.basket}"
    return _Answer(call.status, body, call.media_type, headers)


async def _send(answer: _Answer, receive: Receive, send: Send) -> None:
    headers = {"content-type": answer.media_type, "content-length": str(len(answer.body))} | HEADERS | answer.headers
    start = {
        "type": "http.response.start",
        "status": answer.status,
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers.items()],
    }
    await send(start)
    closing = "connection" in answer.headers
    await send({"type": "http.response.body", "body": answer.body, "more_body": closing})
    if closing:
        await drain(receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})
