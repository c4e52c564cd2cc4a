"""Interruption is a law: after an interrupt at any bytecode of any call, the next call returns, and the model is exact.

An interrupt is a KeyboardInterrupt, as Ctrl-C and a notebook's stop button cause it. After it, the engine is as before
the call or as after it, and nothing in between. Compiled code and waits have no bytecodes: there the interrupts come at
random times, beside another thread.
"""

import faulthandler
import gc
import random
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import unbasket as ub
from unbasket.core.check.testing import Interrupter
from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.events import Forget, Learn
from unbasket.domain.results import Product
from unbasket.errors import BasketConflictError, BusyError, ErasureBlockedError, UncertainError

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in a callback

Call = Callable[[ub.Recommender], object]

PARAMS = ub.Params(neighbors=2, pool=3, pool_seed=7)
PRODUCTS = [Product(1, "milk", "cold"), Product(2, "tea", "hot"), Product(9, "gin", "cold")]
LEARNS = [  # a basket moves twice before another one, and so does the only basket of a user
    *(Learn(1, [2, 30], 60, 99), Learn(7, [4], 1, None), Learn(1, [2], 60, 15), Learn(1, [5], 61, None)),
    *(Learn(4, [9], 1, 99), Learn(4, [9], 1, 50), Learn(4, [1, 9], 2, None)),
]
ORDERS = BasketColumns.of([(1, [(50, None, [1], False), (51, None, [30], False)]), (8, [(50, None, [31, 2], False)])])

WRITES: dict[str, Call] = {
    "learn": lambda rec: rec.learn(1, [2, 20], basket=40),
    "learn of a new user": lambda rec: rec.learn(7, [1, 20], basket=1),
    "late arrival": lambda rec: rec.learn(1, [3, 20], basket=41, time=15),
    "edit": lambda rec: rec.learn(1, [4], basket=11, time=10),
    "move": lambda rec: rec.learn(4, [9], basket=1, time=99),
    "forget a user": lambda rec: rec.forget(2),
    "forget a basket": lambda rec: rec.forget(1, basket=11),
    "forget an item": lambda rec: rec.forget(1, item=1),
    "forget the last item": lambda rec: rec.forget(4, basket=1, item=9),
    "rename": lambda rec: rec.rename(3, 2),
    "rename that is refused": lambda rec: refused(rec),
    "rename to a new user": lambda rec: rec.rename(4, 11),
    "suppress": lambda rec: rec.suppress(1, 2),
    "allow": lambda rec: rec.allow(4, 1),
    "events": lambda rec: rec.apply([Forget(4, None, None), Learn(5, [9], 1, None), Learn(1, [2], 60, None)]),
    "learns": lambda rec: rec.apply(LEARNS),
    "fit": lambda rec: rec._journal.load(ORDERS, None, None),  # without Polars, which reads frames and has its own bugs
    "describe": lambda rec: rec._journal.describe(PRODUCTS),
    "hide": lambda rec: rec.set_availability(hide=[1, 2], show=[3]),
    "change_params": lambda rec: rec.change_params(replace(rec.params, neighbors=1, group_decay=0.5, pool=2)),
    "change_ids": lambda rec: rec.change_ids(user="text", item="text", basket="text"),
}
READS: dict[str, Call] = {
    "recommend": lambda rec: rec.recommend(1, cart=[2, 77], exclude=[4]),
    "recommend_many": lambda rec: rec.recommend_many(category="cold"),
    "recommend_for": lambda rec: rec.recommend_for([[1], [2, 88]], user=1),
    "explain": lambda rec: rec.explain(1, 1),
    "digest": lambda rec: rec.digest(),
    "verify": lambda rec: rec.verify(),
    "verify a user": lambda rec: rec.verify(1),
    "popular": lambda rec: rec.popular(since=5),
}
CALLS = WRITES | READS


def refused(rec: ub.Recommender) -> None:
    """Try to merge two users who both have a basket 1."""
    with suppress(BasketConflictError):
        rec.rename(4, 2)


