"""The whole report, of small settings on small shops."""

import re
from pathlib import Path

import polars as pl
import pytest
from tests.reproduction.test_runner import Recorder

from unbasket.reproduction import PARTS, Settings, reproduce

SMALL = Settings(
    user_shares=(0.001, 0.2),
    basket_shares=(0.5,),
    stream_baskets=12,
    drift_baskets=12,
    latency_events=3,
)


@pytest.mark.usefixtures("data")
def test_every_part_has_its_files_and_the_page_needs_no_other(tmp_path: Path) -> None:
    recorder = Recorder()
    text = reproduce(tmp_path, SMALL, recorder).read_text()
    assert len(recorder.tasks) == sum(len(part.datasets) for part in PARTS.values())
    for name, part in PARTS.items():
        assert pl.read_csv(tmp_path / f"{name}.csv").height > 0
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert f'<h2 id="{name}">' in text
        assert part.title in text
    assert text.count('src="data:image/png;base64,') == len(PARTS)
    assert not re.search(r"https?:|<link|<script|@import|url\(", text)
    assert set(re.findall(r'(?:src|href)="([a-z]+)', text)) == {"data"}
    assert "DIFFERENT" not in text
