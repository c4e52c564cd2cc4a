"""The report: one HTML file with everything inside, and a CSV and a PNG file per table or figure."""

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path

import polars as pl

from unbasket.evaluation import plots
from unbasket.reproduction.environment import environment
from unbasket.reproduction.ledger import Ledger, Result
from unbasket.reproduction.parts import PARTS, Part
from unbasket.reproduction.section import Section, Table

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 1200px; margin: 2em auto; padding: 0 1em; color: #222 }
h2 { margin-top: 2.5em; border-bottom: 2px solid #1f5fa8 }
img { max-width: 100%; height: auto }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-size: 13px; margin: 1em 0 }
caption { text-align: left; font-weight: 600; padding: .3em 0 }
th, td { border-bottom: 1px solid #ddd; padding: .25em .6em; text-align: right; font-variant-numeric: tabular-nums }
th { vertical-align: bottom; background: #f4f6f9 }
td:first-child, th:first-child { text-align: left }
.made { color: #666; font-size: 13px }
"""


def write_report(folder: Path, ledger: Ledger, missing: Sequence[str] = ()) -> Path:
    """Write all results that the folder holds, also those of earlier runs; the path of the HTML file.

    Results of another version of this package are left out: their rows may have other columns. `missing` are the
    reasons why this run left something out.
    """
    bodies, environments = [], []
    version = environment()["unbasket"]
    for part in PARTS.values():
        found = {dataset: ledger.find(part.name, dataset) for dataset in part.datasets}
        results = {
            name: result for name, result in found.items() if result and result.environment["unbasket"] == version
        }
        if not results:
            continue
        rows = [row for result in results.values() for row in result.rows]
        frame = pl.DataFrame(rows, infer_schema_length=None)
        frame.write_csv(folder / f"{part.name}.csv")
        section = part.present(frame)
        image = plots.png(section.figure)
        (folder / f"{part.name}.png").write_bytes(image)
        bodies.append(_section(part, section, image, results))
        environments += [result.environment for result in results.values()]
    path = folder / "report.html"
    path.write_text(_page(bodies, environments, missing), encoding="utf-8")
    return path


def _page(bodies: list[str], environments: list[dict[str, str]], missing: Sequence[str]) -> str:
    lines = dict.fromkeys(", ".join(f"{name} {value}" for name, value in made.items()) for made in environments)
    versions = "".join(f"<li>{escape(line)}</li>" for line in lines)
    left_out = "".join(f"<li>{escape(reason)}</li>" for reason in missing)
    left_out = left_out and f"<p>Left out, for want of data:</p><ul>{left_out}</ul>"
    title = "Efficiently maintaining next basket recommendations: the paper's evaluation, reproduced"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>"
        "<p>Tables and figures of section 6 of Wang and Schelter (2021), with this package beside the paper's figures, "
        "and some more that its claims ask for.</p>"
        f"<p>Made with:</p><ul>{versions}</ul>{left_out}{''.join(bodies)}</body></html>\n"
    )


def _section(part: Part, section: Section, image: bytes, results: dict[str, Result]) -> str:
    encoded = base64.b64encode(image).decode()
    notes = "".join(f"<p>{escape(note)}</p>" for note in section.notes)
    tables = "".join(_table(table) for table in section.tables)
    made = "; ".join(
        f"{dataset}: {'quick' if result.settings['quick'] else 'full'} run, seed {result.settings['seed']}, "
        f"{result.seconds:.0f} s"
        for dataset, result in results.items()
    )
    return (
        f'<h2 id="{part.name}">{escape(part.title)}</h2>{notes}'
        f'<p><img alt="{escape(part.title)}" src="data:image/png;base64,{encoded}"></p>{tables}'
        f'<p class="made">{escape(made)}</p>'
    )


def _table(table: Table) -> str:
    header = "".join(f"<th>{escape(name)}</th>" for name in table.header)
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    caption = f"<caption>{escape(table.caption)}</caption>"
    return f'<div class="wide"><table>{caption}<tr>{header}</tr>{rows}</table></div>'
