"""Recommends items: to users, with a cart or without, and for histories that are not stored."""

from collections.abc import Iterable

import numpy as np

from unbasket.core import Query, QueryBatch, Vector
from unbasket.core.model import queries
from unbasket.core.util import id_fast
from unbasket.domain.filters import Filters
from unbasket.domain.ids import Id, checked
from unbasket.domain.progress import Progress
from unbasket.domain.results import Recommendation
from unbasket.engine.item_filter import ItemFilter
from unbasket.engine.model import Model
from unbasket.engine.workspaces import Workspace

_CHUNK = 64  # users who are answered under one lock: writers wait for no more than these


class Advisor:
    """Finds the best items in a model. Arguments are checked already, and mean what they mean to a `Recommender`."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._state = model.state

    def recommend(
        self, user: Id, n: int, filters: Filters | None, only_new: bool, cart: list[Id] | None
    ) -> list[Recommendation]:
        """The best items for a user, who need not be there if they have a cart."""
        memory, name = self._state, checked(user, "user")
        with self._model.lock.reading, self._model.workspaces.take() as workspace:
            owner = memory.users.codes.get(name) if cart else self._model.owner(name)
            choice = self._model.item_filters.of(filters, cart)
            if owner is None:
                query = queries.query([self._codes_of(cart or [])], workspace.fold, memory.rule)
                return self._best(query, memory.left_out_for(name), n, choice, workspace)
            query = self._query(owner, cart, workspace)
            return self._best(query, owner, n, self._of_user(choice, name, owner, only_new), workspace)

    def recommend_many(
        self, users: list[Id] | None, n: int, filters: Filters | None, only_new: bool, progress: Progress | None
    ) -> dict[Id, list[Recommendation]]:
        """The best items for many users, or for all."""
        with self._model.lock.reading:
            wanted = self._state.users.sorted() if users is None else users
            for user in wanted:
                self._model.owner(user)
        answers: dict[Id, list[Recommendation]] = {}
        for start in range(0, len(wanted), _CHUNK):
            answers.update(self._recommend_chunk(wanted[start : start + _CHUNK], n, filters, only_new))
            if progress is not None:
                progress(min(start + _CHUNK, len(wanted)), len(wanted))
        return answers

    def _recommend_chunk(
        self, users: list[Id], n: int, filters: Filters | None, only_new: bool
    ) -> dict[Id, list[Recommendation]]:
        asked = {}
        with self._model.lock.reading, self._model.workspaces.take() as workspace:
            choice, codes = self._model.item_filters.of(filters, None), self._state.users.codes
            for user in users:
                owner = codes.get(user)
                if owner is not None:
                    own = self._of_user(choice, user, owner, only_new)
                    asked[user] = self._question(self._query(owner, None, workspace), owner, own, n)
            return dict(zip(asked, self._answers([*asked.values()], workspace), strict=True))

    def recommend_for(
        self, history: list[list[Id]], n: int, user: Id | None, filters: Filters | None, cart: list[Id] | None
    ) -> list[Recommendation]:
        """The best items for a history that is not stored, which may be taken as a user's."""
        bought = dict.fromkeys(item for basket in history for item in basket)
        with self._model.lock.reading:
            if all(item in self._state.items for item in bought):
                return self._recommend_history(history, n, user, filters, cart)
        with self._model.lock.writing:  # items that nobody has get a code, for this answer only
            unknown = [item for item in bought if item not in self._state.items]
            with self._state.lent_items(unknown):
                return self._recommend_history(history, n, user, filters, cart)

    def _recommend_history(
        self, history: list[list[Id]], n: int, user: Id | None, filters: Filters | None, cart: list[Id] | None
    ) -> list[Recommendation]:
        memory, choice = self._state, self._model.item_filters.of(filters, cart)
        baskets = [self._codes_of(basket) for basket in [*history, *([cart] if cart else [])]]
        left_out = -1
        if user is not None:
            left_out = memory.left_out_for(user)
            choice = self._of_user(choice, user, left_out, only_new=False)
        with self._model.workspaces.take() as workspace:
            return self._best(queries.query(baskets, workspace.fold, memory.rule), left_out, n, choice, workspace)

    def _query(self, owner: int, cart: list[Id] | None, workspace: Workspace) -> Vector:
        """The vector of a user with a cart.

        An item of the cart that nobody has is left out of it: no other user's vector and no score depends on it.
        """
        memory = self._state
        if cart is None:
            return memory.query(owner, workspace.fold)
        return queries.query_with(memory.histories, owner, self._codes_of(cart), workspace.fold, memory.rule)

    def _of_user(self, choice: ItemFilter | None, user: Id, owner: int, only_new: bool) -> ItemFilter | None:
        """A choice without what a user has suppressed and, with `only_new`, without what they have bought."""
        suppressed = self._state.suppressed.get(user)
        if suppressed is None and not only_new:
            return choice
        banned = [np.array(self._codes_of(suppressed or []), np.uint32)]
        if only_new:
            banned.append(queries.bought(self._state.histories, owner))
        if choice is None:
            return ItemFilter(np.concatenate(banned), None)
        return choice._replace(banned=np.concatenate([choice.banned, *banned]))

    def _best(
        self, query: Vector, left_out: int, n: int, choice: ItemFilter | None, workspace: Workspace
    ) -> list[Recommendation]:
        return self._answers([self._question(query, left_out, choice, n)], workspace)[0]

    def _question(self, query: Vector, left_out: int, choice: ItemFilter | None, n: int) -> Query:
        return Query(query, left_out, choice, min(n, len(self._state.items.names)))

    def _answers(self, asked: list[Query], workspace: Workspace) -> list[list[Recommendation]]:
        memory, names = self._state, self._state.items.names
        params, orders = memory.params, (memory.users.order, memory.items.order)
        workspace.search.recommend(QueryBatch(memory.index, asked, params.neighbors, params.alpha, orders))
        return [id_fast.named(Recommendation, question.take(), names) for question in asked]

    def _codes_of(self, items: Iterable[Id]) -> list[int]:
        codes = self._state.items.codes
        return [codes[item] for item in items if item in codes]
