"""The ASGI application: parse a request, authorize its caller, ask the engine, answer.

A request that is short is answered on the event loop, where it arrives; all others go to the executor.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from hashlib import blake2b
from itertools import count
from secrets import token_hex
from typing import Any, NamedTuple

import msgspec

from unbasket.errors import UnbasketError
from unbasket.service import decoding, logs
from unbasket.service.auth import ANONYMOUS, Authenticator, Caller, invalid_key
from unbasket.service.clock import INTERVAL
from unbasket.service.engine_loader import EngineLoader
from unbasket.service.errors import ApiError, ClientGoneError, to_api_error
from unbasket.service.executor import Executor, Steps
from unbasket.service.fast_path import FastPath
from unbasket.service.limits import CLOSE, Limits, Receive, caller_name, read_body
from unbasket.service.metrics import Metrics
from unbasket.service.openapi import document
from unbasket.service.request import Request, Shared
from unbasket.service.routes import JSON, ROUTES, Route, Router
from unbasket.service.schemas.responses import LearnedResponse, ReadyResponse
from unbasket.service.settings import Settings
from unbasket.service.static import StaticFile, static_files

Scope = dict[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

PENALTY = 0.1
"""Seconds until a response 429 is sent, so that a client which retries at once is slowed down."""

_METHODS = {"GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH"}
_UNIQUE = (b"authorization", b"content-type", b"host")
_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff", "server": "unbasket"}
_LARGE = 64 * 1024  # bytes of a body that takes long to decode
_TRACEPARENT = re.compile(rb"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
_encode = msgspec.json.Encoder().encode


class Response(NamedTuple):
    """A response: its status, its body, and its headers."""

    status: int
    body: bytes
    headers: Headers


class Context:
    """A request on its way: its scope and headers, its start, and its route once it is matched."""

    __slots__ = ("address", "headers", "method", "route", "scope", "start")

    def __init__(self, scope: Scope) -> None:
        self.start = time.perf_counter()
        self.scope, self.method = scope, scope["method"]
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.address: str = scope["client"][0] if scope["client"] else ""
        self.route: Route | None = None

    @property
    def path(self) -> str:
        """The path template, for metrics and logs."""
        return self.route.path if self.route is not None else "unknown"

    @property
    def trace(self) -> str | None:
        """The id of the caller's trace, if there is one (W3C Trace Context)."""
        found = _TRACEPARENT.fullmatch(self.headers.get(b"traceparent", b""))
        return found[1].decode() if found else None


