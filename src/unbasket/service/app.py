"""The application: parse a request, authorize its caller, ask the engine, answer.

A request that is short is answered on the event loop, where it arrives; all others go to the executor.
"""

import asyncio
import re
import time
from collections.abc import Generator
from functools import partial
from http import HTTPMethod
from itertools import count
from secrets import token_hex
from typing import Any

import msgspec
from aiohttp import web

from unbasket.domain.id_text import parse_id
from unbasket.domain.ids import KINDS
from unbasket.errors import UnbasketError
from unbasket.service import decoding, logs
from unbasket.service.auth import invalid_key
from unbasket.service.clock import INTERVAL
from unbasket.service.errors import ApiError, ClientGoneError, to_api_error
from unbasket.service.executor import Executor, Steps
from unbasket.service.fast_path import FastPath
from unbasket.service.limits import CLOSE, Limits, TokenBuckets, caller_name, read_body
from unbasket.service.openapi import document
from unbasket.service.request import Request, Shared
from unbasket.service.response import Response
from unbasket.service.routes import JSON, ROUTES, Route, Router
from unbasket.service.schemas.responses import ErrorDetail, ErrorResponse, LearnedResponse, ReadyResponse
from unbasket.service.static import static_files

PENALTY = 0.1
"""Seconds until a response 429 is sent, so that a client which retries at once is slowed down."""

