"""The first line of defense: what a connection may send, keep and hold back before anybody knows who it is.

uvicorn parses requests with httptools, and limits none of this. Here the bytes and the number of headers, the time
until the last one, the requests that wait on a connection, the answers that nobody reads, and the connections
themselves are limited. What is refused gets an answer in the shape of all our errors, and the connection is closed.
"""

import asyncio
import re
import resource
from asyncio import TimerHandle
from binascii import a2b_qp
from collections import Counter
from collections.abc import Callable, MutableMapping
from typing import Any

import httptools
import msgspec
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from unbasket.service.errors import ApiError

Scope = MutableMapping[str, Any]
Begin = Callable[["Connection", Any], object]
"""Begins to answer a request: by `Connection.answer`, now or later, or by `Connection.run`."""

MAX_ADDRESS = 16 * 1024
"""Bytes of a path and its query together."""
MAX_HEADERS = 64
MAX_HEAD = 32 * 1024
"""Bytes of a request before its body: address and headers."""
MAX_WAITING = 32
"""Requests on one connection that wait for the answers to those before them."""
HEAD_SECONDS = 10.0
"""From the first byte, or the connection, to the last header."""
UNREAD_SECONDS = 30.0
"""That an answer may wait for its reader."""

_SLICE = 16 * 1024  # what is parsed at once: a connection holds at most so much that was not checked
_RESERVE = 64  # file descriptors that connections leave to the store and the log
_ONCE = frozenset({b"authorization", b"content-length", b"content-type", b"host", b"transfer-encoding"})

_MAX_NO_ESCAPES = 100
_NO_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")

_encode = msgspec.json.Encoder().encode


class Doors:
    """The open connections. When there are too many, the one that has been idle for longest is closed for a new one."""

    def __init__(self, most: int) -> None:
        self._most = max(2, min(most, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _RESERVE))
        self._addresses: Counter[str] = Counter()
        self._idle: dict[Connection, None] = {}  # in the order in which they began to wait

    def enter(self, connection: "Connection") -> None:
        """Let a connection in, at the price of another one if need be; an error if all are at work."""
        address = connection.address
        if self._addresses[address] >= self._most // 2:  # nobody alone can shut out everybody else
            self._make_room(address)
        if self._addresses.total() >= self._most:
            self._make_room(None)
        self._addresses[address] += 1
        self._idle[connection] = None

    def leave(self, connection: "Connection") -> None:
        """A connection was closed."""
        self._idle.pop(connection, None)
        self._addresses[connection.address] -= 1
        if not self._addresses[connection.address]:
            del self._addresses[connection.address]

    def work(self, connection: "Connection") -> None:
        """A connection has sent a whole request: it is not closed for another one."""
        self._idle.pop(connection, None)

    def rest(self, connection: "Connection") -> None:
        """A connection's requests were all answered."""
        self._idle[connection] = None

    def _make_room(self, address: str | None) -> None:
        for connection in self._idle:
            if address in (None, connection.address):
                connection.dismiss()
                return
        raise ApiError(
            "too_many_connections", "all connections are in use. Try again in a moment", {"retry-after": "1"}
        )


class Configuration(uvicorn.Config):
    """uvicorn's configuration, with the doors that all of its connections come through.

    An application may `begin` with its requests itself: whatever needs no task of its own costs half as much without.
    """

    def __init__(self, app: Any, doors: Doors, begin: Begin | None = None, **options: Any) -> None:
        super().__init__(app, http=Connection, **options)
        self.doors = doors
        self.begin = begin


