"""`unbasket evaluate`: the quality of recommendations on a shop's data."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer
from rich import box
from rich.table import Table

from unbasket.cli._shared.options import parse_params, with_options
from unbasket.cli._shared.purchase_files import PURCHASES_HELP, ReadingOptions, read_data
from unbasket.cli._shared.terminal import AsJson, console, counted, progress_bar, say, say_json, say_table
from unbasket.datasets import Dataset, hold_out_last
from unbasket.errors import InvalidRequestError
from unbasket.evaluation import BASELINES, PROTOCOLS, Holdout
from unbasket.evaluation.categories import read_categories
from unbasket.evaluation.evaluation import NOTE, Evaluation
from unbasket.evaluation.field_baselines import FIELD_BASELINES
from unbasket.evaluation.forgetting import METRICS as FORGETTING_METRICS
from unbasket.evaluation.forgetting import SEEDS, SENSITIVE, benchmark_forgetting, categories_like
from unbasket.evaluation.keysets import KEYSET_PROTOCOLS, named_protocols, read_keysets
from unbasket.evaluation.tifuknn import evaluate as evaluate_models
from unbasket.params import PAPER_DATASETS, Params

_CUTOFFS = (10, 20)
_PROTOCOLS_HELP = "; ".join(f"{name}: {each.summary}" for name, each in (PROTOCOLS | KEYSET_PROTOCOLS).items())
_HIDDEN = "The data does not say which baskets to predict: each user's last basket was hidden, and predicted."


@with_options(reading=ReadingOptions)
def evaluate(
    data: Annotated[str, typer.Argument(help=PURCHASES_HELP)],
    reading: ReadingOptions,
    params: Annotated[
        str | None,
        typer.Option(
            help="Parameters such as 'group_size=7, alpha=0.5', or the line that tune prints. The others are the "
            "paper's for its own datasets, and the defaults for other data."
        ),
    ] = None,
    protocol: Annotated[str, typer.Option(help=_PROTOCOLS_HELP)] = "all-users",
    keyset: Annotated[
        list[Path] | None,
        typer.Option(
            help="For the last two: a JSON file with the lists train, val and test of users. It may be repeated, for "
            "the mean over keysets."
        ),
    ] = None,
    baselines: Annotated[bool, typer.Option(help=f"Whether to score {', '.join(BASELINES)} as well.")] = True,
    baseline: Annotated[
        list[str] | None, typer.Option(help=f"One more baseline: {' or '.join(FIELD_BASELINES)}. It may be repeated.")
    ] = None,
    categories: Annotated[
        Path | None,
        typer.Option(help="A JSON file of categories and their items, for the diversity of lists (those of DATA)."),
    ] = None,
    forget: Annotated[
        bool,
        typer.Option(
            "--forget", help="Measure forgetting instead: people withdraw what they bought of a sensitive category."
        ),
    ] = False,
    category: Annotated[
        list[str] | None,
        typer.Option(
            help=f"With --forget: a word in the name of the category ({', '.join(SENSITIVE)}). It may be repeated."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Predict each user's next basket and score the predictions.

    If DATA does not say which baskets to predict, each user's last one is hidden and predicted.
    """
    protocols = named_protocols(protocol, read_keysets(keyset))
    if category and not forget:
        raise InvalidRequestError(f"--category {category[0]!r} is for --forget")
    named = parse_params(params or "")
    dataset = read_data(data, reading)
    hidden = dataset.future is None
    if hidden:
        dataset = hold_out_last(dataset)
    assert dataset.future is not None
    chosen = Params(**(asdict(dataset.params or Params()) | named))
    if forget:
        _forget(dataset, chosen, _categories(categories, dataset), category or SENSITIVE, as_json=as_json)
        return
    with progress_bar("recommending", then="scoring") as report:
        evaluation = evaluate_models(
            Holdout(dataset.history, dataset.future),
            chosen,
            protocols,
            baselines=[*(BASELINES if baselines else ()), *(baseline or ())],
            categories=_categories(categories, dataset),
            cutoffs=_CUTOFFS,
            progress=report,
        )
        _ = evaluation.means  # computed under the bar: the intervals take a while
    if as_json:
        say_json(_facts(dataset.name, dataset.notes, evaluation))
    else:
        _show(dataset.name, hidden, evaluation)


def _categories(file: Path | None, dataset: Dataset) -> pl.DataFrame | None:
    """Return the categories of a file, or else those of the dataset's catalog, if any."""
    source = dataset.items if file is None else file
    return None if source is None else read_categories(source, dataset.history.schema["item"])


def _forget(
    dataset: Dataset, params: Params, categories: pl.DataFrame | None, words: Sequence[str], *, as_json: bool
) -> None:
    """Run the benchmark of forgetting, and print the means over its seeds."""
    if categories is None:
        raise InvalidRequestError("--forget needs the categories of items: name a file with --categories")
    assert dataset.future is not None, "held out"
    chosen = categories_like(words, categories)
    paper = Params.paper(dataset.name if dataset.name in PAPER_DATASETS else "tafeng")
    with progress_bar("forgetting") as report:
        result = benchmark_forgetting(Holdout(dataset.history, dataset.future), params, paper, chosen, progress=report)
    if as_json:
        facts = {"data": dataset.name, "params": asdict(params), "paper": asdict(paper)}
        say_json(facts | {"rows": result.frame().to_dicts()})
        return
    say(f"{dataset.name}. {params}; the paper's rule with {paper}")
    for word in words:
        if word not in chosen:
            say(f"No category has {word!r} in its name")
    for (found,), rows in result.means().group_by("category", maintain_order=True):
        requests = counted(round(rows["requests"][0]), "request")
        say_table([f"{found}, {requests}", *rows["method"]], _measures(rows))
    say(
        f"Means over {len(SEEDS)} seeds. Accuracy is that of {counted(result.queries, 'user')}; shown: the people with "
        "requests who have the category among 20 items; divergence (KL): of their scores from the retrained model."
    )


def _measures(rows: pl.DataFrame) -> list[list[str]]:
    """Return a row of texts per measure, with its name first and then a cell per method."""
    changes = {metric: (f"before {metric}", metric) for metric in FORGETTING_METRICS}
    changes["shown"] = ("shown_before", "still_shown")
    table = [["ms per request", *(f"{seconds * 1000:.3g}" for seconds in rows["seconds"])]]
    for name, (before, after) in changes.items():
        cells = zip(rows[before], rows[after], strict=True)
        table.append([name, *(f"{old:.4f} -> {new:.4f}" for old, new in cells)])
    return [*table, ["divergence, bits", *(f"{bits:.2g}" for bits in rows["divergence"])]]


def _facts(name: str, notes: str, evaluation: Evaluation) -> dict[str, Any]:
    return {
        "data": name,
        "notes": notes,
        "protocol": evaluation.protocol.name,
        "params": asdict(evaluation.params),
        "keysets": len(evaluation.splits) if evaluation.protocol.name in KEYSET_PROTOCOLS else 0,
        "users": len(evaluation.split.queries),
        "candidates": len(evaluation.split.candidates),
        "models": {
            model: {metric: mean and asdict(mean) for metric, mean in row.items()}
            for model, row in evaluation.means.items()
        },
    }


def _show(name: str, hidden: bool, evaluation: Evaluation) -> None:
    say(f"{name}. {evaluation.title()}")
    say(str(evaluation.params))
    if hidden:
        say(_HIDDEN)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("", no_wrap=True)
    for model in evaluation.means:
        table.add_column(model, justify="right", no_wrap=True)
    for row in evaluation.rows():
        table.add_row(*row)
    console.print(table)
    say(NOTE)
