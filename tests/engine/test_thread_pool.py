"""Threads that help."""

import multiprocessing
import random
import signal
import threading
import time
import weakref
from collections.abc import Iterable

import pytest

from unbasket.domain.ids import Id
from unbasket.engine.model import Model
from unbasket.engine.recommender import Recommender
from unbasket.engine.thread_pool import HELPERS, Helpers, Task, Work
from unbasket.params import Params


def asked(helpers: Helpers, work: Work) -> Task:
    """What a thread is to do."""
    task = helpers.task(work)
    helpers.ask(task)
    return task


def test_tasks_are_done_by_other_threads() -> None:
    threads, names = Helpers(2), set[int]()
    for _ in range(20):
        asked(threads, lambda: names.add(threading.get_ident())).wait()
    assert threading.get_ident() not in names
    assert 1 <= len(names) <= 2


def test_what_goes_wrong_is_told_to_the_one_who_asked() -> None:
    threads = Helpers(1)
    wrong = asked(threads, lambda: 1 // 0)
    wrong.wait()
    assert isinstance(wrong.error, ZeroDivisionError)
    right = asked(threads, lambda: 1)
    right.wait()
    assert right.error is None


def test_a_task_is_given_up_or_begun() -> None:
    threads, begun, go_on, done = Helpers(1), threading.Event(), threading.Event(), list[object]()

    def busy() -> None:
        begun.set()
        done.append(go_on.wait(60))

    first = asked(threads, busy)
    assert begun.wait(60)
    second = asked(threads, lambda: done.append("second"))
    assert second.give_up()
    assert not first.give_up()
    go_on.set()
    first.wait()
    asked(threads, lambda: done.append("third")).wait()
    assert done == [True, "third"]


class Data:
    """Something that must not be kept."""

    def use(self) -> None:
        """Work with it."""


def test_a_task_that_was_given_up_or_done_holds_nothing() -> None:
    """It may wait for long until a thread finds out that there is nothing to do."""
    given_up, done = Data(), Data()
    tasks, kept = [Task(given_up.use), Task(done.use)], [weakref.ref(given_up), weakref.ref(done)]
    del given_up, done
    assert all(ref() for ref in kept)
    tasks[0].give_up()
    tasks[1].begin()
    assert [ref() for ref in kept] == [None, None]


def ask_in_child(answers: "multiprocessing.SimpleQueue[str]") -> None:
    asked(HELPERS, lambda: answers.put("done")).wait()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HELPERS, "count", 1)
    asked(HELPERS, lambda: None).wait()
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=ask_in_child, args=(answers,))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert answers.get() == "done"


def test_nobody_is_helped_while_others_ask() -> None:
    model = Model(Params())
    for _ in range(2):
        with model.workspaces.take() as first:
            assert first.search.helpers is HELPERS
            with model.workspaces.take() as second:
                assert second.search.helpers is None


class Asked(Helpers):
    """Helpers who are asked, and have no time."""

    def __init__(self, count: int, worth: int) -> None:
        super().__init__(count, worth)
        self.tasks: list[Task] = []

    def ask(self, task: Task) -> None:
        self.tasks.append(task)


@pytest.mark.parametrize(
    ("questions", "worth", "expected"), [(0, 1, 0), (2, 1, 1), (30, 1, 3), (30, 300, 3), (30, 301, 2), (30, 901, 0)]
)
def test_only_those_are_asked_who_have_enough_to_do(
    questions: int, worth: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 30 users, so many want to know what to buy; each of them is compared with all."""
    rec = Recommender(Params(neighbors=5))
    for user in range(30):
        rec.learn(user, [user % 4, user % 7], basket=1)
    helpers = Asked(3, worth)
    monkeypatch.setattr("unbasket.engine.workspaces.HELPERS", helpers)
    rec.recommend_many(range(questions))
    assert len(helpers.tasks) == expected


class Interrupting(Helpers):
    """Somebody presses Ctrl-C while a helper is at work, and the one who asked waits for it."""

    ended = False

    def __init__(self) -> None:
        super().__init__(1, worth=1)
        self._begun = threading.Event()

    def task(self, work: Work) -> Task:
        def interrupted() -> None:
            self._begun.set()
            time.sleep(0.05)
            self.interrupt()
            time.sleep(0.05)
            work()
            self.ended = True

        return super().task(interrupted)

    def ask(self, task: Task) -> None:
        super().ask(task)
        self._begun.wait()

    def interrupt(self) -> None:
        """The one who asked gets an interrupt."""
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


class InterruptingAtOnce(Interrupting):
    """The same, but the one who asked has not yet got back from asking."""

    def ask(self, task: Task) -> None:
        super().ask(task)
        raise KeyboardInterrupt

    def interrupt(self) -> None:
        """There was one already."""


class Failing(Helpers):
    """Something goes wrong in another thread."""

    def task(self, work: Work) -> Task:
        def fail() -> None:
            work()
            raise MemoryError("too much")

        return super().task(fail)

    def ask(self, task: Task) -> None:
        super().ask(task)
        task.wait()


def shop() -> Recommender:
    chance, rec = random.Random(1), Recommender(Params(neighbors=5, alpha=0.3))
    for user in range(30):
        rec.learn(user, chance.sample(range(30), 4), basket=1)
    return rec


@pytest.mark.parametrize("users", [[7], range(30)], ids=["one question", "many questions"])
@pytest.mark.parametrize("kind", [Interrupting, InterruptingAtOnce])
def test_an_interrupt_waits_for_helpers_and_leaves_nothing_to_the_next_question(
    monkeypatch: pytest.MonkeyPatch, kind: type[Interrupting], users: Iterable[Id]
) -> None:
    monkeypatch.setattr("unbasket.engine.state.SHARD_SIZE", 16)
    rec = shop()
    expected = rec.recommend_many()
    helpers = kind()
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background, it may be ignored
    try:
        with monkeypatch.context() as patch:
            patch.setattr("unbasket.engine.workspaces.HELPERS", helpers)
            with pytest.raises(KeyboardInterrupt):
                rec.recommend_many(users)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert helpers.ended
    assert rec.recommend_many() == expected


@pytest.mark.parametrize("users", [[7], range(30)], ids=["one question", "many questions"])
def test_what_goes_wrong_in_a_helper_is_an_error_and_leaves_nothing_to_the_next_question(
    monkeypatch: pytest.MonkeyPatch, users: Iterable[Id]
) -> None:
    monkeypatch.setattr("unbasket.engine.state.SHARD_SIZE", 16)
    rec = shop()
    expected = rec.recommend_many()
    with monkeypatch.context() as patch:
        patch.setattr("unbasket.engine.workspaces.HELPERS", Failing(1, worth=1))
        with pytest.raises(MemoryError, match="too much"):
            rec.recommend_many(users)
    assert rec.recommend_many() == expected
    rec.learn("a writer", [1], basket=1)
