"""Representations of engines, at the prompt and in a notebook."""

from pathlib import Path

import pytest

import unbasket as ub
from unbasket.domain._repr_html import html_table

PARAMS = ub.Params(neighbors=2)


def filled(rec: ub.Recommender) -> ub.Recommender:
    for basket in range(1200):
        rec.learn("<ann>", ["milk", "tea"], basket=basket)
    rec.learn("bob", ["milk"], basket=1)
    return rec


def test_the_repr_has_the_sizes() -> None:
    assert repr(filled(ub.Recommender(PARAMS))) == f"<Recommender: users=2 items=2 baskets=1,201 {PARAMS}>"


def test_forgotten_data_is_not_counted() -> None:
    rec = filled(ub.Recommender(PARAMS))
    rec.forget("<ann>")
    assert "users=1 items=1 baskets=1 " in repr(rec)


def test_a_durable_engine_names_its_file_open_and_closed(tmp_path: Path) -> None:
    path = tmp_path / "a&b.db"
    with ub.open(path, PARAMS) as rec:
        rec.learn("ann", ["milk"], basket=1)
        assert repr(rec) == f"<DurableRecommender {path}: users=1 items=1 baskets=1 {PARAMS}>"
        assert "a&amp;b.db" in rec._repr_html_()
    assert repr(rec) == f"<DurableRecommender {path}, closed>"
    assert "closed" in rec._repr_html_()


def test_a_notebook_shows_counts_and_parameters() -> None:
    page = filled(ub.Recommender(PARAMS))._repr_html_()
    for text in ("Recommender", "users", "1,201", "2,401", "neighbors=2", "grouping=&#x27;fixed&#x27;"):
        assert text in page


@pytest.mark.parametrize("field", ["title", "header", "cell", "note"])
def test_nothing_in_a_table_is_taken_for_html(field: str) -> None:
    texts = dict.fromkeys(["title", "header", "cell", "note"], "x") | {field: "<b>&"}
    page = html_table(texts["title"], [texts["header"]], [[texts["cell"]]], texts["note"])
    assert "&lt;b&gt;&amp;" in page
    assert "<b>" not in page
