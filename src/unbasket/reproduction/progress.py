"""How an experiment says how far it is."""

from collections.abc import Callable

Watch = Callable[[str, int, int], object]
"""Called with what is being done, the steps done, and all of them."""
