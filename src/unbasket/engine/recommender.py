"""The recommender: learn, forget, recommend, explain, verify."""

import math
from collections.abc import Collection, Iterable, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Literal, Self, cast, get_args

import numpy as np

from unbasket.core.model import ONE, queries
from unbasket.domain._repr_html import html_table
from unbasket.domain.events import Allow, Event, Forget, Learn, Rename, Suppress, rechecked
from unbasket.domain.ids import KINDS, Id, Kind, checked, in_order
from unbasket.domain.privacy import PrivacyThreshold
from unbasket.domain.results import (
    AvailabilityChange,
    Basket,
    Explanation,
    Forgotten,
    ItemCount,
    Learned,
    LearnedWeights,
    Neighbor,
    Progress,
    Recommendation,
    Renamed,
    Sizes,
    Verification,
)
from unbasket.domain.times import Time, as_number
from unbasket.domain.validation import (
    Filters,
    checked_cart,
    checked_count,
    checked_history,
    checked_selection,
    checked_time,
    checked_users,
)
from unbasket.engine.catalog import Catalog
from unbasket.engine.digest import NO_SALT, SALT_SIZE
from unbasket.engine.explanations import explain, group_starts
from unbasket.engine.learned_weights import learned_weights
from unbasket.engine.model import Model
from unbasket.engine.ports import InMemoryJournal, Journal
from unbasket.engine.recommending import Popularity, RecommendationQueries, UnknownUsers
from unbasket.engine.state import EngineState
from unbasket.errors import ClosedError, InvalidIdError, InvalidRequestError
from unbasket.params import Params, checked_params

if TYPE_CHECKING:
    import polars as pl

_TYPE_NAMES: dict[type[int] | type[str] | None, Literal["number", "text"] | None] = {
    int: "number",
    str: "text",
    None: None,
}