_METHODS = set(HTTPMethod)
_LOGGED_REFUSALS = 5  # responses 429 per second
_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff", "server": "unbasket"}
_FILE_METHODS = "GET, HEAD, OPTIONS"
_LARGE = 64 * 1024  # bytes of a body that takes long to decode
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-(?P<id>[0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]([02468ace]|(?P<recorded>[0-9a-f]))")
_TAG_MASK = 2**64 - 1  # a hash of Python is signed
_encode = msgspec.json.Encoder().encode


class Application:
    """The handler of all requests: to the routes of the table, for the page, and for the OpenAPI document."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self._router = Router(ROUTES)
        self._limits = Limits()
        self._executor = Executor(shared.settings.threads)
        self._fast_paths = {route: FastPath(route.batch_handler) for route in ROUTES if route.batch_handler is not None}
        described = _encode(document(ROUTES)), {"content-type": JSON, **_HEADERS}
        self._files = {b"/openapi.json": described, **static_files()}
        self._logged_refusals = TokenBuckets()
        self._process, self._numbers = token_hex(4), count(1)
        self.busy: set[web.RequestHandler] = set()  # connections with a request in progress
        self.is_stopping = False  # whether each connection is closed after its next response

    async def keep_time(self) -> None:
        """Keep the highest time seen, until the task is cancelled."""
        while True:
            await asyncio.to_thread(self.shared.auth.clock.keep)
            await asyncio.sleep(INTERVAL)

    def close(self) -> None:
        """Finish the requests in progress."""
        self.shared.auth.clock.keep()
        self._executor.shutdown()

    async def __call__(self, http: web.BaseRequest) -> Response:
        """Return the response to a request."""
        request = Request(self.shared, http)
        self.busy.add(http.protocol)
        try:
            response = await self._respond(request)
        except ClientGoneError:
            return Response(400, b"", {})  # which nothing receives
        except UnbasketError as error:
            response = failure(to_api_error(error))
        except Exception as error:  # noqa: BLE001 - a bug in a handler must not stop the service
            logs.failure("a request failed", error, route=request.template)
            response = failure(ApiError("internal", "the service had an error, which its log describes"))
        finally:
            self.busy.discard(http.protocol)
        if self.is_stopping:
            response.fields |= CLOSE
        self._record(request, response)
        if response.status == 429:
            await asyncio.sleep(PENALTY)
        return response

    def unreadable(self, http: web.BaseRequest) -> Response:
        """Return the response to a request that aiohttp could not read. The connection is closed after it."""
        request, error = Request(self.shared, http), ApiError("malformed_request")
        try:
            self._limits.count(request)
        except ApiError as too_many:
            error = too_many
        response = failure(error)
        response.fields |= CLOSE
        self._record(request, response)
        self._executor.trim_memory()  # what was received may be large
        return response

    def _record(self, request: Request, response: Response) -> None:
        """Give a response its id, and count it. Log it if it is an error or a write, or if its trace is recorded."""
        seconds, number = time.perf_counter() - request.start, f"{self._process}-{next(self._numbers):x}"
        response.fields["x-request-id"], status = number, response.status
        method = request.method if request.method in _METHODS else "other"
        self.shared.metrics.observe(request.template, method, status, seconds)
        parent = request.headers.get("traceparent")
        trace = None if parent is None else _TRACEPARENT.fullmatch(parent)
        if status < 400 and method in ("GET", "HEAD", "OPTIONS") and not (trace and trace["recorded"]):
            return
        if status == 429:  # of these log only some, since a flood of requests must not flood the log
            try:
                self._logged_refusals.take("all", _LOGGED_REFUSALS)
            except ApiError:
                return
        facts = {"ms": round(1000 * seconds, 3), "request": number} | ({"trace": trace["id"]} if trace else {})
        logs.get().info("response", method=request.method, route=request.template, status=status, **facts)

    async def _respond(self, request: Request) -> Response:
        """Return the response: at once if it is short, else from the executor."""
        route = self._admit(request)
        if isinstance(route, Response):
            return route
        if route.runs_on == "loop":
            return _success(request, route, route.handler(request))
        fast_path = self._fast_paths.get(route)
        if fast_path is not None and fast_path.is_enabled:
            result = await fast_path.handle(request)
            if result is not None:
                return _success(request, route, result)
        return await self._execute(request, route)

    def _admit(self, request: Request) -> Route | Response:
        """Authorize the caller, decode the parameters and return the route; or a response that needs no route."""
        if len(request.headers.getall("Authorization", ())) > 1:  # aiohttp refuses other repeated ones
            raise ApiError("malformed_request", "the header Authorization comes twice", CLOSE)
        raw_path, method = request.raw_path, request.method
        file = self._files.get(raw_path)
        if file is not None and method != "OPTIONS":
            request.template = "static file"
            self._limits.count(request)
            if method not in ("GET", "HEAD"):
                raise ApiError("method_not_allowed", f"this address has {_FILE_METHODS} only", {"allow": _FILE_METHODS})
            content, headers = file
            return _tagged(request, Response(200, content, headers.copy()))
        try:
            if method == "OPTIONS":
                methods = self._router.methods(raw_path) if file is None else _FILE_METHODS
                self._limits.count(request, is_probe=True)
                return Response(204, b"", {"allow": methods, **_HEADERS})
            route, path = self._router.find(method, raw_path)
        except ApiError:
            self._limits.count(request)  # an unknown path counts against the address
            raise
        request.template, request.path = route.path, path
        self._authorize(request, route)
        most = self.shared.settings.max_id_bytes
        if len(raw_path) > most:  # else no id in it can be longer
            decoding.check_sizes([parse_id(path[kind]) for kind in KINDS if kind in path], most, "invalid_path")
        request.query = decoding.decode_query(request.http.rel_url.raw_query_string, route.query)
        return route

    def _authorize(self, request: Request, route: Route) -> None:
        """Raise unless the route admits the caller. An invalid key counts against its address."""
        if not route.roles:
            self._limits.count(request, is_probe=True)
            return
        try:
            request.caller = caller = self.shared.auth.identify(request.headers)
        finally:
            self._limits.count(request)
        if not route.own or "user" in request.path:  # else the route is about the caller only
            caller.check(route.roles, request.path.get("user") if route.own else None)
        if caller.shopper is not None and request.rec.was_forgotten(caller.shopper, caller.presence):
            raise invalid_key()

    async def _execute(self, request: Request, route: Route) -> Response:
        """Return the response of a thread, after reading the body, which takes long to decode if it is large."""
        settings, kind = self.shared.settings, route.runs_on
        assert kind != "loop"
        body = bytearray() if route.body is None else await read_body(request, settings.timeout)
        media_type, is_large = request.headers.get("Content-Type", ""), len(body) > _LARGE
        decode = partial(decoding.decode_body, body, media_type, route, settings.max_id_bytes)
        if not is_large:
            request.body = decode()
        with self._executor.queue(kind, caller_name(request), self._limits.in_progress(request.caller)) as queue:
            work = partial(_handle, request, route, self._fast_paths.get(route))
            try:
                async with asyncio.timeout(settings.timeout):
                    if is_large:
                        request.body = await self._executor.run_long(queue, request, decode)
                    response: Response = await self._executor.run(queue, request, work)
                    return response
            except TimeoutError:
                request.is_abandoned = True  # its next step is skipped
                raise ApiError("timed_out", f"this takes longer than {settings.timeout:g} s") from None
            finally:
                if is_large:
                    del body, decode
                    self._executor.trim_memory()


def _handle(request: Request, route: Route, fast_path: FastPath | None) -> Any:
    """Return the response in a thread, or the steps to it."""
    result = None if fast_path is None else fast_path.measure([request])[0]
    if result is None:
        result = route.handler(request)
    if isinstance(result, Generator):
        return _last_step(request, route, result)
    return _success(request, route, result)


def _last_step(request: Request, route: Route, steps: Steps[Any]) -> Steps[Response]:
    return _success(request, route, (yield from steps))


def _success(request: Request, route: Route, result: Any) -> Response:
    body = result if isinstance(result, bytes) else _encode(result)
    headers = {"content-type": route.media_type, **_HEADERS}
    if isinstance(result, ReadyResponse) and not result.ready:
        return Response(503, body, headers | {"retry-after": "1"})
    if route.status == 201 and isinstance(result, LearnedResponse):
        headers["location"] = f"{request.http.rel_url.raw_path}/{result.basket}"
    response = Response(route.status, body, headers)
    return _tagged(request, response) if route.has_etag else response


def _tagged(request: Request, response: Response) -> Response:
    """Return a response with its entity tag, or 304 to a client that has it already. Tags differ between processes."""
    tag = f'"{hash(response.body) & _TAG_MASK:x}"'
    response.fields["etag"] = tag
    known = request.headers.get("If-None-Match")
    if known is not None and tag in [each.strip().removeprefix("W/") for each in known.split(",")]:
        return Response(304, b"", response.fields)
    return response


def failure(error: ApiError) -> Response:
    """Return the response to an error. The error must not be stored: it references the request and its body."""
    headers = {"content-type": JSON, **_HEADERS, **error.headers}
    return Response(error.status, _encode(ErrorResponse(ErrorDetail(error.code, str(error)))), headers)
