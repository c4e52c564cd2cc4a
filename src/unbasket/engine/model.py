"""The model that an engine's threads share: state, digest, catalog and availability behind one lock.

Readers run in parallel, a writer excludes them for the time of one event or a few learns, and every reader sees the
state before or after an event.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from itertools import chain, groupby, islice
from typing import Any, NamedTuple, cast

import msgspec

from unbasket.core.util import ReadWriteLock, RecoveringLock, TryLock, have_types
from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.events import Allow, Change, Forget, Learn, Rename, Suppress, in_types
from unbasket.domain.ids import (
    FREE,
    NO_TYPES,
    Id,
    IdTypes,
    Kind,
    all_in_type,
    checked,
    in_order,
    in_type,
    text_types,
    type_of,
)
from unbasket.domain.results import Forgotten, Learned, Product, Progress, Renamed, Verification
from unbasket.engine import verification
from unbasket.engine.catalog import Availability, Catalog
from unbasket.engine.digest import NO_SALT, Digest, TreeProof
from unbasket.engine.item_filter import ItemFilters
from unbasket.engine.locks import ClosedLock, model_lock
from unbasket.engine.state import EngineState, Rebuild
from unbasket.engine.workspaces import WorkspacePool
from unbasket.errors import (
    BasketConflictError,
    BusyError,
    InvalidFrameError,
    InvalidRequestError,
    UnbasketError,
    UnknownUserError,
)
from unbasket.params import Params

_AT_ONCE = 64  # learns under one lock, about 0.2 ms: readers wait for no more
_CHUNK = 256  # users that are rebuilt under one lock: writers wait for no more than these

EventResult = Learned | Forgotten | Renamed | bool
"""The answer to an event; to suppress and allow, whether they changed anything."""


class _Unloaded(NamedTuple):
    """The users of a load, and the baskets that they had before."""

    users: list[Id]
    before: BasketColumns


class UserProof(NamedTuple):
    """A path in the tree over users, the digest that it ends in, and the data of a user, if any is held.

    A basket is its id, its time, its items, and whether it opens a group.
    """

    digest: str
    path: TreeProof
    baskets: list[tuple[Id, int | None, list[Id], bool]]
    suppressed: list[Id]


class ErasureRecord(NamedTuple):
    """The result of a forget or a rename, the digests before and after it, and whether its `ErasureProof` holds."""

    result: Forgotten | Renamed
    before: str
    after: str
    verified: bool


class Model:
    """State, digest, catalog and availability, with their lock and the workspaces of readers."""

    def __init__(self, params: Params, salt: bytes = NO_SALT) -> None:
        self.state = EngineState(params)
        self.digest = Digest(self.state, salt)
        self.catalog = Catalog()
        self.drop_product: Callable[[Id], object] = self.catalog.drop  # a durable engine also erases the product's row
        self.availability = Availability()
        self.item_filters = ItemFilters(self.catalog, self.availability, self.state.items, self.canonical_items)
        self.lock = model_lock()
        self._digesting = RecoveringLock(UnbasketError)
        self.workspaces = WorkspacePool(self.lock)
        self._rebuild: Rebuild | None = None
        self.rebuilding = TryLock(BusyError, "the parameters are being changed already. Try again when that is done")
        self._unfinished: deque[Sequence[Change]] = deque()  # chunks of events that are being applied
        self._moving: Rename | None = None  # the last rename that was not refused
        self._unloaded: _Unloaded | None = None  # the users of a load that is under way

    # Ids: one type for each kind --------------------------------------------------------------------------------

    def id_types(self) -> IdTypes:
        """Return the types of the ids that are held: of items in baskets or, without any, hidden or described ones."""
        types = self.state.id_types()
        if types.item is None:
            others = chain(self.availability, (product.item for product in self.catalog))
            types = types._replace(item=type_of(islice(others, 1)))
        return types

    def canonical(self, value: object, kind: Kind) -> Id:
        """Return an id as it is held, or would be, whatever its spelling; under the lock."""
        return in_type(checked(value, kind), getattr(self.id_types(), kind), kind)

    def canonical_items(self, items: list[Id]) -> list[Id]:
        """Return the same for many items."""
        return all_in_type(items, self.id_types().item, "item")

    def canonical_events(self, events: Sequence[Change]) -> Sequence[Change]:
        """Return events with ids as they are held, or raise an error that names one. The caller keeps writers out.

        An event that would leave a user with too many suppressions is an error too; `apply` accepts it, since a
        database of an earlier version may hold more.
        """
        if have_types(events, self.state.id_types()):  # as nearly always: learns and forgets only
            return events
        canonical = in_types(events, self.id_types())
        for event in canonical:
            self.state.check_suppressions(event)
        return canonical

    def canonical_products(self, products: Iterable[Product]) -> list[Product]:
        """Return the same for products."""
        described = list(products)
        items = self.canonical_items([product.item for product in described])
        return [msgspec.structs.replace(product, item=item) for product, item in zip(described, items, strict=True)]

    def canonical_availability(self, hide: list[Id], show: list[Id]) -> tuple[list[Id], list[Id]]:
        """Return the same for items to hide and to show, which must differ."""
        items = self.canonical_items([*hide, *show])
        hidden, shown = dict.fromkeys(items[: len(hide)]), dict.fromkeys(items[len(hide) :])
        both = in_order(hidden.keys() & shown.keys())
        if both:
            raise InvalidRequestError(f"item {both[0]!r} can't be hidden and shown at once")
        return list(hidden), list(shown)

    def with_texts(self, kinds: Sequence[Kind]) -> "Model":
        """Return a model of the same data whose ids of these kinds are texts. The caller keeps writers out."""
        types = text_types(kinds)
        with self.lock.reading:
            model = self._copied(types)
            model.state.suppressed = self._suppressed(types)
        return model

    def _copied(self, types: IdTypes) -> "Model":
        """Return a model of the same baskets, with the availability and catalog of this one."""
        model = Model(self.state.params, self.digest.salt)
        model.load(self.state.all_columns().in_types(types))
        model.availability.change(all_in_type([*self.availability], types.item, "item"), [])
        for product in self.catalog:
            model.catalog.put(msgspec.structs.replace(product, item=in_type(product.item, types.item, "item")))
        return model

    def _suppressed(self, types: IdTypes) -> dict[Id, set[Id]]:
        return {
            in_type(user, types.user, "user"): set(all_in_type([*items], types.item, "item"))
            for user, items in self.state.suppressed.items()
            if items  # an interrupt may have left none
        }

    # Interrupts -------------------------------------------------------------------------------------------------

    def recovered(self) -> "Model":
        """Return a model in which an interrupted change of this one is complete or, if it was a load, undone.

        A change of a history is compiled, and no interrupt tears it: histories, and the names of the users, items and
        baskets in them, are always right. Index, ids and digest are made from these again. A torn model stays as it is,
        since another interrupt may come.
        """
        model, chunks = self, self._unfinished
        if self.lock.is_torn:
            model, chunks = self._copied(NO_TYPES), self._unfinished.copy()
            if self._unloaded is not None:
                model.discard(set(self._unloaded.users))
                model.load(self._unloaded.before)
            model.state.suppressed = self._suppressed(NO_TYPES)
        for event in chunks[0] if chunks else ():
            model._repeat(event, has_begun=self._moving is event)
        model.state.drop_suppressions_of_unknown_users()
        if self._unloaded is None:
            model._drop_descriptions({*self.state.items.names, *self.state.orphaned_items} - {FREE})
        if chunks:
            chunks.popleft()
        while chunks:
            for event in chunks[0]:
                model._apply(event, _METHODS)
            chunks.popleft()
        return model

    def _repeat(self, event: Change, *, has_begun: bool) -> None:
        """Apply an event that may have been applied already. A rename that has begun goes on without its checks."""
        methods = _METHODS | {Rename: Model._move} if has_begun else _METHODS
        if event.user in self.state.users or isinstance(event, Learn):
            with suppress(BasketConflictError):  # the event was about to be refused
                self._apply(event, methods)

    def _drop_descriptions(self, bought: set[Id]) -> None:
        """Drop the products of items that were bought once, and are in no basket any more."""
        for item in bought:
            if item not in self.state.items:
                self.catalog.drop(item)

    # Events -----------------------------------------------------------------------------------------------------

    def apply(self, events: Sequence[Change]) -> list[EventResult]:
        """Apply events in order.

        Each is applied under one lock, together with the items that it orphans. Learn, Forget and Allow never fail;
        Suppress and Rename change nothing if they do. Of adjacent learns, those of a user are applied together.
        """
        if len(events) == 1:
            return self._apply_in_order([events])
        chunks = _chunks(events)
        results = self._apply_in_order([[events[number] for number in chunk] for chunk in chunks])
        by_number = dict(zip(chain.from_iterable(chunks), results, strict=True))
        return [by_number[number] for number in range(len(events))]

    def _apply_in_order(self, chunks: list[Sequence[Change]]) -> list[EventResult]:
        """Apply chunks of events: learns, or a single event."""
        results: list[EventResult] = []
        self._unfinished = unfinished = deque(chunks)
        try:
            for chunk in chunks:
                results += self._learn_all(chunk) if len(chunk) > 1 else (self._apply(chunk[0], _METHODS),)
                unfinished.popleft()
        except UnbasketError:
            unfinished.clear()
            raise
        return results

    def _learn_all(self, events: Sequence[Change]) -> list[Learned]:
        with self.lock.writing:  # for a few learns, which take less than many a forget
            results = self.state.learn_all(cast(list[Learn], events))
            self._users_changed({self.state.users.codes[event.user] for event in events})
            if self.state.orphaned_items:
                self._drop_orphans()
        return results

    def _apply(self, event: Change, methods: "_Methods") -> EventResult:
        with self.lock.writing:  # for one event: readers wait for no more
            result = methods[type(event)](self, event)
            if self.state.orphaned_items:
                self._drop_orphans()
        return result

    def _learn(self, event: Learn) -> Learned:
        learned = self.state.learn(*event)
        if learned is not Learned.UNCHANGED:
            self._users_changed([self.state.users.codes[event.user]])
        return learned

    def _forget(self, event: Forget) -> Forgotten:
        owner = self.state.users.codes.get(event.user)
        forgotten = self.state.forget(*event)
        if owner is not None and forgotten:
            self._users_changed([owner])
        return forgotten

    def _suppress(self, event: Suppress) -> bool:
        self.state.check(event)
        is_new = self.state.suppress(*event)
        if is_new:
            self.digest.wipe([self.state.users.codes[event.user]])
        return is_new

    def _allow(self, event: Allow) -> bool:
        was_there = self.state.allow(*event)
        if was_there:
            self.digest.wipe([self.state.users.codes[event.user]])
        return was_there

    def _rename(self, event: Rename) -> Renamed:
        self.state.check(event)
        return self._move(event)

    def _move(self, event: Rename) -> Renamed:
        self._moving = event
        owner = self.state.users.codes[event.user]
        renamed = self.state.rename(*event)
        self._users_changed([owner, self.state.users.codes[event.other]])
        return renamed

    def _users_changed(self, owners: Collection[int]) -> None:
        """Wipe the users' hashes, and bring a rebuild that is under way up to date with them."""
        self.digest.wipe(owners)
        if self._rebuild is not None:
            self._follow(self._rebuild, owners)

    def _follow(self, rebuild: Rebuild, owners: Iterable[int]) -> None:
        if self.rebuilding.is_held:
            for owner in owners:
                rebuild.follow(owner)
        else:  # it was given up
            self._rebuild = self.state.live.successor = None

    def _drop_orphans(self) -> None:
        """Drop items without any purchase left from the catalog, and cached item filters, which may name them."""
        self.item_filters.clear()
        for item in self.state.orphaned_items:
            if item not in self.state.items:  # bought again since
                self.drop_product(item)
        self.state.orphaned_items.clear()

    def comes_last(self, event: Learn) -> bool:
        """Return whether the model would add the event's basket, as it is, behind all others of the user.

        Under varying groups the model also decides whether the basket opens a group.
        """
        if self.state.params.grouping == "varying":
            return False
        with self.lock.reading:  # as for every read: a rebuild may swap the state
            return self.state.comes_last(event.user, event.basket, event.time)

    def apply_with_proof(self, event: Forget | Rename) -> ErasureRecord:
        """Apply an event that erases, and prove the erasure. The caller keeps other writers out meanwhile."""
        forget, heir = (event, None) if isinstance(event, Forget) else (Forget(event.user, None, None), event.other)
        before = self.fingerprint()
        with self.lock.reading, self._hashing, self.workspaces.take() as workspace:
            proof = verification.ErasureProof(self.state, self.digest, forget, workspace.fold, heir=heir)
        [result] = self.apply([event])
        after = self.fingerprint()
        with self.lock.reading, self._hashing, self.workspaces.take() as workspace:
            verified = proof.confirms(workspace.fold)
        return ErasureRecord(cast(Forgotten | Renamed, result), before, after, verified)

    def discard(self, users: set[Id]) -> None:
        """Remove users to load them again; their items stay in the catalog."""
        with self.lock.writing:
            for user in users:
                self._forget(Forget(user, None, None))
            self.item_filters.clear()
            self.state.orphaned_items.clear()

    def load(self, columns: BasketColumns, group: str | None = None) -> None:
        """Learn all baskets; `group` is the column that their groups come from, if one was named."""
        with self.lock.writing:
            self.check_groups(columns, group)
            known = [user for user in columns.users if user in self.state.users]
            self._unloaded = _Unloaded(columns.users, self.state.columns(known))
            self.state.load(columns)
            owners = [self.state.users.codes[name] for name in columns.users]
            self.digest.wipe_all(owners)
            if self._rebuild is not None:
                self._follow(self._rebuild, owners)
            self._unloaded = None
            self._drop_orphans()

    def check_groups(self, columns: BasketColumns, group: str | None) -> None:
        """Raise an error if groups were named that the engine can't keep."""
        users, varying = self.state.users, self.state.params.grouping == "varying"
        if group is not None and (not varying or any(user in users for user in columns.users)):
            raise InvalidFrameError(f"group={group!r} is for varying groups, and for users that are new to the engine")

    def rebuilt(self, params: Params, progress: Progress | None) -> Callable[[], None]:
        """Build a model state with other parameters beside this one, which goes on learning, forgetting and answering.

        Returns the function that swaps the two; without that call, nothing has happened. The caller holds `rebuilding`
        until then: the state that is being built follows events for so long. `progress` is called with (users done,
        users in all).
        """
        with self.lock.reading:  # no event comes between the list of users and the rebuild that follows them
            rebuild = self._rebuild = Rebuild(self.state, params)
        while rebuild.done < rebuild.total:
            with self.lock.reading:
                rebuild.work(_CHUNK)
            if progress is not None:
                progress(rebuild.done, rebuild.total)
        with self.lock.reading:
            rebuild.choose_hubs()
        return self._swap

    def _swap(self) -> None:
        assert self._rebuild is not None, "nothing to swap with"
        with self.lock.writing:
            self._rebuild.swap()
            self._rebuild = None
            self.digest.follow_params()

    # Queries ----------------------------------------------------------------------------------------------------

    @property
    def _hashing(self) -> AbstractContextManager[None]:
        """The lock of the digest, which an interrupted reader may have torn."""
        return self._digesting.after(self.digest.reset)

    def fingerprint(self) -> str:
        """Return the digest in hex. Users are hashed a few at a time, so other threads learn and forget meanwhile."""
        while True:
            with self.lock.reading, self._hashing:
                if not self.digest.advance():
                    return self.digest.value()

    def prove(self, user: Id) -> UserProof:
        """Return the proof of all that is held about a user, or that nothing is."""
        self.fingerprint()  # hashes users a few at a time, so writers wait less below
        with self.lock.reading, self._hashing:
            state, items = self.state, self.state.items.names
            user, path, baskets = state.users.canonical(user), self.digest.proof(user), []
            if user in state.users:
                baskets = [
                    (basket, time, [items[code] for code in codes], opens)
                    for basket, time, codes, opens in state.records(user)
                ]
            return UserProof(self.digest.value(), path, baskets, in_order(state.suppressed.get(user, ())))

    def verify(self, user: Id | None) -> Verification:
        """Compare the model of a user, or of all, with one that is trained from what remains."""
        self.fingerprint()  # hashes users a few at a time, so writers wait less below
        with self.lock.reading, self._hashing:
            user = None if user is None else self.state.users.canonical(user)
            if user is None:
                verifying: verification.FullVerification | verification.UserVerification
                verifying = verification.FullVerification(self.state, self.digest)
            else:
                verifying = verification.UserVerification(self.state, self.digest, user)
        try:
            while True:
                with self.lock.reading, self._hashing:
                    if not verifying.advance():
                        return verifying.report()
        finally:
            with self.lock.reading:  # no event is under way
                verifying.stop()

    def owner(self, user: Id) -> int:
        """Return the code of a user, under the lock; raise an error if nothing is held about them."""
        owner = self.state.users.find(user)
        if owner is None:
            raise UnknownUserError(f"nothing is held about user {user!r}; popular() and recommend_for() need no user")
        return owner

    def known_user(self, user: Id) -> Id:
        """Return the id of a user as it is held, under the lock; raise an error if nothing is held about them."""
        return self.state.users.names[self.owner(user)]

    def close(self, message: str) -> None:
        """Refuse all further reads and writes with a `ClosedError` that has this message."""
        self.lock = cast(ReadWriteLock, ClosedLock(message))


def _chunks(events: Sequence[Change]) -> list[list[int]]:
    """Return the numbers of events, in the order in which to apply them, and those to apply under one lock together.

    Adjacent learns are in the order of their users, which does not change the result: the model then follows once for
    the baskets of a user. A chunk has a basket once, so that repeating it after an interrupt changes nothing.
    """
    chunks = list[list[int]]()
    users, learns = [event.user for event in events], [type(event) is Learn for event in events]
    for are_learns, run in groupby(range(len(events)), learns.__getitem__):
        if not are_learns:
            chunks += [[number] for number in run]
            continue
        baskets = set[tuple[Id, Id]]()  # of the newest chunk
        for number in sorted(run, key=users.__getitem__):
            basket = users[number], cast(Learn, events[number]).basket
            if not baskets or len(baskets) == _AT_ONCE or basket in baskets:
                chunks.append([])
                baskets.clear()
            chunks[-1].append(number)
            baskets.add(basket)
    return chunks


_Methods = dict[type[Change], Callable[[Model, Any], EventResult]]

_METHODS: _Methods = {
    Learn: Model._learn,
    Forget: Model._forget,
    Suppress: Model._suppress,
    Allow: Model._allow,
    Rename: Model._rename,
}
"""The method for each type of event."""
