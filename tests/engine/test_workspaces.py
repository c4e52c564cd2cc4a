"""Workspaces, and the thread pool: tasks, cancellation, errors and forks. See also core/search/test_parallel.py."""

import multiprocessing
import subprocess
import sys
import threading

import pytest
from tests.limits import NO_THREADS

from unbasket.core.util import Task
from unbasket.engine.model import Model
from unbasket.engine.recommender import Recommender
from unbasket.engine.workspaces import THREAD_POOL, ThreadPool, Work
from unbasket.params import Params


def submitted(pool: ThreadPool, work: Work) -> Task:
    task = pool.task(work)
    pool.submit(task)
    return task


def test_tasks_run_in_other_threads() -> None:
    pool, threads = ThreadPool(2), set[int]()
    for _ in range(20):
        submitted(pool, lambda: threads.add(threading.get_ident())).wait()
    assert threading.get_ident() not in threads
    assert 1 <= len(threads) <= 2


def test_a_task_keeps_its_error() -> None:
    pool = ThreadPool(1)
    wrong = submitted(pool, lambda: 1 // 0)
    wrong.wait()
    assert isinstance(wrong.error, ZeroDivisionError)
    right = submitted(pool, lambda: 1)
    right.wait()
    assert right.error is None


def test_a_task_is_cancelled_or_started() -> None:
    pool, begun, go_on, done = ThreadPool(1), threading.Event(), threading.Event(), list[object]()

    def busy() -> None:
        begun.set()
        done.append(go_on.wait(60))

    first = submitted(pool, busy)
    assert begun.wait(60)
    second = submitted(pool, lambda: done.append("second"))
    assert second.cancel()
    assert not first.cancel()
    go_on.set()
    first.wait()
    submitted(pool, lambda: done.append("third")).wait()
    assert done == [True, "third"]


def submit_in_child(answers: "multiprocessing.SimpleQueue[str]") -> None:
    submitted(THREAD_POOL, lambda: answers.put("done")).wait()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(THREAD_POOL, "size", 1)
    submitted(THREAD_POOL, lambda: None).wait()
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=submit_in_child, args=(answers,))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert answers.get() == "done"


def test_a_single_reader_gets_the_thread_pool() -> None:
    model = Model(Params())
    for _ in range(2):
        with model.lock.reading, model.workspaces.take() as first:
            assert first.search.thread_pool is THREAD_POOL
            with model.lock.reading, model.workspaces.take() as second:
                assert second.search.thread_pool is None


ALONE = f"""
import unbasket as ub
from unbasket.engine.workspaces import THREAD_POOL
{NO_THREADS}
THREAD_POOL.size, THREAD_POOL.users_per_thread = 3, 1
rec = ub.Recommender()
for user in range(500):
    rec.learn(user, [user % 7, user % 11], basket=1)
print(rec.recommend_many(range(100)))
print(rec.verify().ok, THREAD_POOL._tasks.qsize())
"""


def test_a_search_without_threads_works_alone() -> None:
    """The system allows no more threads: the answers are the same, and no tasks pile up."""
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=False)
    rec = Recommender()
    for user in range(500):
        rec.learn(user, [user % 7, user % 11], basket=1)
    assert (done.stdout, done.stderr) == (f"{rec.recommend_many(range(100))}\nTrue 0\n", "")


def test_threads_are_started_when_the_system_allows_some_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, done = ThreadPool(1), list[str]()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", _no_thread)
        assert submitted(pool, lambda: done.append("never")).cancel()
    submitted(pool, lambda: done.append("run")).wait()
    assert done == ["run"]


def _no_thread(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")
