"""`unbasket.evaluate` and `unbasket.tune`: the figures of the modules behind them, from datasets and from any frame."""

import io
import subprocess
import sys
from dataclasses import replace

import polars as pl
import pytest

import unbasket as ub
from unbasket.datasets import Dataset, generate, hold_out_last
from unbasket.evaluation import BASELINES, PROTOCOLS, Holdout, api, hide_last_basket, tifuknn, tuning

PARAMS = ub.Params(group_size=2, basket_decay=0.8, group_decay=0.6, neighbors=3, alpha=0.6)


@pytest.fixture(scope="module")
def shop() -> Dataset:
    """Return a dataset without a future."""
    return generate(users=40, seed=3, baskets_per_user=6, basket_size=5)


def test_a_dataset_with_a_future_is_evaluated_against_it(shop: Dataset) -> None:
    held = hold_out_last(shop)
    assert held.future is not None
    expected = tifuknn.evaluate(
        Holdout(held.history, held.future), PARAMS, PROTOCOLS["hu"], baselines=list(BASELINES), cutoffs=[5]
    )
    without_catalog = replace(held, items=None)
    assert ub.evaluate(without_catalog, PARAMS, protocol="hu", cutoffs=[5]).frame().equals(expected.frame())


def test_without_a_future_the_last_basket_is_predicted(shop: Dataset) -> None:
    expected = ub.evaluate(hold_out_last(shop), PARAMS).frame()
    assert ub.evaluate(shop, PARAMS).frame().equals(expected)
    without_catalog = expected.filter(~pl.col("metric").str.starts_with("diversity"))
    assert ub.evaluate(shop.history, PARAMS).frame().equals(without_catalog)


def test_your_own_models_and_metrics_are_in_the_same_table(shop: Dataset) -> None:
    """An engine is a model like any other, and so is a function; the comparison is paired."""
    popular = shop.history["item"].value_counts(sort=True)["item"].head(20).to_list()
    evaluation = ub.evaluate(
        shop,
        PARAMS,
        baselines=[],
        models={
            "the same": ub.Recommender(PARAMS),
            "popular": lambda _, split, __: dict.fromkeys(split.queries, popular),
        },
        metrics={"size": lambda items, truth, bought: len(items) + len(truth & bought) / 100},
    )
    frames = evaluation.scores
    assert list(frames) == ["TIFU-kNN", "the same", "popular"]
    assert frames["the same"].equals(frames["TIFU-kNN"])
    assert evaluation.compare("TIFU-kNN", "the same", "recall@10").difference.mean == 0
    assert evaluation.compare("TIFU-kNN", "popular", "recall@10").difference.mean > 0
    assert evaluation.metrics[-1] == "size@20"
    assert {int(size) for size in frames["popular"]["size@10"]} == {10}
    with pytest.raises(ub.InvalidRequestError, match="the model 'TIFU-kNN' has the name of another one"):
        ub.evaluate(shop, PARAMS, models={"TIFU-kNN": ub.Recommender(PARAMS)})


def test_a_pandas_frame_has_no_catalog(shop: Dataset) -> None:
    """Its `items` is a method."""
    frame = ub.evaluate(shop.history.to_pandas(), PARAMS, baselines=[]).frame()
    assert frame.equals(ub.evaluate(shop.history, PARAMS, baselines=[]).frame())


def test_any_frame_that_fit_accepts(shop: Dataset) -> None:
    columns = {"user": "customer", "basket": "receipt", "item": "article", "time": "moment"}
    sales = shop.history.with_columns(pl.from_epoch("time")).rename(columns)
    expected = ub.evaluate(shop.history, PARAMS).frame()
    for frame in (sales.to_pandas(), sales.to_arrow(), sales.with_columns(pl.col("moment").cast(pl.String)).lazy()):
        found = ub.evaluate(frame, PARAMS, user="customer", basket="receipt", item="article", time="moment")
        assert found.frame().equals(expected)


def test_parameters_default_to_the_datasets() -> None:
    small = Dataset("small", ub.datasets.generate(users=50, seed=1, baskets_per_user=6).history, params=PARAMS)
    assert ub.evaluate(small, baselines=[]).params == PARAMS
    assert ub.evaluate(small, ub.Params(), baselines=[]).params == ub.Params()
    assert ub.evaluate(small.history, baselines=[]).params == ub.Params()
    assert ub.tune(small, trials=1).tried[0].params == replace(PARAMS, neighbors=10)  # the least that is tried


def test_tuning_never_sees_the_basket_that_evaluate_predicts(shop: Dataset) -> None:
    unseen = hide_last_basket(shop.history)
    expected = tuning.tune(unseen.history, trials=3, metric="hit_rate@5", seed=7)
    for data in (shop, shop.history, Holdout(unseen.history, unseen.future)):
        assert ub.tune(data, trials=3, metric="hit_rate@5", seed=7) == expected
    assert ub.tune(unseen.history, trials=3, metric="hit_rate@5", seed=7) != expected


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def attach_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Attach a terminal to standard error. Not a fixture: pytest restores standard error after fixtures."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    return terminal


def work() -> None:
    with api._progress_bar("trials") as progress:
        for done in range(1, 1501):
            progress(done, 1500)


def test_a_terminal_shows_progress_and_is_left_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = attach_terminal(monkeypatch)
    work()
    shown = terminal.getvalue()
    assert "trials" in shown
    assert "1500/1500" in shown
    assert shown.endswith("\x1b[1A\x1b[2K")  # erases its line
    assert shown.count("trials") < 100  # refreshed some ten times per second, not once per step


def test_progress_is_removed_when_work_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = attach_terminal(monkeypatch)
    with pytest.raises(KeyboardInterrupt), api._progress_bar("trials"):
        raise KeyboardInterrupt
    assert terminal.getvalue().endswith("\x1b[1A\x1b[2K")


def test_a_file_gets_no_progress(capsys: pytest.CaptureFixture[str]) -> None:
    work()
    assert capsys.readouterr() == ("", "")


def test_bad_requests_are_named(shop: Dataset) -> None:
    with pytest.raises(ub.InvalidRequestError, match="not 'everyone'"):
        ub.evaluate(shop, protocol="everyone")
    with pytest.raises(ub.InvalidFrameError, match="no column 'customer'"):
        ub.evaluate(shop.history, user="customer")
    with pytest.raises(ub.InvalidFrameError, match="not int"):
        ub.tune(3)


def test_importing_the_package_imports_no_research() -> None:
    heavy = "{'unbasket.evaluation', 'unbasket.datasets', 'optuna', 'matplotlib', 'IPython'}"
    code = (
        f"import sys, unbasket; assert not {heavy} & set(sys.modules); "
        "unbasket.evaluate, unbasket.tune, unbasket.datasets.load; assert 'unbasket.evaluation' in sys.modules; "
        "assert 'matplotlib' not in sys.modules and 'optuna' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
