"""The state of an engine: histories, and all that is derived from them for recommendations."""

from collections.abc import Callable, Iterable

from unbasket.core.index import SHARD_SIZE, Index, LiveIndex, Pool
from unbasket.core.model import FoldWorkspace, Histories, Vector
from unbasket.domain.ids import FREE, Id, sort_key
from unbasket.domain.results import Sizes
from unbasket.engine.histories import HistoryState, rule_of
from unbasket.engine.sampling import PoolPriorities
from unbasket.params import Params


class ModelState:
    """The structures derived from histories with one set of parameters: index, checkpoints and pool."""

    def __init__(self, params: Params, histories: Histories, precedes: Callable[[int, int], bool]) -> None:
        self.params = params.seeded()
        self.index = Index(params.neighbors, SHARD_SIZE)
        self.pool = None if params.pool is None else Pool(params.pool, precedes)
        self.priorities = PoolPriorities(self.params.pool_seed or 0)
        self.live = LiveIndex(histories, rule_of(params), self.index, self.pool)

    def refresh(self, owner: int, user: Id) -> None:
        """Rebuild everything derived from a user's history; the id of a user without one is FREE."""
        if self.pool is not None:
            if self.pool.knows(owner):
                self.live.withdraw(owner)
            if user != FREE:
                self.live.join(owner, self.priorities.of(user))
        self.live.refresh(owner)


class EngineState(HistoryState):
    """Histories and a model of them, which every event keeps up to date."""

    def __init__(self, params: Params) -> None:
        super().__init__(params)
        self.swap(self.new_model(params))

    def new_model(self, params: Params) -> ModelState:
        """Return a model with these parameters that has no users yet."""
        return ModelState(params, self.histories, self._precedes)

    def refresh(self, model: ModelState, owner: int) -> None:
        """Bring a model that is being built up to date with the history of a user."""
        model.live.admit(*self._room)
        model.refresh(owner, self.users.names[owner])

    def swap(self, model: ModelState) -> None:
        """Use a model of all users from now on."""
        model.live.admit(*self._room)  # a model without users may have no room yet
        self.params, self.rule = model.params, model.live.rule
        self.index, self.pool, self.priorities = model.index, model.pool, model.priorities
        self.events = self.live = model.live

    def _users_added(self, owners: Iterable[int], users: Iterable[Id]) -> None:
        if self.pool is not None:
            for owner, user in zip(owners, users, strict=True):
                self.live.join(owner, self.priorities.of(user))

    def _user_removed(self, owner: int) -> None:
        if self.pool is not None:
            self.live.leave(owner)

    def _precedes(self, owner: int, other: int) -> bool:
        """Return whether a user comes before another in the order of ids."""
        return sort_key(self.users.names[owner]) < sort_key(self.users.names[other])

    def in_pool(self, user: Id) -> bool:
        """Return whether a user can be a neighbor: without a pool, every user can."""
        return self.pool is None or self.pool.holds(self.users.codes[user])

    def left_out_for(self, user: Id) -> int:
        """Return the code of the user who is no neighbor of `user`, or -1.

        That is the user or, for an unknown user, the one whom the user would push out of the pool.
        """
        owner = self.users.codes.get(user)
        last = -1 if self.pool is None else self.pool.last()
        if owner is not None or self.pool is None or last < 0:
            return -1 if owner is None else owner
        priority, largest = self.priorities.of(user), self.pool.priority_of(last)
        enters = priority < largest or (priority == largest and sort_key(user) < sort_key(self.users.names[last]))
        return last if enters else -1

    def query(self, owner: int, space: FoldWorkspace) -> Vector:
        """Return the fixed-point vector of a user, in the pool or not."""
        return self.live.vector_of(owner, space)

    def sizes(self) -> Sizes:
        """Count users, items, baskets, purchases and entries of vectors."""
        return Sizes(len(self.users), len(self.items), *self.histories.sizes(), self.index.entry_count())
