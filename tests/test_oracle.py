"""The oracle against values worked out by hand."""

from math import sqrt

import pytest
from tests.oracle import Basket, Id, Oracle, RefusedIdError, counted_groups, group_vector, user_vector

from unbasket.params import Grouping, Params


def oracle(m: int = 2, k: int = 1, alpha: float = 0.5, grouping: Grouping = "fixed") -> Oracle:
    """Return an oracle with decays whose powers are exact in binary, as are the values computed by hand."""
    params = Params(group_size=m, basket_decay=0.5, group_decay=0.25, neighbors=k, alpha=alpha, grouping=grouping)
    return Oracle(params)


def order(model: Oracle, user: Id = "u") -> list[Id]:
    return [basket.basket for basket in model.history(user)]


def grouped(model: Oracle, user: Id = "u") -> list[list[Id]]:
    return [[basket.basket for basket in group] for group in model.groups(user)]


def varying(m: int, times: list[int]) -> Oracle:
    """Return an oracle of a user "u" with a basket per time, named by it, learned oldest first."""
    model = oracle(m, grouping="varying")
    for time in times:
        model.learn("u", ["x"], time, time)
    return model


def three_users(k: int) -> Oracle:
    """Return users with vectors a = z, b = x + y, c = x: distances 1 (c, b), sqrt 2 (c, a), sqrt 3 (b, a)."""
    model = oracle(m=1, k=k)
    model.learn("a", ["z"], 1)
    model.learn("b", ["x", "y"], 1)
    model.learn("c", ["x"], 1)
    return model


def test_group_vector_by_hand() -> None:
    # The weights 0.25, 0.5 and 1, over 3 baskets.
    assert group_vector([{"x"}, {"x", "y"}, {"z"}], 0.5) == {"x": 0.25, "y": 0.5 / 3, "z": 1 / 3}


def test_user_vector_by_hand() -> None:
    # g1 = (0.5 * {x} + {x, y}) / 2 = {x: 0.75, y: 0.5}; g2 = {y}; (0.25 * g1 + g2) / 2
    assert user_vector([[{"x"}, {"x", "y"}], [{"y"}]], 0.5, 0.25) == {"x": 0.09375, "y": 0.5625}


def test_vector_of_a_user_with_three_baskets() -> None:
    model = oracle(m=2)
    model.learn("u", ["x"], 1)
    model.learn("u", ["y", "x", "x"], 2)
    model.learn("u", ["y"], 3)
    assert grouped(model) == [[1, 2], [3]]
    assert model.vector("u") == {"x": 0.09375, "y": 0.5625}


def test_history_shows_items_in_id_order() -> None:
    model = oracle()
    model.learn("u", [100, 10, 9], 1, 5)
    assert model.history("u") == [Basket(1, 5, (9, 10, 100))]


def test_the_first_id_of_a_kind_decides_its_type() -> None:
    model = oracle()
    model.learn(17, ["b", 10, "9"], 1)
    model.learn("17", [9], "2")
    assert model.history("17") == [Basket(1, None, ("10", "9", "b")), Basket(2, None, ("9",))]
    for spelled in ("017", " 17", "A-5", "17.0", ""):
        assert spelled not in model
        with pytest.raises(RefusedIdError):
            model.learn(spelled, ["b"], 3)
    model.forget("17")
    model.learn("A-5", [1], "x")
    assert model.users() == ["A-5"]
    assert model.popular(1) == [(1, 1)]


def test_distances_and_neighbors_of_three_users() -> None:
    model = three_users(k=2)
    assert model.distance("c", "b") == model.distance("b", "c") == 1
    assert model.neighbors_of("c", 2) == [("b", 1.0), ("a", sqrt(2))]
    assert model.neighbors_of("a", 1) == [("c", sqrt(2))]


def test_equally_near_neighbors_are_in_id_order() -> None:
    model = oracle()
    for user in (100, 10, 9, 1):
        model.learn(user, ["x"], 1)
    assert model.users() == [1, 9, 10, 100]
    assert [user for user, _ in model.neighbors_of(9, 3)] == [1, 10, 100]


def test_prediction_with_one_neighbor() -> None:
    assert three_users(k=1).prediction("c") == {"x": 1.0, "y": 0.5}


def test_prediction_with_fewer_neighbors_than_k() -> None:
    assert three_users(k=10).prediction("c") == {"x": 0.75, "y": 0.25, "z": 0.25}


