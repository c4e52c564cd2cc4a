"""What import-linter can't see: the compiled modules import each other one way, and nothing that does I/O."""

import re
from pathlib import Path

import pytest

CORE = Path(__file__).parents[2] / "src/unbasket/core"
MODULES = sorted(file.stem for file in CORE.glob("*.pyx"))

LAYERS = [
    {"views", "survey"},
    {"inspection"},
    {"loading", "questions"},
    {"live"},
    {"search"},
    {"ranking"},
    {"nearest"},
    {"index"},
    {"crowd", "part"},
    {"fold"},
    {"canon", "marks", "vector", "numbers"},
    {"history", "space", "select", "best", "arrange", "encode", "pack", "unpack"},
    {"rows", "pool", "column", "pieces", "naming", "together"},
    {"blocks"},
    {"buffers"},
]
"""The highest first. Modules of a layer know those below it."""

OUTSIDE = {"cython", "libc", "cpython", "functools", "numpy"}


def imports(module: str) -> set[str]:
    """The first names of what a module imports, or of the core's modules, the names of those."""
    files = [file for kind in (".pyx", ".pxd") if (file := CORE / f"{module}{kind}").exists()]
    found = set()
    for line in "\n".join(file.read_text() for file in files).splitlines():
        if match := re.match(r"(?:from|c?import) ([\w.]+)(?: c?import (\w+))?", line):
            name, what = match.groups()
            parts = name.split(".")
            found.add(parts[0] if parts[0] != "unbasket" else parts[2] if len(parts) > 2 else str(what))
    return found - {module}


def layer_of(module: str) -> int:
    [layer] = [number for number, modules in enumerate(LAYERS) if module in modules]
    return layer


@pytest.mark.parametrize("module", MODULES)
def test_a_module_knows_only_lower_layers(module: str) -> None:
    assert MODULES
    for name in imports(module) - OUTSIDE:
        assert layer_of(name) > layer_of(module), f"{module} imports {name}"


def test_the_layers_are_all_modules() -> None:
    assert sorted(name for layer in LAYERS for name in layer) == sorted([*MODULES, "buffers"])


def test_every_module_tells_python_what_it_has() -> None:
    assert sorted(file.stem for file in CORE.glob("*.pyi")) == MODULES
