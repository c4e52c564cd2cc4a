"""Functions of the core fit on a screen, and take few parameters: what belongs together is passed as a struct."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCES = sorted(Path(__file__).parents[2].glob("src/unbasket/core/*/*.pyx"))
HEAD = re.compile(r"^( *)(?:cdef|cpdef|def) (?!class|struct|enum|extern)[^=\n]*?(\w+)\(", re.MULTILINE)

MAX_LINES = 60
MAX_PARAMETERS = 8


class Function(NamedTuple):
    """One definition in a source."""

    name: str
    lines: int
    parameters: list[str]


def functions(source: str) -> Iterator[Function]:
    for head in HEAD.finditer(source):
        end = closing(source, head.end() - 1)
        if ":" not in source[end : source.find("\n", end)]:
            continue  # a declaration
        body = source[source.find("\n", end) + 1 :].splitlines()
        deeper = " " * (len(head[1]) + 1)
        rest = next((i for i, line in enumerate(body) if line and not line.startswith(deeper)), len(body))
        length = source.count("\n", head.start(), end) + 1 + len("\n".join(body[:rest]).rstrip().splitlines())
        yield Function(head[2], length, split(source[head.end() : end]))


def closing(source: str, opening: int) -> int:
    """Where the parenthesis that opens at a place is closed."""
    depth = 0
    for place in range(opening, len(source)):
        depth += (source[place] in "([") - (source[place] in ")]")
        if depth == 0:
            return place
    raise AssertionError("a parenthesis is not closed")


def split(parameters: str) -> list[str]:
    flat = re.sub(r"\[[^\]]*\]", "", parameters)
    return [each.strip() for each in flat.split(",") if each.strip() not in ("", "self")]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_functions_are_short(path: Path) -> None:
    found = list(functions(path.read_text(encoding="utf-8")))
    assert found
    assert [each for each in found if each.lines > MAX_LINES or len(each.parameters) > MAX_PARAMETERS] == []


def test_long_functions_are_found() -> None:
    text = (
        "cdef int f(int64_t[::1, :] a, b) except -1 nogil:\n"
        + "    pass\n" * 70
        + "\n\ndef g(\n    self, c\n):\n    pass\n"
    )
    assert list(functions(text)) == [Function("f", 71, ["int64_t a", "b"]), Function("g", 4, ["c"])]
