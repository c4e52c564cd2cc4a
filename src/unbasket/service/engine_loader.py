"""The engine that the service answers from: opened in the background, closed at the end."""

import gc
import threading
from pathlib import Path

from unbasket import store
from unbasket.errors import NotReadyError
from unbasket.store import DurableRecommender


class Shop:
    """A database that is opened in the background; until then, the service answers that it is not ready."""

    def __init__(self, db: Path) -> None:
        self.db = db
        self.stage = "waiting"
        self.progress = (0, 0)
        self.failure: BaseException | None = None
        self._engine: DurableRecommender | None = None
        self._closing = threading.Event()
        self._loader: threading.Thread | None = None

    @property
    def ready(self) -> bool:
        """Whether questions can be answered."""
        return self._engine is not None

    @property
    def loading(self) -> bool:
        """Whether it is still being opened."""
        return self._loader is not None and self._loader.is_alive()

    @property
    def engine(self) -> DurableRecommender:
        """The engine; an error until it is ready."""
        if self._engine is None:
            done, total = self.progress
            raise NotReadyError(f"the service is not ready: {self.stage}, {done} of {total}. Try again in a moment")
        return self._engine

    def start(self) -> None:
        """Load in a thread; if that fails, `failure` says why."""
        self._loader = threading.Thread(target=self._load_or_fail, name="loader")
        self._loader.start()

    def load(self) -> None:
        """Open the database, and let the first answers be as quick as all others."""
        self._enter("opening")
        engine = store.open(self.db, progress=self._report)
        try:
            self._enter("preparing")
            engine.digest()
            gc.freeze()  # what was loaded stays: the collector need not look at it again and again
        except BaseException:
            engine.close()
            raise
        self._engine, self.stage = engine, "ready"

    def close(self) -> None:
        """Stop loading, or close the engine, which brings everything into one file."""
        self._closing.set()
        if self._loader is not None:
            self._loader.join()
        engine, self._engine, self.stage = self._engine, None, "closed"
        if engine is not None:
            engine.close()

    def _load_or_fail(self) -> None:
        try:
            self.load()
        except BaseException as error:  # noqa: BLE001 - whoever started the thread asks for it
            self.stage, self.failure = "failed", error

    def _enter(self, stage: str) -> None:
        self.stage, self.progress = stage, (0, 0)

    def _report(self, done: int, total: int) -> None:
        self.progress = done, total
        if self._closing.is_set():
            raise NotReadyError("the service was stopped while it was loading")
