"""What each basket contributes to an item's weight: the terms of Eq. uservector, one by one."""

from itertools import pairwise

from unbasket.params import Params


def group_starts(params: Params, opens: list[bool]) -> list[int]:
    """The positions of the baskets that start a group; `opens` has the flags of varying groups."""
    if params.grouping == "fixed":
        return list(range(0, len(opens), params.group_size))
    return [position for position, start in enumerate(opens) if start]


def basket_parts(params: Params, holds: list[bool], opens: list[bool]) -> list[float]:
    """r_g^(K-j) r_b^(tau-i) / tau for each basket that holds the item, 0 for the others (the 1/K is left out)."""
    starts = group_starts(params, opens)
    parts = []
    for number, (start, end) in enumerate(pairwise([*starts, len(holds)]), 1):
        age = params.group_decay ** (len(starts) - number)
        parts += [
            age * params.basket_decay ** (end - 1 - i) / (end - start) if holds[i] else 0.0 for i in range(start, end)
        ]
    return parts
