"""Why an item scores what it does."""

import math
from typing import NamedTuple

import numpy as np

from unbasket.core import ONE
from unbasket.domain.ids import Id
from unbasket.domain.results import BasketShare, Explanation
from unbasket.engine.histories import Record
from unbasket.engine.model import Model
from unbasket.engine.shares import basket_parts
from unbasket.params import Params


def explain(model: Model, user: Id, items: list[Id]) -> list[Explanation]:
    """The parts of the scores of some items for a user, whose neighbors are looked for once."""
    with model.lock.reading, model.workspaces.take() as workspace:
        memory, owner = model.state, model.owner(user)
        params, records = memory.params, memory.records(user)
        codes = [memory.items.codes.get(item, -1) for item in items]
        own, totals, having, found = workspace.search.holders(
            memory.index,
            memory.query(owner, workspace.fold),
            owner,
            np.array(codes, np.int64),
            params.neighbors,
            memory.users.order,
        )
    weights = zip(own.tolist(), totals.tolist(), having.tolist(), strict=True)
    return [
        _explanation(params, item, _Parts(weight, total, count, found), [code in r.items for r in records], records)
        for item, code, (weight, total, count) in zip(items, codes, weights, strict=True)
    ]


class _Parts(NamedTuple):
    """The user's own weight of an item, that of all neighbors, how many of these have it, and how many there are."""

    own: int
    total: int
    having: int
    found: int


def _explanation(params: Params, item: Id, parts: _Parts, holds: list[bool], records: list[Record]) -> Explanation:
    """The shares of a score: of the baskets that hold the item, and of the neighbors."""
    neighbors_share = (1.0 - params.alpha) / max(parts.found, 1) * parts.total / ONE
    own_share = params.alpha * parts.own / ONE
    weights = basket_parts(params, holds, [record.opens for record in records])
    whole = math.fsum(weights)
    shares = [
        BasketShare(record.basket, record.time, own_share * weight / whole)
        for record, weight in zip(records, weights, strict=True)
        if weight
    ]
    return Explanation(item, own_share + neighbors_share, tuple(shares), neighbors_share, parts.having, parts.found)
