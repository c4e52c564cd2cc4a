"""Readers beside a writer: every answer is that of the state before an event or after it. Crosses all of the engine."""

import threading
from collections.abc import Callable, Iterator

import pytest

from unbasket import Params, Recommender
from unbasket.core.util import Task
from unbasket.engine.workspaces import ThreadPool, Work

SHOPPERS = [f"shopper {number}" for number in range(40)]
CHANGED = "shopper 0"
SMALL, LARGE = ["item 1", "item 2"], [f"item {number}" for number in range(120)]
ROUNDS = 1500


def shop() -> Recommender:
    """Return shoppers with overlapping baskets; the one that changes is a neighbor of all others."""
    rec = Recommender(Params(neighbors=39, group_size=2, alpha=0.8))
    for number, shopper in enumerate(SHOPPERS):
        for basket in range(3):
            rec.learn(shopper, [f"item {(number * 7 + basket * 3 + i) % 130}" for i in range(20)], basket=basket)
    return rec


def toggle(rec: Recommender) -> None:
    rec.learn(CHANGED, LARGE, basket=99)
    rec.learn(CHANGED, SMALL, basket=99)
    rec.forget(CHANGED, basket=99)
    rec.learn("passer-by", LARGE, basket=1)
    rec.forget("passer-by")


QUERIES: dict[str, Callable[[Recommender], object]] = {
    "recommend the changed": lambda rec: rec.recommend(CHANGED, 30),
    "recommend another": lambda rec: rec.recommend("shopper 5", 30),
    "recommend only new": lambda rec: rec.recommend("shopper 5", 30, only_new=True),
    "similar users": lambda rec: rec.similar_users("shopper 7", 40),
    "explain": lambda rec: rec.explain(CHANGED, "item 2"),
    "vector": lambda rec: rec.vector(CHANGED),
    "history": lambda rec: rec.history(CHANGED),
    "popular": lambda rec: rec.popular(200),
    "digest": lambda rec: rec.digest(),
    "recommend for": lambda rec: rec.recommend_for([["item 3"], ["an unknown item"]], 30),
    "users": lambda rec: rec.users(),
}


def states(ask: Callable[[Recommender], object]) -> list[object]:
    """Return the answers in all states that the writer's events lead to."""
    rec = shop()
    answers = [ask(rec)]
    rec.learn(CHANGED, LARGE, basket=99)
    answers.append(ask(rec))
    rec.learn(CHANGED, SMALL, basket=99)
    answers.append(ask(rec))
    rec.forget(CHANGED, basket=99)
    rec.learn("passer-by", LARGE, basket=1)
    answers.append(ask(rec))
    return answers


@pytest.mark.parametrize("query", QUERIES)
def test_no_reader_sees_half_an_event(query: str) -> None:
    ask = QUERIES[query]
    allowed, rec = states(ask), shop()
    done, wrong, asked = threading.Event(), [], [0, 0]

    def read(number: int) -> None:
        while not done.is_set():
            answer = ask(rec)
            asked[number] += 1
            if answer not in allowed:
                wrong.append(answer)
                return

    readers = [threading.Thread(target=read, args=(number,)) for number in range(2)]
    for reader in readers:
        reader.start()
    for _ in range(ROUNDS // 5):
        toggle(rec)
    done.set()
    for reader in readers:
        reader.join()
    assert not wrong
    assert min(asked) > 10
    assert ask(rec) == allowed[0]
    assert rec.verify().ok


class CountingPool(ThreadPool):
    """A pool that is used even in a small shop, and counts the tasks that were run."""

    def __init__(self) -> None:
        super().__init__(2, users_per_thread=1)
        self.done = 0

    def task(self, work: Work) -> Task:
        def counted() -> None:
            work()
            self.done += 1

        return super().task(counted)


def test_recommend_many_beside_a_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each user's answer is of one state, in whatever thread it was found; users who stay all have an answer."""
    rec, pool = shop(), CountingPool()
    monkeypatch.setattr("unbasket.engine.workspaces.THREAD_POOL", pool)
    allowed = {user: states(lambda rec, user=user: rec.recommend(user, 30)) for user in SHOPPERS}  # type: ignore[misc]
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            toggle(rec)

    writer = threading.Thread(target=write)
    writer.start()
    answers = [rec.recommend_many(n=30) for _ in range(30)]
    while pool.done < 30:
        answers.append(rec.recommend_many(n=30))
    done.set()
    writer.join()
    assert all(workspace.search.residue() == 0 for workspace in rec._model.workspaces._free)
    for answer in answers:
        assert set(SHOPPERS) <= set(answer)
        for user in SHOPPERS:
            assert answer[user] in allowed[user]


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbasket.engine.recommending._CHUNK", 3)
    rec = shop()
    expected = {user: rec.recommend(user) for user in rec.users()}
    for pool in (None, ThreadPool(1, users_per_thread=1), ThreadPool(5, users_per_thread=1)):
        monkeypatch.setattr("unbasket.engine.workspaces.THREAD_POOL", pool)
        assert rec.recommend_many() == expected


def test_an_iterator_that_calls_the_engine_does_not_block_it() -> None:
    """An iterator of the caller runs before the lock is taken, so it may write."""
    rec = shop()

    def users() -> Iterator[str]:
        for user in SHOPPERS[:3]:
            rec.learn(user, ["item 1"], basket=99)
            yield user

    answers: list[object] = []
    thread = threading.Thread(target=lambda: answers.append(rec.recommend_many(users())), daemon=True)
    thread.start()
    thread.join(timeout=20)
    assert answers == [{user: rec.recommend(user) for user in SHOPPERS[:3]}]
