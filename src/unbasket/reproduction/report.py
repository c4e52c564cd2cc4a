r"""The report: an HTML page and, beside it, each experiment as CSV, LaTeX, SVG and PNG.

A LaTeX file is for `\input` in a paper with `\usepackage{booktabs}`.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import polars as pl

from unbasket.evaluation import plots
from unbasket.params import Params
from unbasket.reproduction.experiments import EXPERIMENTS, Experiment
from unbasket.reproduction.html import Chapter, page
from unbasket.reproduction.result_cache import Result, ResultCache, environment
from unbasket.reproduction.section import Table
from unbasket.reproduction.workloads import params_of

_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$", ">": r"$>$",
    "–": "--", **{letter: f"\\{letter}" for letter in "&%$#_{}"},
}  # fmt: skip


def write_report(folder: Path, cache: ResultCache, missing: Sequence[str] = ()) -> Path:
    """Write all results in the folder, including those of earlier runs, and return the path of the HTML file.

    Results of another version of this package are left out: their rows may have other columns. `missing` lists why
    this run left something out.
    """
    chapters, environments = [], []
    version = environment()["unbasket"]
    for experiment in EXPERIMENTS.values():
        found = {dataset: cache.find(experiment.name, dataset) for dataset in experiment.datasets}
        results = {
            name: result for name, result in found.items() if result and result.environment["unbasket"] == version
        }
        if results:
            chapters.append(_chapter(folder, experiment, results))
            environments += [", ".join(map(" ".join, result.environment.items())) for result in results.values()]
    path = folder / "report.html"
    path.write_text(page(chapters, list(dict.fromkeys(environments)), missing), encoding="utf-8")
    return path


def _chapter(folder: Path, experiment: Experiment, results: Mapping[str, Result]) -> Chapter:
    """Write the files of an experiment, and return its chapter of the page."""
    name = experiment.name
    frame = pl.DataFrame([row for result in results.values() for row in result.rows], infer_schema_length=None)
    section, provenance = experiment.present(frame), _provenance(results)
    labels = [name, *(f"{name}-{number}" for number in range(2, len(section.tables) + 1))]
    tables = [latex_table(table, label, provenance) for table, label in zip(section.tables, labels, strict=True)]
    drawing = plots.svg(section.figure)
    files = {
        f"{name}.csv": frame.write_csv().encode(),
        f"{name}.tex": "\n".join(tables).encode(),
        f"{name}.svg": drawing.encode(),
        f"{name}.png": plots.png(section.figure),
    }
    for file, content in files.items():
        (folder / file).write_bytes(content)
    return Chapter(name, experiment.title, section, drawing, provenance, list(files))


def _provenance(results: Mapping[str, Result]) -> str:
    """Describe each kind of run with its version and seed, its datasets and their parameters."""
    runs: dict[str, list[str]] = defaultdict(list)
    for dataset, result in results.items():
        kind = "quick" if result.settings["quick"] else "full"
        run = f"unbasket {result.environment['unbasket']}, {kind} run, seed {result.settings['seed']}"
        runs[run].append(f"{dataset} ({_short(params_of(dataset))}; {result.seconds:.0f}\N{NO-BREAK SPACE}s)")
    return "; ".join(f"{run}: {', '.join(datasets)}" for run, datasets in runs.items())


def _short(params: Params) -> str:
    """Format the parameters with the paper's symbols."""
    decays = f"r_b = {params.basket_decay:g}, r_g = {params.group_decay:g}"
    return f"m = {params.group_size}, {decays}, k = {params.neighbors}, alpha = {params.alpha:g}"


def latex_table(table: Table, label: str, provenance: str) -> str:
    """Render the table as a LaTeX float, with its provenance in a comment."""
    columns = "".join("l" if text else "r" for text in table.text_columns)
    lines = [
        *(f"% {line}" for line in provenance.splitlines()),
        r"\begin{table}",
        r"\centering",
        r"\small",
        rf"\caption{{{escape(table.caption)}}}",
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


def escape(text: str) -> str:
    r"""Escape text for LaTeX.

    >>> print(escape("p < 1 % of r_b"))
    p $<$ 1 \% of r\_b
    """
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _latex_row(cells: Iterable[str]) -> str:
    return " & ".join(map(escape, cells)) + r" \\"
