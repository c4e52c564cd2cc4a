"""The audit finds a marker in every file format of a job."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unbasket.errors import InvalidRequestError
from unbasket.residue import audit


def test_in_bytes_arrow_and_parquet(tmp_path: Path) -> None:
    marker = "forgotten-user"
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "raw").write_bytes(b"\0\1" + marker.encode() + b"\xff")
    with pa.ipc.new_file(str(tmp_path / "1.arrow"), pa.schema([("user", pa.string())])) as writer:
        writer.write_batch(pa.record_batch({"user": ["ann", marker]}))
    pq.write_table(pa.table({"items": [["milk"], [marker]] * 50}), tmp_path / "lists.parquet", compression="zstd")
    pq.write_table(pa.table({"user": [marker] * 50}), tmp_path / "users.parquet", compression="zstd")
    (tmp_path / "clean").write_text("nothing")
    (tmp_path / "empty").touch()
    searched, findings = audit([tmp_path], [marker, "absent"])
    assert searched == 6
    assert {marker for marker, _ in findings} == {marker}
    places = {place.removeprefix(f"{tmp_path}/").split(",")[0] for _, place in findings}
    assert places == {"1.arrow", "deep/er/raw", "lists.parquet", "users.parquet"}


@pytest.mark.parametrize("number", [65_536, 170_017, 2**31, 2**40 + 5, 2**63 - 1, -70_000, -(2**63)])
def test_a_number_in_every_encoding(tmp_path: Path, number: int) -> None:
    """As in the state, as in Spark's rows, as text, and in a table."""
    with pa.ipc.new_file(str(tmp_path / "state"), pa.schema([("items", pa.list_(pa.int64()))])) as writer:
        writer.write_batch(pa.record_batch({"items": [[1, number]]}))
    (tmp_path / "row").write_bytes(b"\7" + number.to_bytes(8, "little", signed=True) + b"\7")
    (tmp_path / "java").write_bytes(b"\7" + number.to_bytes(8, "big", signed=True) + b"\7")
    (tmp_path / "text").write_text(f'{{"user":{number}}}')
    pq.write_table(pa.table({"user": [number] * 50}), tmp_path / "users.parquet", compression="zstd")
    (tmp_path / "longer").write_text(f'{{"user":"{number}7"}}')
    findings = audit([tmp_path], [number])[1]
    assert {Path(place.split(",")[0]).name for _, place in findings} == {
        "state",
        "row",
        "java",
        "text",
        "users.parquet",
    }
    assert {marker for marker, _ in findings} == {number}


@pytest.mark.parametrize("number", [0, 17, 65_535, -1, -65_535])
def test_a_number_that_occurs_by_chance_is_refused(tmp_path: Path, number: int) -> None:
    with pytest.raises(InvalidRequestError, match=f"the number {number} can't be searched for"):
        audit([tmp_path], [number])
    (tmp_path / "file").write_text(f"user {number}")
    assert len(audit([tmp_path], [str(number)])[1]) == 1