def test_prediction_weighs_the_own_vector_with_alpha() -> None:
    model = oracle(m=1, alpha=0.75)
    model.learn("a", ["x"], 1)
    model.learn("b", ["y"], 1)
    assert model.prediction("a") == {"x": 0.75, "y": 0.25}


def test_prediction_of_a_lone_user_is_their_own_share() -> None:
    model = oracle(m=1, alpha=0.75)
    model.learn("a", ["x"], 1)
    assert model.prediction("a") == {"x": 0.75}


def test_recommendations_are_the_highest_scores_with_ties_by_id() -> None:
    assert three_users(k=2).recommend("c", 2) == [("x", 0.75), ("y", 0.25)]


def test_popular_counts_baskets_with_ties_by_id() -> None:
    model = oracle()
    model.learn("a", ["x", "y"], 1)
    model.learn("a", ["y", "w"], 2)
    model.learn("b", ["y", "v"], 1)
    assert model.popular(3) == [("y", 3), ("v", 1), ("w", 1)]


def test_relearning_the_same_basket_changes_nothing() -> None:
    model = oracle()
    model.learn("u", ["x"], 1, 10)
    model.learn("u", ["y"], 2, 20)
    before = model.history("u")
    model.learn("u", ["x"], 1)
    model.learn("u", ["x"], 1, 10)
    assert model.history("u") == before


@pytest.mark.parametrize("time", [None, 10])
def test_other_items_replace_a_basket_in_place(time: int | None) -> None:
    model = oracle()
    model.learn("u", ["x"], 1, 10)
    model.learn("u", ["y"], 2, 20)
    model.learn("u", ["z"], 1, time)
    assert model.history("u") == [(1, 10, ("z",)), (2, 20, ("y",))]


def test_the_same_time_keeps_a_basket_before_an_untimed_one() -> None:
    model = oracle()
    model.learn("u", ["x"], "t10", 10)
    model.learn("u", ["x"], "untimed")
    model.learn("u", ["y"], "t10", 10)
    assert order(model) == ["t10", "untimed"]


def test_another_time_moves_a_basket() -> None:
    model = oracle()
    model.learn("u", ["x"], 1, 10)
    model.learn("u", ["y"], 2, 20)
    model.learn("u", ["x"], 1, 30)
    assert model.history("u") == [(2, 20, ("y",)), (1, 30, ("x",))]


def test_timed_baskets_are_ordered_by_time_then_id() -> None:
    model = oracle()
    for basket, time in [(10, 20), (12, 10), (9, 20), (11, 20), (1, 30)]:
        model.learn("u", ["x"], basket, time)
    assert order(model) == [12, 9, 10, 11, 1]


def test_untimed_baskets_stay_behind_the_timed_one_they_arrived_after() -> None:
    model = oracle()
    model.learn("u", ["x"], "first")
    model.learn("u", ["x"], "t10", 10)
    model.learn("u", ["x"], "after10")
    model.learn("u", ["x"], "t30", 30)
    model.learn("u", ["x"], "t20", 20)
    model.learn("u", ["x"], "t5", 5)
    model.learn("u", ["x"], "t40", 40)
    assert order(model) == ["first", "t5", "t10", "after10", "t20", "t30", "t40"]


def test_a_time_for_an_untimed_basket_moves_it() -> None:
    model = oracle()
    model.learn("u", ["x"], "t10", 10)
    model.learn("u", ["x"], "late")
    model.learn("u", ["x"], "late", 5)
    assert model.history("u") == [("late", 5, ("x",)), ("t10", 10, ("x",))]


def test_each_form_of_forgetting() -> None:
    model = oracle()
    for basket in [1, 2, 3]:
        model.learn("u", ["x", "y"], basket)
    model.learn("v", ["x"], 1)
    model.forget("u", basket=1)
    assert model.history("u") == [(2, None, ("x", "y")), (3, None, ("x", "y"))]
    model.forget("u", basket=2, item="x")
    assert model.history("u") == [(2, None, ("y",)), (3, None, ("x", "y"))]
    model.forget("u", item="y")
    assert model.history("u") == [(3, None, ("x",))]
    model.forget("u")
    assert model.users() == ["v"]


def test_a_user_is_removed_with_the_last_item() -> None:
    model = oracle()
    model.learn("u", ["x"], 1)
    model.forget("u", basket=1, item="x")
    assert model.users() == []


