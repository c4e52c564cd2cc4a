"""The shared style of all figures, and the figures of an evaluation and of a parameter search."""

import io
import math

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from unbasket.evaluation.evaluation import Evaluation
from unbasket.evaluation.statistics import MeanInterval
from unbasket.evaluation.tuning import Tuning

PAPER, OURS, RETRAIN, CLAIM = "#d95f02", "#1f5fa8", "#6b6b6b", "#b01e1e"
_DPI = 150
_MODELS = (OURS, "#9aa5b1", "#e0a458", "#6a994e")


class _NotebookFigure(Figure):
    """A figure that a notebook displays without pyplot and its global state."""

    def _repr_png_(self) -> bytes:
        return png(self)


def panels(rows: int, columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """Create a figure of rows x columns axes, listed row by row; sizes in inches."""
    figure = _NotebookFigure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)  # no window, no global state: works without a display and in any thread
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.flat:
        axis.grid(visible=True, alpha=0.25)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, list(axes.flat)


def legend_below(figure: Figure, axis: Axes, columns: int) -> None:
    """Draw the legend of one panel below all of them."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)


def png(figure: Figure) -> bytes:
    """Render the figure as PNG."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=_DPI)
    return buffer.getvalue()


def svg(figure: Figure) -> str:
    """Render the figure as SVG; equal figures give equal text."""
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "unbasket", "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def draw_evaluation(evaluation: Evaluation) -> Figure:
    """Draw a panel per cutoff, a group of bars per metric, and a bar per model with its interval."""
    figure, axes = panels(1, len(evaluation.cutoffs), 1.5 + 4.5 * len(evaluation.cutoffs), 4.2)
    width = 0.85 / len(evaluation.means)
    for axis, metrics in zip(axes, evaluation.accuracy, strict=True):
        for number, (model, means) in enumerate(evaluation.means.items()):
            heights, errors = _bars([means[metric] for metric in metrics])
            color = _MODELS[number % len(_MODELS)]
            bars = np.arange(len(metrics)) + (number - (len(evaluation.means) - 1) / 2) * width
            axis.bar(
                bars, heights, width, yerr=errors, color=color, label=model, capsize=2, error_kw={"linewidth": 0.8}
            )
        axis.set_xticks(range(len(metrics)), metrics, rotation=20, ha="right")
        axis.set_ylabel("mean over users, 95 % interval")
    legend_below(figure, axes[0], len(evaluation.means))
    return figure


def _bars(means: list[MeanInterval | None]) -> tuple[list[float], list[list[float]]]:
    """Return bar heights and the extents of the intervals below and above; NaN where there is no mean."""
    heights = [mean.mean if mean else math.nan for mean in means]
    below = [mean.mean - mean.low if mean else math.nan for mean in means]
    above = [mean.high - mean.mean if mean else math.nan for mean in means]
    return heights, [below, above]


def draw_tuning(tuning: Tuning) -> Figure:
    """Draw the metric by trial with the best so far, then against each parameter; the best trial is colored."""
    frame = tuning.frame()
    names = [name for name in frame.columns if name != "value"]
    figure, axes = panels(2, math.ceil(len(names) / 2), 11, 6)
    best = frame["value"].arg_max()
    for axis, name in zip(axes, names, strict=True):
        axis.plot(frame[name], frame["value"], "o", color=RETRAIN, alpha=0.45, markersize=4)
        if name == "trial":
            axis.step(frame[name], frame["value"].cum_max(), where="post", color=OURS, label="best so far")
            axis.legend(frameon=False)
        if best is not None and frame[name][best] is not None:  # a learned alpha is not a number
            axis.plot(frame[name][best], frame["value"][best], "o", color=PAPER, markersize=8)
        if name == "neighbors":
            axis.set_xscale("log")
        axis.set_xlabel(name)
        axis.set_ylabel(tuning.metric)
    return figure
