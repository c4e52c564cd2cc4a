"""What one caller may take: requests per second, calls under way, bytes of a body, seconds."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from unbasket.service.auth import Caller, Security
from unbasket.service.errors import ApiError, ClientGoneError
from unbasket.service.settings import Settings

_KEY_RATE, _PUBLIC_RATE = 1000, 50  # requests per second where keys are in use
_CALLS, _SHOPPER_CALLS = 64, 4  # under way of one caller
_THIS_MACHINE = ("127.0.0.1", "::1")
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


class Queue:
    """One caller's calls that are under way. Threads work on some at once, and one may wait for the slow lane."""

    def __init__(self, caller: str, at_once: int) -> None:
        self.caller = caller
        self.thread = asyncio.Semaphore(at_once)
        self.slow = asyncio.Lock()
        self.length = 0


class Turns:
    """The calls of each caller that are under way. Half of the threads at most work for one caller, and the slow lane
    for one caller after the other: whatever they ask for, it keeps nobody else waiting.
    """

    def __init__(self, threads: int) -> None:
        self._at_once = max(1, threads // 2)
        self._queues: dict[str, Queue] = {}

    def enter(self, caller: str, most: int) -> Queue:
        """Count a call until it leaves; an error if `most` of the caller's are under way. Before a thread works on it,
        it waits in the queue for the caller's earlier ones.
        """
        queue = self._queues.get(caller)
        if queue is None:
            queue = self._queues[caller] = Queue(caller, self._at_once)
        if queue.length >= most:
            raise ApiError(
                "too_many_requests", f"{most} of your calls are under way; wait for an answer", {"retry-after": "1"}
            )
        queue.length += 1
        return queue

    def leave(self, queue: Queue) -> None:
        """A call has ended."""
        queue.length -= 1
        if not queue.length:
            del self._queues[queue.caller]


class Limits:
    """What the settings let each caller have: a key much, a shopper and whoever shows no key little."""

    def __init__(self, settings: Settings, security: Security) -> None:
        self.settings = settings
        self._security = security
        self._rates = Rates()
        # Nobody waits for their own writes when they read.
        self._turns = {place: Turns(settings.threads) for place in ("reader", "writer")}

    def count(self, caller: Caller, address: str) -> None:
        """Count a request of somebody who may ask; an error if there were too many."""
        self._rates.take(_label(caller, address), self._rate(is_public=caller.shopper is not None))

    def count_stranger(self, address: str) -> None:
        """Count a request whose sender has shown no key, by the address; an error if there were too many."""
        self._rates.take(f"address {address}", self._rate(is_public=self._security.enabled))

    def count_probe(self, address: str) -> None:
        """Count a request for what needs no key. This machine's own probes always may."""
        if address not in _THIS_MACHINE:
            self.count_stranger(address)

    def enter(self, place: str, caller: Caller, address: str) -> Queue:
        """A call is under way, among the caller's readers or writers; see `Turns.enter`."""
        most = _CALLS if caller.shopper is None else _SHOPPER_CALLS
        return self._turns[place].enter(_label(caller, address), most)

    def leave(self, place: str, queue: Queue) -> None:
        """It has ended."""
        self._turns[place].leave(queue)

    def _rate(self, *, is_public: bool) -> float:
        """The requests per second that a shopper or a stranger (`is_public`), or a key, may make."""
        chosen, usual = (self.settings.public_rate, _PUBLIC_RATE) if is_public else (self.settings.rate, _KEY_RATE)
        if chosen is None:
            return usual if self._security.enabled else 0
        return chosen


def _label(caller: Caller, address: str) -> str:
    """What a caller is counted under: the name, or where there are no keys the address."""
    return caller.name or f"address {address}"


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
        raise ApiError("slow_request", f"the body did not arrive within {seconds:g} s", is_last=True) from None


async def drain(receive: Receive) -> None:
    """Take what a client still sends, for a moment: a connection closed at once would swallow the answer."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_FAREWELL):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    return


def _too_large(most: int) -> ApiError:
    return ApiError("too_large", f"the body has more than {most} bytes", is_last=True)
