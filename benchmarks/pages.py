"""What a benchmark writes into a page of the documentation, between two comments that say so."""

from pathlib import Path

END = "<!-- end -->\n"


def write(page: Path, maker: str, text: str) -> None:
    """Replace what this maker, such as `benchmarks/pool.py`, has written into a page before."""
    start = f"<!-- made by {maker} -->\n"
    before, found, rest = page.read_text().partition(start)
    _, ended, after = rest.partition(END)
    if not (found and ended):
        raise ValueError(f"{page} has no place for what {maker} makes: put {start.strip()} and {END.strip()} there")
    page.write_text(f"{before}{start}\n{text.strip()}\n\n{END}{after}")
