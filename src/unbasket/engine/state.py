"""The state of an engine: histories, and all that is derived from them for recommendations."""

from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from unbasket.core.arrays import Int64s
from unbasket.core.index import SHARD_SIZE, Index, LiveIndex, Pool
from unbasket.core.model import FoldWorkspace, Histories, LearnedSums, Vector, queries
from unbasket.domain.ids import FREE, Id, in_order
from unbasket.domain.results import Sizes
from unbasket.engine.histories import HistoryState, rule_of
from unbasket.errors import InvalidParamsError
from unbasket.params import LEARNED, Params

_encode = msgspec.msgpack.Encoder().encode  # no two ids share an encoding


class PoolPriorities:
    """Numbers by which the pool of neighbors is sampled; see docs/pool.md.

    They are hashes of user ids, keyed with a seed: without the seed, an id with a small hash can't be chosen.
    """

    def __init__(self, seed: int) -> None:
        self._keyed = blake2b(digest_size=8, key=seed.to_bytes(8, "big"), person=b"unbasket pool")

    def of(self, user: Id) -> int:
        """Return the priority of a user, a number of 64 bits."""
        return int.from_bytes(self._hash(user), "big")

    def of_all(self, users: Iterable[Id]) -> npt.NDArray[np.uint64]:
        """Return the priorities of many users."""
        return np.frombuffer(b"".join(map(self._hash, users)), ">u8").astype(np.uint64)

    def _hash(self, user: Id) -> bytes:
        keyed = self._keyed.copy()
        keyed.update(_encode(user))
        return keyed.digest()


class ModelState:
    """The structures derived from histories with one set of parameters: index, checkpoints, pool, learned sums."""

    def __init__(self, params: Params, histories: Histories, precedes: Callable[[int, int], bool]) -> None:
        self.params = params.seeded()
        self.index = Index(params.neighbors, SHARD_SIZE)
        self.pool = None if params.pool is None else Pool(params.pool, precedes)
        self.priorities = PoolPriorities(self.params.pool_seed or 0)
        self.sums = LearnedSums(histories, params.repurchase or 0.0) if params.alpha == LEARNED else None
        self.live = LiveIndex(histories, rule_of(params), self.index, self.pool, self.sums)


class GivenWeights(NamedTuple):
    """Alpha and the factors of items, by code, that were learned from more users than an engine holds."""

    alpha: float
    factors: Int64s


class EngineState(HistoryState):
    """Histories and a model of them, which every event keeps up to date."""

    def __init__(self, params: Params) -> None:
        super().__init__(params)
        self.given: GivenWeights | None = None  # instead of the weights learned here
        self.swap(self.new_model(params))

    def new_model(self, params: Params) -> ModelState:
        """Return a model with these parameters that has no users yet."""
        return ModelState(params, self.histories, self._precedes)

    def refresh(self, model: ModelState, owner: int) -> None:
        """Rebuild one user in a model under construction. The code of a removed user is named FREE."""
        model.live.admit(*self._room)
        if model.pool is not None:
            if model.pool.knows(owner):
                model.live.withdraw(owner)
            if self.users.names[owner] != FREE:
                model.live.join(owner, model.priorities.of(self.users.names[owner]))
        model.live.refresh(owner)

    def swap(self, model: ModelState) -> None:
        """Use a model of all users from now on."""
        model.live.admit(*self._room)  # a model without users may have no room yet
        self.params, self.rule = model.params, model.live.rule
        self.index, self.pool, self.priorities = model.index, model.pool, model.priorities
        self.sums = model.sums
        self.events = self.live = model.live

    def _users_added(self, owners: Iterable[int], users: Iterable[Id]) -> None:
        if self.pool is not None:
            for owner, user in zip(owners, users, strict=True):
                self.live.join(owner, self.priorities.of(user))

    def _user_removed(self, owner: int) -> None:
        if self.pool is not None:
            self.live.leave(owner)

    def _precedes(self, owner: int, other: int) -> bool:
        return bool(self.users.labels[owner] < self.users.labels[other])

    def in_pool(self, user: Id) -> bool:
        """Return whether a user can be a neighbor: without a pool, every user can."""
        return self.pool is None or self.pool.holds(self.users.codes[user])

    def left_out_for(self, user: Id) -> int:
        """Return the code of the user to leave out of the neighbors of `user`, or -1.

        That is the user or, for an unknown user, the one whom the user would push out of the pool.
        """
        owner = self.users.codes.get(user)
        last = -1 if self.pool is None else self.pool.last()
        if owner is not None or self.pool is None or last < 0:
            return -1 if owner is None else owner
        priority, largest = self.priorities.of(user), self.pool.priority_of(last)
        enters = priority < largest or (priority == largest and in_order([user, self.users.names[last]])[0] == user)
        return last if enters else -1

    def query(self, owner: int, space: FoldWorkspace) -> Vector:
        """Return the fixed-point vector of a user, in the pool or not."""
        return self.live.vector_of(owner, space)

    def weigh(self, query: Vector, buyers: int, owner: int | None = None, space: FoldWorkspace | None = None) -> float:
        """Set the own weights of a query, and return alpha. The factor of an item with fewer buyers counts as 1.

        With a workspace, the query is a history that is not stored, and its share counts instead of that of the user
        with the code `owner` (None: an unknown user).
        """
        if self.given is not None:
            query.weigh_by(self.given.factors)
            return self.given.alpha
        if self.sums is None:
            return float(self.params.alpha)
        if space is None:
            return self.sums.weigh(query, buyers)
        old = None if owner is None else queries.share(self.histories, space, self.rule, owner)
        return self.sums.weigh_instead(query, buyers, old)

    def sizes(self) -> Sizes:
        """Count users, items, baskets, purchases and entries of vectors."""
        return Sizes(len(self.users), len(self.items), *self.histories.sizes(), self.index.entry_count())


class Rebuild:
    """A model with other parameters that is being built. Users whom events change meanwhile are refreshed at once."""

    def __init__(self, state: EngineState, params: Params) -> None:
        _check_groups(state.params, params)
        self._state = state
        self._model = state.new_model(params)
        state.live.successor = self._model.live
        self._waiting = sorted(state.users.codes.values(), reverse=True)
        self.total = len(self._waiting)

    @property
    def done(self) -> int:
        """The number of users built, of those at the beginning."""
        return self.total - len(self._waiting)

    def work(self, users: int) -> None:
        """Build the next users. No event may be applied meanwhile."""
        for _ in range(min(users, len(self._waiting))):
            self.follow(self._waiting.pop())

    def follow(self, owner: int) -> None:
        """Bring the new model up to date with the history of a user."""
        self._state.refresh(self._model, owner)

    def choose_hubs(self) -> None:
        """Choose the hubs, which makes searches fast."""
        self._model.index.rebuild_hubs()

    def swap(self) -> None:
        """Make the new model that of the engine."""
        assert not self._waiting, "not all users are built"
        self._state.swap(self._model)


def _check_groups(old: Params, new: Params) -> None:
    """Refuse a change of the boundaries of varying groups, which are part of the histories."""
    changes = old.grouping != new.grouping or old.group_size != new.group_size
    if changes and "varying" in (old.grouping, new.grouping):
        raise InvalidParamsError(
            f"{old.grouping} groups of {old.group_size} can't become {new.grouping} groups of {new.group_size}: the "
            "boundaries of varying groups are part of the histories. Learn the baskets in a new database"
        )
