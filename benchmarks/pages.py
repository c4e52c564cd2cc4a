"""Generated sections of documentation pages, between two comments."""

from pathlib import Path

END = "<!-- end -->\n"


def write(page: Path, maker: str, text: str) -> None:
    """Replace the section that `maker`, such as `benchmarks/pool.py`, generated in a page."""
    start = f"<!-- made by {maker} -->\n"
    before, found, rest = page.read_text().partition(start)
    _, ended, after = rest.partition(END)
    if not (found and ended):
        raise ValueError(f"{page} has no place for what {maker} makes: put {start.strip()} and {END.strip()} there")
    page.write_text(f"{before}{start}\n{text.strip()}\n\n{END}{after}")
