"""Recommendations for all users on Spark, with neighbors from a pool: `python -m benchmarks.spark_pool`.

The shop is that of benchmarks/scale.py. Its baskets are loaded into a checkpoint. From these histories, Spark makes
recommendations for all users on two cores, and discards them. A sample is compared with the engine, bit for bit. The
processor time of Spark and its workers is measured too: other load on the machine does not affect it.
"""

import argparse
import os
import random
import shutil
import tempfile
import time
from pathlib import Path

import polars as pl
from benchmarks.scale import shop
from pyspark.sql import SparkSession
from rich.console import Console

from unbasket import Params, Recommender
from unbasket.spark import histories, load, recommend, session

CORES = 2
SAMPLE = 2_000
MUST, AIM = 1_500, 5_000  # users a second

console = Console(highlight=False)


def processor_seconds() -> float:
    """Return the processor time of all descendants of this process."""
    parents: dict[int, int] = {}
    seconds: dict[int, float] = {}
    for process in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = process.read_text().rpartition(")")[2].split()
        except OSError:  # the process has just ended
            continue
        number = int(process.parent.name)
        parents[number] = int(fields[1])
        seconds[number] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    started = {os.getpid()}
    for _ in range(len(parents)):
        more = {number for number, parent in parents.items() if parent in started} - started
        if not more:
            break
        started |= more
    return sum(seconds[number] for number in started - {os.getpid()})


def measure(spark: SparkSession, folder: Path, params: Params, users: int) -> None:
    """Recommend to all users, and print the users per second."""
    rec = Recommender(params).fit(pl.read_parquet(shop(users)))
    baskets = pl.scan_parquet(shop(users)).group_by("user", "basket", "time").agg(pl.col("item").alias("items"))
    baskets.sink_parquet(folder / f"{users}.parquet")
    load(spark.read.parquet(str(folder / f"{users}.parquet")), params, checkpoint=str(folder / str(users)))
    held = histories(spark, str(folder / str(users)))
    sample = random.Random(0).sample(rec.users(), min(SAMPLE, users))
    expected = {user: [tuple(best) for best in ranked] for user, ranked in rec.recommend_many(sample).items()}
    del rec
    rows = recommend(held, params, sample).collect()
    assert {row.user: [tuple(best) for best in row.recommendations] for row in rows} == expected, "not the engine's"
    with console.status(f"recommending for {users:,} users"):
        start, busy = time.perf_counter(), processor_seconds()
        recommend(held, params).write.format("noop").mode("overwrite").save()
        seconds, busy = time.perf_counter() - start, processor_seconds() - busy
    console.print(
        f"{users:,} users, pool of {params.pool:,}: {users / seconds:,.0f} users a second; "
        f"{CORES * users / busy:,.0f} by the {busy:.1f} s of {CORES} processors. Must be {MUST:,}, should be {AIM:,}"
    )


def main() -> None:
    """Measure the given sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, nargs="+", default=[100_000, 1_000_000], help="sizes of shops")
    parser.add_argument("--pool", type=int, default=20_000)
    given = parser.parse_args()
    spark = session(f"local[{CORES}]", settings={"spark.driver.memory": "3g", "spark.log.level": "OFF"})
    folder = Path(tempfile.mkdtemp(prefix="unbasket-spark-pool-"))
    try:
        for users in given.users:
            measure(spark, folder, Params.paper("tafeng").changed(pool=given.pool, pool_seed=0), users)
    finally:
        spark.stop()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
