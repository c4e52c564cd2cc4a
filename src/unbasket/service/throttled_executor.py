"""An executor for long work: one step at a time, with pauses.

A thread that computes blocks all other Python threads, the event loop too. Many such threads would block it most of
the time; a single one that pauses does not slow it down. Waiting requests occupy no thread of other requests.
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
"""A response in the making: yields the steps that take long, and is sent the result of each.

If a step fails, the work ends there.
"""

_PAUSE_FACTOR = 2.0  # a pause takes this times as long as the step before it: long work gets a third of one core


def _trim() -> None:
    """Return free memory to the system; glibc would keep the memory of large requests."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)


class ThrottledExecutor(ThreadPoolExecutor):
    """An executor with one thread, which pauses after each step."""

    def __init__(self, name: str) -> None:
        super().__init__(1, name)
        self._resume_at = 0.0

    def submit(self, fn: Callable[Given, Result], /, *args: Given.args, **kwargs: Given.kwargs) -> Future[Result]:
        """Run a step after those that were submitted before."""
        return super().submit(self._after_pause, fn, *args, **kwargs)

    def trim_memory(self) -> None:
        """Return the memory of large work to the system, after the steps that were submitted before."""
        with suppress(RuntimeError):  # the executor is shut down
            self.submit(_trim)

    def _after_pause(self, step: Callable[Given, Result], /, *args: Given.args, **kwargs: Given.kwargs) -> Result:
        time.sleep(max(0.0, self._resume_at - time.monotonic()))
        start = time.monotonic()
        try:
            return step(*args, **kwargs)
        finally:
            end = time.monotonic()
            self._resume_at = end + _PAUSE_FACTOR * (end - start)
