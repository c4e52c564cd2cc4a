"""The report as a self-contained HTML page: a verdict, contents, then a chapter per experiment."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from unbasket.reproduction.section import Finding, Section, Table

_TITLE = "Efficiently maintaining next basket recommendations: the paper's evaluation, reproduced"
_SYMBOLS = {True: ("holds", "✓"), False: ("fails", "✗"), None: ("found", "•")}

_STYLE = """
:root { color-scheme: light dark; --text: #1d2329; --soft: #5b6673; --page: #fff; --card: #f4f6f9; --line: #d9dee5;
  --accent: #1f5fa8; --good: #1a7f45; --bad: #b3261e }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e8ec; --soft: #9aa6b2; --page: #14181c; --card: #1e242a; --line: #343c45;
    --accent: #7fb3ee; --good: #5cc98a; --bad: #ff8a80 }
}
* { box-sizing: border-box }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 1100px; margin: 0 auto; padding: 1.5em 1em 4em;
  color: var(--text); background: var(--page) }
h1 { font-size: 1.7em; line-height: 1.25 }
h2 { margin-top: 2.5em; padding-bottom: .2em; border-bottom: 2px solid var(--accent); font-size: 1.35em }
a { color: var(--accent) }
p, li { max-width: 75ch }
.verdict { background: var(--card); border-left: 5px solid var(--good); padding: .8em 1.2em; border-radius: 4px }
.verdict.fails { border-color: var(--bad) }
.verdict h2 { margin: 0; border: 0; font-size: 1.2em }

.findings { list-style: none; padding: 0 }
.findings li { max-width: none; padding-left: 1.5em; text-indent: -1.5em; margin: .35em 0 }
.symbol { display: inline-block; width: 1.5em; text-indent: 0; font-weight: 700 }
.holds .symbol { color: var(--good) } .fails .symbol, .fails { color: var(--bad) } .found .symbol { color: var(--soft) }
nav ol { columns: 2; column-gap: 2em }
.box { overflow-x: auto; margin: 1em 0 }
.box img { display: block; max-width: 100%; min-width: 600px; height: auto; background: #fff; border-radius: 6px }
table { border-collapse: collapse; font-size: 13.5px; min-width: 60% }
caption { text-align: left; font-weight: 600; padding: .3em 0 }
th, td { border-bottom: 1px solid var(--line); padding: .3em .6em; text-align: right; vertical-align: bottom;
  font-variant-numeric: tabular-nums }
th { background: var(--card) }
td { white-space: nowrap }
.text { text-align: left; white-space: normal }
th:not(.text) { width: 1px }  /* as narrow as its numbers, to leave room for words */
.provenance { color: var(--soft); font-size: 13px; max-width: none }
@media (max-width: 600px) { nav ol { columns: 1 } h1 { font-size: 1.35em } body { padding-top: .5em } }
"""


@dataclass(frozen=True, slots=True, eq=False)
class Chapter:
    """An experiment on the page."""

    name: str
    title: str
    section: Section
    drawing: str
    """The figure as SVG."""
    provenance: str
    """Version, kind of run, seed, datasets and parameters."""
    files: Sequence[str]


def page(chapters: Sequence[Chapter], environments: Sequence[str], missing: Sequence[str]) -> str:
    """Render the report. `environments` are versions and machines; `missing` are the reasons for omissions."""
    contents = "".join(f'<li><a href="#{c.name}">{escape(c.title)}</a></li>' for c in chapters)
    left_out = _list("Left out, because the data is missing:", missing)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_TITLE}</title><style>{_STYLE}</style></head><body><h1>{_TITLE}</h1>"
        "<p>Tables and figures of section 6 of Wang and Schelter (2021), with this package's figures beside the "
        "paper's, and further measurements of its </p>"
        f"{_verdict(chapters)}{left_out}<nav><h2>Contents</h2><ol>{contents}"
        f'<li><a href="#environment">Versions and machine</a></li></ol></nav>{"".join(map(_chapter, chapters))}'
        f'<h2 id="environment">Versions and machine</h2>{_list("", environments)}</body></html>\n'
    )


def _verdict(chapters: Sequence[Chapter]) -> str:
    findings = [(chapter, finding) for chapter in chapters for finding in chapter.section.findings]
    checks = [finding.holds for _, finding in findings if finding.holds is not None]
    failed = checks.count(False)
    verdict = f"{checks.count(True)} of {len(checks)} checks hold" if checks else "nothing was checked"
    items = "".join(_finding(finding, _link(chapter)) for chapter, finding in findings)
    return (
        f'<section class="verdict{" fails" if failed else ""}"><h2>Verdict: {verdict}</h2>'
        f'<ul class="findings">{items}</ul></section>'
    )


def _link(chapter: Chapter) -> str:
    """Link to the chapter by its title up to the colon."""
    return f'<a href="#{chapter.name}">{escape(chapter.title.split(":")[0])}</a>: '


def _finding(finding: Finding, prefix: str = "") -> str:
    kind, symbol = _SYMBOLS[finding.holds]
    return f'<li class="{kind}"><span class="symbol">{symbol}</span>{prefix}{escape(finding.text)}</li>'


def _chapter(chapter: Chapter) -> str:
    encoded = base64.b64encode(chapter.drawing.encode()).decode()
    provenance = f'<p class="provenance">{escape(chapter.provenance)}</p>'
    files = ", ".join(f'<a href="{name}">{name}</a>' for name in chapter.files)
    return (
        f'<h2 id="{chapter.name}">{escape(chapter.title)}</h2>'
        f'<ul class="findings">{"".join(map(_finding, chapter.section.findings))}</ul>'
        f'<div class="box"><img alt="{escape(chapter.title)}" src="data:image/svg+xml;base64,{encoded}"></div>'
        f"{provenance}{''.join(_table(table) + provenance for table in chapter.section.tables)}"
        f"{''.join(f'<p>{escape(note)}</p>' for note in chapter.section.notes)}"
        f'<p class="provenance">Files: {files}</p>'
    )


def _table(table: Table) -> str:
    header = _row("th", table.header, table)
    rows = "".join(_row("td", row, table) for row in table.rows)
    caption = f"<caption>{escape(table.caption)}</caption>"
    return f'<div class="box"><table>{caption}<thead>{header}</thead><tbody>{rows}</tbody></table></div>'


def _row(tag: str, cells: Sequence[str], table: Table) -> str:
    kinds = (' class="text"' if text else "" for text in table.text_columns)
    row = "".join(f"<{tag}{kind}>{escape(cell)}</{tag}>" for cell, kind in zip(cells, kinds, strict=True))
    return f"<tr>{row}</tr>"


def _list(title: str, lines: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return items and f"{f'<p>{title}</p>' if title else ''}<ul>{items}</ul>"
