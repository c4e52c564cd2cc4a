"""Limits per caller: requests per second, requests in progress, bytes of a body, seconds."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from starlette.types import Receive

from unbasket.service.auth import Authenticator, Caller
from unbasket.service.errors import ApiError, ClientGoneError
from unbasket.service.settings import Settings

_KEY_RATE, _PUBLIC_RATE = 1000, 50  # requests per second where keys are in use
_IN_PROGRESS, _SHOPPER_IN_PROGRESS = 64, 4  # requests of one caller
_SHOPPER_BODY = 1024 * 1024  # bytes: the largest preview fits, however its ids are escaped
_LOOPBACK = ("127.0.0.1", "::1")
_MOST_CALLERS = 10_000
_BURST = 2.0  # seconds' worth of requests that may come at once
_DRAIN_SECONDS = 2.0  # for a client to notice that its body is rejected


class TokenBuckets:
    """A token bucket per caller, refilled at the caller's rate (per second; 0 is unlimited)."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str, rate: float) -> None:
        """Take a token for a request. Raises if the bucket is empty."""
        if not rate:
            return
        now, capacity = time.monotonic(), max(1.0, rate * _BURST)
        tokens, then = self._buckets.pop(caller, (capacity, now))
        tokens = min(capacity, tokens + (now - then) * rate)
        self._buckets[caller] = (max(tokens - 1, 0.0) if tokens >= 1 else tokens), now
        if len(self._buckets) > _MOST_CALLERS:  # the least recent bucket is full, or soon will be
            self._buckets.popitem(last=False)
        if tokens < 1:
            wait = (1 - tokens) / rate
            raise ApiError(
                "too_many_requests",
                f"more than {rate:g} requests per second; wait {wait:.1f} s",
                {"retry-after": str(int(wait) + 1)},
            )


class CallerQueue:
    """One caller's requests in progress. A few have a thread at once; one may wait for the throttled executor."""

    def __init__(self, threads: int, on_empty: Callable[[], object]) -> None:
        self.threads = asyncio.Semaphore(threads)
        self.throttled = asyncio.Lock()
        self.length = 0
        self._on_empty = on_empty

    def release(self) -> None:
        """End a request."""
        self.length -= 1
        if not self.length:
            self._on_empty()


class ConcurrencyLimiter:
    """The requests in progress by caller. No caller can block others: one caller gets at most half of the threads, and
    the throttled executor alternates between callers.
    """

    def __init__(self, threads: int) -> None:
        self._threads = max(1, threads // 2)
        self._queues: dict[str, CallerQueue] = {}

    def acquire(self, caller: str, most: int) -> CallerQueue:
        """Count a request until the queue's `release`. Raises if the caller has `most` in progress."""
        queue = self._queues.get(caller)
        if queue is None:
            queue = self._queues[caller] = CallerQueue(self._threads, partial(self._queues.pop, caller))
        if queue.length >= most:
            raise ApiError(
                "too_many_requests",
                f"{most} of your requests are in progress; wait for a response",
                {"retry-after": "1"},
            )
        queue.length += 1
        return queue


class Limits:
    """The limits by kind of caller: high for a key, low for a shopper and for an anonymous caller."""

    def __init__(self, settings: Settings, auth: Authenticator) -> None:
        self.settings = settings
        self._auth = auth
        self._buckets = TokenBuckets()
        # Reads do not queue behind the same caller's writes.
        self._limiters = {name: ConcurrencyLimiter(settings.threads) for name in ("reader", "writer")}

    def count(self, caller: Caller, address: str) -> None:
        """Count a request with a valid key or token. Raises if the caller exceeds its rate."""
        self._buckets.take(_label(caller, address), self._rate(is_public=caller.shopper is not None))

    def count_anonymous(self, address: str) -> None:
        """Count a request without a valid key. Raises if the address exceeds its rate."""
        self._buckets.take(f"address {address}", self._rate(is_public=self._auth.enabled))

    def count_probe(self, address: str) -> None:
        """Count a request to a public route. Probes from this machine are not limited."""
        if address not in _LOOPBACK:
            self.count_anonymous(address)

    def acquire(self, pool: str, caller: Caller, address: str) -> CallerQueue:
        """Count a request among the caller's reads or writes; see `ConcurrencyLimiter.acquire`."""
        most = _IN_PROGRESS if caller.shopper is None else _SHOPPER_IN_PROGRESS
        return self._limiters[pool].acquire(_label(caller, address), most)

    def max_body(self, caller: Caller) -> int:
        """Return the bytes of the caller's largest body."""
        most = self.settings.max_body
        return most if caller.shopper is None else min(most, _SHOPPER_BODY)

    def _rate(self, *, is_public: bool) -> float:
        """Return the requests per second of a key, or of a shopper or an anonymous caller (`is_public`)."""
        chosen, usual = (self.settings.public_rate, _PUBLIC_RATE) if is_public else (self.settings.rate, _KEY_RATE)
        if chosen is None:
            return usual if self._auth.enabled else 0
        return chosen


def _label(caller: Caller, address: str) -> str:
    """Return the caller's name, or its address where no keys are in use."""
    return caller.name or f"address {address}"


async def read_body(receive: Receive, announced: bytes | None, most: int, seconds: float) -> bytes:
    """Read a body with a limit of bytes and of seconds. `announced` is its Content-Length."""
    if announced is not None and (len(announced) > 18 or int(announced) > most):
        raise _too_large(most)
    chunks, size = [], 0
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGoneError
                chunks.append(message.get("body", b""))
                size += len(chunks[-1])
                if size > most:
                    raise _too_large(most)
                if not message.get("more_body"):
                    return b"".join(chunks)
    except TimeoutError:
        raise ApiError("slow_request", f"the body did not arrive within {seconds:g} s", is_last=True) from None


async def drain(receive: Receive) -> None:
    """Discard the rest of a body for a moment: a connection closed at once could lose the response."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    return


def _too_large(most: int) -> ApiError:
    return ApiError("too_large", f"the body has more than {most} bytes", is_last=True)
