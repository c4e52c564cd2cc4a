"""What one caller may take: requests per second, bytes of a body, seconds."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from unbasket.service.errors import ApiError

MAX_ADDRESS = 16 * 1024
"""Bytes of a path and its query together."""

_MOST_CALLERS = 10_000
_BURST = 2.0  # seconds' worth of requests that may come at once
_FAREWELL = 2.0  # seconds that a client whose body is refused has to notice

Receive = Callable[[], Awaitable[Any]]


class Rates:
    """A bucket of requests for each caller, refilled at the caller's rate (per second; 0 is no limit)."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str, rate: float) -> None:
        """Count a request of a caller; an error if they have none left."""
        if not rate:
            return
        now, room = time.monotonic(), max(1.0, rate * _BURST)
        left, then = self._buckets.pop(caller, (room, now))
        left = min(room, left + (now - then) * rate)
        self._buckets[caller] = (max(left - 1, 0.0) if left >= 1 else left), now
        if len(self._buckets) > _MOST_CALLERS:  # who was quiet for longest has a full bucket, or soon
            self._buckets.popitem(last=False)
        if left < 1:
            wait = (1 - left) / rate
            raise ApiError(
                "too_many_requests",
                f"more than {rate:g} requests per second; wait {wait:.1f} s",
                {"retry-after": str(int(wait) + 1)},
            )


class _Queue:
    """One caller's calls that are under way, of which some are worked on at once."""

    def __init__(self, at_once: int) -> None:
        self.free = asyncio.Semaphore(at_once)
        self.length = 0


class Turns:
    """The calls of each caller that are under way. One caller's are worked on by half of the threads at most: whatever
    they ask for, it keeps nobody else waiting.
    """

    def __init__(self, threads: int) -> None:
        self._at_once = max(1, threads // 2)
        self._queues: dict[str, _Queue] = {}

    @asynccontextmanager
    async def turn(self, caller: str, most: int) -> AsyncIterator[None]:
        """Wait for the caller's earlier calls; an error if `most` of them are under way."""
        queue = self._queues.setdefault(caller, _Queue(self._at_once))
        if queue.length >= most:
            raise ApiError(
                "too_many_requests", f"{most} of your calls are under way; wait for an answer", {"retry-after": "1"}
            )
        queue.length += 1
        try:
            async with queue.free:
                yield
        finally:
            queue.length -= 1
            if not queue.length:
                del self._queues[caller]


def check_address(path: bytes, query: bytes) -> None:
    """Refuse an address that is too long."""
    if len(path) + len(query) > MAX_ADDRESS:
        raise ApiError("address_too_long", f"the address has more than {MAX_ADDRESS} bytes")


async def read_body(receive: Receive, announced: bytes | None, most: int, seconds: float) -> bytes:
    """The body of a request, unless it is too large or too slow. `announced` is its Content-Length."""
    if announced is not None and (len(announced) > 18 or int(announced) > most):
        raise _too_large(most)
    parts, size = [], 0
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGoneError
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > most:
                    raise _too_large(most)
                if not message.get("more_body"):
                    return b"".join(parts)
    except TimeoutError:
        raise ApiError("slow_request", f"the body did not arrive within {seconds:g} s", _CLOSE) from None


async def drain(receive: Receive) -> None:
    """Take what a client still sends, for a moment: a connection closed at once would swallow the answer."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_FAREWELL):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    return


class ClientGoneError(Exception):
    """There is nobody to answer to."""


_CLOSE = {"connection": "close"}


def _too_large(most: int) -> ApiError:
    return ApiError("too_large", f"the body has more than {most} bytes", _CLOSE)
