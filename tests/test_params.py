"""Parameters: their ranges, and that equal models have equal Params."""

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from inspect import signature
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unbasket as ub

COUNTS = ["group_size", "neighbors"]
DECAYS = ["basket_decay", "group_decay"]
WHOLE = "must be a whole number from 1 to 2147483647"


def message(**bad: Any) -> str:
    with pytest.raises(ub.InvalidParamsError) as caught:
        ub.Params(**bad)
    return str(caught.value)


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("value", [0, -3, 2**31, 2.0, 1.5, True, "7", None])
def test_counts_are_whole_numbers_from_1(name: str, value: object) -> None:
    assert message(**{name: value}) == f"{name} {WHOLE}, not {value!r}"


@pytest.mark.parametrize("name", DECAYS)
@pytest.mark.parametrize("value", [0, 0.0, -0.5, 1.0001, 2, nan, inf, -inf])
def test_decays_are_above_0_and_at_most_1(name: str, value: float) -> None:
    assert message(**{name: value}).startswith(f"{name} must be above 0 and at most 1, not ")
    assert repr(float(value)) in message(**{name: value})


@pytest.mark.parametrize("value", [-0.001, 1.5, 2, nan, inf])
def test_alpha_is_from_0_to_1(value: float) -> None:
    assert message(alpha=value) == f'alpha must be "learned" or from 0 to 1, not {float(value)!r}'


@pytest.mark.parametrize("name", [*DECAYS, "alpha"])
@pytest.mark.parametrize("value", ["0.5", None, True, [0.5], 1j])
def test_decays_and_alpha_are_numbers(name: str, value: object) -> None:
    kind = '"learned" or a number' if name == "alpha" else "a number"
    assert message(**{name: value}) == f"{name} must be {kind}, not {value!r}"


@pytest.mark.parametrize("given", [{"group_size": 2}, {"grouping": "varying"}])
def test_a_learned_alpha_needs_groups_of_one(given: dict[str, Any]) -> None:
    assert message(**given).startswith('alpha="learned" needs group_size=1 and grouping="fixed", not ')
    assert ub.Params(**given, alpha=0.8).alpha == 0.8


@pytest.mark.parametrize("value", [0, -1.5, 0.0009, 1001, nan, inf])
def test_repurchase_has_a_range(value: float) -> None:
    assert message(repurchase=value) == f"repurchase must be None or from 0.001 to 1000, not {float(value)!r}"
    assert message(repurchase="1") == "repurchase must be a number, not '1'"
    assert ub.Params(repurchase=None).repurchase is None


def test_a_number_for_alpha_has_no_factors() -> None:
    assert ub.Params(alpha=0.5, repurchase=1.5) == ub.Params(alpha=0.5)
    assert ub.Params().changed(alpha=0.5).repurchase is None
    assert ub.Params(alpha=0.5).changed(alpha="learned") == ub.Params()
    assert ub.Params(repurchase=None).changed(neighbors=3) == ub.Params(repurchase=None, neighbors=3)
    assert ub.Params(alpha=0.5).changed(alpha="learned", repurchase=None) == ub.Params(repurchase=None)


@pytest.mark.parametrize("name", [*DECAYS, "alpha"])
def test_a_number_beyond_all_floats_is_out_of_range_too(name: str) -> None:
    assert name in message(**{name: 10**400})


@pytest.mark.parametrize("value", ["Fixed", "", None, 1])
def test_there_are_two_groupings(value: object) -> None:
    assert message(grouping=value) == f'grouping must be "fixed", "varying" or "count", not {value!r}'


def test_the_ends_of_the_ranges_are_allowed() -> None:
    least = ub.Params(group_size=1, neighbors=1, basket_decay=1e-300, group_decay=1e-300, alpha=0)
    most = ub.Params(group_size=2**31 - 1, neighbors=2**31 - 1, basket_decay=1, group_decay=1, alpha=1)
    assert (least.alpha, most.alpha) == (0.0, 1.0)
    assert ub.Params(pool=2**31 - 1, pool_seed=2**53 - 1).seeded(3).pool_seed == 2**53 - 1
    assert ub.Params(pool=1, pool_seed=0).seeded(3).pool_seed == 0


