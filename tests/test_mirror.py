"""The tests are a mirror of the package: a module has a test file of its name, or is tested where this says."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "unbasket"
MODULES = sorted(
    str(file.relative_to(PACKAGE))
    for kind in ("*.py", "*.pyx")
    for file in PACKAGE.rglob(kind)
    if file.name != "__init__.py"
)

ELSEWHERE = {
    # commands of the service and of Spark, through a real process
    "cli/commands/demo.py": "tests/service/test_demo.py",
    "cli/_shared/demo_shop.py": "tests/service/test_demo.py",
    "cli/commands/keys.py": "tests/service/test_api_keys.py",
    "cli/commands/serve.py": "tests/service/test_server.py",
    "cli/commands/spark.py": "tests/spark/test_cli.py",
    "cli/_shared/purchase_files.py": "tests/cli/commands/test_import.py",
    "cli/_shared/consumer.py": "tests/cli/commands/test_consume.py",
    "cli/_shared/spark_topics.py": "tests/spark/test_kafka.py",
    # the parts of an index, and the path of an event into it, against a fresh index and the oracle
    "core/index/hubs.pyx": "tests/core/index/test_index.py",
    "core/index/live_index.pyx": "tests/core/index/test_index.py",
    "core/index/shard.pyx": "tests/core/index/test_index.py",
    "core/memory/slab.pyx": "tests/core/memory/test_jagged.py",
    "core/model/events.pyx": "tests/engine/test_laws.py",
    "core/model/history.pyx": "tests/engine/test_histories.py",
    "core/model/learned.pyx": "tests/engine/test_learned_weights.py",
    "core/model/queries.pyx": "tests/core/model/test_fold.py",
    "core/codec/row_writer.pyx": "tests/core/codec/test_row_reader.py",  # what one writes, the other reads
    # through the engine
    "engine/model.py": "tests/engine/test_laws.py",
    "engine/probes.py": "tests/engine/test_privacy.py",
    "engine/state.py": "tests/engine/test_laws.py",
    # through the durable engine: faults, kills and searches of the files
    "store/persistent_model.py": "tests/store/test_durable.py",
    "store/reader.py": "tests/store/test_faults.py",
    "store/row_totals.py": "tests/store/test_faults.py",
    "store/sqlite_errors.py": "tests/store/test_faults.py",
    "store/write_request.py": "tests/store/test_journal.py",
    "store/writer.py": "tests/store/test_forensics.py",
    "domain/rejection.py": "tests/kafka/test_messages.py",
    # through HTTP
    "service/static.py": "tests/service/web/test_web.py",
    "service/decoding.py": "tests/service/test_bad_input.py",
    "service/engine_loader.py": "tests/service/test_server.py",
    "service/logs.py": "tests/service/test_server.py",
    "service/response.py": "tests/service/test_app.py",
    "service/schemas/requests.py": "tests/service/test_openapi.py",
    "service/schemas/responses.py": "tests/service/test_openapi.py",
    # through the client
    "client/decoding.py": "tests/client/test_client.py",
    "client/errors.py": "tests/client/test_transport.py",
    "client/results.py": "tests/client/test_client.py",
    # through a Spark session
    "spark/settings.py": "tests/spark/test_erasure.py",
    # research
    "datasets/detection.py": "tests/cli/commands/test_import.py",
    "datasets/lines.py": "tests/datasets/test_table.py",
    "domain/returns.py": "tests/datasets/test_purchases.py",
    "evaluation/plots.py": "tests/evaluation/test_evaluation.py",
    "reproduction/paper.py": "tests/reproduction/test_table2.py",
    "reproduction/section.py": "tests/reproduction/test_report.py",
}

DEFINITIONS = {"core/arrays.py", "core/check/testing.pyx", "domain/results.py", "errors.py"}
"""Types and views that other tests use throughout."""


def own_test(module: str) -> Path:
    path = Path(module)
    return ROOT / "tests" / path.parent / f"test_{path.stem.strip('_')}.py"


@pytest.mark.parametrize("module", MODULES)
def test_a_module_is_tested_under_its_name_or_where_this_file_says(module: str) -> None:
    if own_test(module).exists() or module in DEFINITIONS:
        assert module not in ELSEWHERE
    else:
        assert (ROOT / ELSEWHERE[module]).exists()


def test_only_modules_that_exist_are_listed() -> None:
    assert {*ELSEWHERE, *DEFINITIONS} <= {*MODULES}
