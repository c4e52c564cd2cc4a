"""Types of the arrays that the core takes and returns."""

import numpy as np
import numpy.typing as npt

Flags = npt.NDArray[np.uint8]
Codes = npt.NDArray[np.uint32]
Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
