"""The documentation hangs together: every link leads somewhere, every page and every public name is found.

`make docs` checks more, since it builds the site; this takes no time and needs no further tools.
"""

import importlib
import re
from collections import Counter
from collections.abc import Iterator
from inspect import ismodule
from pathlib import Path
from urllib.parse import unquote

import pytest

import unbasket
from unbasket import client, datasets, errors, evaluation, residue, spark, store

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), ROOT / "data" / "README.md", *DOCS.rglob("*.md")])
SITE = [page for page in [*PAGES, DOCS / "notebook.ipynb"] if page != DOCS / "index.md"]

_FENCE = re.compile(r"^(```+|~~~+).*?^\1", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`]*`")
_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)")
_HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


def prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    seen: Counter[str] = Counter()
    found = set()
    for heading in _HEADING.findall(prose(page)):
        words = re.sub(r"\]\([^)]*\)", "]", heading)
        slug = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def faults(page: Path) -> Iterator[str]:
    """Yield the broken links of a page."""
    for link in _LINK.findall(_CODE.sub("", prose(page))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            yield f"{link}: no such file"
        elif anchor and anchor not in anchors(target):
            yield f"{link}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    assert not list(faults(page))


def test_links_are_really_looked_at(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# Some `heading`: here\n\n```\n# no heading\n```\n", encoding="utf-8")
    page = tmp_path / "page.md"
    good = "[a](other.md#some-heading-here) [b](https://example.org) `[c](gone.md)` [d](#top)\n\n# Top\n"
    page.write_text(good, encoding="utf-8")
    assert list(faults(page)) == []
    for bad in ("gone.md: no such file", "other.md#no-heading: no such heading", "#gone: no such heading"):
        page.write_text(f"{good}![picture]({bad.partition(': ')[0]})", encoding="utf-8")
        assert list(faults(page)) == [bad]


def in_navigation() -> Iterator[Path]:
    for block in re.findall(
        r"^```{toctree}\n(.*?)^```", (DOCS / "index.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    ):
        for entry in block.splitlines():
            if entry and not entry.startswith(":"):
                name = re.sub(r"^.*<(.*)>$", r"\1", entry)
                yield (DOCS / name).resolve()


def test_every_page_is_in_the_navigation_once() -> None:
    assert sorted(in_navigation()) == sorted(page.with_suffix("") for page in SITE)


def in_the_reference() -> list[tuple[str, str]]:
    text = "".join(page.read_text(encoding="utf-8") for page in sorted((DOCS / "api").glob("*.md")))
    return re.findall(r"^\.\. autoapi(\w+):: (\S+)$", text, re.MULTILINE)


def test_the_reference_has_every_public_name() -> None:
    modules = {name for kind, name in in_the_reference() if kind == "module"}
    assert modules == {module.__name__ for module in (client, datasets, errors, evaluation, residue, spark, store)}
    names = [name.rpartition(".")[2] for kind, name in in_the_reference() if kind != "module"]
    public = {name: getattr(unbasket, name) for name in unbasket.__all__}
    assert sorted(names) == sorted(
        name
        for name, thing in public.items()
        if not ismodule(thing) and getattr(thing, "__module__", None) != errors.__name__
    )


def test_what_contributing_names_is_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = set(re.findall(r"`((?:src|tests|benchmarks|data|deploy|docs)/[\w./]*)`", text))
    assert len(paths) > 20
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []
    packages = {f"src/unbasket/{path.parent.name}/" for path in (ROOT / "src" / "unbasket").glob("*/__init__.py")}
    assert packages <= paths


def test_the_drawing_names_modules_that_exist() -> None:
    drawing = unbasket.__doc__ or ""
    names = re.findall(r"`([a-z.]+)`", drawing)
    assert names
    for name in names:
        importlib.import_module(f"unbasket.{name}")
