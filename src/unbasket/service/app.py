"""The application: a request is routed, its sender identified, its input checked, and a handler answers.

path -> call -> caller may? -> query -> in a thread: body -> handler -> JSON
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
from starlette.routing import Route

from unbasket.errors import UnbasketError
from unbasket.service import decoding, logs, pages
from unbasket.service.calls import CALLS, JSON, Call
from unbasket.service.errors import ApiError, ClientGoneError, translated
from unbasket.service.express import ExpressLane
from unbasket.service.limits import Limits, drain, read_body
from unbasket.service.metrics import Metrics
from unbasket.service.openapi import document
from unbasket.service.repeats import Repeats
from unbasket.service.request import Request
from unbasket.service.routing import Router
from unbasket.service.security import Caller, Security
from unbasket.service.settings import Settings
from unbasket.service.shapes.answers import LearnedAnswer, ReadyAnswer
from unbasket.service.shop import Shop

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}

_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
_OURS = tuple({call.path.encode() if call.path.count("/") == 1 else b"/v1/" for call in CALLS})
_METHODS = {"GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH"}
_NOBODY = Caller("")
_encode = msgspec.json.Encoder().encode


def create_app(
    shop: Shop, security: Security, metrics: Metrics | None = None, settings: Settings | None = None
) -> "Application":
    """The application of a shop, which may still be loading."""
    return Application(Api(shop, security, metrics or Metrics(shop), settings or Settings(db=shop.db)))


class Application(Starlette):
    """Starlette serves the page and the description. Calls go past its routes, which cost as much as our own work."""

    def __init__(self, api: "Api") -> None:
        self._api = api
        described = _encode(document(CALLS))

        async def openapi(_: StarletteRequest) -> Response:
            return Response(described, headers=HEADERS, media_type=JSON)

        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            yield
            api.close()

        super().__init__(
            routes=[Route("/openapi.json", openapi, methods=["GET"]), *pages.routes()],
            exception_handlers={HTTPException: _refuse},
            lifespan=lifespan,
        )
        self.router.redirect_slashes = False  # it would send people to whatever Host they have named

    def apply(self, settings: Settings) -> None:
        """Go on with other settings, of those that can change."""
        self._api.apply(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
        elif scope["raw_path"].startswith(_OURS):
            await self._api.handle(scope, receive, send)
        else:
            await self._answer_page(scope, receive, send)

    async def _answer_page(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._api.count_stranger(scope)
        except ApiError as refusal:
            await _response(refusal)(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


async def _refuse(_: StarletteRequest, error: Exception) -> Response:
    """What Starlette, which routes the page, refuses: in our shape."""
    assert isinstance(error, HTTPException)
    known = {404: "not_found", 405: "method_not_allowed"}
    return _response(ApiError(known.get(error.status_code, "internal"), error.detail, dict(error.headers or {})))


def _response(refusal: ApiError) -> Response:
    return Response(_encode(refusal.answer()), refusal.status, HEADERS | refusal.headers, JSON)


class _Answer(NamedTuple):
    """What is sent."""

    status: int
    body: bytes
    media_type: str
    headers: dict[str, str]


class Api:
    """All calls of the table."""

    def __init__(self, shop: Shop, security: Security, metrics: Metrics, settings: Settings) -> None:
        self._shop, self._security, self._metrics, self._settings = shop, security, metrics, settings
        self._router = Router(CALLS)
        self._limits = Limits(settings, security)
        self._repeats = Repeats()
        self._express = ExpressLane()
        self._refusals = logs.Refusals()
        # Writers have threads of their own: they wait for the disk, and many of them share a commit.
        self._pools = {place: ThreadPoolExecutor(settings.threads, place) for place in ("reader", "writer")}

    def close(self) -> None:
        """Finish what was begun."""
        for pool in self._pools.values():
            pool.shutdown()

    def apply(self, settings: Settings) -> None:
        """Go on with other settings, of those that can change."""
        self._settings = self._limits.settings = settings

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        start = time.perf_counter()
        method, name = scope["method"], "unknown"
        try:
            call, path = self._found(method, scope)
            name = call.path
            answer = await self._answer(call, path, scope, receive)
        except ClientGoneError:
            return
        except UnbasketError as error:
            answer = _refused(error)
        except Exception as error:  # noqa: BLE001 - a mistake of ours must not take the service down
            answer = self._failed(name, error)
        seconds = time.perf_counter() - start
        self._metrics.observe(name, method if method in _METHODS else "other", answer.status, seconds)
        if (method != "GET" or answer.status >= 400) and not (answer.status == 429 and self._refusals.are_many()):
            number = secrets.token_hex(8)
            answer.headers["x-request-id"] = number
            logs.answered(method, name, answer.status, seconds, number)
        await _send(answer, receive, send)

    def _failed(self, name: str, error: Exception) -> _Answer:
        logs.failure("a call failed", error, call=name)
        return _refused(ApiError("internal", "the service had an error, which its log describes"))

    async def _answer(self, call: Call, path: dict[str, str], scope: Scope, receive: Receive) -> _Answer:
        headers = dict(scope["headers"])
        caller = self._admitted(call, path, scope, headers) if call.roles else self._probing(scope)
        is_gone = scope["state"]["is_gone"]
        request = Request(self._shop, self._security, self._metrics, self._repeats, caller, path, is_gone)
        request.fallback = self._settings.unknown
        request.query = decoding.read_query(scope["query_string"], call.query)
        if call.body is not None:
            most, seconds = self._settings.max_body, self._settings.timeout
            request.sent = await read_body(receive, headers.get(b"content-length"), most, seconds)
            request.media_type = headers.get(b"content-type", b"").decode("latin-1")
        return await self._run(call, request, scope)

    def _found(self, method: str, scope: Scope) -> tuple[Call, dict[str, str]]:
        """The call that a request means. One for an unknown address counts against its sender, who may try many."""
        try:
            return self._router.find(method, scope["raw_path"])
        except ApiError:
            self.count_stranger(scope)
            raise

    def count_stranger(self, scope: Scope) -> None:
        """Count a request whose sender has shown no key; an error if there were too many."""
        self._limits.count_stranger(_address(scope))

    def _admitted(self, call: Call, path: dict[str, str], scope: Scope, headers: dict[bytes, bytes]) -> Caller:
        """The caller, if they may do this. A wrong key counts against its address: somebody may try many."""
        try:
            caller = self._security.identify(headers)
        except ApiError:
            self.count_stranger(scope)
            raise
        self._limits.count(caller, _address(scope))
        if not call.own or "user" in path:  # else it is about whoever asks, and nobody else
            caller.check(call.roles, path.get("user") if call.own else None)
        return caller

    def _probing(self, scope: Scope) -> Caller:
        """Whoever asks for what needs no key, if they do not ask too often."""
        self._limits.count_probe(_address(scope))
        return _NOBODY

    async def _run(self, call: Call, request: Request, scope: Scope) -> _Answer:
        if call.place == "loop":
            return _good(call, call.handler(request), scope)
        loop = asyncio.get_running_loop()
        with self._limits.under_way(call.place, request.caller, _address(scope)) as thread:
            if call.quick is not None and self._express.is_open:
                answer = await self._express.answer(call.quick, request)
                if answer is not None:
                    return _good(call, answer, scope)
            try:
                async with asyncio.timeout(self._settings.timeout), thread:
                    return await loop.run_in_executor(self._pools[call.place], self._work, call, request, scope, loop)
            except TimeoutError:
                request.is_gone = _always
                raise ApiError("timed_out", f"this takes longer than {self._settings.timeout:g} s") from None

    def _work(self, call: Call, request: Request, scope: Scope, loop: asyncio.AbstractEventLoop) -> _Answer:
        """All that takes longer, the more is sent or asked for: in a thread."""
        request.go_on()
        try:
            request.body = decoding.read_body(request.sent, request.media_type, call)
            answer = self._express.measured(call.quick, request) if call.quick is not None else None
            return _good(call, call.handler(request) if answer is None else answer, scope)
        finally:
            if request.results:
                with suppress(RuntimeError):  # the loop is closed: nobody asks for figures any more
                    loop.call_soon_threadsafe(self._metrics.happened, request.results)


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


def _always() -> bool:
    return True


def _refused(error: UnbasketError) -> _Answer:
    """The answer to an error. Nobody keeps the error itself: it knows the whole request, which may be large."""
    refusal = translated(error)
    return _Answer(refusal.status, _encode(refusal.answer()), JSON, refusal.headers)


def _good(call: Call, answer: Any, scope: Scope) -> _Answer:
    body = answer if isinstance(answer, bytes) else _encode(answer)
    if isinstance(answer, ReadyAnswer) and not answer.ready:
        return _Answer(503, body, JSON, {"retry-after": "1"})
    headers = {}
    if call.status == 201 and isinstance(answer, LearnedAnswer):
        headers["location"] = f"{scope['raw_path'].decode('latin-1')}/{answer.basket}"
    return _Answer(call.status, body, call.media_type, headers)


async def _send(answer: _Answer, receive: Receive, send: Send) -> None:
    headers = [
        (b"content-type", answer.media_type.encode()),
        (b"content-length", str(len(answer.body)).encode()),
        *_HEADERS,
        *((name.encode(), value.encode("latin-1")) for name, value in answer.headers.items()),
    ]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    closing = "connection" in answer.headers
    await send({"type": "http.response.body", "body": answer.body, "more_body": closing})
    if closing:
        await drain(receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})
