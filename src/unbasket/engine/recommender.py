"""The engine: learn, forget, recommend, explain, verify."""

import math
from collections.abc import Collection, Iterable, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from unbasket.core import ONE
from unbasket.core.model import queries
from unbasket.domain._repr_html import html_table
from unbasket.domain.events import Allow, Event, Forget, Learn, Rename, Suppress, rechecked
from unbasket.domain.filters import Filters
from unbasket.domain.ids import Id, Kind, checked, in_order, sort_key
from unbasket.domain.progress import Progress
from unbasket.domain.results import (
    Basket,
    Explanation,
    Forgotten,
    ItemCount,
    Learned,
    Neighbor,
    Recommendation,
    Renamed,
    Restocked,
    Sizes,
    Verification,
)
from unbasket.domain.validation import (
    checked_cart,
    checked_count,
    checked_history,
    checked_selection,
    checked_time,
    checked_users,
)
from unbasket.engine.explanations import explain
from unbasket.engine.model import Model
from unbasket.engine.popularity import Popularity
from unbasket.engine.ports import InMemoryJournal, Journal
from unbasket.engine.recommending import Advisor
from unbasket.engine.shares import group_starts
from unbasket.errors import ClosedError, InvalidIdError, InvalidRequestError
from unbasket.params import Params

if TYPE_CHECKING:
    import polars as pl


