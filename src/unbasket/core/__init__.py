"""The compiled core: codes and structs in, codes and numbers out; no ids, no files, no errors of input.

    event -> history -> vector -> index -> recommendation
             (one user)           (all users)

Folders, the lowest first; each imports only lower ones (tests/core/test_imports.py):

memory   buffers        memory that is zeroed when it is allocated and before it is freed
         slab, jagged   rows of records that grow and shrink, and the allocator of their memory
         growable       a long array that grows while it is in use
util     topn           the n best of many
         sharded_dict   a dict in many shards
         id_fast        ids for the codes of an answer
model    history        the baskets of each user, in order
         fold           the update rule: from baskets to a vector
         checkpoints    saved states of the fold, so that a change late in a long history replays little
         events         events applied to histories
         row_ids        the id of each basket's row in a store
         queries        queries on histories: vectors, popularity
index    shard, index   the vectors of users, and for each item the users who have it
         hubs           the users who are near to every query, summed in advance
         pool           the users who are in the index, if not all are
         live_index     events applied to histories, with the index kept up to date
search   knn            the nearest neighbors of a query
         scoring        the mean of their vectors, and the best items
         search         both in one, for batches of queries
         parallel       work that is shared with other threads
codec    row_reader     rows of a store to columns
         row_writer     columns to rows of a store
         user_hash      hashes of users' histories
         group_baskets  rows of purchases to baskets
check    invariants     checks that derived structures agree with the histories
         testing        the core's memory as arrays, for tests

`.pyx` files are Cython, compiled by setup.py; `.pxd` files declare their C side. A C function that is declared
`except -1` and reaches its end returns 0. Python imports the names of a folder from its package, which assigns them
from its modules (import-linter can't resolve a name in a compiled module); the package's `.pyi` file has their types.
"""

from unbasket.core._build_check import are_compiled

if not are_compiled():
    raise ImportError(
        "the core of unbasket is not compiled, or its sources have changed since: "
        "run `make build`, or `python setup.py build_ext --inplace`"
    )
