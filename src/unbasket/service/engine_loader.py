"""The engine behind the service: opened in the background, closed at the end."""

import gc
import threading
from pathlib import Path
from typing import Any

from unbasket import store
from unbasket.errors import NotReadyError
from unbasket.store import DurableRecommender


class EngineLoader:
    """A database that is opened in the background. Until it is ready, requests get an error."""

    def __init__(self, db: Path, **options: Any) -> None:
        """`options` are those of `store.open`."""
        self.db, self._options = db, options
        self.stage = "waiting"
        self.progress = (0, 0)
        self._engine: DurableRecommender | None = None
        self._closing = threading.Event()

    @property
    def ready(self) -> bool:
        """Whether the engine is loaded."""
        return self._engine is not None

    @property
    def engine(self) -> DurableRecommender:
        """The engine. Raises until it is ready."""
        if self._engine is None:
            done, total = self.progress
            raise NotReadyError(f"the service is not ready: {self.stage}, {done} of {total}. Try again in a moment")
        return self._engine

    def load(self) -> None:
        """Open the database, and warm it up for the first requests."""
        self.stage = "opening"
        engine = store.open(self.db, progress=self._report, **self._options)
        try:
            self.stage, self.progress = "preparing", (0, 0)
            engine.checkpoint()  # hashes all users and receipts, so the first proof does not wait for it
            gc.freeze()  # loaded objects stay: the garbage collector need not scan them
        except BaseException:
            engine.close()
            raise
        self._engine, self.stage = engine, "ready"

    def cancel(self) -> None:
        """Let `load` raise in its thread, if it has not ended."""
        self._closing.set()

    def close(self) -> None:
        """Close the engine, which merges its write-ahead log into the database."""
        engine, self._engine, self.stage = self._engine, None, "closed"
        if engine is not None:
            engine.close()

    def _report(self, done: int, total: int) -> None:
        self.progress = done, total
        if self._closing.is_set():
            raise NotReadyError("the service was stopped while it was loading")
