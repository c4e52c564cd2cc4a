"""A process that runs a stream until it is killed: python driver.py FOLDER."""

import sys
from pathlib import Path

from unbasket import Params
from unbasket.spark import event_schema, maintain, read_files, session


def main(folder: Path) -> None:
    spark = session("local[2]", work=str(folder / "work"))
    events = read_files(spark, str(folder / "events"), event_schema(), most=1)
    stream = maintain(events, Params(), checkpoint=str(folder / "checkpoint"))
    stream.into_table(str(folder / "table"), every="0 seconds").awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
