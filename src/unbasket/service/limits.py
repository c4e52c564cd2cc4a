"""Limits per caller: requests per second, requests in progress, bytes of a body, seconds."""

import asyncio
import time
from collections import OrderedDict

from aiohttp import web

from unbasket.service.auth import ANONYMOUS, Caller
from unbasket.service.errors import ApiError, ClientGoneError
from unbasket.service.request import Request

_KEY_RATE, _PUBLIC_RATE = 1000, 50  # requests per second where keys are in use
_IN_PROGRESS, _SHOPPER_IN_PROGRESS = 64, 4  # requests of one caller
_SHOPPER_BODY = 1024 * 1024  # bytes: the largest preview fits, however its ids are escaped
_LOOPBACK = ("127.0.0.1", "::1")
_MOST_CALLERS = 10_000
_BURST = 2.0  # seconds' worth of requests that may come at once
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
CLOSE = {"connection": "close"}


class TokenBuckets:
    """A token bucket per caller, refilled at the caller's rate (per second; 0 is unlimited)."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[str, list[float]] = OrderedDict()  # tokens, and the time when they were counted

    def take(self, caller: str, rate: float) -> None:
        """Take a token for a request. Raises if the bucket is empty."""
        if not rate:
            return
        now, capacity = time.monotonic(), max(1.0, rate * _BURST)
        bucket = self._buckets.setdefault(caller, [capacity, now])
        self._buckets.move_to_end(caller)
        if len(self._buckets) > _MOST_CALLERS:  # the least recent bucket is full, or soon will be
            self._buckets.popitem(last=False)
        tokens = min(capacity, bucket[0] + (now - bucket[1]) * rate)
        bucket[:] = (tokens - 1 if tokens >= 1 else tokens), now
        if tokens < 1:
            wait = (1 - tokens) / rate
            raise ApiError(
                "too_many_requests",
                f"more than {rate:g} requests per second; wait {wait:.1f} s",
                {"retry-after": str(int(wait) + 1)},
            )


class Limits:
    """The limits by kind of caller: high for a key, low for a shopper and for an anonymous caller."""

    def __init__(self) -> None:
        self._buckets = TokenBuckets()

    def count(self, request: Request, *, is_probe: bool = False) -> None:
        """Count a request. Raises if its caller exceeds its rate, or its address if it has no valid key or token.

        Probes from this machine are not limited.
        """
        if is_probe and request.address in _LOOPBACK:
            return
        settings, caller, has_keys = request.shared.settings, request.caller, request.shared.auth.enabled
        is_public = has_keys if caller is ANONYMOUS else caller.shopper is not None
        chosen, usual = (settings.public_rate, _PUBLIC_RATE) if is_public else (settings.rate, _KEY_RATE)
        self._buckets.take(caller_name(request), usual * has_keys if chosen is None else chosen)

    def in_progress(self, caller: Caller) -> int:
        """Return the number of requests that the caller may have in progress."""
        return _IN_PROGRESS if caller.shopper is None else _SHOPPER_IN_PROGRESS


def caller_name(request: Request) -> str:
    """Return the caller's name, or its address if it has none."""
    return request.caller.name or f"address {request.address}"


async def read_body(request: Request, seconds: float) -> bytearray:
    """Read a body with a limit of bytes and seconds. aiohttp discards the rest of one that is refused, for a while."""
    http, most = request.http, request.shared.settings.max_body
    if request.caller.shopper is not None:
        most = min(most, _SHOPPER_BODY)
    if (http.content_length or 0) > most:
        raise _too_large(most)
    if http.headers.get("Expect", "").lower() == "100-continue" and http.transport is not None:
        http.transport.write(_CONTINUE)
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in http.content.iter_any():
                body += chunk
                if len(body) > most:
                    raise _too_large(most)
    except TimeoutError:
        raise ApiError("slow_request", f"the body did not arrive within {seconds:g} s", CLOSE) from None
    except web.RequestPayloadError:
        raise ApiError("malformed_request", "the body is not as its headers say", CLOSE) from None
    except ConnectionError:
        raise ClientGoneError from None
    return body


def _too_large(most: int) -> ApiError:
    return ApiError("too_large", f"the body has more than {most} bytes", CLOSE)
