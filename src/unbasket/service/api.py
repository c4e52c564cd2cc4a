"""The API: a request is matched to a route, its caller authorized, its input decoded, and a handler responds.

path -> route -> caller -> query -> on the event loop, on the fast path, or in a thread: body -> handler -> JSON
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from typing import Any, NamedTuple

import msgspec
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from unbasket.errors import UnbasketError
from unbasket.service import decoding, logs
from unbasket.service.auth import ANONYMOUS, Authenticator, Caller, invalid_key
from unbasket.service.clock import INTERVAL
from unbasket.service.connection import Connection, header_lines
from unbasket.service.empty_receipts import EmptyReceipts
from unbasket.service.engine_loader import EngineLoader
from unbasket.service.errors import ApiError, ClientGoneError, to_api_error
from unbasket.service.fast_path import FastPath
from unbasket.service.limits import CallerQueue, Limits, drain, read_body
from unbasket.service.metrics import Metrics
from unbasket.service.request import Request
from unbasket.service.routes import JSON, ROUTES, Route, Router
from unbasket.service.schemas.responses import LearnedResponse, ReadyResponse
from unbasket.service.settings import Settings
from unbasket.service.throttled_executor import Steps, ThrottledExecutor

HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
PENALTY = 0.1
"""Seconds until a response 429 is sent, so that a client which retries at once is slowed down."""

_METHODS = {"GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH"}
_LARGE = 64 * 1024  # bytes of a body that takes long to decode
_encode = msgspec.json.Encoder().encode


class _Response(NamedTuple):
    """A response; the connection is closed after one that `is_last`."""

    status: int
    body: bytes
    media_type: str
    headers: dict[str, str]
    is_last: bool = False

    @property
    def head(self) -> bytes:
        """The status line and the headers."""
        head = _head(self.status, self.media_type)
        return head + header_lines(self.headers) if self.headers else head


class RequestContext:
    """A request being handled, with its connection and its caller's queue."""

    __slots__ = ("connection", "headers", "queue", "request", "route", "scope", "start")

    headers: dict[bytes, bytes]
    request: Request

    def __init__(self, connection: Connection, scope: Scope) -> None:
        self.start = time.perf_counter()
        self.connection, self.scope = connection, scope
        self.route: Route | None = None  # until it is matched
        self.queue: CallerQueue | None = None  # while it is counted

    @property
    def path(self) -> str:
        """The path template, for metrics and logs."""
        return self.route.path if self.route is not None else "unknown"


