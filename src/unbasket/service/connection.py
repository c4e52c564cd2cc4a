"""Connections with limits, which hold before the caller is authenticated.

uvicorn parses requests with httptools and limits none of this: the bytes and the number of headers, the time until the
last header, pipelined requests, unread responses, and open connections. A violation gets a JSON error, and the
connection is closed.
"""

import asyncio
import re
import resource
from asyncio import TimerHandle
from binascii import a2b_qp
from collections import Counter
from collections.abc import Callable
from typing import Any

import httptools
import msgspec
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from unbasket.service.errors import ApiError

Handle = Callable[["Connection", Any], object]
"""Starts to handle a request: by `Connection.respond`, now or later, or by `Connection.run`."""

MAX_ADDRESS = 16 * 1024
"""Bytes of a path with its query."""
MAX_HEADERS = 64
MAX_HEAD = 32 * 1024
"""Bytes of address and headers."""
MAX_PIPELINED = 32
"""Requests on one connection that wait for earlier responses."""
HEAD_SECONDS = 10.0
"""Seconds from the start of the connection or of a request to its last header."""
UNREAD_SECONDS = 30.0
"""Seconds that a client may take to read responses once its buffer is full."""

_SLICE = 16 * 1024  # bytes parsed at once: the most that a connection can buffer before the limits are checked
_RESERVED = 64  # file descriptors for the store and the log
_UNIQUE = frozenset({b"authorization", b"content-length", b"content-type", b"host", b"transfer-encoding"})

_MAX_LITERAL_PERCENTS = 100
_LITERAL_PERCENT = re.compile(rb"%(?![0-9A-Fa-f]{2})")


class ConnectionLimiter:
    """The open connections. When there are too many, a new one evicts the connection that has been idle for longest."""

    def __init__(self, most: int) -> None:
        self._most = max(2, min(most, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _RESERVED))
        self._addresses: Counter[str] = Counter()
        self._idle: dict[Connection, None] = {}  # least recent first

    def acquire(self, connection: "Connection") -> None:
        """Add a connection, evicting an idle one if need be. Raises if all are busy."""
        address = connection.address
        if self._addresses[address] >= self._most // 2:  # one address cannot lock out all others
            self._evict(address)
        if self._addresses.total() >= self._most:
            self._evict(None)
        self._addresses[address] += 1
        self._idle[connection] = None

    def release(self, connection: "Connection") -> None:
        """Remove a closed connection."""
        self._idle.pop(connection, None)
        self._addresses[connection.address] -= 1
        if not self._addresses[connection.address]:
            del self._addresses[connection.address]

    def mark_busy(self, connection: "Connection") -> None:
        """Protect a connection with a complete request from eviction."""
        self._idle.pop(connection, None)

    def mark_idle(self, connection: "Connection") -> None:
        """Allow the eviction of a connection whose requests have their responses."""
        self._idle[connection] = None

    def _evict(self, address: str | None) -> None:
        for connection in self._idle:
            if address in (None, connection.address):
                connection.evict()
                return
        raise ApiError(
            "too_many_connections", "all connections are in use. Try again in a moment", {"retry-after": "1"}
        )


class Configuration(uvicorn.Config):
    """uvicorn's configuration with the limiter of its connections.

    An application may `handle` requests itself: one that needs no task costs half as much without.
    """

    def __init__(self, app: Any, limiter: ConnectionLimiter, handle: Handle | None = None, **options: Any) -> None:
        super().__init__(app, http=Connection, **options)
        self.limiter = limiter
        self.handle = handle


