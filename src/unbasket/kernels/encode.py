"""From numbers to dense codes, by a table with a place for every number from the lowest on.

That is many times faster than sorting or hashing.
"""

from unbasket.kernels.jit import Codes, Int64s, jit


@jit
def tick(values: Int64s, low: int, table: Codes) -> None:
    """Set the places of these values to 1."""
    for i in range(len(values)):
        table[values[i] - low] = 1


@jit
def encode(values: Int64s, low: int, table: Codes, codes: Codes) -> None:
    """Look up the codes of these values."""
    for i in range(len(values)):
        codes[i] = table[values[i] - low]