def fill(rec: ub.Recommender, kind: type[int] | type[str] = int) -> ub.Recommender:
    """Learn the baskets of a small shop, with ids of this type. User 4 alone has bought item 9."""
    for user in (1, 2, 3):
        rec.learn(kind(user), [kind(1), kind(user)], basket=kind(10 + user), time=10)
        rec.learn(kind(user), [kind(1), kind(2), kind(4 + user)], basket=kind(20 + user), time=20 + user)
    rec.learn(2, [1], basket=1, time=12)
    rec.learn(4, [9], basket=1, time=10)
    rec._journal.describe([*PRODUCTS[2:], Product(30, "not bought yet")])
    rec.suppress(1, 3)
    rec.suppress(4, 1)
    rec.hide([3])
    return rec


@pytest.fixture(scope="module", params=["memory", "texts", "durable"])
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], ub.Recommender]:
    """Return a function that makes an engine with the small shop."""
    if request.param == "memory":
        return lambda: fill(ub.Recommender(PARAMS))
    if request.param == "texts":
        return lambda: fill(ub.Recommender(replace(PARAMS, alpha=0.5, group_size=2, grouping="varying")), str)
    folder, copies = tmp_path_factory.mktemp("shop"), iter(range(sys.maxsize))
    with ub.open(folder / "shop.db", PARAMS) as rec:
        fill(rec)

    def copied() -> ub.Recommender:
        target = folder / str(next(copies))
        target.mkdir()
        for file in folder.glob("shop.db*"):
            shutil.copy(file, target)
        return ub.open(target / "shop.db")

    return copied


def closed(rec: ub.Recommender) -> None:
    if isinstance(rec, ub.DurableRecommender):
        rec.close()
        with ub.open(rec._path) as again:  # closing was complete: no lock is held
            assert again.verify().ok
        shutil.rmtree(rec._path.parent)


@contextmanager
def hanging_is_an_error() -> Iterator[None]:
    """End the tests, with a traceback, if the block takes minutes: a wait for a lock can't be relied on to end."""
    faulthandler.dump_traceback_later(120, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def observed(rec: ub.Recommender) -> tuple[object, ...]:
    """Return what can be seen of an engine."""
    users = rec.users()
    receipts = (rec.receipt_count, len(rec.receipts())) if isinstance(rec, ub.DurableRecommender) else None
    return (
        receipts,
        rec.digest(),
        rec.params,
        [rec.history(user) for user in users],
        [rec.suppressed(user) for user in users],
        rec.items(),
        rec.hidden(),
        sorted((product.item, product.name) for product in rec.catalog),
    )


def states(shop: Callable[[], ub.Recommender], call: Call) -> list[tuple[object, ...]]:
    """Return an engine's state before a call, and after it."""
    rec = shop()
    before = observed(rec)
    call(rec)
    after = observed(rec)
    closed(rec)
    return [before, after]


def bytecodes(shop: Callable[[], ub.Recommender], call: Call) -> int:
    rec, counter = shop(), Interrupter(-1, signal.SIGINT)
    sys.settrace(counter)
    call(rec)
    sys.settrace(None)
    closed(rec)
    return counter.seen


_is_armed: list[bool] = []  # whether a signal interrupts


@pytest.fixture(autouse=True, scope="module")
def signals() -> Iterator[None]:
    """Handle signals as Python does by default, but only in a block that expects them."""

    def interrupt(*_: object) -> None:
        if _is_armed:
            raise KeyboardInterrupt

    former = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGALRM)}
    yield
    for number, handler in former.items():
        signal.signal(number, handler)


_kept: list[BaseException] = []  # the last interrupt, as a notebook keeps it, with its traceback


@contextmanager
def interruptible() -> Iterator[None]:
    try:
        try:
            _is_armed.append(True)
            yield
        finally:
            _is_armed.clear()
    except KeyboardInterrupt as error:
        _kept[:] = [error]


def interrupt(call: Callable[[], object], moment: int) -> None:
    """Interrupt a call at a bytecode."""
    with interruptible():
        try:
            sys.settrace(Interrupter(moment, signal.SIGINT))
            call()
        finally:
            sys.settrace(None)


def interrupt_after(call: Callable[[], object], seconds: float) -> None:
    """Interrupt a call after a time."""
    with interruptible():
        signal.setitimer(signal.ITIMER_REAL, seconds)
        call()
    signal.setitimer(signal.ITIMER_REAL, 0)


