"""The run of experiments: cached results are reused, and all others computed."""

from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import pytest

from unbasket.datasets import MissingDatasetError, published_path
from unbasket.errors import InvalidRequestError
from unbasket.evaluation import plots
from unbasket.reproduction import experiments, report
from unbasket.reproduction.experiments import DATASETS, EXPERIMENTS, reproduce
from unbasket.reproduction.section import Experiment, Finding, Row, Section, StepProgress, Table
from unbasket.reproduction.workloads import Settings, quick_settings


@dataclass
class Recorder:
    """An observer, and an experiment that records its runs."""

    tasks: list[tuple[str, str, bool]] = field(default_factory=list)
    runs: list[tuple[str, int]] = field(default_factory=list)
    interrupt_at: str = ""
    left_out: list[str] = field(default_factory=list)

    def missing(self, dataset: str, reason: str) -> None:
        assert f"{dataset}.parquet is not here" in reason
        self.left_out.append(dataset)

    def task(self, number: int, total: int, experiment: str, dataset: str, *, stored: bool) -> None:
        assert 1 <= number <= total
        self.tasks.append((experiment, dataset, stored))

    def step(self, description: str, done: int, total: int) -> None:
        """Ignore progress."""

    def run(self, dataset: str, settings: Settings, _: StepProgress) -> list[Row]:
        if dataset == self.interrupt_at:
            raise KeyboardInterrupt
        self.runs.append((dataset, settings.seed))
        return [{"dataset": dataset, "value": settings.seed + 0.5}]


def present(frame: pl.DataFrame) -> Section:
    figure, _ = plots.panels(1, 1, 2, 2)
    rows = [(row["dataset"], str(row["value"])) for row in frame.iter_rows(named=True)]
    findings = (Finding("It is <so>.", True), Finding("Seen & noted.", None))
    return Section(findings, ("A note & more.",), (Table("a <caption>", ("data", "value"), rows),), figure)


@pytest.fixture
def recorder(data: Path, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    assert data.is_dir()
    found = Recorder()
    experiment = Experiment("table1", "Table <1>", ("tafeng", "instacart"), ("tafeng",), found.run, present)
    monkeypatch.setattr(experiments, "EXPERIMENTS", {experiment.name: experiment})
    return found


def test_a_result_with_the_same_settings_is_reused(tmp_path: Path, recorder: Recorder) -> None:
    reproduce(tmp_path, Settings(seed=1), recorder)
    reproduce(tmp_path, Settings(seed=1), recorder)
    assert recorder.runs == [("tafeng", 1), ("instacart", 1)]
    assert [stored for *_, stored in recorder.tasks] == [False, False, True, True]


def test_another_seed_is_run_and_replaces(tmp_path: Path, recorder: Recorder) -> None:
    reproduce(tmp_path, Settings(seed=1), recorder)
    reproduce(tmp_path, Settings(seed=2), recorder)
    assert recorder.runs == [("tafeng", 1), ("instacart", 1), ("tafeng", 2), ("instacart", 2)]
    assert pl.read_csv(tmp_path / "table1.csv")["value"].to_list() == [2.5, 2.5]


def test_another_version_is_run_again(tmp_path: Path, recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    reproduce(tmp_path, Settings(), recorder)
    for module in (experiments, report):
        monkeypatch.setattr(module, "environment", lambda: {"unbasket": "another"})
    path = reproduce(tmp_path, Settings(), recorder, datasets=["tafeng"])
    assert recorder.runs == [("tafeng", 0), ("instacart", 0), ("tafeng", 0)]
    assert "unbasket another, full run, seed 0: tafeng (" in path.read_text()
    assert "instacart (" not in path.read_text()  # its result is of the other version


def test_an_interrupted_run_is_resumed(tmp_path: Path, recorder: Recorder) -> None:
    recorder.interrupt_at = "instacart"
    with pytest.raises(KeyboardInterrupt):
        reproduce(tmp_path, Settings(), recorder)
    assert not (tmp_path / "report.html").exists()
    recorder.interrupt_at = ""
    reproduce(tmp_path, Settings(), recorder)
    assert recorder.runs == [("tafeng", 0), ("instacart", 0)]
    assert (tmp_path / "report.html").exists()


def test_quick_run_has_fewer_datasets_unless_they_are_named(tmp_path: Path, recorder: Recorder) -> None:
    reproduce(tmp_path, quick_settings(0), recorder)
    assert recorder.runs == [("tafeng", 0)]
    reproduce(tmp_path, quick_settings(0), recorder, datasets=["instacart"])
    assert recorder.runs == [("tafeng", 0), ("instacart", 0)]


def test_report_includes_results_of_earlier_runs(tmp_path: Path, recorder: Recorder) -> None:
    reproduce(tmp_path, Settings(seed=1), recorder, datasets=["tafeng"])
    path = reproduce(tmp_path, Settings(seed=2), recorder, datasets=["instacart"])
    text = path.read_text()
    assert "full run, seed 1: tafeng (m = 7, r_b = 0.9, r_g = 0.7, k = 300, alpha = 0.7; 0\xa0s)" in text
    assert "full run, seed 2: instacart (m = 3, " in text


def test_report_escapes_and_names_versions(tmp_path: Path, recorder: Recorder) -> None:
    text = reproduce(tmp_path, Settings(), recorder).read_text()
    assert "Table &lt;1&gt;" in text
    assert "a &lt;caption&gt;" in text
    assert "A note &amp; more." in text
    for name in ("unbasket", "numpy", "polars", "python", "cores"):
        assert f"{name} " in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"only": ["table9"]}, "experiment must be one of table1.*, not 'table9'"),
        ({"datasets": ["netflix"]}, "dataset must be one of .*, not 'netflix'"),
        ({"only": ["table1"], "datasets": ["coop100"]}, "table1 does not run on coop100"),
    ],
)
def test_unknown_names_are_refused(
    tmp_path: Path, recorder: Recorder, options: dict[str, list[str]], message: str
) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        reproduce(tmp_path, Settings(), recorder, **options)
    assert recorder.tasks == []


