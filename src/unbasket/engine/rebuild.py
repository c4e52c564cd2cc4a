"""A change of parameters: a model is built from the histories, beside the model that answers meanwhile."""

from unbasket.engine.state import EngineState
from unbasket.errors import InvalidParamsError
from unbasket.params import Params


class Rebuild:
    """A model with other parameters that is being built. Users whom events change meanwhile are refreshed at once."""

    def __init__(self, state: EngineState, params: Params) -> None:
        _check_groups(state.params, params)
        self._state = state
        self._model = state.new_model(params)
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
            "boundaries of varying groups are part of the histories. Export the baskets into a new database"
        )
