"""Generated tables in documentation pages."""

import re
from pathlib import Path

import pytest

from benchmarks import pages, scale

ROOT = Path(__file__).parents[2]


def test_only_the_makers_section_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    text = "Above.\n\n<!-- made by {} -->\n\n{}\n\n<!-- end -->\n\n"
    page.write_text(text.format("a.py", "| old |") + text.format("b.py", "| other |") + "Below.\n")
    pages.write(page, "a.py", "| new |\n")
    assert page.read_text() == text.format("a.py", "| new |") + text.format("b.py", "| other |") + "Below.\n"


@pytest.mark.parametrize("text", ["", "<!-- made by a.py -->\n", "<!-- made by b.py -->\n<!-- end -->\n"])
def test_a_page_without_the_section_is_unchanged(tmp_path: Path, text: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(ValueError, match=r"no place for what a\.py makes"):
        pages.write(page, "a.py", "| new |")
    assert page.read_text() == text


def test_every_generated_section_has_its_maker(tmp_path: Path) -> None:
    found = 0
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        copy = tmp_path / page.name
        for maker in re.findall("<!-- made by (.*) -->", page.read_text()):
            assert "pages.write(" in (ROOT / maker).read_text()
            copy.write_text(page.read_text())
            pages.write(copy, maker, "| new |")
            assert copy.read_text() != page.read_text()
            found += 1
    assert found


def test_the_table_of_scale_matches_the_page() -> None:
    """Rows and columns are compared, but not the figures, which depend on the machine."""
    names = [name for names in scale.ROWS.values() for name in names]
    figures = [scale.Figure(name, 0.123, "ms", 1, 1) for name in names]
    lines = scale.written(list(scale.SIZES), [figures] * 3).splitlines()
    page = (ROOT / "docs/engine.md").read_text()
    for line in lines:
        title = line.split("|")[1]
        assert len([row for row in page.splitlines() if row.startswith(f"|{title}|") and row.count("|") == 5]) == 1


def test_a_cell_has_two_digits_of_each_figure_and_a_unit_once() -> None:
    def figure(value: float, unit: str) -> scale.Figure:
        return scale.Figure("", value, unit, 1, 1)

    assert scale.cell([figure(19.26, "s")]) == "19 s"
    assert scale.cell([figure(0.2, "ms"), figure(249.8, "ms")]) == "0.20 / 250 ms"
    assert scale.cell([figure(0.131, "ms"), figure(2.04, "GB")]) == "0.13 ms / 2.0 GB"
