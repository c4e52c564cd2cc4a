"""The report: one HTML page, and beside it each part as CSV and LaTeX, and its figure as SVG and PNG."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from unbasket.evaluation import plots
from unbasket.params import Params
from unbasket.reproduction.environment import environment
from unbasket.reproduction.experiments import PARTS, Part
from unbasket.reproduction.html import Chapter, page
from unbasket.reproduction.latex import latex_table
from unbasket.reproduction.result_cache import Ledger, Result
from unbasket.reproduction.workloads import params_of


def write_report(folder: Path, ledger: Ledger, missing: Sequence[str] = ()) -> Path:
    """Write all results that the folder holds, also those of earlier runs; the path of the HTML file.

    Results of another version of this package are left out: their rows may have other columns. `missing` are the
    reasons why this run left something out.
    """
    chapters, environments = [], []
    version = environment()["unbasket"]
    for part in PARTS.values():
        found = {dataset: ledger.find(part.name, dataset) for dataset in part.datasets}
        results = {
            name: result for name, result in found.items() if result and result.environment["unbasket"] == version
        }
        if results:
            chapters.append(_chapter(folder, part, results))
            environments += [_words(result.environment) for result in results.values()]
    path = folder / "report.html"
    path.write_text(page(chapters, list(dict.fromkeys(environments)), missing), encoding="utf-8")
    return path


def _chapter(folder: Path, part: Part, results: Mapping[str, Result]) -> Chapter:
    """Write the files of a part; its chapter of the page."""
    rows = [row for result in results.values() for row in result.rows]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    section, made = part.present(frame), _made(results)
    tables = [
        latex_table(table, part.name if number == 1 else f"{part.name}-{number}", made)
        for number, table in enumerate(section.tables, 1)
    ]
    drawing = plots.svg(section.figure)
    files = {
        f"{part.name}.csv": frame.write_csv().encode(),
        f"{part.name}.tex": "\n".join(tables).encode(),
        f"{part.name}.svg": drawing.encode(),
        f"{part.name}.png": plots.png(section.figure),
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return Chapter(part.name, part.title, section, drawing, made, list(files))


def _made(results: Mapping[str, Result]) -> str:
    """What was run: a clause per kind of run, with the datasets and their parameters."""
    runs: dict[str, list[str]] = defaultdict(list)
    for dataset, result in results.items():
        kind = "quick" if result.settings["quick"] else "full"
        run = f"unbasket {result.environment['unbasket']}, {kind} run, seed {result.settings['seed']}"
        runs[run].append(f"{dataset} ({_short(params_of(dataset))}; {result.seconds:.0f}\N{NO-BREAK SPACE}s)")
    return "; ".join(f"{run}: {', '.join(datasets)}" for run, datasets in runs.items())


def _short(params: Params) -> str:
    """The parameters by the paper's letters."""
    decays = f"r_b = {params.basket_decay:g}, r_g = {params.group_decay:g}"
    return f"m = {params.group_size}, {decays}, k = {params.neighbors}, alpha = {params.alpha:g}"


def _words(facts: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items())
