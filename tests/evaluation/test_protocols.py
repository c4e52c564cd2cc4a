from collections import defaultdict

import pytest

from unbasket.errors import InvalidRequestError
from unbasket.evaluation.protocols import PROTOCOLS, first_of_twins
from unbasket.evaluation.splits import Holdout, all_users_split, hu_split, paper_split


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
