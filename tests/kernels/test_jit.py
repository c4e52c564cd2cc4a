"""The compiler's cache: a kernel is compiled anew when any file with kernels has changed."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from unbasket.kernels import jit
jit._SOURCES = sys.argv[1]
from outer import outer
print(outer(), sum(outer.stats.cache_hits.values()))
"""
OUTER = """
from inner import inner
from unbasket.kernels.jit import jit

@jit
def outer():
    return inner()
"""
INNER = """
from unbasket.kernels.jit import jit

@jit
def inner():
    return {}
"""


def run(folder: Path, sources: str) -> list[int]:
    """The outer kernel's answer in a fresh process, and whether it came from the cache."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", PROGRAM, sources]
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return [int(word) for word in output.split()]


def test_a_change_in_an_inlined_kernel_is_seen(tmp_path: Path) -> None:
    (tmp_path / "outer.py").write_text(OUTER)
    (tmp_path / "inner.py").write_text(INNER.format(1))
    assert run(tmp_path, "a") == [1, 0]
    assert run(tmp_path, "a") == [1, 1]
    (tmp_path / "inner.py").write_text(INNER.format(2))
    assert run(tmp_path, "b") == [2, 0]
    assert run(tmp_path, "b") == [2, 1]
