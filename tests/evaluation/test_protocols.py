from collections import defaultdict
from collections.abc import Callable

import polars as pl
import pytest

from unbasket.errors import InvalidRequestError
from unbasket.evaluation.protocols import (
    PAPER_EXCLUDED_USER,
    PROTOCOLS,
    Holdout,
    Split,
    all_users_split,
    first_of_twins,
    hide_last_basket,
    hu_split,
    hu_users,
    hu_validation_split,
    paper_split,
)


def test_names_and_splits() -> None:
    assert {name: protocol.split for name, protocol in PROTOCOLS.items()} == {
        "paper": paper_split,
        "all-users": all_users_split,
        "hu": hu_split,
    }
    assert all(name == protocol.name for name, protocol in PROTOCOLS.items())


def test_ndcg_is_that_of_the_publication() -> None:
    assert {name: protocol.ndcg for name, protocol in PROTOCOLS.items()} == {
        "paper": "paper",
        "all-users": "paper",
        "hu": "hu",
    }


def test_only_the_paper_counts_the_query_among_its_neighbors() -> None:
    assert {name: protocol.true_neighbors(300) for name, protocol in PROTOCOLS.items()} == {
        "paper": 299,
        "all-users": 300,
        "hu": 300,
    }
    with pytest.raises(InvalidRequestError, match="not 1"):
        PROTOCOLS["paper"].true_neighbors(1)
    assert PROTOCOLS["hu"].true_neighbors(1) == 1


def test_only_the_paper_scores_twins_once() -> None:
    assert [name for name, protocol in PROTOCOLS.items() if protocol.twins_once] == ["paper"]


def test_only_the_twin_with_the_lowest_id_is_scored() -> None:
    assert first_of_twins([1, 2, 3, 4, 5], ["a", "b", "a", "b", "a"]) == [True, True, False, False, False]


@pytest.mark.needs("tafeng")
def test_the_paper_scores_13904_users_of_tafeng(tafeng: Holdout) -> None:
    """By the paper's equations, 63 users in 19 sets have equal vectors, so 44 are not scored."""
    baskets: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for user, time, item in tafeng.history.select("user", "time", "item").iter_rows():
        baskets[user][time].append(item)
    users = sorted(baskets)
    vectors = [frozenset(_vector(baskets[user]).items()) for user in users]
    first = dict(zip(users, first_of_twins(users, vectors), strict=True))
    assert sum(not flag for flag in first.values()) == 44
    assert sum(first[user] for user in paper_split(*tafeng).queries) == 13_904


def _vector(baskets: dict[int, list[int]], m: int = 7, r_b: float = 0.9, r_g: float = 0.7) -> dict[int, float]:
    groups = (len(baskets) + m - 1) // m
    vector: dict[int, float] = defaultdict(float)
    for position, items in baskets.items():
        group, index = divmod(position - 1, m)
        size = min(m, len(baskets) - group * m)
        weight = r_g ** (groups - 1 - group) / groups * r_b ** (size - 1 - index) / size
        for item in items:
            vector[item] += weight
    return vector


def frame(*rows: tuple[int, int, int]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["user", "basket", "item"], orient="row")


def shop(baskets: dict[int, int]) -> pl.DataFrame:
    """Return a history with the given number of baskets per user, each of two items."""
    return frame(*((u, b, i) for u, count in baskets.items() for b in range(count) for i in (1, 2)))


@pytest.mark.needs("tafeng")
def test_sizes_on_tafeng(tafeng: Holdout) -> None:
    all_users = all_users_split(*tafeng)
    assert (len(all_users.queries), len(all_users.candidates)) == (13_949, 13_949)
    paper = paper_split(*tafeng)
    assert (len(paper.queries), len(paper.candidates)) == (13_948, 13_949)
    assert PAPER_EXCLUDED_USER not in paper.queries
    assert PAPER_EXCLUDED_USER in paper.candidates
    hu = hu_users(*tafeng)
    assert [len(users) for users in hu] == [10_001, 1_111, 2_779]
    assert sum(len(users) for users in hu) == 13_891


def test_sizes_on_the_complete_journey(journey: Holdout) -> None:
    all_users = all_users_split(*journey)
    assert (len(all_users.queries), len(all_users.candidates)) == (2_399, 2_399)
    paper = paper_split(*journey)
    assert (len(paper.queries), len(paper.candidates)) == (2_399, 2_399)  # there is no user 2939
    assert [len(users) for users in hu_users(*journey)] == [1_727, 192, 480]


