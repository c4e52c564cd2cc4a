"""Section 6 of the paper once more, on the same data, with this engine's figures beside the paper's.

    settings -> runner -> parts -> results/*.json -> sections -> report.html, *.csv, *.tex, *.svg, *.png

A part (`parts`) is a table or a figure: a function that measures one dataset and returns rows, and one that
presents the rows. The runner keeps the rows of each part and dataset, with the settings that made them, so that an
interrupted run continues where it was. `docs/reproduction.md` says what the report shows.
"""

from unbasket.reproduction.experiments import DATASETS, PARTS
from unbasket.reproduction.runner import reproduce
from unbasket.reproduction.settings import Settings, quick_settings

__all__ = ["DATASETS", "PARTS", "Settings", "quick_settings", "reproduce"]
