"""A shop that is small enough for pencil and paper.

With m = 2, both decays 1/2, alpha 1/2 and two neighbors:

    ann  {milk, bread}, {milk}   milk (1/2 + 1)/2 = 3/4, bread (1/2)/2 = 1/4
    bob  {milk, tea}             milk 1, tea 1
    cat  {tea}                   tea 1
"""

import polars as pl

import unbasket as ub
from unbasket.params import Grouping

GROUPINGS: list[Grouping] = ["fixed", "varying", "count"]
MILK, BREAD, TEA = 0.625, 0.125, 0.5  # ann's scores
CATEGORIES = pl.DataFrame(
    {"item": ["milk", "tea", "bread", "gin"], "name": "a name", "category": ["cold", "hot", "dry", "cold"]}
)


def params(grouping: Grouping = "fixed", neighbors: int = 2) -> ub.Params:
    return ub.Params(group_size=2, basket_decay=0.5, group_decay=0.5, neighbors=neighbors, alpha=0.5, grouping=grouping)


def small_shop() -> ub.Recommender:
    """Return an engine with these baskets."""
    rec = ub.Recommender(params())
    rec.learn("ann", ["milk", "bread"], basket=1, time=10)
    rec.learn("ann", ["milk"], basket=2, time=20)
    rec.learn("bob", ["milk", "tea"], basket=1)
    rec.learn("cat", ["tea"], basket=7)
    return rec


def state(rec: ub.Recommender) -> tuple[object, ...]:
    """Return all that can be observed of a recommender."""
    users = rec.users()
    return (
        rec.digest(),
        [rec.history(user) for user in users],
        [rec.groups(user) for user in users],
        [rec.vector(user) for user in users],
        rec.recommend_many(),
        rec.popular(1000),
        rec.items(),
    )
