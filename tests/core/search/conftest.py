"""The search with one shard and with many, and with and without threads."""

import pytest
from tests.core.search.brute_force import Shop

from unbasket.core.util import Task
from unbasket.engine.workspaces import ThreadPool


class EagerPool(ThreadPool):
    """A pool whose tasks are over before the caller begins."""

    def submit(self, task: Task) -> None:
        task.run()


LAYOUTS: dict[str, tuple[int, ThreadPool | None]] = {
    "one shard": (64, None),
    "shards": (4, None),
    "shards, with threads": (4, ThreadPool(2, users_per_thread=1)),
    "shards, searched by other threads": (4, EagerPool(2, users_per_thread=1)),
}


@pytest.fixture(params=LAYOUTS)
def shard_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Set the size of a shard and the thread pool."""
    size, thread_pool = LAYOUTS[request.param]
    monkeypatch.setattr("unbasket.engine.state.SHARD_SIZE", size)
    monkeypatch.setattr(Shop, "thread_pool", thread_pool)
    return size
