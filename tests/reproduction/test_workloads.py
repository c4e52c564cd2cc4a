import polars as pl
import pytest

from unbasket.reproduction import workloads


@pytest.mark.usefixtures("data")
def test_longest_history_is_the_stream() -> None:
    stream = workloads.read("coop100", limit=5)
    assert len(stream.baskets) == 5
    assert stream.others["user"].n_unique() == 39
    assert max(max(basket) for basket in stream.baskets) < stream.dimension
    counts = stream.others.group_by("user").agg(pl.col("basket").n_unique())
    assert len(workloads.read("coop100", limit=1000).baskets) >= max(counts["basket"])