@pytest.mark.parametrize("value", [0, -3, 2**31, 2.0, True, "7"])
def test_a_pool_is_a_whole_number_from_1(value: object) -> None:
    assert message(pool=value) == f"pool {WHOLE}, not {value!r}"


@pytest.mark.parametrize("value", [-1, 2**53, 1.0, True, "7"])
def test_a_seed_is_a_whole_number_that_every_json_parser_reads(value: object) -> None:
    assert message(pool=3, pool_seed=value).startswith("pool_seed must be a whole number from 0 to 9007199254740991, ")


def test_a_seed_is_for_a_pool() -> None:
    assert message(pool_seed=3) == "pool_seed=3 is for a pool. Say how large, as in pool=20_000"
    assert ub.Params().seeded(3) == ub.Params()
    assert ub.Params(pool=5).seeded(3) == ub.Params(pool=5, pool_seed=3)


def test_whole_and_float_numbers_are_the_same_model() -> None:
    whole, real = (
        ub.Params(basket_decay=1, group_decay=1, alpha=0),
        ub.Params(basket_decay=1.0, group_decay=1.0, alpha=0.0),
    )
    assert whole == real
    assert repr(whole) == repr(real)
    assert ub.Recommender(whole).digest() == ub.Recommender(real).digest()


def test_equal_parameters_have_equal_digests() -> None:
    minus, plus = ub.Params(alpha=-0.0), ub.Params(alpha=0.0)
    assert minus == plus
    assert ub.Recommender(minus).digest() == ub.Recommender(plus).digest()


def test_numpy_floats_become_plain_ones() -> None:
    assert type(ub.Params(alpha=np.float64(0.5)).alpha) is float


def test_parameters_do_not_change() -> None:
    params = ub.Params()
    with pytest.raises(FrozenInstanceError):
        params.alpha = 0.1  # type: ignore[misc]


def test_the_defaults_equal_those_in_the_docs() -> None:
    """The command that chose them wrote the page."""
    page = (Path(__file__).parents[1] / "docs" / "evaluation.md").read_text(encoding="utf-8")
    params = ub.Params()
    values = [params.group_size, params.basket_decay, params.group_decay, params.neighbors, params.alpha]
    assert f"| all | defaults | {' | '.join(map(str, values))} |" in page
    assert (params.grouping, params.pool) == ("fixed", None)


def test_a_name_that_is_unknown_gets_a_suggestion() -> None:
    assert message(neighbours=3) == "there is no parameter 'neighbours'. Did you mean 'neighbors'?"
    assert message(k=3).startswith("there is no parameter 'k'. There are group_size, basket_decay, ")


def test_editors_see_the_parameters() -> None:
    assert "neighbors" in signature(ub.Params).parameters


@pytest.mark.parametrize("value", [{"neighbors": 3}, {}, 3, 0, "tafeng", ub.Params])
def test_an_engine_takes_nothing_but_params(value: Any, tmp_path: Path) -> None:
    rec = ub.Recommender()
    with ub.open(tmp_path / "shop.db") as durable:
        calls: list[Callable[[], object]] = [
            lambda: ub.Recommender(value),
            lambda: ub.open(tmp_path / "other.db", value),
            lambda: rec.change_params(value),
            lambda: durable.change_params(value),
        ]
        for call in calls:
            with pytest.raises(ub.InvalidParamsError) as caught:
                call()
            assert str(caught.value).startswith(f"params must be a Params, not {value!r}; ")
    assert not (tmp_path / "other.db").exists()
    assert rec.params == ub.Params()


@pytest.mark.parametrize("given", [{}, {"repurchase": None}, {"alpha": 0.5}, {"pool": 5, "pool_seed": 2}])
def test_the_shown_form_makes_the_same_model(given: dict[str, Any]) -> None:
    params = ub.Params(**given)
    assert eval(repr(params), {"Params": ub.Params}) == params
