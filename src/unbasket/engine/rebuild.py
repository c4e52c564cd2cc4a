"""Other parameters: all that they change is derived anew from the histories, beside the model that answers."""

from unbasket.engine.state import EngineState
from unbasket.errors import InvalidParamsError
from unbasket.params import Params


class Rebuild:
    """A change of parameters under way. Events that happen meanwhile are followed at once, as in the model itself."""

    def __init__(self, memory: EngineState, params: Params) -> None:
        _check_groups(memory.params, params)
        self._state = memory
        self._derived = memory.derive(params)
        self._waiting = sorted(memory.users.codes.values(), reverse=True)
        self.total = len(self._waiting)

    @property
    def done(self) -> int:
        """How many users are done, of those who were there at the beginning."""
        return self.total - len(self._waiting)

    def work(self, users: int) -> None:
        """Derive what there is of the next users. Nobody may change anything meanwhile."""
        for _ in range(min(users, len(self._waiting))):
            self.follow(self._waiting.pop())

    def follow(self, owner: int) -> None:
        """Bring what is derived of a user up to date with their history."""
        self._state.renew(self._derived, owner)

    def gather(self) -> None:
        """Choose the hubs, which makes answers quick."""
        self._derived.index.gather_hubs()

    def take_over(self) -> None:
        """Let the new parameters be those of the model."""
        assert not self._waiting, "not everybody is done"
        self._state.adopt(self._derived)


def _check_groups(old: Params, new: Params) -> None:
    """Refuse what would change boundaries of groups that are part of the histories."""
    changes = old.grouping != new.grouping or old.group_size != new.group_size
    if changes and "varying" in (old.grouping, new.grouping):
        raise InvalidParamsError(
            f"{old.grouping} groups of {old.group_size} can't become {new.grouping} groups of {new.group_size}: the "
            "boundaries of varying groups are part of the histories. Export the baskets into a new database"
        )