def test_forgetting_something_unknown_changes_nothing() -> None:
    model = oracle()
    model.learn("u", ["x"], 1)
    model.forget("unknown")
    model.forget("u", basket=2)
    model.forget("u", basket=1, item="y")
    model.forget("u", item="y")
    assert model.users() == ["u"]
    assert model.history("u") == [(1, None, ("x",))]


def test_fixed_groups_close_up_after_a_deletion() -> None:
    model = oracle(m=2)
    for basket in range(1, 6):
        model.learn("u", ["x"], basket)
    model.forget("u", basket=1)
    assert grouped(model) == [[2, 3], [4, 5]]


def test_varying_groups_keep_their_borders_and_the_newest_fills_up() -> None:
    model = varying(2, [1, 2, 3, 4, 5, 6])
    model.forget("u", basket=3)  # started its group, which the next basket starts now
    assert grouped(model) == [[1, 2], [4], [5, 6]]
    model.forget("u", basket=6)
    assert grouped(model) == [[1, 2], [4], [5]]
    model.learn("u", ["x"], 7, 7)
    assert grouped(model) == [[1, 2], [4], [5, 7]]
    model.forget("u", basket=4)  # the only one of its group: its neighbors' groups stay apart
    assert grouped(model) == [[1, 2], [5, 7]]


def test_varying_deletion_inside_a_group_does_not_split_it() -> None:
    model = varying(3, [1, 2, 3])
    model.forget("u", basket=2)
    assert grouped(model) == [[1, 3]]


def test_varying_insertion_splits_a_full_group() -> None:
    model = varying(3, [10, 20, 30, 40])
    model.learn("u", ["x"], 15, 15)
    assert grouped(model) == [[10], [15, 20, 30], [40]]


def test_varying_insertion_joins_the_group_before_it_if_there_is_room() -> None:
    model = varying(2, [10, 20, 30, 40])
    model.forget("u", basket=20)
    model.learn("u", ["x"], 25, 25)
    assert grouped(model) == [[10, 25], [30, 40]]
    model.learn("u", ["x"], 26, 26)  # behind a full group and before another: a group of its own
    assert grouped(model) == [[10, 25], [26], [30, 40]]


def test_varying_insertion_counts_the_whole_group_for_room() -> None:
    model = varying(4, [10, 20, 30])
    model.learn("u", ["x"], 15, 15)
    assert grouped(model) == [[10, 15, 20, 30]]


def test_varying_new_oldest_basket_is_a_group_of_its_own() -> None:
    model = varying(3, [10, 20])
    model.learn("u", ["x"], 5, 5)
    assert grouped(model) == [[5], [10, 20]]


def test_varying_vector_uses_the_groups_as_they_are() -> None:
    model = varying(2, [1, 2, 3])
    model.forget("u", basket=1)
    assert grouped(model) == [[2], [3]]
    assert model.vector("u") == {"x": (0.25 + 1) / 2}


def test_an_unknown_user_is_an_error() -> None:
    with pytest.raises(KeyError, match="unknown"):
        oracle().vector("unknown")


def test_counted_groups_have_the_longer_ones_at_the_end() -> None:
    """As in group_history_list of HaojiHu/TIFUKNN."""
    sizes = {n: [len(group) for group in counted_groups(range(n), 3)] for n in range(1, 9)}
    assert sizes == {
        1: [1], 2: [1, 1], 3: [1, 1, 1], 4: [1, 1, 2], 5: [1, 2, 2], 6: [2, 2, 2], 7: [2, 2, 3], 8: [2, 3, 3],
    }  # fmt: skip


def test_counted_groups_decay_over_the_whole_history() -> None:
    """As in temporal_decay_sum_history: basket i of n by r_b^(n-i), group j by r_g^(m-j), the mean over the groups."""
    model = oracle(m=2, grouping="count")
    for time in range(3):
        model.learn("u", [time], basket=time, time=time)
    assert model.groups("u") == [model.history("u")[:1], model.history("u")[1:]]
    assert model.vector("u") == {0: 0.25 * 0.25 / 2, 1: 0.5 / 2 / 2, 2: 1 / 2 / 2}
    model.forget("u", basket=1)
    model.forget("u", basket=2)
    assert model.vector("u") == {0: 0.25}
