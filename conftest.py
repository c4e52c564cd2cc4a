"""Settings for all tests: no deadlines, datasets that some need, the longest files first, a folder for each example."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("unbasket", deadline=None)  # a busy machine is not a failure
settings.load_profile("unbasket")
if "UNBASKET_DATA" in os.environ:  # tests change the working directory
    os.environ["UNBASKET_DATA"] = str(Path(os.environ["UNBASKET_DATA"]).resolve())
collect_ignore = ["docs/conf.py"]  # it has no examples, and needs what only the site is built with


LONGEST = (
    "tests/store/test_forensics",
    "tests/service/web/test_web",
    "tests/test_example_notebook",
    "tests/service/test_server",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--wheels", type=Path, help="where the wheel that tests build stays when they have ended")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest files first, to balance the workers."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test about published datasets, marked with `needs`, where one of their files is missing."""
    from unbasket.datasets import MissingDatasetError, published_path

    for name in (name for marker in item.iter_markers("needs") for name in marker.args):
        try:
            published_path(name)
        except MissingDatasetError:
            pytest.skip(f"needs {name}.parquet: see data/README.md")


@pytest.fixture(autouse=True)
def folder_of_the_example(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(request.node, pytest.DoctestItem):
        tmp_path: Path = request.getfixturevalue("tmp_path")
        monkeypatch.chdir(tmp_path)
