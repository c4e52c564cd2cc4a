"""Imports of compiled modules, which import-linter can't see: their own folder and lower ones, and no I/O."""

import re
from pathlib import Path

import pytest

CORE = Path(__file__).parents[2] / "src/unbasket/core"
SOURCES = sorted(file for kind in ("*.pyx", "*.pxd", "*/__init__.py") for file in CORE.rglob(kind))

FOLDERS = ["memory", "util", "model", "index", "search", "codec", "check"]
"""The lowest first."""

OUTSIDE = {"cython", "libc", "cpython", "functools", "hashlib", "numpy", "threading"}


def imported(source: Path) -> set[str]:
    """Return the packages that a source imports; of the core's modules and headers, their folders."""
    text = source.read_text()
    names = re.findall(r"^(?:from|c?import) ([\w.]+)", text, re.MULTILINE)
    packages = {name.split(".")[2] if name.startswith("unbasket.core.") else name.split(".")[0] for name in names}
    return packages | {*re.findall(r'^cdef extern from "(\w+)/', text, re.MULTILINE)}


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: str(source.relative_to(CORE)))
def test_a_module_imports_no_higher_folder(source: Path) -> None:
    allowed = FOLDERS[: FOLDERS.index(source.parent.name) + 1]
    assert imported(source) <= {*allowed, *OUTSIDE}


def test_all_folders_are_listed() -> None:
    assert sorted({source.parent.name for source in SOURCES}) == sorted(FOLDERS)
