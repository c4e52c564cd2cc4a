r"""Tables as LaTeX, for a paper: `\input` the file, with `\usepackage{booktabs}`."""

from collections.abc import Iterable

from unbasket.reproduction.section import Table

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "–": "--",
}


def latex_table(table: Table, label: str, made: str) -> str:
    """The table as a float; `made` says what it was made with, in a comment."""
    columns = "".join("l" if text else "r" for text in table.text_columns)
    lines = [
        *(f"% {line}" for line in made.splitlines()),
        r"\begin{table}",
        r"\centering",
        r"\small",
        rf"\caption{{{escape(table.caption)}}}",
        rf"\label{{tab:{label}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _line(table.header),
        r"\midrule",
        *map(_line, table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    r"""The text as LaTeX shows it.

    >>> print(escape("p < 1 % of r_b"))
    p $<$ 1 \% of r\_b
    """
    return "".join(_ESCAPES.get(letter, letter) for letter in text)


def _line(cells: Iterable[str]) -> str:
    return " & ".join(map(escape, cells)) + r" \\"
