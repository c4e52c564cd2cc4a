"""`unbasket ids`: one id is one person, and numbers that become texts."""

import json
from pathlib import Path

import pytest
from tests.cli.running import error, run

import unbasket as ub
from unbasket.store.row_codec import BasketRow, encode_basket
from unbasket.store.signing import SigningKeys, signing_keys_of
from unbasket.store.writer import Database

JANUARY = "user,basket,item,time\n17,1,milk,1\n18,2,tea,2\n"
FEBRUARY = "user,basket,item,time\n17,3,bread,3\nA-5,4,tea,4\n"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    db = tmp_path / "shop.db"
    run("import", "-", "--db", db, stdin=JANUARY)
    return db


def test_a_column_of_texts_is_refused_in_a_shop_of_numbers(shop: Path) -> None:
    message = error("import", "-", "--db", shop, stdin=FEBRUARY)
    assert "user id 'A-5' is not written as a whole number such as 17" in message
    assert "`unbasket ids to-text --kind user`" in message
    assert "user ids are numbers, basket ids are numbers, item ids are texts" in run("ids", "show", "--db", shop)
    with ub.open(shop, read_only=True) as rec:
        assert rec.users() == [17, 18]
        assert len(rec.history(17)) == 1


def test_then_one_person_is_forgotten_in_every_spelling(shop: Path) -> None:
    answer = json.loads(run("ids", "to-text", "--kind", "user", "--db", shop, "--json"))
    assert answer == {"user": "text", "basket": "number", "item": "text"}
    run("import", "-", "--db", shop, stdin=FEBRUARY)
    for spelling in ("17", '"17"'):
        assert len(json.loads(run("history", spelling, "--db", shop, "--json"))) == 2
    run("forget", 17, "--db", shop)
    for spelling in ("17", '"17"'):
        assert "nothing is held about user '17'" in error("history", spelling, "--db", shop)
        assert "nothing about user 17 was held" in run("forget", spelling, "--db", shop)
    receipts = json.loads(run("receipts", "list", "--db", shop, "--json"))
    assert [receipt["scope"] for receipt in receipts] == ["types of ids", "user", "user", "user"]
    assert receipts[0]["subject"] == ""
    assert all(receipt["verified"] for receipt in receipts)
    assert "Signatures valid" in run("receipts", "verify", shop)
    with ub.open(shop, read_only=True) as rec:
        assert rec.users() == ["18", "A-5"]
        assert rec.verify().ok


def test_texts_stay_texts(shop: Path) -> None:
    run("ids", "to-text", "--kind", "item", "--db", shop)
    assert json.loads(run("receipts", "list", "--db", shop, "--json")) == []
    assert "--kind must be user, basket or item, not 'users'" in error(
        "ids", "to-text", "--kind", "users", "--db", shop
    )


def append_rows(db: Path, *rows: tuple[int | str, int | str, int | None, list[int | str]]) -> None:
    """Write baskets into a database as an earlier version would, which took ids of both types."""
    database = Database(db, read_only=False)
    database.reader.row_key = SigningKeys.of(signing_keys_of(db)).rows
    database.reader.load(None)
    for user, basket, time, items in rows:
        database.append("baskets", encode_basket(BasketRow(user, basket, time, 0, True, items)))
    database.commit()
    database.sync()
    database.close()
    db.with_name(db.name + "-lock").unlink(missing_ok=True)


def test_a_database_with_both_types_is_named_and_merged(shop: Path) -> None:
    append_rows(shop, ("17", 3, 0, ["bread"]), ("A-5", 4, 4, ["tea", "gin"]))
    for command in (("history", 17), ("verify",), ("recommend", 18)):
        message = error(*command, "--db", shop)
        assert "holds numbers and texts as ids of one kind" in message
        assert "users, of which 1 are there twice: 17 and '17'" in message
        assert (
            f"`unbasket ids to-text --db {shop} --kind user` makes all of them texts, and merges each pair" in message
        )
    assert "holds numbers and texts" in error("ids", "to-text", "--kind", "item", "--db", shop)
    run("ids", "to-text", "--kind", "user", "--db", shop)
    with ub.open(shop) as rec:
        assert rec.users() == ["17", "18", "A-5"]
        assert rec.history(17) == [ub.Basket(3, 0, ("bread",)), ub.Basket(1, 1, ("milk",))]
        assert rec.verify().ok
        [receipt] = rec.receipts()
        assert (receipt.scope, receipt.users, receipt.verified) == ("types of ids", 1, True)
        assert receipt.after == rec.digest()


def test_pairs_that_conflict_are_refused(shop: Path) -> None:
    append_rows(shop, ("17", 1, 5, ["bread"]))
    before = shop.read_bytes()
    message = error("ids", "to-text", "--kind", "user", "--db", shop)
    assert "users 17 and '17' are one user twice, and both have a basket 1" in message
    assert shop.read_bytes() == before


def test_baskets_and_items_of_both_types(shop: Path) -> None:
    append_rows(shop, (18, "b", 2, ["tea", 7, "7"]), (18, "10", 2, [8]))
    message = error("history", 18, "--db", shop)
    assert "baskets, none of them twice; items, of which 1 are there twice: 7 and '7'" in message
    assert "--kind basket --kind item`" in message
    run("ids", "to-text", "--kind", "basket", "--kind", "item", "--db", shop)
    with ub.open(shop, read_only=True) as rec:
        assert rec.history(18) == [
            ub.Basket("10", 2, ("8",)),
            ub.Basket("2", 2, ("tea",)),
            ub.Basket("b", 2, ("7", "tea")),
        ]
    run("forget", 18, "--basket", 2, "--db", shop)
    append_rows(shop, (18, 10, 9, ["tea"]))
    assert "baskets '10' and 10 of user 18 are one basket twice" in error(
        "ids", "to-text", "--kind", "basket", "--db", shop
    )