def test_the_paper_excludes_a_user_of_every_dataset() -> None:
    history = shop({1: 2, PAPER_EXCLUDED_USER: 2})
    paper = paper_split(history, history)
    assert paper.queries.to_list() == [1]
    assert paper.candidates.to_list() == [1, PAPER_EXCLUDED_USER]


def test_hu_divides_users_in_the_order_of_ids(journey: Holdout) -> None:
    shuffled = journey.history.sample(fraction=1, shuffle=True, seed=0)
    training, validation, test = hu_users(shuffled, journey.future)
    in_order = pl.concat([training, validation, test])
    assert in_order.equals(in_order.unique().sort())
    assert test[-1] == 2_500


def test_hu_roles() -> None:
    history, future = shop(dict.fromkeys(range(1, 26), 2)), shop(dict.fromkeys(range(1, 26), 1))
    assert hu_split(history, future).candidates.to_list() == list(range(1, 19))
    assert hu_validation_split(history, future).candidates.to_list() == list(range(1, 19))
    assert hu_validation_split(history, future).queries.to_list() == [19, 20]
    assert hu_split(history, future).queries.to_list() == [21, 22, 23, 24, 25]


def test_hu_keeps_users_with_two_baskets_and_a_future() -> None:
    history = shop({1: 2, 2: 1, 3: 2, 4: 3})
    future = shop({1: 1, 2: 1, 4: 1})
    assert pl.concat(hu_users(history, future)).to_list() == [1, 4]


def test_queries_have_a_history_and_a_future() -> None:
    split = all_users_split(shop({3: 1, 1: 1, 2: 2}), shop({3: 1, 1: 1, 9: 1}))
    assert split.queries.to_list() == [1, 3]
    assert split.candidates.to_list() == [1, 2, 3]


def test_ids_may_be_strings() -> None:
    history = shop({1: 2, PAPER_EXCLUDED_USER: 2}).cast({"user": pl.String})
    assert paper_split(history, history).queries.to_list() == ["1", str(PAPER_EXCLUDED_USER)]


def test_last_basket_is_the_latest_by_time_then_id() -> None:
    history = pl.DataFrame(
        {
            "user": [1, 1, 1, 1, 2, 2],
            "basket": [9, 9, 3, 4, 6, 5],
            "item": [10, 11, 12, 13, 14, 15],
            "time": [1, 1, 7, 7, 2, 2],
        }
    )
    kept, hidden = hide_last_basket(history)
    assert hidden.sort("user").select("user", "basket", "item").rows() == [(1, 4, 13), (2, 6, 14)]
    assert kept.select("user", "basket", "item").rows() == [(1, 9, 10), (1, 9, 11), (1, 3, 12), (2, 5, 15)]
    assert kept.columns == hidden.columns == history.columns


def test_last_basket_without_times_has_the_latest_first_row() -> None:
    """A later row of the first basket does not make it the last."""
    kept, hidden = hide_last_basket(frame((1, 8, 10), (1, 2, 11), (1, 8, 12)))
    assert hidden.rows() == [(1, 2, 11)]
    assert kept.rows() == [(1, 8, 10), (1, 8, 12)]


def test_a_single_basket_is_not_hidden() -> None:
    history = frame((1, 1, 10), (2, 1, 11), (2, 2, 12))
    kept, hidden = hide_last_basket(history)
    assert kept.rows() == [(1, 1, 10), (2, 1, 11)]
    assert hidden.rows() == [(2, 2, 12)]


@pytest.mark.needs("tafeng")
def test_hidden_baskets_of_tafeng(tafeng: Holdout) -> None:
    assert hide_last_basket(tafeng.history).future["user"].n_unique() == 13_891


def test_hidden_baskets_of_the_complete_journey(journey: Holdout) -> None:
    kept, hidden = hide_last_basket(journey.history)
    assert hidden["user"].n_unique() == 2_399
    assert hidden.select("user", "basket").n_unique() == 2_399
    assert len(kept) + len(hidden) == len(journey.history)
    assert kept.join(hidden, on=["user", "basket"], how="semi").is_empty()
    later = (
        hidden.group_by("user")
        .agg(pl.col("time").min())
        .join(kept.group_by("user").agg(before=pl.col("time").max()), on="user")
    )
    assert later.height == 2_399
    assert later.filter(pl.col("time") < pl.col("before")).is_empty()


@pytest.mark.parametrize("protocol_split", [all_users_split, paper_split, hu_split])
def test_no_users_make_an_empty_split(protocol_split: Callable[[pl.DataFrame, pl.DataFrame], Split]) -> None:
    empty = shop({1: 1}).clear()
    assert len(protocol_split(empty, empty).queries) == 0
