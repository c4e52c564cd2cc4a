"""The application: a request is routed, its sender identified, its input checked, and a handler answers.

path -> call -> caller may? -> query -> at once, in the express lane, or in a thread: body -> handler -> JSON
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import cache, partial
from typing import Any, NamedTuple

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as StarletteRequest
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from unbasket.errors import UnbasketError
from unbasket.service import decoding, logs, static
from unbasket.service.auth import Caller, Security
from unbasket.service.connection import Connection, Scope
from unbasket.service.empty_receipts import Repeats
from unbasket.service.engine_loader import Shop
from unbasket.service.errors import ApiError, ClientGoneError, translated
from unbasket.service.fast_path import ExpressLane
from unbasket.service.limits import Limits, Queue, drain, read_body
from unbasket.service.metrics import Metrics
from unbasket.service.openapi import document
from unbasket.service.request import Request
from unbasket.service.routes import CALLS, JSON, Call
from unbasket.service.routing import Router
from unbasket.service.schemas.responses import LearnedAnswer, ReadyAnswer
from unbasket.service.settings import Settings
from unbasket.service.throttled_executor import SlowLane, Steps

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}

_OURS = tuple({call.path.encode() if call.path.count("/") == 1 else b"/v1/" for call in CALLS})
_METHODS = {"GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH"}
_NOBODY = Caller("")
_PENALTY = 0.1  # seconds until somebody who asks too often is told so: who asks again at once does not ask more often
_LARGE = 64 * 1024  # bytes of a body that takes long to decode
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
            routes=[Route("/openapi.json", openapi, methods=["GET"]), *static.routes()],
            exception_handlers={HTTPException: _refuse},
            lifespan=lifespan,
        )
        self.router.redirect_slashes = False  # it would send people to whatever Host they have named

    def apply(self, settings: Settings) -> None:
        """Go on with other settings, of those that can change."""
        self._api.apply(settings)

    def begin(self, connection: Connection, scope: Scope) -> None:
        """Begin to answer a request."""
        if scope["raw_path"].startswith(_OURS):
            self._api.begin(connection, scope)
        else:
            connection.run(self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for a page."""
        try:
            if scope["type"] == "http":
                self._api.count_stranger(scope)
        except ApiError as refusal:
            await asyncio.sleep(_PENALTY)
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
    is_last: bool = False  # on its connection

    @property
    def head(self) -> bytes:
        """The lines before the body."""
        head = _head(self.status, self.media_type)
        return head + _lines(self.headers) if self.headers else head


class _Visit:
    """A request on its way to its answer."""

    __slots__ = ("call", "connection", "headers", "queue", "request", "scope", "start")

    headers: dict[bytes, bytes]
    request: Request

    def __init__(self, connection: Connection, scope: Scope) -> None:
        self.start = time.perf_counter()
        self.connection, self.scope = connection, scope
        self.call: Call | None = None  # until it is known
        self.queue: Queue | None = None  # in which it is counted

    @property
    def name(self) -> str:
        """The template of its address, for figures and logs."""
        return self.call.path if self.call is not None else "unknown"


