"""The engine: the recommender in memory, by external id. `core` has its algorithms.

cold_start     recommendations for unknown users
recommender    learn, forget, recommend, explain, verify, from any thread
recommending   the best items for users, carts and histories, and the items in most baskets
explanations   the shares of a score
probes         the part of a vector that finds neighbors under a privacy threshold
learned_weights alpha and the factors of items, as the model has learned them
ports          the journal, through which every event goes: it applies the event to the model, and keeps it or not
model          state, digest, catalog and availability, shared by all threads behind one lock
catalog        products, categories and hidden items
item_filter    filters as item codes
state          the model derived from histories, and a rebuild with other parameters
histories      users, items and baskets by external id, without an index
digest         the root of a tree over all users, and proofs from it
verification   comparison with a retrain; proofs of erasure
workspaces     scratch memory of readers, and the threads that share a search
locks          many readers, or one writer
"""
