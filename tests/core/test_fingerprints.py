"""Vectors, neighbors, recommendations and digests on real shops equal those of the first compiled core, to the bit."""

import json

import pytest
from tests.core.fingerprints import GROUPINGS, KEPT, SHOPS, fingerprints

from unbasket.params import Grouping


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_ta_feng(grouping: Grouping) -> None:
    assert fingerprints("tafeng", grouping) == json.loads(KEPT.read_text())[f"tafeng {grouping}"]


@pytest.mark.slow
@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("shop", [shop for shop in SHOPS if shop != "tafeng"])
def test_larger_shops(shop: str, grouping: Grouping) -> None:
    assert fingerprints(shop, grouping) == json.loads(KEPT.read_text())[f"{shop} {grouping}"]
