"""The five parameters of TIFU-kNN and the grouping policy."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import signature
from typing import Any, Literal, Self, get_args

from unbasket.errors import InvalidParamsError

Grouping = Literal["fixed", "varying"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """Parameters of the model (paper, section 2.2). The defaults are the paper's for Ta-Feng.

    `grouping` says what a deletion does to the groups. "fixed": baskets are always regrouped by m from the
    oldest on, so the model is exactly that of a retrain. "varying": the paper's relaxation (section 4.3), group
    boundaries survive and a group that lost a basket stays short.

    >>> Params(group_size=0)
    Traceback (most recent call last):
    unbasket.errors.InvalidParamsError: group_size must be a whole number from 1 to 2147483647, not 0
    """

    group_size: int = 7
    basket_decay: float = 0.9
    group_decay: float = 0.7
    neighbors: int = 300
    alpha: float = 0.7
    grouping: Grouping = "fixed"

    def __new__(cls, **given: Any) -> Self:
        check_names(given)
        return object.__new__(cls)

    def __post_init__(self) -> None:
        for name in ("group_size", "neighbors"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < 2**31:
                raise InvalidParamsError(f"{name} must be a whole number from 1 to {2**31 - 1}, not {value!r}")
        for name in ("basket_decay", "group_decay"):
            if not 0 < self._number(name) <= 1:
                raise InvalidParamsError(f"{name} must be above 0 and at most 1, not {getattr(self, name)!r}")
        if not 0 <= self._number("alpha") <= 1:
            raise InvalidParamsError(f"alpha must be from 0 to 1, not {self.alpha!r}")
        if self.grouping not in get_args(Grouping):
            raise InvalidParamsError(f'grouping must be "fixed" or "varying", not {self.grouping!r}')

    @classmethod
    def paper(cls, dataset: str) -> Self:
        """The parameters that the paper's authors found for one of their datasets.

        >>> Params.paper("instacart").neighbors
        900
        """
        if dataset not in _PAPER:
            raise InvalidParamsError(f"the paper has parameters for {', '.join(_PAPER)}, not for {dataset!r}")
        return cls(**_PAPER[dataset])

    def _number(self, name: str) -> float:
        """The parameter as a float: 1 and 1.0 are the same model, so they must be the same Params."""
        value = getattr(self, name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise InvalidParamsError(f"{name} must be a number, not {value!r}")
        try:
            number = float(value) + 0.0  # -0.0 is 0.0
        except OverflowError:
            raise InvalidParamsError(f"{name} must be from 0 to 1, not {value!r}") from None
        object.__setattr__(self, name, number)
        return number


_PAPER: dict[str, dict[str, Any]] = {
    "tafeng": {"group_size": 7, "basket_decay": 0.9, "group_decay": 0.7, "neighbors": 300, "alpha": 0.7},
    "instacart": {"group_size": 3, "basket_decay": 0.9, "group_decay": 0.7, "neighbors": 900, "alpha": 0.9},
    "valuedshopper": {"group_size": 7, "basket_decay": 1.0, "group_decay": 0.6, "neighbors": 300, "alpha": 0.7},
}

Params.__new__.__signature__ = signature(Params.__init__)  # type: ignore[attr-defined]  # for help() and editors


def check_names(names: Iterable[str]) -> None:
    """Refuse names that are not parameters, and say which one may be meant.

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