class Application:
    """The service as an ASGI application: the routes of the table, the page, and the OpenAPI document."""

    def __init__(
        self,
        loader: EngineLoader,
        auth: Authenticator,
        metrics: Metrics | None = None,
        settings: Settings | None = None,
    ) -> None:
        settings = settings or Settings(db=loader.db)
        self._shared = Shared(loader, auth, metrics or Metrics(loader), settings)
        self._router = Router(ROUTES)
        self._limits = Limits(settings, auth)
        self._executor = Executor(settings.threads)
        self._fast_paths = {route: FastPath(route.batch_handler) for route in ROUTES if route.batch_handler is not None}
        described = StaticFile(_encode(document(ROUTES)), {"content-type": JSON, **_HEADERS})
        self._files = {b"/openapi.json": described, **static_files()}
        self._refusals = logs.Refusals()
        self._process, self._numbers = token_hex(4), count(1)

    @property
    def settings(self) -> Settings:
        """The settings in use."""
        return self._shared.settings

    def apply(self, settings: Settings) -> None:
        """Use other values of the settings that can change at run time."""
        self._limits.settings = settings
        self._shared.apply(settings)

    async def keep_time(self) -> None:
        """Keep the highest time seen, until the task is cancelled."""
        while True:
            await asyncio.to_thread(self._shared.auth.clock.keep)
            await asyncio.sleep(INTERVAL)

    def close(self) -> None:
        """Finish the requests in progress."""
        self._shared.auth.clock.keep()
        self._executor.shutdown()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to a request."""
        context = Context(scope)
        try:
            response = await self._respond(context, receive)
        except ClientGoneError:  # perhaps only for sending: without a response, Granian would answer 500
            response = self._failure(context, ApiError("malformed_request", "the client closed the connection", CLOSE))
        except Exception as error:  # noqa: BLE001 - a bug in a handler must not stop the service
            response = self._failure(context, error)
            self._finish(context, response)
        else:
            self._finish(context, response)
        if response.status == 429:
            await asyncio.sleep(PENALTY)
        await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
        await send({"type": "http.response.body", "body": response.body})

    async def _respond(self, context: Context, receive: Receive) -> Response:
        """Return the response: at once if it is short, else from the executor."""
        admitted = self._admit(context)
        if isinstance(admitted, Response):
            return admitted
        route, request = admitted
        if route.runs_on == "loop":
            return _success(context, route, route.handler(request))
        fast_path = self._fast_paths.get(route)
        if fast_path is not None and fast_path.is_enabled:
            result = await fast_path.handle(request)
            if result is not None:
                return _success(context, route, result)
        if route.body is not None:
            return await self._with_body(context, route, request, receive)
        return await self._execute(context, route, request, receive)

    # Parse and authorize ----------------------------------------------------------------------------------------

    def _admit(self, context: Context) -> tuple[Route, Request] | Response:
        """Return the route and the authorized request, or the response if it needs neither."""
        _check_headers(context)
        raw_path, method = context.scope["raw_path"], context.method
        if (file := self._files.get(raw_path)) is not None:
            return self._file(context, file)
        try:
            if method == "OPTIONS":
                return self._options(context, self._router.methods(raw_path))
            route, path = self._router.find(method, raw_path)
        except ApiError:
            self._limits.count_anonymous(context.address)  # an unknown path counts against the address
            raise
        context.route = route
        caller = self._caller(context, route, path)
        decoding.check_path_ids(path, self._shared.settings.max_id_bytes)
        query = decoding.decode_query(context.scope["query_string"], route.query)
        return route, Request(self._shared, caller, path, query)

    def _file(self, context: Context, file: StaticFile) -> Response:
        self._limits.count_anonymous(context.address)
        if context.method not in ("GET", "HEAD"):
            raise ApiError("method_not_allowed", "this address has GET and HEAD only", {"allow": "GET, HEAD"})
        return _tagged(context, Response(200, file.content, encoded(file.headers)))

    def _options(self, context: Context, methods: str) -> Response:
        self._limits.count_probe(context.address)
        return Response(204, b"", encoded({"allow": methods, **_HEADERS}))

    def _caller(self, context: Context, route: Route, path: dict[str, str]) -> Caller:
        """Return the caller if the route admits them. An invalid key counts against its address."""
        if not route.roles:
            self._limits.count_probe(context.address)
            return ANONYMOUS
        try:
            caller = self._shared.auth.identify(context.headers)
        except ApiError:
            self._limits.count_anonymous(context.address)
            raise
        self._limits.count(caller, context.address)
        if not route.own or "user" in path:  # else the route is about the caller only
            caller.check(route.roles, path.get("user") if route.own else None)
        if caller.shopper is not None:
            engine = self._shared.loader.engine
            if engine.was_forgotten(caller.shopper, caller.presence):
                raise invalid_key()
        return caller

    # Ask --------------------------------------------------------------------------------------------------------

    async def _with_body(self, context: Context, route: Route, request: Request, receive: Receive) -> Response:
        settings, length = self._shared.settings, context.headers.get(b"content-length")
        sent = await read_body(receive, length, self._limits.max_body(request.caller), settings.timeout)
        media_type = context.headers.get(b"content-type", b"").decode("latin-1")
        decode = partial(decoding.decode_body, sent, media_type, route, settings.max_id_bytes)
        if len(sent) <= _LARGE:
            request.body = decode()
            return await self._execute(context, route, request, receive)
        try:
            return await self._execute(context, route, request, receive, decode)
        finally:
            del sent, decode
            self._executor.trim_memory()

    async def _execute(
        self,
        context: Context,
        route: Route,
        request: Request,
        receive: Receive,
        decode: Callable[[], Any] | None = None,
    ) -> Response:
        """Return the response of a thread, after the body is decoded if that takes long."""
        assert route.runs_on != "loop"
        name, most = caller_name(request.caller, context.address), self._limits.in_progress(request.caller)
        with self._executor.queue(route.runs_on, name, most) as queue:
            gone, seconds = asyncio.ensure_future(_disconnected(receive)), self._shared.settings.timeout
            request.is_gone = gone.done
            work = partial(_handle, context, route, self._fast_paths.get(route), request)
            try:
                async with asyncio.timeout(seconds):
                    if decode is not None:
                        request.body = await self._executor.run_long(queue, request, decode)
                    response: Response = await self._executor.run(queue, request, work)
                    return response
            except TimeoutError:
                request.is_gone = lambda: True  # its next step is skipped
                raise ApiError("timed_out", f"this takes longer than {seconds:g} s") from None
            finally:
                gone.cancel()

    # Answer -----------------------------------------------------------------------------------------------------

    def _failure(self, context: Context, error: Exception) -> Response:
        """Return the response to an error. The error must not be stored: it references the request and its body."""
        if not isinstance(error, UnbasketError):
            logs.failure("a request failed", error, route=context.path)
            error = ApiError("internal", "the service had an error, which its log describes")
        error = to_api_error(error)
        headers = {"content-type": JSON, **_HEADERS, **error.headers}
        return Response(error.status, _encode(error.response()), encoded(headers))

    def _finish(self, context: Context, response: Response) -> None:
        """Give a response its id, count it, and log it unless it is a successful read."""
        seconds, method, status = time.perf_counter() - context.start, context.method, response.status
        number = f"{self._process}-{next(self._numbers):x}"
        response.headers.append((b"x-request-id", number.encode()))
        self._shared.metrics.observe(context.path, method if method in _METHODS else "other", status, seconds)
        is_read = status < 400 and method in ("GET", "HEAD", "OPTIONS")
        if not is_read and not (status == 429 and self._refusals.exceed()):
            logs.responded(method, context.path, status, seconds, number, context.trace)


def _check_headers(context: Context) -> None:
    """Raise if a header that identifies the caller or the kind of body is repeated. Granian checks its lengths."""
    headers, listed = context.headers, context.scope["headers"]
    if len(headers) != len(listed):
        names = [name for name, _ in listed]
        for name in _UNIQUE:
            if names.count(name) > 1:
                raise ApiError("malformed_request", f"the header {name.decode()} comes twice", CLOSE)


async def _disconnected(receive: Receive) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _handle(context: Context, route: Route, fast_path: FastPath | None, request: Request) -> Any:
    """Return the response in a thread, or the steps to it."""
    result = None if fast_path is None else fast_path.measure([request])[0]
    if result is None:
        result = route.handler(request)
    if isinstance(result, Generator):
        return _last_step(context, route, result)
    return _success(context, route, result)


def _last_step(context: Context, route: Route, steps: Steps[Any]) -> Steps[Response]:
    return _success(context, route, (yield from steps))


_heads: dict[str, Headers] = {}  # by media type


def _success(context: Context, route: Route, result: Any) -> Response:
    body = result if isinstance(result, bytes) else _encode(result)
    head = _heads.get(route.media_type)
    if head is None:
        head = _heads[route.media_type] = encoded({"content-type": route.media_type, **_HEADERS})
    headers = head.copy()
    if isinstance(result, ReadyResponse) and not result.ready:
        headers.append((b"retry-after", b"1"))
        return Response(503, body, headers)
    if route.status == 201 and isinstance(result, LearnedResponse):
        headers.append((b"location", context.scope["raw_path"] + b"/" + str(result.basket).encode()))
    response = Response(route.status, body, headers)
    return _tagged(context, response) if route.method == "GET" and route.media_type == JSON else response


def _tagged(context: Context, response: Response) -> Response:
    """Return a response with its entity tag, or 304 to a client that has it already."""
    tag = b'"%b"' % blake2b(response.body, digest_size=12).hexdigest().encode()
    response.headers.append((b"etag", tag))
    known = context.headers.get(b"if-none-match")
    if known is not None and tag in [each.strip().removeprefix(b"W/") for each in known.split(b",")]:
        return Response(304, b"", response.headers)
    return response


def encoded(headers: dict[str, str]) -> Headers:
    """Encode headers."""
    return [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