class Recommender:
    """Next-basket recommendations whose model is always a pure function of the baskets that remain.

    All methods may be called from any thread: readers run in parallel, a writer keeps them out for the time of one
    event (microseconds; a `fit` takes longer), and every answer is that of the state before or after an event.

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

    def __init__(self, params: Params | None = None, *, journal: Journal | None = None) -> None:
        """An engine in memory, or one whose events a journal keeps, and whose model it has filled."""
        self._journal = journal or InMemoryJournal(Model(params or Params()))
        self._model = self._journal.model
        self._state = self._model.state
        self.catalog = self._model.catalog
        self._advisor = Advisor(self._model)
        self._popularity = Popularity(self._model)

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
        group: str | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn all baskets of a data frame; see docs/frames.md for what it may look like.

        `progress` is called with (baskets done, baskets in all).
        """
        from unbasket.domain.frames import read_orders  # and with it Polars, which an engine does without until then

        orders = read_orders(
            frame,
            user=user,
            basket=basket,
            item=item,
            time=time,
            group=group,
            group_size=self.params.group_size,
        )
        self._journal.load(orders, group, progress)
        return self

    def learn(self, user: Id, items: Iterable[Id], *, basket: Id, time: int | None = None) -> Learned:
        """Learn a basket, or edit the one of this id.

        Baskets are in order of (time, basket id); one without a time comes after all that are there. The same items
        again are a no-op; other items replace the old ones where the basket is; another time moves it.
        """
        return cast(Learned, self._journal.apply([Learn.checked(user, items, basket, time)])[0])

    def forget(self, user: Id, *, basket: Id | None = None, item: Id | None = None) -> Forgotten:
        """Forget a user, a basket, an item of a basket, or an item of all the user's baskets.

        A basket that loses its last item vanishes, and so does a user who loses their last basket. The result is
        false in a condition if there was nothing to forget.
        """
        return cast(Forgotten, self._journal.apply([Forget.checked(user, basket, item)])[0])

    def apply(self, events: Iterable[Event]) -> list[Learned | Forgotten]:
        """Apply events, in their order: all of them, or none if one is not valid."""
        return cast(list[Learned | Forgotten], self._journal.apply(rechecked(events)))

    def describe(
        self, frame: Any, *, item: str = "item", name: str = "name", category: str | None = "category"
    ) -> Self:
        """Take over what a data frame says of items: their names, categories and all further columns; see `catalog`.

        What is known of an item is forgotten with the last purchase of it.
        """
        from unbasket.domain.frames import read_products

        self._journal.describe(read_products(frame, item=item, name=name, category=category))
        return self

    def rename(self, user: Id, other: Id) -> Renamed:
        """Merge a user, such as a guest, into another, such as an account: all that is held of one is the other's then.

        The result is, bit for bit, that of an engine that has learned the user's baskets, oldest first, under the other
        id, which may be new. Suppressed items move too. An error that names the id, and no change, if both have a
        basket of the same id.
        """
        return cast(Renamed, self._journal.apply([Rename.checked(user, other)])[0])

    def suppress(self, user: Id, item: Id) -> bool:
        """Never again recommend an item to a user, whether anybody has bought it or not. Returns whether that is new.

        It is personal data like a basket: it is in the digest, it stays when the item is forgotten, and it goes with
        the user, or with `allow`. An error if nothing is held about the user.
        """
        return cast(bool, self._journal.apply([Suppress.checked(user, item)])[0])

    def allow(self, user: Id, item: Id) -> bool:
        """Take back `suppress`, and forget that it was ever asked for. Returns whether the item was suppressed."""
        return cast(bool, self._journal.apply([Allow.checked(user, item)])[0])

    def suppressed(self, user: Id) -> list[Id]:
        """The items that are never recommended to the user, in the order of their ids."""
        with self._model.lock.reading:
            self._model.owner(user)
            return in_order(list(self._state.suppressed.get(user, ())))

    def hide(self, items: Iterable[Id]) -> int:
        """Recommend these items to nobody until they are shown again, since they are out of stock; see `restock`.

        Returns how many were not hidden before.
        """
        return self.restock(hide=items).hidden

    def show(self, items: Iterable[Id]) -> int:
        """Take back `hide` for these items. Returns how many were hidden before."""
        return self.restock(show=items).shown

    def restock(self, *, hide: Iterable[Id] = (), show: Iterable[Id] = ()) -> Restocked:
        """Hide items and show others: all of them, or none if one is not valid.

        What is hidden goes on being learned, and explained. It stays hidden whether anybody has bought it or not, and
        is no part of the digest: it says nothing of a shopper.
        """
        hidden = dict.fromkeys(checked_selection(hide, "hide"))
        shown = dict.fromkeys(checked_selection(show, "show"))
        both = hidden.keys() & shown.keys()
        if both:
            raise InvalidRequestError(f"item {min(both, key=sort_key)!r} can't be hidden and shown at once")
        return self._journal.set_availability(list(hidden), list(shown))

    def hidden(self) -> list[Id]:
        """The items that are hidden, in the order of their ids."""
        with self._model.lock.reading:
            return in_order(list(self._model.availability))

    def change_params(self, params: Params, *, progress: Progress | None = None) -> None:
        """The same baskets, another model, equal to that of an engine that had these parameters from the start.

        It is made beside the old one, which goes on answering and learning until the new one is complete. `progress` is
        called with (users done, users in all). Varying groups stay as they are: their boundaries are history.
        """
        self._journal.change_params(params, progress)

    # Recommending -----------------------------------------------------------------------------------------------

    def recommend(
        self,
        user: Id,
        n: int = 10,
        exclude: Collection[Id] | None = None,
        only_new: bool = False,
        only: Collection[Id] | None = None,
        category: str | Collection[str] | None = None,
        cart: Collection[Id] | None = None,
    ) -> list[Recommendation]:
        """The n best items for the user's next basket, best first; equal scores in the order of item ids.

        `exclude` leaves out items, `only_new` those that the user has bought before; `only` leaves nothing but these
        items, `category` nothing but items of this category or of several. What the shop has hidden and the user has
        suppressed is left out too. All before the cut, so that n items come back if so many have a score above 0.

        A `cart` counts as the user's newest basket, and what is in it is not recommended. Nothing of it is stored. With
        a cart, the user may be somebody new.
        """
        n, filters, basket = checked_count(n), Filters.checked(exclude, only, category), checked_cart(cart)
        return self._advisor.recommend(user, n, filters, only_new, basket)

    def recommend_many(
        self,
        users: Iterable[Id] | None = None,
        n: int = 10,
        *,
        exclude: Collection[Id] | None = None,
        only_new: bool = False,
        only: Collection[Id] | None = None,
        category: str | Collection[str] | None = None,
        progress: Progress | None = None,
    ) -> dict[Id, list[Recommendation]]:
        """`recommend` for many users or all of them, on all cores. `progress` is called with (done, total).

        Other threads may learn and forget meanwhile: each user's answer is of one state, but they may be of
        different ones. A user who vanishes meanwhile has no answer.
        """
        n, filters = checked_count(n), Filters.checked(exclude, only, category)
        asked = None if users is None else checked_users(users)
        return self._advisor.recommend_many(asked, n, filters, only_new, progress)

    def recommend_frame(
        self,
        users: Iterable[Id] | None = None,
        n: int = 10,
        *,
        exclude: Collection[Id] | None = None,
        only_new: bool = False,
        only: Collection[Id] | None = None,
        category: str | Collection[str] | None = None,
        columns: Iterable[str] = (),
        progress: Progress | None = None,
    ) -> "pl.DataFrame":
        """`recommend_many` as a Polars frame: user, item, score, and rank from 1; users in the order of asking.

        `columns` are further ones, of the catalog: name, category or any other that `describe` was given. They are null
        where nothing is known of an item.
        """
        from unbasket.domain.frames import checked_columns, recommendation_frame

        wanted = checked_columns(columns)
        answers = self.recommend_many(
            users, n, exclude=exclude, only_new=only_new, only=only, category=category, progress=progress
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
    ) -> list[Recommendation]:
        """Recommend for a history that is not stored: baskets of items, oldest first; filters as in `recommend`.

        With `user`, the history is taken as that user's: the user is left out of the neighbors, so that the answer is
        what `recommend` would say if that history were theirs. Under varying groups, the baskets are grouped
        by m from the oldest on. With a `cart`, there need be no baskets.
        """
        n, filters, basket = checked_count(n), Filters.checked(exclude, only, category), checked_cart(cart)
        history = checked_history(baskets, least=1 if basket is None else 0)
        if only_new:
            filters = filters or Filters([], None, None)
            filters = filters._replace(exclude=[*filters.exclude, *chain.from_iterable(history)])
        owner = None if user is None else checked(user, "user")
        return self._advisor.recommend_for(history, n, owner, filters, basket)

    # Looking inside ---------------------------------------------------------------------------------------------

    def popular(
        self,
        n: int = 10,
        *,
        exclude: Collection[Id] | None = None,
        only: Collection[Id] | None = None,
        category: str | Collection[str] | None = None,
        since: int | None = None,
    ) -> list[ItemCount]:
        """The n items in most baskets, exactly counted from what remains; filters as in `recommend`.

        With `since`, only baskets of that time or later count, and none without a time. That takes a look at every
        user. Other threads may learn and forget meanwhile: each user's baskets are counted as of one moment.
        """
        n, filters, start = checked_count(n), Filters.checked(exclude, only, category), checked_time(since)
        if start is None:
            return self._popularity.most_common(n, filters)
        return self._popularity.most_common_since(start, n, filters)

    def vector(self, user: Id) -> dict[Id, float]:
        """The user's vector (Eq. uservector) before it is rounded to fixed point, by item in the order of ids."""
        with self._model.lock.reading, self._model.workspaces.take() as workspace:
            codes, values = queries.vector(
                self._state.histories, workspace.fold, self._state.rule, self._model.owner(user)
            )
            names = [self._state.items.names[code] for code in codes.tolist()]
        entries = zip(names, values.tolist(), strict=True)
        return dict(sorted(entries, key=lambda entry: sort_key(entry[0])))

    def similar_users(self, user: Id, n: int = 10) -> list[Neighbor]:
        """The n nearest other users and their Euclidean distances; equal distances in the order of user ids.

        With a pool, they are users of the pool.
        """
        n = checked_count(n)
        with self._model.lock.reading, self._model.workspaces.take() as workspace:
            memory, owner = self._state, self._model.owner(user)
            query = memory.query(owner, workspace.fold)
            n = min(n, len(memory.users))
            codes, squares = workspace.search.neighbors(memory.index, query, owner, n, memory.users.order)
            labels = memory.users.labels[codes]
            return [
                Neighbor(memory.users.names[codes[i]], math.sqrt(squares[i]) / ONE)
                for i in np.lexsort((labels, squares))
            ]

    def explain(self, user: Id, item: Id) -> Explanation:
        """Why the item scores what it does for the user: the share of each of their baskets, and the neighbors'."""
        return self.explain_many(user, [item])[0]

    def explain_many(self, user: Id, items: Iterable[Id]) -> list[Explanation]:
        """`explain` for many items of one user, whose neighbors are looked for once."""
        return explain(self._model, user, [checked(item, "item") for item in items])

    def history(self, user: Id) -> list[Basket]:
        """All baskets of the user, oldest first."""
        with self._model.lock.reading:
            self._model.owner(user)
            return self._state.history(user)

    def groups(self, user: Id) -> list[int]:
        """The sizes of the user's groups of baskets, oldest first."""
        with self._model.lock.reading:
            self._model.owner(user)
            opens = [record.opens for record in self._state.records(user)]
        starts = group_starts(self.params, opens)
        return [end - start for start, end in pairwise([*starts, len(opens)])]

    def users(self) -> list[Id]:
        """All users, in the order of their ids."""
        with self._model.lock.reading:
            return self._state.users.sorted()

    def items(self) -> list[Id]:
        """All items that somebody has, in the order of their ids."""
        with self._model.lock.reading:
            return self._state.items.sorted()

    def has_item(self, item: Id) -> bool:
        """Whether anybody has the item."""
        with self._model.lock.reading:
            return item in self._state.items

    def has_texts(self, kind: Kind) -> bool:
        """Whether any user, item or basket has a text as its id; where ids come as text, that tells what 17 means."""
        with self._model.lock.reading:
            return self._state.has_texts(kind)

    def has_basket_like(self, user: Id, basket: int) -> bool:
        """Whether the user has a basket of this number, or none with a text as its id; see `has_texts`."""
        with self._model.lock.reading:
            self._model.owner(user)
            return self._state.has_basket_like(user, basket)

    def sizes(self) -> Sizes:
        """How many users, items, baskets, purchases, and entries of the index there are."""
        with self._model.lock.reading:
            return self._state.sizes()

    def __len__(self) -> int:
        with self._model.lock.reading:
            return len(self._state.users)

    def __contains__(self, user: object) -> bool:
        try:
            wanted = checked(user, "user")
        except InvalidIdError:
            return False
        with self._model.lock.reading:
            return wanted in self._state.users

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
        """What kind of engine this is, and of which file."""
        return type(self).__name__

    # Proving ----------------------------------------------------------------------------------------------------

    def verify(self, user: Id | None = None) -> Verification:
        """Retrain from what remains, of one user or of all, and compare the live model with that, bit by bit.

        For a user who is not there, all records are searched for one that belongs to nobody: the report has 0 users,
        and is ok if there is none. All users are looked at a few at a time, while others learn and forget: whoever
        changes meanwhile is looked at again. Writers wait only for the records that users share, at the end.
        """
        wanted = None if user is None else checked(user, "user")
        return self._model.verify(wanted)

    def digest(self) -> str:
        """A fingerprint of parameters and remaining data, in hex; any change to either changes it."""
        return self._model.fingerprint()
