"""The workspaces of readers."""

from unbasket.engine.model import Model
from unbasket.engine.thread_pool import THREAD_POOL
from unbasket.params import Params


def test_a_single_reader_gets_the_thread_pool() -> None:
    model = Model(Params())
    for _ in range(2):
        with model.workspaces.take() as first:
            assert first.search.thread_pool is THREAD_POOL
            with model.workspaces.take() as second:
                assert second.search.thread_pool is None
