"""The engine that people hold, by external ids; what it computes with is in `core`.

fallback       what somebody unknown is recommended
recommender    learn, forget, recommend, explain, verify, from any thread
advisor        the best items for users, carts and histories
popularity     the items in most baskets
explanations   why an item scores what it does
journal        takes every event, has the model apply it, and keeps it: on disk, or nowhere
model          memory, digest, catalog and stock, which all threads share, behind one lock
catalog        what the shop knows of its items
stock          which of them are hidden
choice         what filters leave to choose from
memory         what it remembers: histories, and everything derived from them
derived        what is derived: vectors, an index, a pool
digest         one number for all remaining baskets
renewal        a change of parameters under way
verification   proof that nothing else is left
inspector      places that contradict the histories, or hold something of nobody
workspaces          where questions are worked on
helpers        threads that help with a search
shares         what each basket contributes to a weight
locks          many readers, or one writer
"""