class Connection(HttpToolsProtocol):
    """A uvicorn connection with limits."""

    config: Configuration
    address = ""
    _current: RequestResponseCycle  # of the request being handled; later ones wait in the pipeline
    _is_held = False  # whether that request waits until the client reads earlier responses
    _acquired = False
    _head = 0  # bytes of the headers being read; -1 when they are complete
    _head_timer: TimerHandle | None = None
    _unread_timer: TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, or reject it."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        try:
            self.config.limiter.acquire(self)
        except ApiError as error:
            self.reject(error)
            return
        self._acquired = True
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers and requests of a closed connection."""
        self._end_head()
        self._end_unread()
        self._release()
        self.pipeline.clear()
        if self.cycle is not None:  # uvicorn notifies the newest request only, which may be a pipelined one
            self._current.disconnected = True
            self._current.message_event.set()
        super().connection_lost(exc)

    def evict(self) -> None:
        """Close an idle connection at once."""
        self._release()
        self.transport.abort()

    def reject(self, error: ApiError) -> None:
        """Send an error and close the connection; in the middle of a response, only close it."""
        if self._is_responding:
            self.transport.abort()
            return
        body = msgspec.json.encode(error.response())
        headers = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
        self.transport.write(STATUS_LINE[error.status] + header_lines(headers | error.headers) + b"\r\n" + body)
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Parse received bytes, a slice at a time."""
        self._unset_keepalive_if_required()
        for start in range(0, len(data), _SLICE):
            if self.transport.is_closing():
                return
            self._parse(data[start : start + _SLICE])
        waits = self._head >= 0 or not self._is_responding  # for the rest of a request head
        if waits and self._head_timer is None and not self.transport.is_closing():
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self._too_slow)

    @property
    def _is_responding(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _parse(self, data: bytes) -> None:
        before = self._head
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            return  # the upgrade is ignored
        except httptools.HttpParserCallbackError as error:
            cause = error.__context__
            self.reject(cause if isinstance(cause, ApiError) else _malformed())
            return
        except httptools.HttpParserError:
            self.reject(_malformed())
            return
        if before >= 0 and self._head == before:  # a part of a header, which the parser buffers
            self._head += len(data)
            if self._head > MAX_HEAD:
                self.reject(_head_too_large())

    def on_message_begin(self) -> None:
        """Start a request."""
        self._head = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Check the length of the address."""
        super().on_url(url)
        self._head += len(url)
        if len(self.url) > MAX_ADDRESS:
            raise ApiError("address_too_long", f"the address has more than {MAX_ADDRESS} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Check a header: one that identifies the caller or delimits the body must be unique."""
        super().on_header(name, value)
        self._head += len(name) + len(value) + 4
        if self._head > MAX_HEAD or len(self.headers) > MAX_HEADERS:
            raise _head_too_large()
        name = self.headers[-1][0]
        if name in _UNIQUE and any(name == earlier for earlier, _ in self.headers[:-1]):
            raise ApiError("malformed_request", f"the header {name.decode('latin-1')} comes twice")
        if name == b"transfer-encoding" and value.strip().lower() != b"chunked":
            raise ApiError("malformed_request", "the one Transfer-Encoding understood here is chunked")

    def on_headers_complete(self) -> None:
        """Handle the request, or append it to the pipeline."""
        self._end_head()
        if len(self.pipeline) >= MAX_PIPELINED:
            raise ApiError("too_many_requests", f"more than {MAX_PIPELINED} requests wait on this connection")
        self._describe()
        former, self.cycle = self.cycle, self._new_cycle()
        if former is None or former.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def _describe(self) -> None:
        """Fill the request's scope. uvicorn's own code takes a millisecond for a long path."""
        address = httptools.parse_url(self.url)
        self.scope["method"] = self.parser.get_method().decode("ascii")
        self.scope["http_version"] = self.parser.get_http_version()
        self.scope["raw_path"] = address.path
        self.scope["path"] = unescaped(address.path).decode(errors="replace")
        self.scope["query_string"] = address.query or b""

    def _new_cycle(self) -> RequestResponseCycle:
        return RequestResponseCycle(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=self.scope["http_version"] != "1.0" and self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Handle the next request."""
        self.config.limiter.mark_busy(self)
        self._current = cycle
        if self.config.handle is None:
            super()._start_asgi_task(cycle, app)
        elif self.flow.write_paused:
            self._is_held = True
        else:  # later, since the parser is still running
            self.loop.call_soon(self.config.handle, self, cycle.scope)

    def run(self, app: ASGIApp) -> None:
        """Let an application respond in a task."""
        cycle = self._current

        async def wrapped(scope: Any, receive: Any, send: Any) -> None:
            await app(scope, receive, send)
            cycle.disconnected |= self.is_gone()  # uvicorn may not know yet, and log a missing response

        super()._start_asgi_task(cycle, wrapped)

    def is_gone(self) -> bool:
        """Return whether the client has disconnected."""
        return self.transport.is_closing()

    def respond(self, head: bytes, body: bytes) -> None:
        """Send the response: encoded status line and headers, and the body."""
        if not self.is_gone():
            self.write(head, body)
            self.end()

    def respond_later(self, seconds: float, head: bytes, body: bytes) -> None:
        """Delay the response to a caller that exceeds its rate. Meanwhile, the connection may be evicted."""
        self.config.limiter.mark_idle(self)
        self.loop.call_later(seconds, self.respond, head, body)

    def write(self, head: bytes, body: bytes, *, is_last: bool = False) -> None:
        """Send a response. Until `end`, received bytes still belong to its request."""
        cycle = self._current
        cycle.response_started = True
        for header in self.server_state.default_headers:  # the date
            head += b"%b: %b\r\n" % header
        if is_last or not cycle.keep_alive:
            head += b"connection: close\r\n"
        head += b"content-length: %d\r\n\r\n" % len(body)
        self.transport.writelines([head] if cycle.scope["method"] == "HEAD" else [head, body])

    def end(self, *, is_last: bool = False) -> None:
        """Complete the response, and start the next request unless this is the last."""
        cycle = self._current
        cycle.response_complete = True
        cycle.message_event.set()
        if is_last or not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()

    def on_message_complete(self) -> None:
        """Complete a request, after its body and trailers."""
        self._end_head()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Mark the connection idle unless requests wait."""
        if not self.pipeline and not self.transport.is_closing():
            self.config.limiter.mark_idle(self)
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Start the abort timer: the client reads too slowly."""
        super().pause_writing()
        self._unread_timer = self.loop.call_later(UNREAD_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Cancel the abort timer: the client has caught up."""
        super().resume_writing()
        self._end_unread()
        if self._is_held:
            self._is_held = False
            self._start_asgi_task(self._current, self.app)

    def _end_head(self) -> None:
        self._head = -1
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _too_slow(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self.reject(ApiError("slow_request", f"the headers did not arrive within {HEAD_SECONDS:g} s"))

    def _end_unread(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    def _release(self) -> None:
        if self._acquired:
            self._acquired = False
            self.config.limiter.release(self)


def header_lines(headers: dict[str, str]) -> bytes:
    """Encode the headers of a response."""
    return b"".join(f"{name}: {value}\r\n".encode("latin-1") for name, value in headers.items())


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


def _head_too_large() -> ApiError:
    return ApiError("headers_too_large", f"address and headers have at most {MAX_HEAD} bytes and {MAX_HEADERS} lines")


def _malformed() -> ApiError:
    return ApiError("malformed_request", "this is not HTTP/1.1 as the service reads it")
