"""Queries for the best items, of users, carts and histories that are not stored, and for the most popular ones."""

from collections.abc import Iterable
from itertools import chain, islice
from typing import Literal

import numpy as np

from unbasket.core.arrays import Int64s
from unbasket.core.model import ONE, Vector, queries
from unbasket.core.search import Query, QueryBatch
from unbasket.core.util import named
from unbasket.domain.ids import Id
from unbasket.domain.privacy import PrivacyThreshold
from unbasket.domain.results import ItemCount, Progress, Recommendation
from unbasket.domain.validation import Filters
from unbasket.engine.item_filter import ItemFilter
from unbasket.engine.model import Model
from unbasket.engine.probes import common_part, least_buyers
from unbasket.engine.workspaces import Workspace

UnknownUsers = Literal["raise", "skip", "popular"]
_CHUNK = 64  # users answered under one lock, which bounds the time that writers wait
_COUNTED = 16_384  # users counted under the first lock


class RecommendationQueries:
    """Queries for the best items. Arguments are validated already, and mean the same as in `Recommender`."""

    def __init__(self, model: Model, privacy: PrivacyThreshold | None) -> None:
        self._model, self._privacy = model, privacy
        self._state, self._buyers = model.state, least_buyers(privacy)

    def recommend(
        self, user: Id, n: int, filters: Filters | None, only_new: bool, cart: list[Id] | None
    ) -> list[Recommendation]:
        """Return the best items for a user; with a cart, the user may be unknown."""
        with self._model.lock.reading, self._model.workspaces.take() as workspace:
            state, cart = self._state, None if cart is None else self._model.canonical_items(cart)
            owner = state.users.find(user) if cart else self._model.owner(user)
            item_filter = self._model.item_filters.of(filters, cart)
            vector, alpha = self._weighed(owner, cart, workspace)
            if owner is None:
                left_out = state.left_out_for(state.users.canonical(user))
            else:
                left_out = owner
                item_filter = self._for_user(item_filter, state.users.names[owner], owner, only_new)
            return self._shown(self._best(vector, alpha, left_out, n, item_filter, workspace))

    def recommend_many(
        self,
        users: list[Id] | None,
        n: int,
        filters: Filters | None,
        only_new: bool,
        unknown: UnknownUsers,
        progress: Progress | None,
    ) -> dict[Id, list[Recommendation]]:
        """Return the best items for many users, or for all."""
        name = self._model.known_user if unknown == "raise" else self._state.users.canonical
        with self._model.lock.reading:
            wanted = self._state.users.sorted() if users is None else list(map(name, users))
        answers: dict[Id, list[Recommendation]] = {}
        for start in range(0, len(wanted), _CHUNK):
            answers.update(self._recommend_chunk(wanted[start : start + _CHUNK], n, filters, only_new))
            if progress is not None:
                progress(min(start + _CHUNK, len(wanted)), len(wanted))
        if users is None or unknown != "popular":
            return answers
        popular = [
            Recommendation(item, count)
            for item, count in Popularity(self._model, self._privacy).most_common(n, filters)
        ]
        return {user: answers.get(user, popular) for user in wanted}

    def recommend_batch(
        self, users: list[Id], n: int, only_new: bool, timeout: float | None
    ) -> list[tuple[Id, list[Recommendation]] | None]:
        """Return the users' ids as they are held, with their best items; None for an unknown user."""
        state, batch, alpha = self._state, dict[int, Query](), 0.0
        with self._model.lock.reading_within(timeout), self._model.workspaces.take() as workspace:
            item_filter, names = self._model.item_filters.of(None, None), state.users.names
            owners = [state.users.find(user) for user in users]
            for number, owner in enumerate(owners):
                if owner is not None:
                    own_filter = self._for_user(item_filter, names[owner], owner, only_new)
                    vector, alpha = self._weighed(owner, None, workspace)  # which is the same for all
                    batch[number] = self._query(vector, owner, own_filter, n)
            answers = dict(zip(batch, self._run([*batch.values()], alpha, workspace), strict=True))
            return [
                None if owner is None else (names[owner], self._shown(answers[number]))
                for number, owner in enumerate(owners)
            ]

    def _recommend_chunk(
        self, users: list[Id], n: int, filters: Filters | None, only_new: bool
    ) -> dict[Id, list[Recommendation]]:
        batch, alpha = {}, 0.0
        with self._model.lock.reading, self._model.workspaces.take() as workspace:
            item_filter, codes = self._model.item_filters.of(filters, None), self._state.users.codes
            for user in users:
                owner = codes.get(user)
                if owner is not None:
                    own_filter = self._for_user(item_filter, user, owner, only_new)
                    vector, alpha = self._weighed(owner, None, workspace)  # which is the same for all
                    batch[user] = self._query(vector, owner, own_filter, n)
            answers = self._run([*batch.values()], alpha, workspace)
            return {user: self._shown(best) for user, best in zip(batch, answers, strict=True)}

    def recommend_for(
        self, history: list[list[Id]], n: int, user: Id | None, filters: Filters | None, cart: list[Id] | None
    ) -> list[Recommendation]:
        """Return the best items for a history that is not stored; `user` is left out of the neighbors."""
        with self._model.lock.reading, self._model.workspaces.take() as workspace:
            state, baskets = self._state, self._canonical_baskets([*history, cart or []])
            *_, cart = baskets
            unknown: dict[Id, int] = {}  # items in no basket, with codes for this query only
            codes = [self._codes_with(basket, unknown) for basket in baskets if basket]
            query = queries.query(codes, workspace.fold, state.rule)
            item_filter, left_out = self._model.item_filters.of(filters, cart or None), -1
            banned = set(cart)
            if user is None:
                alpha = state.weigh(query, self._buyers)
            else:
                name = state.users.canonical(user)
                alpha = state.weigh(query, self._buyers, state.users.codes.get(name), workspace.fold)
                left_out = state.left_out_for(name)
                item_filter = self._for_user(item_filter, name, left_out, only_new=False)
                banned |= state.suppressed.get(name, set())
            vector, own = query.split(len(state.items.names))
            best = self._best(vector, alpha, left_out, n, item_filter, workspace)
            allowed = self._model.item_filters.allowed([item for item in unknown if item not in banned], filters)
        best += [Recommendation(item, alpha * own.get(unknown[item], 0.0) / ONE) for item in allowed]
        best = sorted((each for each in best if each.score > 0), key=lambda each: (-each.score, each.item))[:n]
        return self._shown(best)

    def _canonical_baskets(self, baskets: list[list[Id]]) -> list[list[Id]]:
        """Return the distinct items of each basket as they are held; ids of items that are new here are one column."""
        items = iter(self._model.canonical_items([*chain.from_iterable(baskets)]))
        return [list(dict.fromkeys(islice(items, len(basket)))) for basket in baskets]

    def _codes_with(self, items: list[Id], unknown: dict[Id, int]) -> list[int]:
        """Return the codes of items; those without one get further codes, beyond all others, in `unknown`."""
        known, first = self._state.items.codes, len(self._state.items.names)
        codes = [known.get(item) for item in items]
        return [
            unknown.setdefault(item, first + len(unknown)) if code is None else code
            for item, code in zip(items, codes, strict=True)
        ]

    def _weighed(self, owner: int | None, cart: list[Id] | None, workspace: Workspace) -> tuple[Vector, float]:
        """Return the vector of a user with a cart, with its own weights, and alpha.

        Items of the cart without a code count for the learned weights only: no vector of another user has them.
        """
        state = self._state
        if owner is not None and cart is None:
            vector = state.query(owner, workspace.fold)
            return vector, state.weigh(vector, self._buyers)
        codes = self._codes_with(cart or [], {})
        if owner is None:
            vector = queries.query([codes], workspace.fold, state.rule)
        else:
            vector = queries.query_with(state.histories, owner, codes, workspace.fold, state.rule)
        alpha = state.weigh(vector, self._buyers, owner, workspace.fold)
        return vector.split(len(state.items.names))[0], alpha

    def _for_user(self, item_filter: ItemFilter | None, user: Id, owner: int, only_new: bool) -> ItemFilter | None:
        """Return the filter with the user's suppressed items banned too and, with `only_new`, their purchases."""
        suppressed = self._state.suppressed.get(user)
        if suppressed is None and not only_new:
            return item_filter
        banned = [np.array(self._codes_of(suppressed or []), np.uint32)]
        if only_new:
            banned.append(queries.bought(self._state.histories, owner))
        if item_filter is None:
            return ItemFilter(np.concatenate(banned), None)
        return item_filter._replace(banned=np.concatenate([item_filter.banned, *banned]))

    def _best(
        self, vector: Vector, alpha: float, left_out: int, n: int, item_filter: ItemFilter | None, workspace: Workspace
    ) -> list[Recommendation]:
        return self._run([self._query(vector, left_out, item_filter, n)], alpha, workspace)[0]

    def _query(self, vector: Vector, left_out: int, item_filter: ItemFilter | None, n: int) -> Query:
        n, privacy = min(n, len(self._state.items.names)), self._privacy
        if privacy is None:
            return Query(vector, left_out, item_filter, n)
        probe = common_part(vector, self._state.index, privacy)
        return Query(vector, left_out, item_filter, n, probe, privacy.neighbors)

    def _shown(self, best: list[Recommendation]) -> list[Recommendation]:
        """Return recommendations as the caller may see them, in the order of their exact scores."""
        privacy = self._privacy
        return best if privacy is None else [Recommendation(item, privacy.score(score)) for item, score in best]

    def _run(self, batch: list[Query], alpha: float, workspace: Workspace) -> list[list[Recommendation]]:
        state, names = self._state, self._state.items.names
        orders = state.users.order, state.items.order
        workspace.search.recommend(QueryBatch(state.index, batch, state.params.neighbors, alpha, orders))
        return [named(Recommendation, query.take(), names) for query in batch]

    def _codes_of(self, items: Iterable[Id]) -> list[int]:
        codes = self._state.items.codes
        return [codes[item] for item in items if item in codes]


