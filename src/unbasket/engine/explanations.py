"""Explanations of a score: the share of each of the user's baskets, and of the neighbors."""

import math
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from unbasket.core.model import FACTOR_ONE, ONE
from unbasket.domain.ids import Id
from unbasket.domain.privacy import PrivacyThreshold
from unbasket.domain.results import BasketShare, Explanation
from unbasket.engine.histories import Record
from unbasket.engine.model import Model
from unbasket.engine.probes import common_part, least_buyers
from unbasket.params import Params


def explain(model: Model, user: Id, items: list[Id], privacy: PrivacyThreshold | None) -> list[Explanation]:
    """Explain the scores of items for a user, with one search for neighbors."""
    with model.lock.reading, model.workspaces.take() as workspace:
        state, owner, items = model.state, model.owner(user), model.canonical_items(items)
        params, records = state.params, state.records(state.users.names[owner])
        codes = [state.items.codes.get(item, -1) for item in items]
        query, wanted = state.query(owner, workspace.fold), np.array(codes, np.int64)
        probe = query if privacy is None else common_part(query, state.index, privacy)
        own, totals, having, found = workspace.search.holders(
            state.index, query, probe, owner, wanted, params.neighbors, state.users.order
        )
        buyers = least_buyers(privacy)
        alpha = state.weigh(query, buyers)
        factors = [FACTOR_ONE if state.sums is None else state.sums.factor(code, buyers) for code in codes]
    if privacy is not None:
        totals[having < privacy.neighbors] = 0
    weights = zip(own.tolist(), totals.tolist(), having.tolist(), strict=True)
    explained = [
        _explanation(
            params,
            item,
            _Weights(alpha, factor / FACTOR_ONE, weight, total, count, found),
            [code in record.items for record in records],
            records,
        )
        for item, code, factor, (weight, total, count) in zip(items, codes, factors, weights, strict=True)
    ]
    return explained if privacy is None else [_shown(each, privacy) for each in explained]


def _shown(exact: Explanation, privacy: PrivacyThreshold) -> Explanation:
    """Return an explanation as the caller may see it; the shares of their own baskets are theirs."""
    return exact._replace(
        score=privacy.score(exact.score),
        neighbors_share=privacy.score(exact.neighbors_share),
        neighbors_with_item=privacy.count(exact.neighbors_with_item),
        neighbors=privacy.count(exact.neighbors),
    )


class _Weights(NamedTuple):
    """Alpha, an item's factor and own weight, its sum over the neighbors, how many have it, how many there are."""

    alpha: float
    factor: float
    own: int
    total: int
    having: int
    found: int


def _explanation(params: Params, item: Id, weights: _Weights, holds: list[bool], records: list[Record]) -> Explanation:
    neighbors_share = (1.0 - weights.alpha) / max(weights.found, 1) * weights.total / ONE
    own_share = weights.alpha * (weights.factor * weights.own) / ONE
    terms = basket_terms(params, holds, [record.opens for record in records])
    whole = math.fsum(terms)
    shares = [
        BasketShare(record.basket, record.time, own_share * term / whole)
        for record, term in zip(records, terms, strict=True)
        if term
    ]
    score = own_share + neighbors_share
    return Explanation(
        item,
        score,
        tuple(shares),
        neighbors_share,
        weights.having,
        weights.found,
        weights.own / ONE,
        weights.alpha,
        weights.factor,
    )


def group_starts(params: Params, opens: list[bool]) -> list[int]:
    """Return the positions of the baskets that start a group; `opens` has the flags of varying groups."""
    if params.grouping == "fixed":
        return list(range(0, len(opens), params.group_size))
    if params.grouping == "varying":
        return [position for position, start in enumerate(opens) if start]
    base, longer = divmod(len(opens), params.group_size)
    sizes = [base] * (params.group_size - longer if base else 0) + [base + 1] * longer
    return list(accumulate(sizes[:-1], initial=0))


def basket_terms(params: Params, holds: list[bool], opens: list[bool]) -> list[float]:
    """Return each basket's term of Eq. uservector for one item, without the factor 1/K.

    It is r_g^(K-j) r_b^(tau-i) / tau for a basket that holds the item, 0 for another; if m is the number of groups, r_b
    decays over the whole history.
    """
    starts, counted = group_starts(params, opens), params.grouping == "count"
    terms = []
    for number, (start, end) in enumerate(pairwise([*starts, len(holds)]), 1):
        age = params.group_decay ** (len(starts) - number)
        newest = (len(holds) if counted else end) - 1
        terms += [
            age * params.basket_decay ** (newest - i) / (end - start) if holds[i] else 0.0 for i in range(start, end)
        ]
    return terms
