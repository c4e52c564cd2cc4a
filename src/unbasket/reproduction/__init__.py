"""Reproduction of the paper's section 6 on the same data, with this engine's figures beside the paper's.

    settings -> experiments -> results/*.json -> sections -> report.html, *.csv, *.tex, *.svg, *.png

An experiment (`experiments`) makes a table or a figure: one function measures a dataset and returns rows, another one
presents the rows. The rows of each experiment and dataset are cached with their settings, so an interrupted run can be
resumed. `docs/reproduction.md` describes the report.
"""

from unbasket.reproduction.experiments import DATASETS, EXPERIMENTS, reproduce
from unbasket.reproduction.workloads import Settings, quick_settings

__all__ = ["DATASETS", "EXPERIMENTS", "Settings", "quick_settings", "reproduce"]