class Api:
    """All calls of the table."""

    def __init__(self, shop: Shop, security: Security, metrics: Metrics, settings: Settings) -> None:
        self._shop, self._security, self._metrics = shop, security, metrics
        self._router = Router(CALLS)
        self._limits = Limits(settings, security)
        self._repeats = Repeats()
        self._express = {call: ExpressLane(call.quick) for call in CALLS if call.quick is not None}
        self._refusals = logs.Refusals()
        # Writers have threads of their own: they wait for the disk, and many of them share a commit.
        self._pools = {place: ThreadPoolExecutor(settings.threads, place) for place in ("reader", "writer")}
        self._slow = {place: SlowLane(f"{place}-slow") for place in ("reader", "writer")}
        self.apply(settings)

    def close(self) -> None:
        """Finish what was begun."""
        for pool in (*self._pools.values(), *self._slow.values()):
            pool.shutdown()

    def apply(self, settings: Settings) -> None:
        """Go on with other settings, of those that can change."""
        self._settings = self._limits.settings = settings
        self._fallback = settings.unknown

    def begin(self, connection: Connection, scope: Scope) -> None:
        """Answer a request at once if that takes no time, soon if it may take the express lane, or in a task."""
        visit = _Visit(connection, scope)
        try:
            call = self._admit(visit)
            if call.place == "loop":
                answer = _good(call, call.handler(visit.request), scope)
            elif (lane := self._express.get(call)) is not None and lane.is_open:
                self._enter(visit, call)
                lane.take(visit.request, partial(self._go_on, visit, call))
                return
            else:
                connection.run(partial(self._run, visit, call))
                return
        except Exception as error:  # noqa: BLE001 - a mistake of ours must not take the service down
            answer = self._refused(visit, error)
        self._end(visit, answer)

    def _go_on(self, visit: _Visit, call: Call, found: Any) -> None:
        """Take what the express lane has found."""
        if found is None:
            visit.connection.run(partial(self._run, visit, call))
            return
        if isinstance(found, ClientGoneError):
            self._leave(visit)
            return
        try:
            answer = self._refused(visit, found) if isinstance(found, Exception) else _good(call, found, visit.scope)
        except Exception as error:  # noqa: BLE001 - see above: others wait for what the lane has found for them
            answer = self._refused(visit, error)
        self._end(visit, answer)

    def _end(self, visit: _Visit, answer: _Answer) -> None:
        self._leave(visit)
        self._count(visit, answer)
        if answer.status == 429:
            visit.connection.answer_later(_PENALTY, answer.head, answer.body)
        else:
            visit.connection.answer(answer.head, answer.body)

    async def _run(self, visit: _Visit, call: Call, _: Scope, receive: Receive, __: Send) -> None:
        """Answer in a task: the body is read, and a thread does the work."""
        try:
            answer = await self._worked_on(visit, call, receive)
        except ClientGoneError:
            return
        except Exception as error:  # noqa: BLE001 - see above
            answer = self._refused(visit, error)
        finally:
            self._leave(visit)
            if len(visit.request.sent) > _LARGE:
                self._slow[call.place].tidy_up()
        self._count(visit, answer)
        if answer.status == 429:
            await asyncio.sleep(_PENALTY)
        if answer.is_last:
            visit.connection.write(answer.head, answer.body, is_last=True)
            await drain(receive)
            visit.connection.end(is_last=True)
        else:
            visit.connection.answer(answer.head, answer.body)

    # Before the work --------------------------------------------------------------------------------------------

    def _admit(self, visit: _Visit) -> Call:
        """The call that a request means, if its sender may make it; the visit has what the handler gets."""
        scope, address = visit.scope, visit.connection.address
        call, path = self._found(scope)
        visit.call, visit.headers = call, dict(scope["headers"])
        caller = self._caller(call, path, address, visit.headers) if call.roles else self._prober(address)
        query = decoding.read_query(scope["query_string"], call.query)
        visit.request = Request(
            self._shop,
            self._security,
            self._metrics,
            self._repeats,
            caller,
            path,
            query,
            visit.connection.is_gone,
            self._fallback,
        )
        return call

    def _found(self, scope: Scope) -> tuple[Call, dict[str, str]]:
        """The call that a request means. One for an unknown address counts against its sender, who may try many."""
        try:
            return self._router.find(scope["method"], scope["raw_path"])
        except ApiError:
            self.count_stranger(scope)
            raise

    def count_stranger(self, scope: Scope) -> None:
        """Count a request whose sender has shown no key; an error if there were too many."""
        client = scope.get("client")
        self._limits.count_stranger(str(client[0]) if client else "")

    def _caller(self, call: Call, path: dict[str, str], address: str, headers: dict[bytes, bytes]) -> Caller:
        """The caller, if they may do this. A wrong key counts against its address: somebody may try many."""
        try:
            caller = self._security.identify(headers)
        except ApiError:
            self._limits.count_stranger(address)
            raise
        self._limits.count(caller, address)
        if not call.own or "user" in path:  # else it is about whoever asks, and nobody else
            caller.check(call.roles, path.get("user") if call.own else None)
        return caller

    def _prober(self, address: str) -> Caller:
        """Whoever asks for what needs no key, if they do not ask too often."""
        self._limits.count_probe(address)
        return _NOBODY

    def _enter(self, visit: _Visit, call: Call) -> Queue:
        """Count the call among the caller's, until it leaves."""
        if visit.queue is None:
            visit.queue = self._limits.enter(call.place, visit.request.caller, visit.connection.address)
        return visit.queue

    def _leave(self, visit: _Visit) -> None:
        if visit.queue is not None and visit.call is not None:
            self._limits.leave(visit.call.place, visit.queue)
            visit.queue = None

    # The work ---------------------------------------------------------------------------------------------------

    async def _worked_on(self, visit: _Visit, call: Call, receive: Receive) -> _Answer:
        request, settings = visit.request, self._settings
        if call.body is not None:
            length = visit.headers.get(b"content-length")
            request.sent = await read_body(receive, length, settings.max_body, settings.timeout)
            request.media_type = visit.headers.get(b"content-type", b"").decode("latin-1")
        queue = self._enter(visit, call)
        try:
            async with asyncio.timeout(settings.timeout):
                return await self._work(visit, call, queue)
        except TimeoutError:
            request.is_gone = _always
            raise ApiError("timed_out", f"this takes longer than {settings.timeout:g} s") from None

    async def _work(self, visit: _Visit, call: Call, queue: Queue) -> _Answer:
        """Do all that takes longer, the more is sent or asked for: in a thread, or what takes long in the slow lane."""
        loop, steps, found = asyncio.get_running_loop(), self._steps(visit, call), None
        do = partial(self._do, visit.request, loop)
        while True:
            async with queue.thread:
                piece = await loop.run_in_executor(self._pools[call.place], do, partial(_advance, steps, found))
            if isinstance(piece, _Answer):
                return piece
            async with queue.slow:
                found = await loop.run_in_executor(self._slow[call.place], do, piece)

    def _steps(self, visit: _Visit, call: Call) -> Steps[_Answer]:
        request = visit.request
        decode = partial(decoding.read_body, request.sent, request.media_type, call)
        request.body = (yield decode) if len(request.sent) > _LARGE else decode()
        lane = self._express.get(call)
        answer = None if lane is None else lane.measured([request])[0]
        if answer is None:
            answer = call.handler(request)
        if isinstance(answer, Generator):
            answer = yield from answer
        return _good(call, answer, visit.scope)

    def _do(self, request: Request, loop: asyncio.AbstractEventLoop, work: Callable[[], Any]) -> Any:
        """Work, unless it would be for nobody; the loop counts what has happened."""
        request.go_on()
        try:
            return work()
        finally:
            results, request.results = request.results, []
            if results:
                with suppress(RuntimeError):  # the loop is closed: nobody asks for figures any more
                    loop.call_soon_threadsafe(self._metrics.happened, results)

    # After the work ---------------------------------------------------------------------------------------------

    def _refused(self, visit: _Visit, error: Exception) -> _Answer:
        """The answer to an error. Nobody keeps the error itself: it knows the whole request, which may be large."""
        if not isinstance(error, UnbasketError):
            logs.failure("a call failed", error, call=visit.name)
            error = ApiError("internal", "the service had an error, which its log describes")
        refusal = translated(error)
        return _Answer(refusal.status, _encode(refusal.answer()), JSON, refusal.headers, refusal.is_last)

    def _count(self, visit: _Visit, answer: _Answer) -> None:
        """Count an answer, and log it unless it is the usual one."""
        seconds, method, status = time.perf_counter() - visit.start, visit.scope["method"], answer.status
        self._metrics.observe(visit.name, method if method in _METHODS else "other", status, seconds)
        if (method != "GET" or status >= 400) and not (status == 429 and self._refusals.are_many()):
            number = secrets.token_hex(8)
            answer.headers["x-request-id"] = number
            logs.answered(method, visit.name, status, seconds, number)


def _advance(steps: Steps[_Answer], found: Any) -> Callable[[], Any] | _Answer:
    """Work until the next piece that takes long, or the answer. `found` is the result of the last such piece."""
    try:
        return steps.send(found)
    except StopIteration as end:
        answer: _Answer = end.value
        return answer


def _always() -> bool:
    return True


def _good(call: Call, answer: Any, scope: Scope) -> _Answer:
    body = answer if isinstance(answer, bytes) else _encode(answer)
    if isinstance(answer, ReadyAnswer) and not answer.ready:
        return _Answer(503, body, JSON, {"retry-after": "1"})
    headers = {}
    if call.status == 201 and isinstance(answer, LearnedAnswer):
        headers["location"] = f"{scope['raw_path'].decode('latin-1')}/{answer.basket}"
    return _Answer(call.status, body, call.media_type, headers)


@cache
def _head(status: int, media_type: str) -> bytes:
    """The lines that all answers of a kind begin with."""
    return STATUS_LINE[status] + _lines({"content-type": media_type, **HEADERS})


def _lines(headers: dict[str, str]) -> bytes:
    return b"".join(f"{name}: {value}\r\n".encode("latin-1") for name, value in headers.items())
