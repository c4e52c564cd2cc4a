"""The audit finds a marker wherever a job may have left it."""

import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unbasket.spark import audit


def test_in_bytes_archives_and_parquet(tmp_path: Path) -> None:
    marker = "forgotten-user"
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "raw").write_bytes(b"\0\1" + marker.encode() + b"\xff")
    with zipfile.ZipFile(tmp_path / "1.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("MANIFEST", marker * 100)
    pq.write_table(pa.table({"items": [["milk"], [marker]] * 50}), tmp_path / "lists.parquet", compression="zstd")
    pq.write_table(pa.table({"user": [marker] * 50}), tmp_path / "users.parquet", compression="zstd")
    (tmp_path / "clean").write_text("nothing")
    searched, findings = audit([tmp_path], [marker, "absent"])
    assert searched == 5
    assert {marker for marker, _ in findings} == {marker}
    places = {place.removeprefix(f"{tmp_path}/").split(",")[0] for _, place in findings}
    assert places == {"1.zip", "deep/er/raw", "lists.parquet", "users.parquet"}


def test_across_pieces_of_a_large_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbasket.spark.traces._PIECE", 5)
    (tmp_path / "file").write_text("abcforgotten-userxyz")
    assert [finding.marker for finding in audit([tmp_path], ["forgotten-user"])[1]] == ["forgotten-user"]
