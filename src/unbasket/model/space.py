"""The work space of a fold: dense over all items, clean between folds."""

import numpy as np
from numba import float64, int32, types, uint32
from numba.experimental import structref

from unbasket.kernels.jit import Codes, Floats, Int32s, Struct, compiled_struct, jit, new
from unbasket.kernels.pool import grown


@structref.register
class FoldSpaceType(types.StructRef):
    """Numba's side of `FoldSpace`."""


class FoldSpace(Struct):
    """Per item: its level as of the last group that held it, and that group's number (from 1; 0: none so far).

    `touched` lists the items that are not clean.
    """

    level: Floats
    last: Int32s
    touched: Codes


FOLD_SPACE = compiled_struct(FoldSpaceType, FoldSpace, level=float64[::1], last=int32[::1], touched=uint32[::1])


@jit
def new_fold_space() -> FoldSpace:
    """A work space for no items yet."""
    space = new(FOLD_SPACE)
    space.level = np.zeros(0)
    space.last = np.zeros(0, np.int32)
    space.touched = np.zeros(0, np.uint32)
    return space


@jit
def widen(space: FoldSpace, items: int) -> None:
    """Make room for item codes below `items`."""
    space.level = grown(space.level, items)
    space.last = grown(space.last, items)
    space.touched = grown(space.touched, items)


@jit
def clean(space: FoldSpace, count: int) -> None:
    """Wipe the first `count` touched items."""
    level, last, touched = space.level, space.last, space.touched
    for i in range(count):
        item = touched[i]
        level[item] = 0.0
        last[item] = 0
        touched[i] = 0
