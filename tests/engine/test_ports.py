"""The journal in memory after an interrupt: the next call completes the change, or undoes a load.

Here an interrupt comes at one chosen moment; tests/test_interrupts.py tries all of them.
"""

from contextlib import suppress
from typing import Any

import pytest
from tests.engine.small_shop import small_shop, state

import unbasket as ub
from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.results import Product
from unbasket.engine.digest import Digest
from unbasket.engine.state import EngineState


def interrupt_after(monkeypatch: pytest.MonkeyPatch, kind: type, name: str, *, calls: int = 1) -> None:
    """Let a method raise a KeyboardInterrupt when it has been called so often."""
    method, left = getattr(kind, name), [calls]

    def interrupted(*arguments: Any) -> Any:
        result = method(*arguments)
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(kind, name, interrupted)


def test_a_rename_is_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    rec, expected = small_shop(), small_shop()
    for each in (rec, expected):
        each.suppress("cat", "gin")
    expected.rename("cat", "bob")
    interrupt_after(monkeypatch, EngineState, "learn")
    with pytest.raises(KeyboardInterrupt):
        rec.rename("cat", "bob")
    monkeypatch.undo()
    assert state(rec) == state(expected)
    assert rec.suppressed("bob") == ["gin"]
    assert rec.verify().ok


def test_a_forget_is_completed_with_the_description_of_its_item(monkeypatch: pytest.MonkeyPatch) -> None:
    rec = small_shop()
    rec._journal.describe([Product("bread", "rye"), Product("gin", "not bought")])
    interrupt_after(monkeypatch, Digest, "wipe")
    with pytest.raises(KeyboardInterrupt):
        rec.forget("ann", item="bread")
    monkeypatch.undo()
    assert [product.item for product in rec.catalog] == ["gin"]
    assert rec.verify().ok


def test_a_batch_is_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[ub.Event] = [
        ub.Forget("ann", None, None),
        ub.Learn("dan", ["tea"], 1, None),
        ub.Learn("eve", ["rice"], 1, None),
    ]
    rec, expected = small_shop(), small_shop()
    expected.apply(events)
    interrupt_after(monkeypatch, EngineState, "learn_all")
    with pytest.raises(KeyboardInterrupt):
        rec.apply(events)
    monkeypatch.undo()
    assert state(rec) == state(expected)


def test_a_basket_that_a_batch_moves_twice_stays_before_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learning it again at the first of its times, and then at the other, would move it behind the next one."""
    events = [ub.Learn("dan", ["tea"], 1, 9), ub.Learn("dan", ["tea"], 1, 5), ub.Learn("dan", ["rice"], 2, None)]
    for calls in (1, 2):
        rec = small_shop()
        interrupt_after(monkeypatch, EngineState, "learn_all", calls=calls)
        with suppress(KeyboardInterrupt):
            rec.apply(events)
        monkeypatch.undo()
        assert [basket.basket for basket in rec.history("dan")] == [1, 2]


def test_a_batch_is_completed_in_the_move_of_an_only_basket(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is held about its user and its items stays, though they were in no basket for a moment."""
    rec = small_shop()
    rec.learn("dan", ["gin"], basket=1, time=5)
    rec.suppress("dan", "tea")
    rec._journal.describe([Product("gin", "dry")])
    interrupt_after(monkeypatch, EngineState, "_forget_basket")
    with pytest.raises(KeyboardInterrupt):
        rec.apply([ub.Learn("abe", ["tea"], 1, None), ub.Learn("dan", ["gin"], 1, 9)])
    monkeypatch.undo()
    assert rec.history("dan") == [(1, 9, ("gin",))]
    assert rec.suppressed("dan") == ["tea"]
    assert [product.item for product in rec.catalog] == ["gin"]


def test_a_load_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    rec, expected = small_shop(), small_shop()
    for each in (rec, expected):
        each.suppress("ann", "gin")
    columns = BasketColumns.of([("ann", [(50, None, ["rice"], False)]), ("dan", [(1, None, ["tea"], False)])])
    interrupt_after(monkeypatch, EngineState, "load")
    with pytest.raises(KeyboardInterrupt):
        rec._journal.load(columns, None, None)
    monkeypatch.undo()
    assert state(rec) == state(expected)
    assert rec.suppressed("ann") == ["gin"]
