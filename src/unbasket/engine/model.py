"""The model that an engine's threads share: memory, digest, catalog and stock, behind one lock.

Readers run in parallel, a writer keeps them out for the time of one event, and whoever reads sees the state before or
after an event.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import NamedTuple, cast

from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.events import Allow, Forget, Learn, Rename, Suppress
from unbasket.domain.ids import Id, checked, sort_key
from unbasket.domain.progress import Progress
from unbasket.domain.results import Forgotten, Learned, Renamed, Verification
from unbasket.engine import verification
from unbasket.engine.catalog import Catalog
from unbasket.engine.digest import Digest
from unbasket.engine.item_filter import ItemFilters
from unbasket.engine.locks import ClosedLock, ReadWriteLock
from unbasket.engine.rebuild import Rebuild
from unbasket.engine.state import EngineState
from unbasket.engine.stock import Availability
from unbasket.engine.workspaces import WorkspacePool
from unbasket.errors import BasketConflictError, BusyError, InvalidFrameError, UnknownUserError
from unbasket.params import Params

_CHUNK = 256  # users who get other parameters under one lock: writers wait for no more than these


class Proof(NamedTuple):
    """What a forget or a rename removed, the digests before and after it, and whether an `ErasureProof` holds."""

    forgotten: Forgotten
    before: str
    after: str
    verified: bool


class Model:
    """Memory, digest, catalog, stock, their lock, and the workspaces of those who ask."""

    def __init__(self, params: Params) -> None:
        self.state = EngineState(params)
        self.digest = Digest(self.state)
        self.catalog = Catalog()
        self.stock = Availability()
        self.choices = ItemFilters(self.catalog, self.stock, self.state.items)
        self.lock = ReadWriteLock()
        self._digesting = Lock()
        self.workspaces = WorkspacePool()
        self._renewal: Rebuild | None = None

    # Events -----------------------------------------------------------------------------------------------------

    def learn(self, event: Learn) -> Learned:
        """Learn a basket."""
        with self.lock.writing:
            learned = self.state.learn(*event)
            if learned is not Learned.UNCHANGED:
                self.digest.wipe(self.state.users.codes[event.user])
                self._clear_choices()
            if self._renewal is not None:
                self._renewal.follow(self.state.users.codes[event.user])
        return learned

    def forget(self, event: Forget) -> Forgotten:
        """Forget something of a user."""
        with self.lock.writing:
            return self._forget(event)

    def _forget(self, event: Forget) -> Forgotten:
        owner = self.state.users.codes.get(event.user)
        forgotten = self.state.forget(*event)
        if owner is not None and forgotten:
            self.digest.wipe(owner)
            self._clear_choices()
            if self._renewal is not None:
                self._renewal.follow(owner)
        return forgotten

    def suppress(self, event: Suppress) -> bool:
        """Recommend an item to a user no more; returns whether that is new. An error if nothing is held about them."""
        with self.lock.writing:
            owner = self.state.users.codes.get(event.user)
            if owner is None:
                raise UnknownUserError(
                    f"nothing is held about user {event.user!r}: what they do not want is kept only beside baskets"
                )
            is_new = self.state.suppress(*event)
            if is_new:
                self.digest.wipe(owner)
            return is_new

    def allow(self, event: Allow) -> bool:
        """Take back `suppress`; returns whether there was something to take back."""
        with self.lock.writing:
            was_there = self.state.allow(*event)
            if was_there:
                self.digest.wipe(self.state.users.codes[event.user])
            return was_there

    def rename(self, event: Rename) -> Renamed:
        """Let another user have all that is held of one, who goes. An error if they have a basket id in common."""
        memory = self.state
        with self.lock.writing:
            owner = memory.users.codes.get(event.user)
            if owner is None:
                raise UnknownUserError(f"nothing is held about user {event.user!r}")
            common = memory.common_baskets(*event)
            if common:
                raise BasketConflictError(
                    f"users {event.user!r} and {event.other!r} both have a basket {min(common, key=sort_key)!r}. "
                    "Forget one of the two, or learn it under another id first"
                )
            renamed = memory.rename(*event)
            for changed in (owner, memory.users.codes[event.other]):
                self.digest.wipe(changed)
                if self._renewal is not None:
                    self._renewal.follow(changed)
            return renamed

    def _clear_choices(self) -> None:
        """Keep no selection of items that may name one that nobody has any longer."""
        if self.state.orphaned_items:
            self.choices.clear()

    def load(self, orders: BasketColumns, group: str | None = None) -> None:
        """Learn all orders; `group` is the column that their groups come from, if one was named."""
        with self.lock.writing:
            self.check_groups(orders, group)
            self.state.load(orders)
            owners = [self.state.users.codes[name] for name in orders.users]
            self.digest.wipe_all(owners)
            if self._renewal is not None:
                for owner in owners:
                    self._renewal.follow(owner)
            self._clear_choices()

    def check_groups(self, orders: BasketColumns, group: str | None) -> None:
        """An error if groups were named that can't be taken over."""
        memory = self.state
        if group is not None and (
            memory.params.grouping == "fixed" or any(user in memory.users for user in orders.users)
        ):
            raise InvalidFrameError(f"group={group!r} is for varying groups, and for users that are new to the engine")

    @contextmanager
    def renewed(self, params: Params, progress: Progress | None) -> Iterator[Callable[[], None]]:
        """Derive a model with other parameters beside this one, which goes on learning, forgetting and answering.

        Yields what lets it take over; if that is not called, nothing has happened. `progress` is called with (users
        done, users in all).
        """
        with self.lock.writing:
            if self._renewal is not None:
                raise BusyError("the parameters are being changed already. Try again when that is done")
            renewal = self._renewal = Rebuild(self.state, params)
        try:
            while renewal.done < renewal.total:
                with self.lock.reading:
                    renewal.work(_CHUNK)
                if progress is not None:
                    progress(renewal.done, renewal.total)
            with self.lock.reading:
                renewal.choose_hubs()
            yield self._take_over
        finally:
            with self.lock.writing:
                self._renewal = None

    def _take_over(self) -> None:
        assert self._renewal is not None, "nothing to take over"
        with self.lock.writing:
            old = self.state.params
            self._renewal.swap()
            self.digest.follow_params(old)

    # What a journal needs ---------------------------------------------------------------------------------------

    def comes_last(self, event: Learn) -> bool:
        """Whether an event would add a basket behind all others of the user, that says no more than the event does.

        Under varying groups only memory knows whether it opens one.
        """
        if self.state.params.grouping == "varying":
            return False
        with self.lock.reading:  # as a question about unknown items may let memory grow meanwhile
            return self.state.comes_last(event.user, event.basket, event.time)

    def forget_with_proof(self, event: Forget) -> Proof:
        """Forget something, and prove it. Nobody else may learn or forget meanwhile."""
        before = self.fingerprint()
        with self.lock.reading, self._digesting:
            witness = verification.ErasureProof(self.state, self.digest, event)
        forgotten = self.forget(event)
        after = self.fingerprint()
        with self.lock.reading, self._digesting, self.workspaces.take() as workspace:
            return Proof(forgotten, before, after, witness.confirms(workspace.fold))

    def rename_with_proof(self, event: Rename) -> tuple[Renamed, Proof]:
        """Rename a user, and prove that the old id is gone. Nobody else may learn or forget meanwhile."""
        before = self.fingerprint()
        with self.lock.reading, self._digesting:
            witness = verification.ErasureProof(
                self.state, self.digest, Forget(event.user, None, None), heir=event.other
            )
        renamed = self.rename(event)
        after = self.fingerprint()
        with self.lock.reading, self._digesting, self.workspaces.take() as workspace:
            return renamed, Proof(Forgotten(0, 0, 1), before, after, witness.confirms(workspace.fold))

    def drop(self, users: set[Id]) -> None:
        """Forget all that is held of these users."""
        with self.lock.writing:
            for user in users:
                self._forget(Forget(user, None, None))

    # Questions --------------------------------------------------------------------------------------------------

    def fingerprint(self) -> str:
        """The digest in hex. Where many users are to be hashed first, others learn and forget meanwhile."""
        while self._hash_some():
            pass
        with self.lock.reading, self._digesting:
            return self.digest.value()

    def _hash_some(self) -> bool:
        with self.lock.reading, self._digesting:
            return self.digest.advance()

    def verify(self, user: Id | None) -> Verification:
        """Compare the model of a user, or of all, with one that is trained from what remains."""
        self.fingerprint()  # in pieces, where many users are to be hashed first
        with self.lock.reading, self._digesting:
            if user is None:
                looking: verification.FullVerification | verification.UserVerification
                looking = verification.FullVerification(self.state, self.digest)
            else:
                looking = verification.UserVerification(self.state, self.digest, user)
        try:
            while True:
                with self.lock.reading, self._digesting:
                    if not looking.advance():
                        return looking.report()
        finally:
            looking.stop()

    def owner(self, user: Id) -> int:
        """The code of a user, or an error that names a user of whom nothing is held; under the lock only."""
        owner = self.state.users.codes.get(checked(user, "user"))
        if owner is None:
            raise UnknownUserError(f"nothing is held about user {user!r}; popular() and recommend_for() need no user")
        return owner

    def close(self, message: str) -> None:
        """Answer nothing any more; whoever asks is told this."""
        self.lock = cast(ReadWriteLock, ClosedLock(message))
