"""Keysets: reading their files, their splits, and the mean over several."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import unbasket as ub
from unbasket.errors import InvalidRequestError
from unbasket.evaluation.keysets import KEYSET_PROTOCOLS, Keyset, named_protocols, read_keyset, read_keysets
from unbasket.evaluation.protocols import PROTOCOLS, Split, hide_last_basket

KEYS: dict[str, Any] = {"item_num": 9, "train": ["1", "2", "3"], "val": ["4"], "test": ["5", "6"]}
HISTORY = pl.DataFrame(
    [(user, basket, user + basket, basket) for user in range(1, 8) for basket in range(1, user + 2)],
    ["user", "basket", "item", "time"],
    orient="row",
)
DATA = hide_last_basket(HISTORY)


def split_of(name: str, keys: object) -> Split:
    [protocol] = named_protocols(name, [read_keyset(keys)])
    return protocol.split(*DATA)


def test_a_file_and_a_mapping_are_the_same_keyset(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text(json.dumps(KEYS))
    from_file, from_mapping = read_keyset(path), read_keyset(KEYS)
    assert (from_file.train, from_file.val, from_file.test) == tuple(
        map(frozenset, (KEYS["train"], KEYS["val"], KEYS["test"]))
    )
    assert from_file == Keyset(str(path), from_mapping.train, from_mapping.val, from_mapping.test)
    assert read_keyset({"train": [1], "val": [], "test": [2]}).train == {"1"}
    assert read_keysets(None) == []
    assert read_keysets([path, KEYS]) == [from_file, from_mapping]


def test_reality_check_has_neighbors_from_the_training_users() -> None:
    split = split_of("reality-check", KEYS)
    assert split.queries.to_list() == [5, 6]
    assert split.candidates.to_list() == [1, 2, 3]


def test_uva_has_neighbors_from_all_users() -> None:
    split = split_of("uva", KEYS)
    assert split.queries.to_list() == [5, 6]
    assert split.candidates.to_list() == [1, 2, 3, 4, 5, 6, 7]


def test_ids_may_be_texts() -> None:
    text = [frame.with_columns(pl.col("user").cast(pl.String)) for frame in DATA]
    [protocol] = named_protocols("uva", [read_keyset(KEYS)])
    assert protocol.split(*text).queries.to_list() == ["5", "6"]


def test_ndcg_is_that_of_hu() -> None:
    assert {protocol.ndcg for protocol in KEYSET_PROTOCOLS.values()} == {"hu"}
    assert not KEYSET_PROTOCOLS.keys() & PROTOCOLS.keys()


def test_the_mean_is_over_keysets_not_over_users() -> None:
    """The second keyset has a third of the users, and the same weight."""
    keys = [KEYS | {"test": ["5", "6", "7"]}, KEYS | {"test": ["4"], "val": []}]
    params = ub.Params(group_size=2, neighbors=2, alpha=0.5)
    both = ub.evaluate(HISTORY, params, time="time", protocol="reality-check", keyset=keys, cutoffs=[3])
    alone = [
        ub.evaluate(HISTORY, params, time="time", protocol="reality-check", keyset=each, cutoffs=[3]) for each in keys
    ]
    for metric in ("recall@3", "ndcg_hu@3", "novelty@3"):
        for model in both.scores:
            figures = [each.scores[model][metric].mean() for each in alone]
            mean = both.mean(model, metric)
            assert mean is not None
            assert mean.mean == pytest.approx(sum(figures) / 2)  # type: ignore[arg-type]
            assert mean == both.means[model][metric]
    assert both.title() == "Protocol reality-check, mean over 2 keysets: 4 users, neighbors among 3"
    assert both.scores["TIFU-kNN"]["keyset"].to_list() == [1, 1, 1, 2]
    first, second = (both.mean(model, "novelty@3") for model in ("TIFU-kNN", "G-TopFreq"))
    difference = both.compare("TIFU-kNN", "G-TopFreq", "novelty@3").difference.mean
    assert first is not None
    assert second is not None
    assert difference == pytest.approx(first.mean - second.mean)


def test_bad_keysets_are_named(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    with pytest.raises(InvalidRequestError, match="cannot read the keyset"):
        read_keyset(path)
    for text in ("nonsense", "[]", '{"train": [], "val": []}', '{"train": 3, "val": [], "test": []}'):
        path.write_text(text)
        with pytest.raises(InvalidRequestError, match=r"keys.json is not a keyset: .* lists train, val, test"):
            read_keyset(path)
    with pytest.raises(InvalidRequestError, match=r"lists user '8', who has no history .*\(1 such users\)"):
        split_of("reality-check", KEYS | {"train": ["1", "8"]})
    with pytest.raises(InvalidRequestError, match="protocol 'uva' needs a keyset"):
        named_protocols("uva")
    with pytest.raises(InvalidRequestError, match="not for 'paper'"):
        named_protocols("paper", [read_keyset(KEYS)])
