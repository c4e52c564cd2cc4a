"""All that is derived from histories with one set of parameters: vectors in an index, checkpoints, and a pool."""

from collections.abc import Callable

from unbasket.core import CHECKPOINT_EVERY, SHARD_SIZE, Histories, Index, Live, Pool, Rule
from unbasket.domain.ids import FREE, Id
from unbasket.engine.sampling import PoolPriorities
from unbasket.params import Params


class ModelState:
    """All that is derived from histories with one set of parameters."""

    def __init__(self, params: Params, histories: Histories, precedes: Callable[[int, int], bool]) -> None:
        self.params = params = params.seeded()
        self.index = Index(params.neighbors, SHARD_SIZE)
        self.rule = Rule(
            params.group_size,
            params.basket_decay,
            params.group_decay,
            params.grouping == "varying",
            max(1, CHECKPOINT_EVERY // params.group_size),
        )
        self.pool = None if params.pool is None else Pool(params.pool, precedes)
        self.lots = PoolPriorities(params.pool_seed or 0)
        self.live = Live(histories, self.index, self.rule, self.pool)

    def renew(self, owner: int, user: Id) -> None:
        """Derive all that is derived of a user, or of one who is gone: FREE."""
        if self.pool is not None:
            if self.pool.knows(owner):
                self.live.withdraw(owner)
            if user != FREE:
                self.live.join(owner, self.lots.of(user))
        self.live.derive(owner)
