"""The slow lane: work that takes long, a piece at a time, with rests.

A thread that computes keeps all others of the process from running Python, the event loop too. Many such threads would
keep it waiting most of the time; a single one that rests lets it run at its usual pace. It is the lane's own: whoever
waits for their turn keeps no thread from other calls.
"""

import ctypes
import sys
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")

Steps = Generator[Callable[[], Any], Any, Result]
"""Work on a call, which yields the pieces of it that take long. The slow lane does these, and sends back their results.

If a piece fails, the work ends there.
"""

_REST = 2.0  # times as long as the piece before has taken


def _hand_back() -> None:
    """Hand free memory back to the system; glibc would keep what large requests have left."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)


class SlowLane(ThreadPoolExecutor):
    """One piece of work is done at a time, in the order of asking. The next one waits until there was a rest."""

    def __init__(self, name: str) -> None:
        super().__init__(1, name)
        self._rested = 0.0

    def submit(self, fn: Callable[Given, Result], /, *args: Given.args, **kwargs: Given.kwargs) -> Future[Result]:
        """Do a piece of work when it is its turn."""
        return super().submit(self._after_a_rest, fn, *args, **kwargs)

    def tidy_up(self) -> None:
        """After large work, when its turn comes, hand the memory that it took back to the system."""
        with suppress(RuntimeError):  # the lane is closed, and so is the service soon
            self.submit(_hand_back)

    def _after_a_rest(self, piece: Callable[Given, Result], /, *args: Given.args, **kwargs: Given.kwargs) -> Result:
        time.sleep(max(0.0, self._rested - time.monotonic()))
        start = time.monotonic()
        try:
            return piece(*args, **kwargs)
        finally:
            end = time.monotonic()
            self._rested = end + _REST * (end - start)
