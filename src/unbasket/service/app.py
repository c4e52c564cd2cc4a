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
from starlette.routing import Route

from unbasket.errors import UnbasketError
from unbasket.service import decoding, logs, pages
from unbasket.service.calls import CALLS, JSON, Call
from unbasket.service.errors import ApiError, translated
from unbasket.service.limits import ClientGoneError, Rates, Turns, check_address, drain, read_body
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
_THIS_MACHINE = ("127.0.0.1", "::1")
_KEY_RATE, _PUBLIC_RATE = 1000, 50  # requests per second where keys are in use
_CALLS, _SHOPPER_CALLS = 64, 4  # under way of one caller
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
        self._rates = Rates()
        self._repeats = Repeats()
        # Writers have threads of their own: they wait for the disk, and many of them share a commit.
        self._pools = {place: ThreadPoolExecutor(settings.threads, place) for place in ("reader", "writer")}
        self._turns = {place: Turns(settings.threads) for place in self._pools}  # nobody reads behind their own writes
        self._under_way = 0

    def close(self) -> None:
        """Finish what was begun."""
        for pool in self._pools.values():
            pool.shutdown()

    def apply(self, settings: Settings) -> None:
        """Go on with other settings, of those that can change."""
        self._settings = settings

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        start = time.perf_counter()
        method, name = scope["method"], "unknown"
        self._under_way += 1
        try:
            check_address(scope["raw_path"], scope["query_string"])
            call, path = self._found(method, scope)
            name = call.path
            answer = await self._answer(call, path, scope, receive)
        except ClientGoneError:
            return
        except UnbasketError as error:
            refusal = translated(error)
            answer = _Answer(refusal.status, _encode(refusal.answer()), JSON, refusal.headers)
        except Exception as error:  # noqa: BLE001 - a mistake of ours must not take the service down
            answer = self._failed(name, error)
        finally:
            self._under_way -= 1
        seconds = time.perf_counter() - start
        self._metrics.observe(name, method if method in _METHODS else "other", answer.status, seconds)
        if method != "GET" or answer.status >= 400:
            number = secrets.token_hex(8)
            answer.headers["x-request-id"] = number
            logs.answered(method, name, answer.status, seconds, number)
        await _send(answer, receive, send)

    def _failed(self, name: str, error: Exception) -> _Answer:
        logs.failure("a call failed", error, call=name)
        fault = ApiError("internal", "the service had an error, which its log describes")
        return _Answer(fault.status, _encode(fault.answer()), JSON, {})

    async def _answer(self, call: Call, path: dict[str, str], scope: Scope, receive: Receive) -> _Answer:
        headers = dict(scope["headers"])
        caller = self._admitted(call, path, scope, headers) if call.roles else self._stranger(scope)
        query = decoding.read_query(scope["query_string"], call.query)
        body = None
        if call.body is not None:
            settings = self._settings
            data = await read_body(receive, headers.get(b"content-length"), settings.max_body, settings.timeout)
            body = decoding.read_body(data, headers.get(b"content-type", b"").decode("latin-1"), call)
        request = Request(self._shop, self._security, self._metrics, self._repeats, caller, path, query, body)
        return _good(call, await self._run(call, request, scope), scope)

    def _found(self, method: str, scope: Scope) -> tuple[Call, dict[str, str]]:
        """The call that a request means. One for an unknown address counts against its sender, who may try many."""
        try:
            return self._router.find(method, scope["raw_path"])
        except ApiError:
            self.count_stranger(scope)
            raise

    def _stranger(self, scope: Scope) -> Caller:
        """Whoever asks for what needs no key, if they do not ask too often. This machine's own probes always may."""
        if _address(scope) not in _THIS_MACHINE:
            self.count_stranger(scope)
        return _NOBODY

    def count_stranger(self, scope: Scope) -> None:
        """Count a request whose sender has shown no key, by the address; an error if there were too many."""
        self._rates.take(f"address {_address(scope)}", self._rate(is_public=self._security.enabled))

    def _admitted(self, call: Call, path: dict[str, str], scope: Scope, headers: dict[bytes, bytes]) -> Caller:
        """The caller, if they may do this. A wrong key counts against its address: somebody may try many."""
        try:
            caller = self._security.identify(headers)
        except ApiError:
            self.count_stranger(scope)
            raise
        self._rates.take(_label(caller, scope), self._rate(is_public=caller.shopper is not None))
        if not call.own or "user" in path:  # else it is about whoever asks, and nobody else
            caller.check(call.roles, path.get("user") if call.own else None)
        return caller

    def _rate(self, *, is_public: bool) -> float:
        """The requests per second that a shopper or a stranger (`is_public`), or a key, may make."""
        chosen, usual = (self._settings.public_rate, _PUBLIC_RATE) if is_public else (self._settings.rate, _KEY_RATE)
        if chosen is None:
            return usual if self._security.enabled else 0
        return chosen

    async def _run(self, call: Call, request: Request, scope: Scope) -> Any:
        if call.place == "loop" or (call.quick(request) and await self._is_alone()):
            return call.handler(request)
        loop, is_gone = asyncio.get_running_loop(), scope.get("state", {}).get("is_gone", _never)

        def work() -> Any:
            if is_gone():
                raise ClientGoneError
            try:
                return call.handler(request)
            finally:
                if request.results:
                    with suppress(RuntimeError):  # the loop is closed: nobody asks for figures any more
                        loop.call_soon_threadsafe(self._metrics.happened, request.results)

        caller = request.caller
        most = _SHOPPER_CALLS if caller.shopper is not None else _CALLS
        try:
            async with (
                asyncio.timeout(self._settings.timeout),
                self._turns[call.place].turn(_label(caller, scope), most),
            ):
                return await loop.run_in_executor(self._pools[call.place], work)
        except TimeoutError:
            raise ApiError("timed_out", f"this takes longer than {self._settings.timeout:g} s") from None

    async def _is_alone(self) -> bool:
        """Whether no other request is here or has just come: then a thread would only take time."""
        await asyncio.sleep(0)
        return self._under_way == 1


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


def _label(caller: Caller, scope: Scope) -> str:
    """What a caller is counted under: the name, or where there are no keys the address."""
    return caller.name or f"address {_address(scope)}"


def _never() -> bool:
    return False


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