class Api:
    """All routes of the table."""

    def __init__(self, loader: EngineLoader, auth: Authenticator, metrics: Metrics, settings: Settings) -> None:
        self._loader, self._auth, self._metrics = loader, auth, metrics
        self._router = Router(ROUTES)
        self._limits = Limits(settings, auth)
        self._empty_receipts = EmptyReceipts()
        self._fast_paths = {route: FastPath(route.batch_handler) for route in ROUTES if route.batch_handler is not None}
        self._refusals = logs.Refusals()
        # Writers have threads of their own: they wait for the disk, and many of them share a commit.
        self._pools = {name: ThreadPoolExecutor(settings.threads, name) for name in ("reader", "writer")}
        self._throttled = {name: ThrottledExecutor(f"{name}-throttled") for name in ("reader", "writer")}
        self.apply(settings)

    async def keep_time(self) -> None:
        """Keep the highest time seen, until the task is cancelled."""
        while True:
            await asyncio.to_thread(self._auth.clock.keep)
            await asyncio.sleep(INTERVAL)

    def close(self) -> None:
        """Finish the requests in progress."""
        self._auth.clock.keep()
        for pool in (*self._pools.values(), *self._throttled.values()):
            pool.shutdown()

    def apply(self, settings: Settings) -> None:
        """Use other values of the settings that can change at run time."""
        self._settings = self._limits.settings = settings
        self._fallback, self._privacy = settings.unknown, settings.privacy

    def handle(self, connection: Connection, scope: Scope) -> None:
        """Respond at once if the handler runs on the event loop, soon if on the fast path, otherwise in a task."""
        context = RequestContext(connection, scope)
        try:
            route = self._admit(context)
            if route.runs_on == "loop":
                response = _success(route, route.handler(context.request), scope)
            elif (fast_path := self._fast_paths.get(route)) is not None and fast_path.is_enabled:
                self._acquire(context, route)
                fast_path.submit(context.request, partial(self._on_fast_path, context, route))
                return
            else:
                connection.run(partial(self._run, context, route))
                return
        except Exception as error:  # noqa: BLE001 - a bug in a handler must not stop the service
            response = self._failure(context, error)
        self._finish(context, response)

    def _on_fast_path(self, context: RequestContext, route: Route, result: Any) -> None:
        """Send the result of the fast path, or run the handler in a thread if there is none."""
        if result is None:
            context.connection.run(partial(self._run, context, route))
            return
        if isinstance(result, ClientGoneError):
            self._release(context)
            return
        try:
            failed = isinstance(result, Exception)
            response = self._failure(context, result) if failed else _success(route, result, context.scope)
        except Exception as error:  # noqa: BLE001 - other requests wait for the rest of the batch
            response = self._failure(context, error)
        self._finish(context, response)

    def _finish(self, context: RequestContext, response: _Response) -> None:
        self._release(context)
        self._count(context, response)
        if response.status == 429:
            context.connection.respond_later(PENALTY, response.head, response.body)
        else:
            context.connection.respond(response.head, response.body)

    async def _run(self, context: RequestContext, route: Route, _: Scope, receive: Receive, __: Send) -> None:
        """Respond in a task: read the body, and run the handler in a thread."""
        try:
            response = await self._respond(context, route, receive)
        except ClientGoneError:
            return
        except Exception as error:  # noqa: BLE001 - see `handle`
            response = self._failure(context, error)
        finally:
            self._release(context)
            if len(context.request.sent) > _LARGE:
                self._throttled[route.runs_on].trim_memory()
        self._count(context, response)
        if response.status == 429:
            await asyncio.sleep(PENALTY)
        if response.is_last:
            context.connection.write(response.head, response.body, is_last=True)
            await drain(receive)
            context.connection.end(is_last=True)
        else:
            context.connection.respond(response.head, response.body)

    # Before the handler -----------------------------------------------------------------------------------------

    def _admit(self, context: RequestContext) -> Route:
        """Match the route, authorize the caller, and build the handler's request."""
        scope, address = context.scope, context.connection.address
        route, path = self._match(scope)
        context.route, context.headers = route, dict(scope["headers"])
        caller = self._caller(route, path, address, context.headers)
        decoding.check_path_ids(path, self._settings.max_id_bytes)
        query = decoding.decode_query(scope["query_string"], route.query)
        context.request = Request(
            self._loader,
            self._auth,
            self._metrics,
            self._empty_receipts,
            caller,
            path,
            query,
            context.connection.is_gone,
            self._fallback,
            self._privacy,
        )
        return route

    def _match(self, scope: Scope) -> tuple[Route, dict[str, str]]:
        """Return the route and the path parameters. An unknown path counts against the address that asks for it."""
        try:
            return self._router.find(scope["method"], scope["raw_path"])
        except ApiError:
            self.count_anonymous(scope)
            raise

    def count_anonymous(self, scope: Scope) -> None:
        """Count a request without a valid key. Raises if the client's address exceeds its rate."""
        client = scope.get("client")
        self._limits.count_anonymous(str(client[0]) if client else "")

    def _caller(self, route: Route, path: dict[str, str], address: str, headers: dict[bytes, bytes]) -> Caller:
        """Return the caller if the route admits them. An invalid key counts against its address."""
        if not route.roles:
            self._limits.count_probe(address)
            return ANONYMOUS
        try:
            caller = self._auth.identify(headers)
        except ApiError:
            self._limits.count_anonymous(address)
            raise
        self._limits.count(caller, address)
        if not route.own or "user" in path:  # else the route is about the caller only
            caller.check(route.roles, path.get("user") if route.own else None)
        if caller.shopper is not None and self._loader.engine.was_forgotten(caller.shopper, caller.presence):
            raise invalid_key()
        return caller

    def _acquire(self, context: RequestContext, route: Route) -> CallerQueue:
        """Count the request among the caller's until `_release`."""
        if context.queue is None:
            context.queue = self._limits.acquire(route.runs_on, context.request.caller, context.connection.address)
        return context.queue

    def _release(self, context: RequestContext) -> None:
        if context.queue is not None:
            context.queue.release()
            context.queue = None

    # The handler ------------------------------------------------------------------------------------------------

    async def _respond(self, context: RequestContext, route: Route, receive: Receive) -> _Response:
        request, settings = context.request, self._settings
        if route.body is not None:
            length = context.headers.get(b"content-length")
            request.sent = await read_body(receive, length, self._limits.max_body(request.caller), settings.timeout)
            request.media_type = context.headers.get(b"content-type", b"").decode("latin-1")
        queue = self._acquire(context, route)
        try:
            async with asyncio.timeout(settings.timeout):
                return await self._run_steps(context, route, queue)
        except TimeoutError:
            request.is_gone = lambda: True  # its next step is skipped
            raise ApiError("timed_out", f"this takes longer than {settings.timeout:g} s") from None

    async def _run_steps(self, context: RequestContext, route: Route, queue: CallerQueue) -> _Response:
        """Run the handler in a thread, and its long steps in the throttled executor."""
        loop, steps, result = asyncio.get_running_loop(), self._steps(context, route), None
        run = partial(self._run_step, context.request, loop)
        while True:
            async with queue.threads:
                step = await loop.run_in_executor(self._pools[route.runs_on], run, partial(_advance, steps, result))
            if isinstance(step, _Response):
                return step
            async with queue.throttled:
                result = await loop.run_in_executor(self._throttled[route.runs_on], run, step)

    def _steps(self, context: RequestContext, route: Route) -> Steps[_Response]:
        request = context.request
        limit = self._settings.max_id_bytes
        decode = partial(decoding.decode_body, request.sent, request.media_type, route, limit)
        request.body = (yield decode) if len(request.sent) > _LARGE else decode()
        fast_path = self._fast_paths.get(route)
        result = None if fast_path is None else fast_path.measure([request])[0]
        if result is None:
            result = route.handler(request)
        if isinstance(result, Generator):
            result = yield from result
        return _success(route, result, context.scope)

    def _run_step(self, request: Request, loop: asyncio.AbstractEventLoop, step: Callable[[], Any]) -> Any:
        """Run a step unless the client is gone, and let the event loop count its events."""
        request.check_connected()
        try:
            return step()
        finally:
            results, request.results = request.results, []
            if results:
                with suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(self._metrics.count_events, results)

    # After the handler ------------------------------------------------------------------------------------------

    def _failure(self, context: RequestContext, error: Exception) -> _Response:
        """Return the response to an error. The error must not be stored: it references the request and its body."""
        if not isinstance(error, UnbasketError):
            logs.failure("a request failed", error, route=context.path)
            error = ApiError("internal", "the service had an error, which its log describes")
        error = to_api_error(error)
        return _Response(error.status, _encode(error.response()), JSON, error.headers, error.is_last)

    def _count(self, context: RequestContext, response: _Response) -> None:
        """Count a response, and log it unless it is a successful GET."""
        seconds, method, status = time.perf_counter() - context.start, context.scope["method"], response.status
        self._metrics.observe(context.path, method if method in _METHODS else "other", status, seconds)
        if (method != "GET" or status >= 400) and not (status == 429 and self._refusals.exceed()):
            number = secrets.token_hex(8)
            response.headers["x-request-id"] = number
            logs.responded(method, context.path, status, seconds, number)


def _advance(steps: Steps[_Response], result: Any) -> Callable[[], Any] | _Response:
    """Run to the next long step, or to the response. `result` is that of the step before."""
    try:
        return steps.send(result)
    except StopIteration as end:
        response: _Response = end.value
        return response


def _success(route: Route, result: Any, scope: Scope) -> _Response:
    body = result if isinstance(result, bytes) else _encode(result)
    if isinstance(result, ReadyResponse) and not result.ready:
        return _Response(503, body, JSON, {"retry-after": "1"})
    headers = {}
    if route.status == 201 and isinstance(result, LearnedResponse):
        headers["location"] = f"{scope['raw_path'].decode('latin-1')}/{result.basket}"
    return _Response(route.status, body, route.media_type, headers)


@cache
def _head(status: int, media_type: str) -> bytes:
    """Return the status line and the headers that every response has."""
    return STATUS_LINE[status] + header_lines({"content-type": media_type, **HEADERS})