@pytest.fixture
def no_instacart(monkeypatch: pytest.MonkeyPatch) -> None:
    def path(dataset: str) -> Path:
        if dataset == "instacart":
            raise MissingDatasetError("instacart.parquet is not here")
        return published_path(dataset)

    monkeypatch.setattr(experiments, "published_path", path)


@pytest.mark.usefixtures("no_instacart")
def test_experiments_on_a_missing_dataset_are_reported_as_left_out(tmp_path: Path, recorder: Recorder) -> None:
    text = reproduce(tmp_path, Settings(), recorder).read_text()
    assert recorder.runs == [("tafeng", 0)]
    assert recorder.tasks == [("table1", "tafeng", False)]
    assert recorder.left_out == ["instacart"]
    assert "<li>instacart.parquet is not here</li>" in text
    assert "on 1 of the paper's 3 datasets</h2><p>Not among them: instacart, valuedshopper.</p>" in text
    assert "Left out" not in reproduce(tmp_path, Settings(), recorder, datasets=["tafeng"]).read_text()


@pytest.mark.usefixtures("no_instacart")
def test_a_missing_dataset_that_was_named_is_an_error(tmp_path: Path, recorder: Recorder) -> None:
    for datasets in (["instacart"], ["tafeng", "instacart"]):
        with pytest.raises(MissingDatasetError, match=r"instacart\.parquet is not here"):
            reproduce(tmp_path, Settings(), recorder, datasets=datasets)
    assert recorder.runs == []


@pytest.mark.usefixtures("no_instacart")
def test_a_run_without_any_dataset_is_an_error(
    tmp_path: Path, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = Experiment("counts", "Counts", ("instacart",), (), recorder.run, present)
    monkeypatch.setattr(experiments, "EXPERIMENTS", {"counts": experiment})
    with pytest.raises(MissingDatasetError, match=r"instacart\.parquet is not here"):
        reproduce(tmp_path, Settings(), recorder, only=["counts"])
    assert not (tmp_path / "report.html").exists()


def test_experiments_name_known_datasets_only() -> None:
    for experiment in EXPERIMENTS.values():
        assert set(experiment.quick) <= set(experiment.datasets) <= set(DATASETS)
