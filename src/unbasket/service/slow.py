"""The slow lane: work that takes long, a piece at a time, with rests.

A thread that computes keeps all others of the process from running Python, the event loop too. Many such threads would
keep it waiting most of the time; a single one that rests lets it run at its usual pace.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_REST = 2.0  # times as long as the piece before has taken


class SlowLane:
    """One piece of work is done at a time, whoever asks for it. The next one waits until there was a rest."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rested = 0.0

    @contextmanager
    def piece(self) -> Iterator[None]:
        """Do a piece of work meanwhile, when it is its turn."""
        with self._lock:
            time.sleep(max(0.0, self._rested - time.monotonic()))
            start = time.monotonic()
            try:
                yield
            finally:
                end = time.monotonic()
                self._rested = end + _REST * (end - start)
