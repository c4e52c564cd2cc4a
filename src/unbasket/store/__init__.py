"""Durable history, physical erasure, receipts.

    event -> memory -> rows -> SQLite -> acknowledged -> (forgets) erased

`opening` rebuilds the engine from a file. `journal` has events applied, and shares commits among callers whose
`requests` wait. `holdings` changes the model and its rows together: `baskets` turns what changed into rows, and
`loading` rows into orders; `catalog` and `entries` keep what is known of items, and which are hidden or suppressed.
`database` appends and blanks rows and lets old bytes vanish; `tables` reads them, and checks that none is lost, as the
`ledger` shows. `schema` says what the tables are, `sides` where in them a row is, `compaction` gives the room of blank
rows back, and `backup` copies the others. `receipts` say what was forgotten, and `auditing` checks them.
`rules` say what a shop forgets by itself, and `retention` plans and does that.
"""

from unbasket.store.durable import DurableRecommender
from unbasket.store.opening import open  # noqa: A004 - unbasket.open is the name in the contract
from unbasket.store.receipt_audit import Audit, audit
from unbasket.store.receipts import Receipt
from unbasket.store.requests import Erased, ErasedId

__all__ = ["Audit", "DurableRecommender", "Erased", "ErasedId", "Receipt", "audit", "open"]
