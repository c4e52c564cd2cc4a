r"""The report: an HTML page and, beside it, each experiment as CSV, LaTeX, SVG and PNG.

A LaTeX file is for `\input` in a paper with `\usepackage{booktabs}`.
"""

import base64
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import polars as pl

from unbasket.datasets.published import OF_THE_PAPER
from unbasket.evaluation import plots
from unbasket.reproduction.result_cache import Result, ResultCache, environment
from unbasket.reproduction.section import Experiment, Finding, Section, Table
from unbasket.reproduction.workloads import params_of

_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$", ">": r"$>$",
    "–": "--", **{letter: f"\\{letter}" for letter in "&%$#_{}"},
}  # fmt: skip
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
class _Chapter:
    """An experiment on the page."""

    name: str
    title: str
    section: Section
    datasets: Sequence[str]
    drawing: str
    """The figure as SVG."""
    provenance: str
    """Version, kind of run, seed, datasets and parameters."""
    files: Sequence[str]


def write_report(
    folder: Path, experiments: Iterable[Experiment], cache: ResultCache, missing: Sequence[str] = ()
) -> Path:
    """Write all results in the folder, including those of earlier runs, and return the path of the HTML file.

    Results of another version of this package are left out: their rows may have other columns. `missing` lists why
    this run left something out.
    """
    chapters, environments = [], []
    version = environment()["unbasket"]
    for experiment in experiments:
        found = {dataset: cache.find(experiment.name, dataset) for dataset in experiment.datasets}
        results = {
            name: result for name, result in found.items() if result and result.environment["unbasket"] == version
        }
        if results:
            chapters.append(_write_chapter(folder, experiment, results))
            environments += [", ".join(map(" ".join, result.environment.items())) for result in results.values()]
    path = folder / "report.html"
    path.write_text(_page(chapters, list(dict.fromkeys(environments)), missing), encoding="utf-8")
    return path


def _write_chapter(folder: Path, experiment: Experiment, results: Mapping[str, Result]) -> _Chapter:
    """Write the files of an experiment, and return its chapter of the page."""
    name = experiment.name
    frame = pl.DataFrame([row for result in results.values() for row in result.rows], infer_schema_length=None)
    section, provenance = experiment.present(frame), _provenance(results)
    labels = [name, *(f"{name}-{number}" for number in range(2, len(section.tables) + 1))]
    tables = [_latex_table(table, label, provenance) for table, label in zip(section.tables, labels, strict=True)]
    drawing = plots.svg(section.figure)
    files = {
        f"{name}.csv": frame.write_csv().encode(),
        f"{name}.tex": "\n".join(tables).encode(),
        f"{name}.svg": drawing.encode(),
        f"{name}.png": plots.png(section.figure),
    }
    for file, content in files.items():
        (folder / file).write_bytes(content)
    return _Chapter(name, experiment.title, section, list(results), drawing, provenance, list(files))


def _provenance(results: Mapping[str, Result]) -> str:
    """Describe each kind of run with its version and seed, its datasets and their parameters."""
    runs: dict[str, list[str]] = defaultdict(list)
    for dataset, result in results.items():
        kind = "quick" if result.settings["quick"] else "full"
        run = f"unbasket {result.environment['unbasket']}, {kind} run, seed {result.settings['seed']}"
        p = params_of(dataset)
        decays = f"r_b = {p.basket_decay:g}, r_g = {p.group_decay:g}"
        symbols = f"m = {p.group_size}, {decays}, k = {p.neighbors}, alpha = {p.alpha:g}"
        runs[run].append(f"{dataset} ({symbols}; {result.seconds:.0f}\N{NO-BREAK SPACE}s)")
    return "; ".join(f"{run}: {', '.join(datasets)}" for run, datasets in runs.items())


def _page(chapters: Sequence[_Chapter], environments: Sequence[str], missing: Sequence[str]) -> str:
    """Render the report. `environments` are versions and machines; `missing` are the reasons for omissions."""
    contents = "".join(f'<li><a href="#{c.name}">{escape(c.title)}</a></li>' for c in chapters)
    left_out = _list("Left out, because the data is missing:", missing)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_TITLE}</title><style>{_STYLE}</style></head><body><h1>{_TITLE}</h1>"
        "<p>Tables and figures of section 6 of Wang and Schelter (2021), with this package's figures beside the "
        "paper's, and further measurements of its own.</p>"
        f"{_verdict(chapters)}{left_out}<nav><h2>Contents</h2><ol>{contents}"
        f'<li><a href="#environment">Versions and machine</a></li></ol></nav>{"".join(map(_chapter_html, chapters))}'
        f'<h2 id="environment">Versions and machine</h2>{_list("", environments)}</body></html>\n'
    )


def _verdict(chapters: Sequence[_Chapter]) -> str:
    findings = [(chapter, finding) for chapter in chapters for finding in chapter.section.findings]
    checks = [finding.holds for _, finding in findings if finding.holds is not None]
    failed = checks.count(False)
    verdict = f"{checks.count(True)} of {len(checks)} checks hold" if checks else "nothing was checked"
    used = [name for name in OF_THE_PAPER if any(name in chapter.datasets for chapter in chapters)]
    scope = f"on {len(used)} of the paper's {len(OF_THE_PAPER)} datasets"
    unused = ", ".join(name for name in OF_THE_PAPER if name not in used)
    items = "".join(
        _finding(finding, f'<a href="#{chapter.name}">{escape(chapter.title.split(":")[0])}</a>: ')
        for chapter, finding in findings
    )
    return (
        f'<section class="verdict{" fails" if failed else ""}"><h2>Verdict: {verdict}, {scope}</h2>'
        f'{unused and f"<p>Not among them: {unused}.</p>"}<ul class="findings">{items}</ul></section>'
    )


def _finding(finding: Finding, prefix: str = "") -> str:
    kind, symbol = _SYMBOLS[finding.holds]
    return f'<li class="{kind}"><span class="symbol">{symbol}</span>{prefix}{escape(finding.text)}</li>'


def _chapter_html(chapter: _Chapter) -> str:
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


def _latex_table(table: Table, label: str, provenance: str) -> str:
    """Render the table as a LaTeX float, with its provenance in a comment."""
    columns = "".join("l" if text else "r" for text in table.text_columns)
    lines = [
        *(f"% {line}" for line in provenance.splitlines()),
        r"\begin{table}",
        r"\centering",
        r"\small",
        rf"\caption{{{_latex(table.caption)}}}",
        rf"\label{{tab:{label}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _latex_row(table.header),
        r"\midrule",
        *map(_latex_row, table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex(text: str) -> str:
    r"""Escape text for LaTeX.

    >>> print(_latex("p < 1 % of r_b"))
    p $<$ 1 \% of r\_b
    """
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _latex_row(cells: Iterable[str]) -> str:
    return " & ".join(map(_latex, cells)) + r" \\"
