"""Threads that help."""

import multiprocessing
import random
import signal
import threading
import time

import pytest

from unbasket.engine.helpers import HELPERS, Helpers, Task, Work
from unbasket.engine.model import Model
from unbasket.engine.recommender import Recommender
from unbasket.params import Params


def test_tasks_are_done_by_other_threads() -> None:
    threads, names = Helpers(2), set[int]()
    for _ in range(20):
        threads.ask(lambda: names.add(threading.get_ident())).wait()
    assert threading.get_ident() not in names
    assert 1 <= len(names) <= 2


def test_what_goes_wrong_is_told_to_the_one_who_asked() -> None:
    threads = Helpers(1)
    wrong = threads.ask(lambda: 1 // 0)
    wrong.wait()
    assert isinstance(wrong.error, ZeroDivisionError)
    right = threads.ask(lambda: 1)
    right.wait()
    assert right.error is None


def test_a_task_is_given_up_or_begun() -> None:
    threads, begun, go_on, done = Helpers(1), threading.Event(), threading.Event(), list[object]()

    def busy() -> None:
        begun.set()
        done.append(go_on.wait(60))

    first = threads.ask(busy)
    assert begun.wait(60)
    second = threads.ask(lambda: done.append("second"))
    assert second.give_up()
    assert not first.give_up()
    go_on.set()
    first.wait()
    threads.ask(lambda: done.append("third")).wait()
    assert done == [True, "third"]


def ask_in_child(answers: "multiprocessing.SimpleQueue[str]") -> None:
    HELPERS.ask(lambda: answers.put("done")).wait()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HELPERS, "count", 1)
    HELPERS.ask(lambda: None).wait()
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
        with model.desks.take() as first:
            assert first.search.helpers is HELPERS
            with model.desks.take() as second:
                assert second.search.helpers is None


class Asked(Helpers):
    """Helpers who are asked, and have no time."""

    times = 0

    def ask(self, work: Work) -> Task:
        self.times += 1
        return Task(work)


@pytest.mark.parametrize(
    ("questions", "worth", "asked"), [(0, 1, 0), (2, 1, 1), (30, 1, 3), (30, 300, 3), (30, 301, 2), (30, 901, 0)]
)
def test_only_those_are_asked_who_have_enough_to_do(
    questions: int, worth: int, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 30 users, so many want to know what to buy; each of them is compared with all."""
    rec = Recommender(Params(neighbors=5))
    for user in range(30):
        rec.learn(user, [user % 4, user % 7], basket=1)
    helpers = Asked(3, worth)
    monkeypatch.setattr("unbasket.engine.desks.HELPERS", helpers)
    rec.recommend_many(range(questions))
    assert helpers.times == asked


class Interrupting(Helpers):
    """Somebody presses Ctrl-C while a helper is at work, and the one who asked waits for it."""

    ended = False

    def ask(self, work: Work) -> Task:
        begun = threading.Event()

        def interrupted() -> None:
            begun.set()
            time.sleep(0.05)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            time.sleep(0.05)
            work()
            self.ended = True

        task = super().ask(interrupted)
        begun.wait()
        return task


def test_an_interrupt_waits_for_helpers_and_leaves_nothing_to_the_next_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("unbasket.engine.derived.PART_SIZE", 16)
    chance, rec = random.Random(1), Recommender(Params(neighbors=5, alpha=0.3))
    for user in range(30):
        rec.learn(user, chance.sample(range(30), 4), basket=1)
    expected = [rec.recommend(user) for user in range(30)]
    helpers = Interrupting(1)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background, it may be ignored
    try:
        with monkeypatch.context() as patch:
            patch.setattr("unbasket.engine.desks.HELPERS", helpers)
            with pytest.raises(KeyboardInterrupt):
                rec.recommend(7)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert helpers.ended
    assert [rec.recommend(user) for user in range(30)] == expected
