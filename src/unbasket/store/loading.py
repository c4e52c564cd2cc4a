"""Disk to memory: the rows of baskets as orders."""

from collections.abc import Mapping
from itertools import chain

import numpy as np

from unbasket.core import UNTIMED
from unbasket.core.arrays import Int64s
from unbasket.exchange.ids import Id, in_order
from unbasket.exchange.orders import Orders
from unbasket.store.rows import decode_baskets, place_of


def orders_of(payloads: Mapping[int, bytes]) -> tuple[Orders, Int64s]:
    """The orders that rows hold, and the row of each basket.

    Users are in the order of their ids, their baskets in the order of their places.
    """
    baskets = decode_baskets(payloads.values())
    owners, users = _coded([basket.user for basket in baskets])
    places = np.fromiter(map(place_of, payloads, baskets), np.int64, len(baskets))
    order = np.lexsort((places, owners))
    baskets = [baskets[i] for i in order.tolist()]
    purchases, items = _coded(list(chain.from_iterable(basket.items for basket in baskets)))
    orders = Orders(
        users=users,
        items=items,
        names=[basket.basket for basket in baskets],
        owners=owners[order].astype(np.uint32),
        baskets=np.arange(len(baskets), dtype=np.uint32),
        times=np.array([UNTIMED if basket.time is None else basket.time for basket in baskets], np.int64),
        sizes=np.array([len(basket.items) for basket in baskets], np.int64),
        opens=np.array([basket.opens for basket in baskets], np.int64),
        purchases=purchases.astype(np.uint32),
    )
    return orders, np.array(list(payloads), np.int64)[order]


def _coded(ids: list[Id]) -> tuple[Int64s, list[Id]]:
    """Each id as a position among the distinct ones, which are in their order."""
    names = in_order(list(set(ids)))
    codes = {name: code for code, name in enumerate(names)}
    return np.fromiter(map(codes.__getitem__, ids), np.int64, len(ids)), names
