"""Durable history, physical erasure, receipts.

    events -> model and rows -> commit -> sync, or truncating checkpoint -> acknowledged

`opening` builds the engine of `durable` from a file. `journal` brings events to disk, a `write_request` of one caller
together with those of others. `persistent_model` changes the model and its rows together: `basket_table` and
`item_tables` know the row of each basket, product, hidden and suppressed item, and `cursors` the positions in streams
outside. `writer` appends and zeroes rows, and erases old bytes; `reader` reads rows, and checks by their
`row_totals` that none is lost. `row_codec` and `schema` define rows and tables, `compaction` gives the space of zeroed
rows back, `backup` copies the others, and `wal` and `lock` guard the files beside the database. `receipts` prove
forgets under the keys of `signing`; `receipt_tree`, `proofs`, `witness` and `timestamp` prove to outsiders what is
held and that no receipt was changed. `presence` tells who was forgotten. `retention` plans and runs the `rules` by
which a shop forgets.
"""

from unbasket.store.durable import DurableRecommender
from unbasket.store.opening import open  # noqa: A004 - unbasket.open is the name in the contract
from unbasket.store.receipts import Audit, Receipt, audit
from unbasket.store.write_request import Erased, ErasedId

__all__ = ["Audit", "DurableRecommender", "Erased", "ErasedId", "Receipt", "audit", "open"]