def law_of_interruption(rec: ub.Recommender, allowed: list[tuple[object, ...]]) -> None:
    """Check that an engine whose call was interrupted goes on, exactly."""
    with hanging_is_an_error():
        assert observed(rec) in allowed
        assert rec.verify().ok
        digest = rec.digest()
        rec.learn(1, [2, 3], basket=99)
        rec.recommend(1)
        try:
            rec.forget(1, basket=99)
        except ErasureBlockedError:  # the kept traceback holds an interrupted reader of the file
            _kept.clear()
            gc.collect()
            rec.forget(2, basket=99)  # erases what is left, too
        assert rec.digest() == digest
        rec.change_params(replace(rec.params, neighbors=7))
        assert rec.verify().ok
        closed(rec)


def interrupt_at_random_bytecodes(shop: Callable[[], ub.Recommender], call: Call, runs: int) -> None:
    allowed, count = states(shop, call), bytecodes(shop, call)
    for moment in random.sample(range(count), runs):
        rec = shop()
        interrupt(partial(call, rec), moment)
        law_of_interruption(rec, allowed)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_interrupts_at_some_bytecodes(shop: Callable[[], ub.Recommender], call: Call) -> None:
    interrupt_at_random_bytecodes(shop, call, 4)


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_interrupts_at_many_bytecodes(shop: Callable[[], ub.Recommender], call: Call) -> None:
    interrupt_at_random_bytecodes(shop, call, 100)


@pytest.mark.parametrize("name", ["move", "forget an item", "rename", "events", "fit", "allow"])
def test_interrupts_of_the_recovery(shop: Callable[[], ub.Recommender], name: str) -> None:
    """A call is interrupted, and so is the next one, which recovers; its last moments matter most."""
    call = WRITES[name]
    allowed, count = states(shop, call), bytecodes(shop, call)
    for _ in range(6):
        rec, counter, moment = shop(), Interrupter(-1, signal.SIGINT), random.randrange(count)
        interrupt(partial(call, rec), moment)
        sys.settrace(counter)
        rec.users()
        sys.settrace(None)
        closed(rec)
        rec = shop()
        interrupt(partial(call, rec), moment)
        interrupt(rec.users, max(0, counter.seen - random.choice([1, 10, 100, 1000])))
        law_of_interruption(rec, allowed)


def interrupt_at_random_times(shop: Callable[[], ub.Recommender], runs: int) -> None:
    """Interrupt sequences of calls, compiled code and waits for other threads included."""
    chance = random.Random(runs)
    for _ in range(runs):
        rec, stop = shop(), threading.Event()
        other = threading.Thread(target=learn_and_ask, args=(rec, stop), daemon=True)
        other.start()
        for call in chance.choices(list(CALLS.values()), k=5):
            with suppress(ub.UnbasketError):  # a call before it may have removed its user
                interrupt_after(partial(call, rec), chance.uniform(0.00001, 0.002))
        stop.set()
        other.join(60)
        assert not other.is_alive(), "a thread beside an interrupted one hangs"
        with hanging_is_an_error():
            assert rec.verify().ok
            rec.learn("7" if str in {*map(type, rec.users())} else 7, [1], basket=70)
            assert rec.verify().ok
            closed(rec)


def learn_and_ask(rec: ub.Recommender, stop: threading.Event) -> None:
    basket = 1000
    while not stop.is_set():
        basket += 1
        with suppress(BusyError, UncertainError):  # beside an interrupted thread
            rec.learn(5, [1, basket % 7], basket=basket)
            rec.recommend(5)
            rec.digest()


def test_interrupts_at_some_times(shop: Callable[[], ub.Recommender]) -> None:
    interrupt_at_random_times(shop, 25)


@pytest.mark.slow
def test_interrupts_at_many_times(shop: Callable[[], ub.Recommender]) -> None:
    interrupt_at_random_times(shop, 1000)


def test_interrupts_of_opening_and_closing(tmp_path: Path) -> None:
    """A database that was being opened or closed can be opened by the same process."""
    path = tmp_path / "shop.db"
    with ub.open(path, PARAMS) as rec:
        fill(rec)
        expected = observed(rec)
    counter = Interrupter(-1, signal.SIGINT)
    sys.settrace(counter)
    ub.open(path).close()
    sys.settrace(None)
    for moment in random.sample(range(counter.seen), 40):
        interrupt(lambda: ub.open(path).close(), moment)
        _kept.clear()
        gc.collect()  # the traceback keeps the engine that was being opened
        with hanging_is_an_error(), ub.open(path) as rec:
            assert rec.verify().ok
            assert observed(rec) == expected
