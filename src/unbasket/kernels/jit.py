"""The one place that says how the package compiles.

Kernels are cached on disk, so that only the first run after an install compiles; they release the GIL, so that
readers run in parallel; and fast-math stays off, since reordered floating-point sums would end bit-equality.

State that kernels change lives in compiled structs (`numba.experimental.structref`). Passing one costs the same
however many arrays it has, and a kernel can put a larger array into a field: no round trip through Python to grow.
"""

from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
import numpy.typing as npt
from numba.experimental import structref

Codes = npt.NDArray[np.uint32]  # unsigned: numba need not check an index for being negative
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

# Kernels see these names as they are; to mypy they are anything, since numba's integers are neither ints nor NumPy's.
whole: Any = np.int64
new: Any = structref.new

Function = TypeVar("Function", bound=Callable[..., Any])

_POLICY: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "fastmath": False,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,  # nothing calls a kernel through a C pointer, and it is quicker to compile
}


def _sources() -> str:
    """A hash of every file with kernels in it."""
    package = Path(__file__).parents[1]
    files = [*(file for part in ("kernels", "model", "neighbors") for file in (package / part).glob("*.py"))]
    files += [package / "update.py", package / "inspection.py"]
    contents = b"".join(file.read_bytes() for file in sorted(files))
    return blake2b(contents, digest_size=16).hexdigest()


_SOURCES = _sources()


def jit(function: Function) -> Function:
    """Compile a function, now or from the cache."""
    kernel: Any = numba.njit(**_POLICY)(function)
    # Numba drops a cached kernel when its own file changes, but not when that of a kernel inlined into it does.
    kernel._cache._cache_file._source_stamp = _SOURCES
    compiled: Function = kernel
    return compiled


class Struct(structref.StructRefProxy):
    """Python's handle of a compiled struct: created and read by kernels only."""

    __slots__ = ()


def compiled_struct(kind: Any, handle: type[Struct], **fields: Any) -> Any:
    """The numba type of a struct with these fields; `kind` is registered with `structref.register`."""
    structref.define_boxing(kind, handle)  # type: ignore[no-untyped-call]
    return kind(list(fields.items()))
