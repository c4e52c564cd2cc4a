"""The cache of results: round trip, and lookup by settings and versions."""

from pathlib import Path

from unbasket.reproduction.result_cache import ResultCache
from unbasket.reproduction.section import Row
from unbasket.reproduction.workloads import Settings


def test_a_stored_result_is_found_unchanged(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path)
    rows: list[Row] = [{"value": 0.1 + 0.2, "none": None, "text": "é", "flag": True}]
    assert cache.find("table1", "tafeng") is None
    cache.store("table1", "tafeng", Settings(), {"numpy": "1"}, 2.5, rows)
    found = cache.find("table1", "tafeng")
    assert found is not None
    assert (found.rows, found.seconds, found.environment) == (rows, 2.5, {"numpy": "1"})
    assert cache.has("table1", "tafeng", Settings(), {"numpy": "1"})
    assert not cache.has("table1", "tafeng", Settings(seed=1), {"numpy": "1"})