class Recommender:
    """Next-basket recommendations whose model is always a pure function of the baskets that remain.

    Methods may be called from any thread. Readers run in parallel; a writer excludes them for the time of one event
    (microseconds; a `fit` takes longer). Every query sees the state before or after an event.

    >>> rec = Recommender(Params(neighbors=2))
    >>> rec.learn("ann", ["milk", "bread"], basket=1)
    <Learned.ADDED: 'added'>
    >>> rec.learn("bob", ["milk", "tea"], basket=1)
    <Learned.ADDED: 'added'>
    >>> [item for item, score in rec.recommend("ann", n=3)]
    ['milk', 'bread', 'tea']
    >>> rec.forget("bob")
    Forgotten(purchases=2, baskets=1, users=1)
    >>> [item for item, score in rec.recommend("ann", n=3)]
    ['bread', 'milk']
    """

    def __init__(self, params: Params | None = None, *, salt: bytes = NO_SALT, journal: Journal | None = None) -> None:
        """Create an empty engine in memory, or one on the model of a journal, which keeps its events.

        A `salt` of the digest, 32 bytes, must be that of a database to compare the digests of the two.
        """
        if len(salt) != SALT_SIZE:
            raise InvalidRequestError(f"a salt has {SALT_SIZE} bytes, not {len(salt)}. Take that of another engine")
        self._journal = journal or InMemoryJournal(Model(Params() if params is None else checked_params(params), salt))

    @property
    def _model(self) -> Model:
        return self._journal.model  # which `change_ids` replaces

    @property
    def _state(self) -> EngineState:
        return self._journal.model.state

    @property
    def catalog(self) -> Catalog:
        """The names, categories and further columns of items."""
        return self._journal.model.catalog

    @property
    def params(self) -> Params:
        """The parameters of the model."""
        return self._state.params

    # Writing ----------------------------------------------------------------------------------------------------

    def fit(
        self,
        frame: Any,
        *,
        user: str = "user",
        basket: str = "basket",
        item: str = "item",
        time: str | None = None,
        quantity: str | None = None,
        group: str | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn all baskets of a data frame; docs/frames.md describes its columns and types.

        `quantity` names a column of numbers: rows with 0 are not purchases, and rows below 0 are returns, which are
        taken out of the basket that they were in. `progress` is called with (baskets done, total baskets).
        """
        from unbasket.domain.frames import read_baskets  # imports Polars, which only frames need

        size = self.params.group_size
        names = {"user": user, "basket": basket, "item": item}
        columns = read_baskets(frame, **names, time=time, quantity=quantity, group=group, group_size=size)
        self._journal.load(columns, group, progress)
        return self

    def learn(self, user: Id, items: Iterable[Id], *, basket: Id, time: Time | None = None) -> Learned:
        """Learn a basket, or edit the one of this id.

        Baskets are in order of (time, basket id); a basket without a time follows all existing ones. A date, a datetime
        or ISO text means what it does in `fit`: seconds since 1970, UTC without a zone. Learning a basket again with
        the same items is a no-op; other items replace the old ones in place; another time moves the basket.
        """
        return cast(Learned, self._journal.apply([Learn.checked(user, items, basket, as_number(time))])[0])

    def forget(self, user: Id, *, basket: Id | None = None, item: Id | None = None) -> Forgotten:
        """Forget a user, a basket, an item of a basket, or an item of all the user's baskets.

        A basket is removed with its last item, and a user with their last basket. The result is false in a condition
        if there was nothing to forget.
        """
        return cast(Forgotten, self._journal.apply([Forget.checked(user, basket, item)])[0])

    def apply(self, events: Iterable[Event]) -> list[Learned | Forgotten]:
        """Apply events in order: all of them, or none if one is invalid."""
        return cast(list[Learned | Forgotten], self._journal.apply(rechecked(events)))

    def describe(
        self, frame: Any, *, item: str = "item", name: str = "name", category: str | None = "category"
    ) -> Self:
        """Add the items of a data frame to the `catalog`: their names, categories and all further columns.

        The description of an item is dropped with the last purchase of it.
        """
        from unbasket.domain.frames import read_products

        self._journal.describe(read_products(frame, item=item, name=name, category=category))
        return self

    def rename(self, user: Id, other: Id) -> Renamed:
        """Merge a user, such as a guest, into another, such as an account, which may be new.

        The result is, bit for bit, that of an engine that has learned the user's baskets, oldest first, under the other
        id. Suppressed items move too. If both have a basket of the same id, or suppress more than 1,000 items together,
        an error says so and nothing changes.
        """
        return cast(Renamed, self._journal.apply([Rename.checked(user, other)])[0])

    def suppress(self, user: Id, item: Id) -> bool:
        """Never again recommend an item to a user; the item may be unknown. Returns whether that is new.

        A suppression is personal data like a basket: it is part of the digest, stays when the item is forgotten, and is
        removed with the user or by `allow`. An unknown user is an error, and so is more than 1,000 items of one user.
        """
        return cast(bool, self._journal.apply([Suppress.checked(user, item)])[0])

    def allow(self, user: Id, item: Id) -> bool:
        """Undo `suppress`, without a trace. Returns whether the item was suppressed."""
        return cast(bool, self._journal.apply([Allow.checked(user, item)])[0])

    def suppressed(self, user: Id) -> list[Id]:
        """Return the items that the user has suppressed, in the order of their ids."""
        with self._model.lock.reading:
            return in_order(self._state.suppressed.get(self._model.known_user(user), ()))

    def hide(self, items: Iterable[Id]) -> int:
        """Stop recommending these items until they are shown again; see `set_availability`.

        Returns the number of items that were not hidden before.
        """
        return self.set_availability(hide=items).hidden

    def show(self, items: Iterable[Id]) -> int:
        """Undo `hide` for these items. Returns the number of items that were hidden before."""
        return self.set_availability(show=items).shown

    def set_availability(self, *, hide: Iterable[Id] = (), show: Iterable[Id] = ()) -> AvailabilityChange:
        """Hide items and show others: all of them, or none if one is invalid.

        Hidden items are still learned and explained. They stay hidden with or without purchases. They are not part of
        the digest, since they are not personal data.
        """
        return self._journal.set_availability(checked_selection(hide, "hide"), checked_selection(show, "show"))

    def hidden(self) -> list[Id]:
        """Return the hidden items, in the order of their ids."""
        with self._model.lock.reading:
            return in_order(self._model.availability)

    def change_params(self, params: Params, *, progress: Progress | None = None) -> None:
        """Rebuild the model with other parameters, as if the engine had had them from the start.

        The old model answers and learns until the new one is complete. `progress` is called with (users done, total
        users). Varying groups stay as they are: their boundaries are part of the histories.
        """
        self._journal.change_params(checked_params(params), progress)

    def change_ids(
        self,
        *,
        user: Literal["text"] | None = None,
        basket: Literal["text"] | None = None,
        item: Literal["text"] | None = None,
    ) -> None:
        """Change ids of these kinds from numbers to texts: 17 becomes "17" everywhere, in one step.

        The result is, bit for bit, that of an engine that has learned the same baskets, user by user and oldest first,
        under the new ids. The old ids answer until the change is complete; other changes wait for it.
        """
        wanted = {"user": user, "basket": basket, "item": item}
        for kind, target in wanted.items():
            if target not in (None, "text"):
                raise InvalidRequestError(f'{kind}={target!r}: ids can become texts only, by {kind}="text"')
        self._journal.change_ids([kind for kind in KINDS if wanted[kind] is not None])

    # Recommending -----------------------------------------------------------------------------------------------

    def recommend(
        self,
        user: Id,
        n: int = 10,
        *,
        exclude: Collection[Id] | None = None,
        only_new: bool = False,
        only: Collection[Id] | None = None,
        category: str | Collection[str] | None = None,
        cart: Collection[Id] | None = None,
        privacy: PrivacyThreshold | None = None,
    ) -> list[Recommendation]:
        """Return the n best items for the user's next basket, best first; ties in the order of item ids.

        `exclude` leaves out items, and `only_new` the items that the user has bought. `only` allows these items alone,
        and `category` those of one or several categories. Items that the shop has hidden or the user has suppressed are
        left out too. Filters come before the cut: n items come back if that many have a score above 0.

        A `cart` counts as the user's newest basket. Its items are not recommended, and it is not stored. With a cart,
        the user may be unknown.

        With a `privacy` threshold, the answer says nothing that rests on a few other people alone.
        """
        n, filters, basket = checked_count(n), Filters.checked(exclude, only, category), checked_cart(cart)
        return RecommendationQueries(self._model, privacy).recommend(user, n, filters, only_new, basket)

    def recommend_many(
        self,
        users: Iterable[Id] | None = None,
        n: int = 10,
        *,
        exclude: Collection[Id] | None = None,
        only_new: bool = False,
        only: Collection[Id] | None = None,
        category: str | Collection[str] | None = None,
        unknown: UnknownUsers = "raise",
        progress: Progress | None = None,
        privacy: PrivacyThreshold | None = None,
    ) -> dict[Id, list[Recommendation]]:
        """Recommend for many users, or for all, on all cores. `progress` is called with (done, total).

        An unknown user is an error, or with unknown="skip" has no answer, or with unknown="popular" gets the items of
        `popular`, whose score is the number of baskets. Other threads may learn and forget meanwhile: each answer is
        consistent, but two answers may come from different states. A user who is forgotten meanwhile is as one to skip.
        """
        n, filters = checked_count(n), Filters.checked(exclude, only, category)
        asked = None if users is None else checked_users(users)
        if unknown not in get_args(UnknownUsers):
            raise InvalidRequestError(f'unknown must be "raise", "skip" or "popular", not {unknown!r}')
        return RecommendationQueries(self._model, privacy).recommend_many(
            asked, n, filters, only_new, unknown, progress
        )

    def recommend_batch(
        self,
        users: Sequence[Id],
        n: int = 10,
        *,
        only_new: bool = False,
        privacy: PrivacyThreshold | None = None,
        timeout: float | None = None,
    ) -> list[tuple[Id, list[Recommendation]] | None]:
        """Recommend for a few users at once, on all cores: their ids as they are held, with their best items.

        An unknown user gets None. `timeout` limits the seconds of waiting for a writer; after them, a `BusyError` is
        raised. Other arguments are as in `recommend`.
        """
        return RecommendationQueries(self._model, privacy).recommend_batch(list(users), n, only_new, timeout)

    def recommend_frame(
        self,
        users: Iterable[Id] | None = None,
        n: int = 10,
        *,
        exclude: Collection[Id] | None = None,
        only_new: bool = False,
        only: Collection[Id] | None = None,
        category: str | Collection[str] | None = None,
        unknown: UnknownUsers = "raise",
        columns: Iterable[str] = (),
        progress: Progress | None = None,
    ) -> "pl.DataFrame":
        """Return `recommend_many` as a Polars frame: user, item, score, and rank from 1; users in the given order.

        `columns` adds columns of the catalog: name, category or any other that `describe` was given. They are null for
        an item without a description.
        """
        from unbasket.domain.frames import checked_columns, recommendation_frame

        wanted = checked_columns(columns)
        answers = self.recommend_many(
            users,
            n,
            exclude=exclude,
            only_new=only_new,
            only=only,
            category=category,
            unknown=unknown,
            progress=progress,
        )
        return recommendation_frame(answers, wanted, self.catalog.__getitem__)

    def recommend_for(
        self,
        baskets: Sequence[Iterable[Id]],
        n: int = 10,
        *,
        user: Id | None = None,
        exclude: Collection[Id] | None = None,
        only_new: bool = False,
        only: Collection[Id] | None = None,
        category: str | Collection[str] | None = None,
        cart: Collection[Id] | None = None,
        privacy: PrivacyThreshold | None = None,
    ) -> list[Recommendation]:
        """Recommend for a history that is not stored: baskets of items, oldest first; filters as in `recommend`.

        With `user`, the history replaces that user's: the answer equals that of `recommend` if the history were stored.
        Under varying groups, the baskets are grouped by m from the oldest on. With a `cart`, `baskets` may be empty.
        """
        n, filters, basket = checked_count(n), Filters.checked(exclude, only, category), checked_cart(cart)
        history = checked_history(baskets, least=1 if basket is None else 0)
        if only_new:
            filters = filters or Filters([], None, None)
            filters = filters._replace(exclude=[*filters.exclude, *chain.from_iterable(history)])
        return RecommendationQueries(self._model, privacy).recommend_for(history, n, user, filters, basket)

    # Inspecting -------------------------------------------------------------------------------------------------

    def popular(
        self,
        n: int = 10,
        *,
        exclude: Collection[Id] | None = None,
        only: Collection[Id] | None = None,
        category: str | Collection[str] | None = None,
        since: Time | None = None,
        privacy: PrivacyThreshold | None = None,
    ) -> list[ItemCount]:
        """Return the n items in most baskets, by exact count; filters as in `recommend`.

        With `since`, a time as in `learn`, only baskets of that time or later count, and none without a time. This
        scans all users. Other threads may learn and forget meanwhile: each user's baskets are counted at one moment.
        With a `privacy` threshold, counts are rounded down, and items with a small one are left out.
        """
        n, filters, start = checked_count(n), Filters.checked(exclude, only, category), checked_time(as_number(since))
        if start is None:
            return Popularity(self._model, privacy).most_common(n, filters)
        return Popularity(self._model, privacy).most_common_since(start, n, filters)

    def vector(self, user: Id) -> dict[Id, float]:
        """Return the user's vector (Eq. uservector) before rounding to fixed point, by item in the order of ids."""
        with self._model.lock.reading, self._model.workspaces.take() as workspace:
            state, owner = self._state, self._model.owner(user)
            codes, values = queries.vector(state.histories, workspace.fold, state.rule, owner)
            names = [state.items.names[code] for code in codes.tolist()]
        entries = zip(names, values.tolist(), strict=True)
        weights = dict(entries)
        return {item: weights[item] for item in in_order(weights)}

    def similar_users(self, user: Id, n: int = 10) -> list[Neighbor]:
        """Return the n nearest other users and their Euclidean distances; ties in the order of user ids.

        With a pool, they are users of the pool.
        """
        n = checked_count(n)
        with self._model.lock.reading, self._model.workspaces.take() as workspace:
            state, owner = self._state, self._model.owner(user)
            query = state.query(owner, workspace.fold)
            n = min(n, len(state.users))
            codes, squares = workspace.search.neighbors(state.index, query, owner, n, state.users.order)
            labels = state.users.labels[codes]
            return [
                Neighbor(state.users.names[codes[i]], math.sqrt(squares[i]) / ONE)
                for i in np.lexsort((labels, squares))
            ]

    def explain(self, user: Id, item: Id, *, privacy: PrivacyThreshold | None = None) -> Explanation:
        """Split the item's score for the user into the share of each of their baskets, and the neighbors' share."""
        return self.explain_many(user, [item], privacy=privacy)[0]

    def explain_many(
        self, user: Id, items: Iterable[Id], *, privacy: PrivacyThreshold | None = None
    ) -> list[Explanation]:
        """Explain many items for one user, with one search for neighbors; `privacy` as in `recommend`."""
        return explain(self._model, user, [checked(item, "item") for item in items], privacy)

    def learned(self, n: int = 10) -> LearnedWeights | None:
        """Return the weights that the model has learned, with n items at either end; None with a number for alpha."""
        return learned_weights(self._model, checked_count(n))

    def history(self, user: Id) -> list[Basket]:
        """Return all baskets of the user, oldest first."""
        with self._model.lock.reading:
            return self._state.history(self._model.known_user(user))

    def groups(self, user: Id) -> list[int]:
        """Return the sizes of the user's groups of baskets, oldest first."""
        with self._model.lock.reading:
            opens = [record.opens for record in self._state.records(self._model.known_user(user))]
        starts = group_starts(self.params, opens)
        return [end - start for start, end in pairwise([*starts, len(opens)])]

    def users(self) -> list[Id]:
        """Return all users, in the order of their ids."""
        with self._model.lock.reading:
            return self._state.users.sorted()

    def items(self) -> list[Id]:
        """Return all items in baskets, in the order of their ids."""
        with self._model.lock.reading:
            return self._state.items.sorted()

    def has_item(self, item: Id, *, privacy: PrivacyThreshold | None = None) -> bool:
        """Return whether the item is in any basket; with a `privacy` threshold, in those of enough users."""
        with self._model.lock.reading:
            code = self._state.items.find(item)
            if code is None or privacy is None:
                return code is not None
            return bool(self._state.index.holder_counts(np.array([code], np.uint32))[0] >= privacy.neighbors)

    def id_types(self) -> dict[Kind, Literal["number", "text"] | None]:
        """Return the type of each kind of id: that of the ids held here, or None without any."""
        with self._model.lock.reading:
            types = self._model.id_types()
        return {kind: _TYPE_NAMES[held] for kind, held in zip(KINDS, types, strict=True)}

    def canonical_id(self, value: Id, kind: Kind) -> Id:
        """Return an id as this engine holds it, or would: 17 for "17" if its ids of this kind are numbers, and so on.

        An error names a value that can't be such an id. All methods do this with their arguments.
        """
        with self._model.lock.reading:
            return self._model.canonical(value, kind)

    def comes_last(self, user: Id, basket: Id, time: int) -> bool:
        """Return whether a basket of this id and time would be new, and the user's newest."""
        with self._model.lock.reading:
            user, basket = self._model.canonical(user, "user"), self._model.canonical(basket, "basket")
            return self._state.comes_last(user, basket, time)

    def sizes(self) -> Sizes:
        """Return the numbers of users, items, baskets, purchases, and entries of the index."""
        with self._model.lock.reading:
            return self._state.sizes()

    def __len__(self) -> int:
        with self._model.lock.reading:
            return len(self._state.users)

    def __contains__(self, user: object) -> bool:
        try:
            with self._model.lock.reading:
                return self._state.users.find(user) is not None
        except InvalidIdError:
            return False

    def __repr__(self) -> str:
        try:
            sizes = self.sizes()
        except ClosedError:
            return f"<{self._title()}, closed>"
        return f"<{self._title()}: users={sizes.users:,} items={sizes.items:,} baskets={sizes.baskets:,} {self.params}>"

    def _repr_html_(self) -> str:
        try:
            sizes = self.sizes()
        except ClosedError:
            return html_table(f"{self._title()}, closed", [], [])
        counts = {"users": sizes.users, "items": sizes.items, "baskets": sizes.baskets, "purchases": sizes.purchases}
        row = [f"{count:,}" for count in counts.values()]
        return html_table(self._title(), list(counts), [row], note=str(self.params))

    def _title(self) -> str:
        return type(self).__name__

    # Proving ----------------------------------------------------------------------------------------------------

    def verify(self, user: Id | None = None) -> Verification:
        """Retrain one user or all from the remaining baskets, and compare the live model with that, bit by bit.

        For an unknown user, all records are searched for orphans: the report has 0 users, and is ok if there are none.
        Users are checked a few at a time while other threads learn and forget; a user who changes meanwhile is checked
        again. Writers wait only for the check of shared records, at the end.
        """
        return self._model.verify(user)

    def digest(self) -> str:
        """Return a fingerprint of the parameters and the remaining data, in hex: equal if and only if these are.

        Engines with a `salt` can be compared with those of the same salt.
        """
        return self._model.fingerprint()

    @property
    def salt(self) -> bytes:
        """The secret of the digest, zeros by default: `ub.open("new.db", salt=secrets.token_bytes(32))` sets another.

        With one, a hash in a proof about one user can't be compared with a guess of another's id and whole history.
        """
        return self._model.digest.salt
