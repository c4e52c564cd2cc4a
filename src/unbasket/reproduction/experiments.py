"""The experiments, with the datasets of each, and the run that executes those without a cached result."""

from collections.abc import Collection, Sequence
from pathlib import Path
from time import perf_counter
from typing import Protocol

from unbasket.datasets import MissingDatasetError, published_path
from unbasket.datasets.published import OF_THE_PAPER
from unbasket.errors import InvalidRequestError
from unbasket.reproduction import counts, drift, grouping, latency, table1, table2, updates
from unbasket.reproduction.report import write_report
from unbasket.reproduction.result_cache import ResultCache, environment
from unbasket.reproduction.section import Experiment
from unbasket.reproduction.workloads import SINGLE_ITEM, Settings

_SINGLE = (SINGLE_ITEM,)
_STREAMS = (SINGLE_ITEM, "coop100")
DATASETS = (*OF_THE_PAPER, "coop100", SINGLE_ITEM)

EXPERIMENTS = {
    each.name: each
    for each in (
        Experiment("table1", "Table 1: datasets and hyper-parameters",
                   OF_THE_PAPER, OF_THE_PAPER, table1.run, table1.present),
        Experiment("table2", "Table 2: predictive performance",
                   OF_THE_PAPER, ("tafeng",), table2.run, table2.present),
        Experiment("counts", "Table 2 on ValuedShopper: sets against counts",
                   ("valuedshopper",), (), counts.run, counts.present),
        Experiment("figure-a", "Figure (a): update time under accumulated additions",
                   _STREAMS, _STREAMS, updates.run_additions, updates.present_additions),
        Experiment("figure-b", "Figure (b): update time under accumulated deletions",
                   _STREAMS, _STREAMS, updates.run_deletions, updates.present_deletions),
        Experiment("figure-c", "Figure (c): numeric error of repeated deletions",
                   _SINGLE, _SINGLE, drift.run, drift.present),
        Experiment("latency", "Latency, end to end",
                   ("coop100", *OF_THE_PAPER), ("coop100", "tafeng"), latency.run, latency.present),
        Experiment("grouping", "Grouping policy after heavy deletion",
                   OF_THE_PAPER, ("tafeng",), grouping.run, grouping.present),
    )
}  # fmt: skip


class Observer(Protocol):
    """An observer of the progress of a run."""

    def missing(self, dataset: str, reason: str) -> None:
        """Report a dataset that is not on this machine; its experiments are left out."""

    def task(self, number: int, total: int, experiment: str, dataset: str, *, stored: bool) -> None:
        """Report the start of an experiment on a dataset; `stored`: the result is in the cache."""

    def step(self, description: str, done: int, total: int) -> None:
        """Report progress within the task."""


def reproduce(
    out: Path,
    settings: Settings,
    observer: Observer,
    *,
    only: Sequence[str] = (),
    datasets: Sequence[str] = (),
) -> Path:
    """Run the experiments `only` (default: all) on the `datasets`, write the report, and return its path.

    A result in the folder with the same settings and versions is reused. Experiments on a dataset that is not on this
    machine are left out, and the report says so. It is an error if that dataset was named, or if no experiment is left.
    """
    cache, versions = ResultCache(out), environment()
    tasks = _tasks(settings, only, datasets)
    missing = _missing({dataset for _, dataset in tasks})
    for dataset, error in missing.items():
        if dataset in datasets or all(needed in missing for _, needed in tasks):
            raise error
        observer.missing(dataset, str(error))
    tasks = [(experiment, dataset) for experiment, dataset in tasks if dataset not in missing]
    for number, (experiment, dataset) in enumerate(tasks, 1):
        stored = cache.has(experiment.name, dataset, settings, versions)
        observer.task(number, len(tasks), experiment.name, dataset, stored=stored)
        if not stored:
            started = perf_counter()
            rows = experiment.run(dataset, settings, observer.step)
            cache.store(experiment.name, dataset, settings, versions, perf_counter() - started, rows)
    return write_report(out, EXPERIMENTS.values(), cache, [str(error) for error in missing.values()])


def _tasks(settings: Settings, only: Sequence[str], datasets: Sequence[str]) -> list[tuple[Experiment, str]]:
    _check("experiment", only, EXPERIMENTS)
    _check("dataset", datasets, DATASETS)
    tasks = []
    for experiment in EXPERIMENTS.values():
        if only and experiment.name not in only:
            continue
        chosen = datasets or (experiment.quick if settings.quick else experiment.datasets)
        tasks += [(experiment, name) for name in experiment.datasets if name in chosen]
    if not tasks:
        raise InvalidRequestError(f"{', '.join(only)} does not run on {', '.join(datasets)}")
    return tasks


def _missing(datasets: Collection[str]) -> dict[str, MissingDatasetError]:
    missing = {}
    for dataset in (name for name in DATASETS if name in datasets and name != SINGLE_ITEM):
        try:
            published_path(dataset)
        except MissingDatasetError as error:
            missing[dataset] = error
    return missing


def _check(kind: str, given: Sequence[str], known: Collection[str]) -> None:
    for name in given:
        if name not in known:
            raise InvalidRequestError(f"{kind} must be one of {', '.join(known)}, not {name!r}")