class Connection(HttpToolsProtocol):
    """A connection of uvicorn's within limits."""

    config: Configuration
    address = ""
    _current: RequestResponseCycle  # of the request that is being answered; others wait in the pipeline
    _is_held = False  # whether that request waits until earlier answers are read
    _entered = False
    _head = 0  # bytes of the request that is being read; -1 when its headers are complete
    _head_timer: TimerHandle | None = None
    _unread_timer: TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, or refuse it."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        try:
            self.config.doors.enter(self)
        except ApiError as error:
            self.refuse(error)
            return
        self._entered = True
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        """Free what a connection holds."""
        self._end_head()
        self._end_unread()
        self._leave()
        self.pipeline.clear()
        if self.cycle is not None:  # uvicorn tells the newest request, which may have waited for this one
            self._current.disconnected = True
            self._current.message_event.set()
        super().connection_lost(exc)

    def dismiss(self) -> None:
        """Close an idle connection, now: its place is needed."""
        self._leave()
        self.transport.abort()

    def refuse(self, error: ApiError) -> None:
        """Answer with an error, and close; in the middle of another answer, just close."""
        if self._is_answering:
            self.transport.abort()
            return
        body = _encode(error.answer())
        headers = {
            "content-type": "application/json",
            "content-length": str(len(body)),
            "connection": "close",
            **error.headers,
        }
        lines = b"".join(f"{name}: {value}\r\n".encode("latin-1") for name, value in headers.items())
        self.transport.write(STATUS_LINE[error.status] + lines + b"\r\n" + body)
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Parse what has come, a slice at a time."""
        self._unset_keepalive_if_required()
        for start in range(0, len(data), _SLICE):
            if self.transport.is_closing():
                return
            self._parse(data[start : start + _SLICE])
        waits = self._head >= 0 or not self._is_answering  # for the rest of a request
        if waits and self._head_timer is None and not self.transport.is_closing():
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self._too_slow)

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _parse(self, data: bytes) -> None:
        before = self._head
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            return  # to nothing: the request is answered as if it had not asked
        except httptools.HttpParserCallbackError as error:
            cause = error.__context__
            self.refuse(cause if isinstance(cause, ApiError) else _malformed())
            return
        except httptools.HttpParserError:
            self.refuse(_malformed())
            return
        if before >= 0 and self._head == before:  # nothing but a part of a header, which the parser keeps
            self._head += len(data)
            if self._head > MAX_HEAD:
                self.refuse(_head_too_large())

    def on_message_begin(self) -> None:
        """A request begins."""
        self._head = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """A part of the address."""
        super().on_url(url)
        self._head += len(url)
        if len(self.url) > MAX_ADDRESS:
            raise ApiError("address_too_long", f"the address has more than {MAX_ADDRESS} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header. One that says who asks, or where the body ends, must not come twice."""
        super().on_header(name, value)
        self._head += len(name) + len(value) + 4
        if self._head > MAX_HEAD or len(self.headers) > MAX_HEADERS:
            raise _head_too_large()
        name = self.headers[-1][0]
        if name in _ONCE and any(name == earlier for earlier, _ in self.headers[:-1]):
            raise ApiError("malformed_request", f"the header {name.decode('latin-1')} comes twice")
        if name == b"transfer-encoding" and value.strip().lower() != b"chunked":
            raise ApiError("malformed_request", "the one Transfer-Encoding understood here is chunked")

    def on_headers_complete(self) -> None:
        """A request can be answered, or waits for its turn."""
        self._end_head()
        if len(self.pipeline) >= MAX_WAITING:
            raise ApiError("too_many_requests", f"more than {MAX_WAITING} requests wait on this connection")
        self._describe()
        former, self.cycle = self.cycle, self._new_cycle()
        if former is None or former.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def _describe(self) -> None:
        """Put what is known of a request into its scope. uvicorn's own way takes a millisecond for a long path."""
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
        """It is a request's turn."""
        self.config.doors.work(self)
        self._current = cycle
        if self.config.begin is None:
            super()._start_asgi_task(cycle, app)
        elif self.flow.write_paused:
            self._is_held = True
        else:  # not here: the parser, which may have read further requests, waits
            self.loop.call_soon(self.config.begin, self, cycle.scope)

    def run(self, app: ASGIApp) -> None:
        """Let an application answer the request in a task, unless nobody waits for that any more."""
        cycle = self._current

        async def answered(scope: Any, receive: Any, send: Any) -> None:
            await app(scope, receive, send)
            cycle.disconnected |= self.is_gone()  # uvicorn may not know yet, and miss an answer

        super()._start_asgi_task(cycle, answered)

    def is_gone(self) -> bool:
        """Whether nobody waits for the answer any more."""
        return self.transport.is_closing()

    def answer(self, head: bytes, body: bytes) -> None:
        """Answer the request: status and headers, as they are sent, and the body."""
        if not self.is_gone():
            self.write(head, body)
            self.end()

    def answer_later(self, seconds: float, head: bytes, body: bytes) -> None:
        """Let somebody who asks too often wait for the answer. Meanwhile, their place may be needed for others."""
        self.config.doors.rest(self)
        self.loop.call_later(seconds, self.answer, head, body)

    def write(self, head: bytes, body: bytes, *, is_last: bool = False) -> None:
        """Send an answer, in one piece; what the client sends meanwhile belongs to its request until the `end`."""
        cycle = self._current
        cycle.response_started = True
        for header in self.server_state.default_headers:  # the date
            head += b"%b: %b\r\n" % header
        if is_last or not cycle.keep_alive:
            head += b"connection: close\r\n"
        head += b"content-length: %d\r\n\r\n" % len(body)
        self.transport.writelines([head] if cycle.scope["method"] == "HEAD" else [head, body])

    def end(self, *, is_last: bool = False) -> None:
        """The answer is complete: it is the next request's turn, unless this one is the last."""
        cycle = self._current
        cycle.response_complete = True
        cycle.message_event.set()
        if is_last or not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()

    def on_message_complete(self) -> None:
        """A request is complete, with its body and what may come behind that: more headers."""
        self._end_head()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """An answer was written."""
        if not self.pipeline and not self.transport.is_closing():
            self.config.doors.rest(self)
        super().on_response_complete()

    def pause_writing(self) -> None:
        """The answers that nobody has read yet are many."""
        super().pause_writing()
        self._unread_timer = self.loop.call_later(UNREAD_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """They are few again."""
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
            self.refuse(ApiError("slow_request", f"the headers did not arrive within {HEAD_SECONDS:g} s"))

    def _end_unread(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    def _leave(self) -> None:
        if self._entered:
            self._entered = False
            self.config.doors.leave(self)


def unescaped(path: bytes) -> bytes:
    """A path, or a part of one, with its escapes decoded. What only looks like an escape stays, if there is not much.

    `urllib.parse` would take a millisecond for a path full of escapes. Those of quoted-printable text, which differ by
    a character, are decoded in C.
    """
    if b"%" not in path:
        return path
    escaped, others = _NO_ESCAPE.subn(b"=25", path.replace(b"=", b"=3D"), _MAX_NO_ESCAPES + 1)
    if others > _MAX_NO_ESCAPES:
        raise ApiError("malformed_request", f"more than {_MAX_NO_ESCAPES} of the % in the path begin no escape")
    return a2b_qp(escaped.replace(b"%", b"="))


def _head_too_large() -> ApiError:
    return ApiError("headers_too_large", f"address and headers have at most {MAX_HEAD} bytes and {MAX_HEADERS} lines")


def _malformed() -> ApiError:
    return ApiError("malformed_request", "this is not HTTP/1.1 as the service reads it")
