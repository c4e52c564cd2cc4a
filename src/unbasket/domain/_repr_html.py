"""HTML tables for `_repr_html_`, in the colors of the notebook's own theme."""

from collections.abc import Iterable, Sequence
from html import escape

_CELL = "padding:.2em .8em .2em 0;white-space:nowrap;text-align:"


def html_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]], note: str = "") -> str:
    """Return a table with a title above and a note below. The first column is left-aligned, the others right."""
    head = "".join(_cell("th", name, column) for column, name in enumerate(header))
    body = "".join(
        "<tr>" + "".join(_cell("td", value, column) for column, value in enumerate(row)) + "</tr>" for row in rows
    )
    below = f"<small>{escape(note)}</small>" if note else ""
    return (
        f'<div><strong>{escape(title)}</strong><div style="overflow-x:auto">'
        f'<table style="border-collapse:collapse;margin:.4em 0"><tr>{head}</tr>{body}'
        f"</table></div>{below}</div>"
    )


def _cell(tag: str, text: str, column: int) -> str:
    return f'<{tag} style="{_CELL}{"right" if column else "left"}">{escape(text)}</{tag}>'