class Popularity:
    """Basket counts per item. Arguments are validated already, and mean the same as in `Recommender`."""

    def __init__(self, model: Model, privacy: PrivacyThreshold | None) -> None:
        self._model, self._privacy = model, privacy
        self._state = model.state

    def most_common(self, n: int, filters: Filters | None) -> list[ItemCount]:
        """Return the n items in most baskets, from counts that the histories maintain."""
        with self._model.lock.reading:
            return self._largest(queries.popularity(self._state.histories), n, filters)

    def most_common_since(self, time: int, n: int, filters: Filters | None) -> list[ItemCount]:
        """Return the n items in most baskets of this time or later.

        The users are counted in chunks, each under its own lock, to bound the time that writers wait.
        """
        state = self._state
        first, size, changes = 0, _COUNTED, -1
        counts = np.zeros(0, np.int64)
        while True:
            with self._model.lock.reading:
                if state.items.changes != changes:  # codes may mean other items now: start over, in larger chunks
                    first, size, changes = 0, 4 * size, state.items.changes
                    counts = np.zeros(state.histories.item_room, np.int64)
                queries.add_popularity(state.histories, first, first + size, time, counts)
                first += size
                if first >= len(state.users.names):
                    return self._largest(counts, n, filters)

    def _largest(self, counts: Int64s, n: int, filters: Filters | None) -> list[ItemCount]:
        item_filter, items = self._model.item_filters.of(filters, None), self._state.items
        allowed = None
        if item_filter is not None:
            counts[item_filter.banned] = 0
            allowed = item_filter.allowed
        largest = queries.largest(counts, allowed, items.order, min(n, len(items.names)))
        found = named(ItemCount, largest, items.names)
        if self._privacy is None:
            return found
        shown = [ItemCount(item, self._privacy.count(count)) for item, count in found]
        return [each for each in shown if each.count]
