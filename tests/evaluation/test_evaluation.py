"""Results of evaluations and of searches at the prompt, in a notebook, as frames and as plots."""

import sys
from html import escape
from typing import Any

import numpy as np
import polars as pl
import pytest

import unbasket as ub
from unbasket.datasets import generate
from unbasket.errors import UnbasketError
from unbasket.evaluation.evaluation import Evaluation
from unbasket.evaluation.tifuknn import TIFUKNN
from unbasket.evaluation.tuning import Tuning


@pytest.fixture(scope="module")
def shop() -> pl.DataFrame:
    return generate(users=40, seed=3, baskets_per_user=6, basket_size=5).history


@pytest.fixture(scope="module")
def evaluation(shop: pl.DataFrame) -> Evaluation:
    return ub.evaluate(shop, ub.Params(neighbors=3), cutoffs=[5, 10])


@pytest.fixture(scope="module")
def tuning(shop: pl.DataFrame) -> Tuning:
    return ub.tune(shop, trials=6)


def test_means_equal_those_computed_one_by_one(evaluation: Evaluation) -> None:
    assert len(evaluation.means) == 4
    for model, row in evaluation.means.items():
        assert list(row) == evaluation.metrics
        for metric, mean in row.items():
            assert mean is not None
            assert mean == evaluation.mean(model, metric)


def test_a_metric_without_users_is_a_dash() -> None:
    once = pl.DataFrame({"user": [1, 1, 2, 2], "basket": [1, 2, 1, 2], "item": [7, 7, 8, 8]})
    evaluation = ub.evaluate(once, baselines=[], cutoffs=[3])
    assert evaluation.means[TIFUKNN]["explore_recall@3"] is None
    assert dict(evaluation.rows())["explore_recall@3"] == "-"
    assert evaluation.frame().row(by_predicate=pl.col("metric") == "explore_recall@3")[2:] == (None,) * 4
    assert np.isnan(bars(evaluation)[-1])


def test_frame_has_a_row_per_model_and_metric(evaluation: Evaluation) -> None:
    frame = evaluation.frame()
    assert frame.columns == ["model", "metric", "mean", "low", "high", "users"]
    assert frame.height == 4 * 2 * (5 + 2)
    assert (frame["low"] <= frame["mean"]).all()
    assert (frame["mean"] <= frame["high"]).all()


def test_evaluation_shows_protocol_parameters_and_means(evaluation: Evaluation) -> None:
    mean = evaluation.means[TIFUKNN]["recall@5"]
    assert mean is not None
    for text in (repr(evaluation), evaluation._repr_html_()):
        assert "Protocol all-users: 36 users, neighbors among 40" in text
        for part in ("neighbors=3", "GP-TopFreq", "ndcg_paper@10", f"{mean.mean:.4f}"):
            assert part in text
    assert max(map(len, repr(evaluation).splitlines()[3:])) <= 80


def bars(evaluation: Evaluation) -> list[float]:
    """Return the heights of all bars, panel by panel and model by model."""
    patches: list[Any] = [patch for axis in evaluation.plot().axes for patch in axis.patches]
    return [patch.get_height() for patch in patches]


def test_plot_has_a_bar_per_mean(evaluation: Evaluation) -> None:
    expected = [
        row[metric] for metrics in evaluation.accuracy for row in evaluation.means.values() for metric in metrics
    ]
    assert bars(evaluation) == [mean and mean.mean for mean in expected]


def test_plots_render_in_a_notebook(evaluation: Evaluation, tuning: Tuning) -> None:
    for figure in (evaluation.plot(), tuning.plot()):
        assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


def test_tuning_keeps_its_trials(tuning: Tuning) -> None:
    frame = tuning.frame()
    assert frame["trial"].to_list() == [1, 2, 3, 4, 5, 6]
    assert frame["value"].max() == tuning.value
    best = frame.row(by_predicate=pl.col("value") == tuning.value, named=True)
    assert best["neighbors"] == tuning.params.neighbors
    assert frame.columns[2:] == ["group_size", "basket_decay", "group_decay", "neighbors", "alpha"]


def test_tuning_shows_the_best_first(tuning: Tuning) -> None:
    page = tuning._repr_html_()
    assert page.index(f"{tuning.value:.4f}</td>") < page.index(f"{sorted(tuning.frame()['value'])[-3]:.4f}</td>")
    assert escape(tuning.line()) in page
    assert repr(tuning).splitlines() == [f"{tuning.title()}:", tuning.line()]


def test_plot_of_tuning_has_a_panel_per_parameter(tuning: Tuning) -> None:
    figure = tuning.plot()
    assert [axis.get_xlabel() for axis in figure.axes] == [name for name in tuning.frame().columns if name != "value"]
    curve = np.asarray(figure.axes[0].lines[1].get_ydata())
    assert curve.tolist() == tuning.frame()["value"].cum_max().to_list()


def test_without_matplotlib_a_plot_says_how_to_install_it(
    evaluation: Evaluation, tuning: Tuning, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "unbasket.evaluation.plots", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for result in (evaluation, tuning):
        with pytest.raises(UnbasketError, match=r"plots need Matplotlib: pip install 'unbasket\[plot\]'"):
            result.plot()
