"""Types of the arrays, and of the places of baskets, that the core takes and returns."""

import numpy as np
import numpy.typing as npt

Flags = npt.NDArray[np.uint8]
Codes = npt.NDArray[np.uint32]
Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

Place = tuple[int, int, int]
"""The code of a basket's user, its position in the history, and the shift of its row in a store."""
