"""Parameters of TIFU-kNN, the grouping policy, and the pool of neighbors."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from inspect import signature
from typing import Any, Literal, Self, get_args

from unbasket.errors import InvalidParamsError

Grouping = Literal["fixed", "varying", "count"]
LEARNED: Literal["learned"] = "learned"

MAX_SEED = 2**53 - 1  # of a pool: the largest integer that every JSON parser reads exactly


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Params:
    """Parameters of the model (paper, section 2.2).

    With the defaults the model sets its own weights, which does best on average in five shops (docs/evaluation.md);
    `Params.paper` has the paper's parameters. In groups of a single basket, `basket_decay` has no effect.

    `alpha` is the weight of a user's own baskets. "learned": it is computed from the remaining baskets of all users,
    and each item gets a factor that says how readily people buy it again; `repurchase` is how many purchases' worth of
    evidence such a factor needs (None: no factors). This needs groups of one basket. A number is the paper's alpha; it
    has no factors, and `repurchase` is then None.

    `grouping` says how a deletion changes the groups. "fixed": baskets are always regrouped by m from the oldest on,
    and the model is exactly that of a retrain. "varying": the paper's relaxation (section 4.3), in which group
    boundaries survive and a group that lost a basket stays short. "count": m is the *number* of groups, as in the
    original TIFU-kNN and its other implementations; every event then replays the user's whole history.

    `pool` is the number of users among whom neighbors are searched; None, as in the paper, means all users. It is for
    large shops: a recommendation then costs as much as in a shop of that many users. The pool holds the users with the
    smallest hashes of `pool_seed` and their id. An engine in memory uses seed 0 unless one is given; a new database
    draws one.

    >>> Params(group_size=0)
    Traceback (most recent call last):
    unbasket.errors.InvalidParamsError: group_size must be a whole number from 1 to 2147483647, not 0
    """

    group_size: int = 1
    basket_decay: float = 0.98
    group_decay: float = 0.95
    neighbors: int = 200
    alpha: float | Literal["learned"] = LEARNED
    repurchase: float | None = 1.5
    grouping: Grouping = "fixed"
    pool: int | None = None
    pool_seed: int | None = None

    def __new__(cls, **given: Any) -> Self:
        check_names(given)
        return object.__new__(cls)

    def __post_init__(self) -> None:
        self._check_whole("group_size", 1, 2**31 - 1)
        self._check_whole("neighbors", 1, 2**31 - 1)
        if self.pool is not None:
            self._check_whole("pool", 1, 2**31 - 1)
        if self.pool_seed is not None:
            self._check_whole("pool_seed", 0, MAX_SEED)
            if self.pool is None:
                raise InvalidParamsError(f"pool_seed={self.pool_seed} is for a pool. Say how large, as in pool=20_000")
        for name in ("basket_decay", "group_decay"):
            if not 0 < self._number(name) <= 1:
                raise InvalidParamsError(f"{name} must be above 0 and at most 1, not {getattr(self, name)!r}")
        if self.grouping not in get_args(Grouping):
            raise InvalidParamsError(f'grouping must be "fixed", "varying" or "count", not {self.grouping!r}')
        self._check_alpha()

    def _check_alpha(self) -> None:
        if self.alpha != LEARNED:
            if not 0 <= self._number("alpha") <= 1:
                raise InvalidParamsError(f'alpha must be "learned" or from 0 to 1, not {self.alpha!r}')
            object.__setattr__(self, "repurchase", None)
            return
        if self.group_size != 1 or self.grouping != "fixed":
            raise InvalidParamsError(
                f'alpha="learned" needs group_size=1 and grouping="fixed", not {self.group_size} and '
                f"{self.grouping!r}. Give alpha a number, as in alpha=0.8"
            )
        if self.repurchase is not None and not 0.001 <= self._number("repurchase") <= 1000:
            raise InvalidParamsError(f"repurchase must be None or from 0.001 to 1000, not {self.repurchase!r}")

    @classmethod
    def paper(cls, dataset: str) -> Self:
        """Return the parameters that the paper's authors found for one of their datasets.

        >>> Params.paper("instacart").neighbors
        900
        """
        if dataset not in _PAPER:
            raise InvalidParamsError(f"the paper has parameters for {', '.join(_PAPER)}, not for {dataset!r}")
        return cls(**_PAPER[dataset])

    def __repr__(self) -> str:
        named = asdict(self)
        told = {"repurchase"} if self.alpha == LEARNED else set()  # None is not its default
        given = [f"{name}={value!r}" for name, value in named.items() if value is not None or name in told]
        return f"Params({', '.join(given)})"

    def changed(self, **named: Any) -> "Params":
        """Return a copy with these parameters changed; the seed goes with the pool, and factors with a learned alpha.

        >>> Params(pool=100, pool_seed=3).changed(pool=None, alpha=0.5) == Params(alpha=0.5)
        True
        >>> Params(alpha=0.5).changed(alpha="learned") == Params()
        True
        """
        check_names(named)
        implied: dict[str, Any] = {"pool_seed": None} if named.get("pool", self.pool) is None else {}
        if self.alpha != LEARNED and named.get("alpha") == LEARNED:
            implied["repurchase"] = Params.__dataclass_fields__["repurchase"].default
        return replace(self, **(implied | named))

    def seeded(self, seed: int = 0) -> "Params":
        """Return a copy with this seed if there is a pool without a seed."""
        return self if self.pool is None or self.pool_seed is not None else replace(self, pool_seed=seed)

    def _check_whole(self, name: str, least: int, most: int) -> None:
        value = getattr(self, name)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise InvalidParamsError(f"{name} must be a whole number from {least} to {most}, not {value!r}")

    def _number(self, name: str) -> float:
        """Return a parameter as a float: 1 and 1.0 are the same model, and must be the same Params."""
        value = getattr(self, name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            kind = '"learned" or a number' if name == "alpha" else "a number"
            raise InvalidParamsError(f"{name} must be {kind}, not {value!r}")
        try:
            number = float(value) + 0.0  # -0.0 is 0.0
        except OverflowError:
            raise InvalidParamsError(f"{name} is out of range: {value!r}") from None
        object.__setattr__(self, name, number)
        return number


_PAPER: dict[str, dict[str, Any]] = {
    "tafeng": {"group_size": 7, "basket_decay": 0.9, "group_decay": 0.7, "neighbors": 300, "alpha": 0.7},
    "instacart": {"group_size": 3, "basket_decay": 0.9, "group_decay": 0.7, "neighbors": 900, "alpha": 0.9},
    "valuedshopper": {"group_size": 7, "basket_decay": 1.0, "group_decay": 0.6, "neighbors": 300, "alpha": 0.7},
}

PAPER_DATASETS = tuple(_PAPER)

Params.__new__.__signature__ = signature(Params.__init__)  # type: ignore[attr-defined]  # for help() and editors


def check_names(names: Iterable[str]) -> None:
    """Raise an error for a name that is no parameter, and suggest the nearest one.

    >>> check_names(["alpha", "neighbours"])
    Traceback (most recent call last):
    unbasket.errors.InvalidParamsError: there is no parameter 'neighbours'. Did you mean 'neighbors'?
    """
    known = list(Params.__dataclass_fields__)
    for name in names:
        if name not in known:
            similar = get_close_matches(name, known, 1)
            advice = f"Did you mean {similar[0]!r}?" if similar else f"There are {', '.join(known)}"
            raise InvalidParamsError(f"there is no parameter {name!r}. {advice}")


def checked_params(params: object) -> Params:
    """Return the parameters, or raise an error that names a value of another type."""
    if not isinstance(params, Params):
        raise InvalidParamsError(f"params must be a Params, not {params!r}; for example Params(neighbors=100)")
    return params
