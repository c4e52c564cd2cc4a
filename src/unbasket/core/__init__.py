"""The compiled core: codes and structs in, codes and numbers out; no ids, no files, no errors of input.

    event -> history -> vector -> index -> recommendation
             (one user)           (all users)

history      the baskets of each user, in order, and the changes an event can make to them
fold         the one update rule: from baskets to weights, from a checkpoint or from the start (in a work `space`)
checkpoints        saved states of the fold, so that a change late in a long history replays little
vector       a vector in fixed point, on its own
shard         the vectors of some users, and for each item those who have it
index        the shards, and who is where in them
hubs        the users who are near to everyone, summed in advance
pool         who is in the index, if not everybody is
nearest      the nearest users
ranking      the mean of their vectors, the best items
search       both in one, and other questions about neighbors

live         the path of an event through all of these
loading      the same for many new users at once
unpack       rows of a store to columns
pack         columns to rows of a store
numbers      a number for each basket, which follows the changes of histories
questions    what is asked about the state
inspection   what would betray a change of a user that was not carried through
survey       the same for all users at once, and records of nobody
views        the core's memory as arrays, for tests

rows         rows of records that grow and shrink, the container of histories, vectors and postings
blocks       the memory of rows: blocks of many sizes, without moving any
canon        a user's history as canonical bytes, and their hash
column       a long array that grows while it is in use
pieces       a dict in many pieces
naming       names for the codes of an answer
select       the smallest of many
best         the best of many
together     work that other threads help with
arrange      rows of purchases to baskets
encode       numbers to dense codes
buffers      memory that comes zeroed and is wiped before it goes

`.pyx` files are Cython, compiled by setup.py; `.pxd` files are their C side, `.pyi` files what Python sees.
"""

from unbasket.core._build_check import are_compiled

if not are_compiled():
    raise ImportError(
        "the core of unbasket is not compiled, or its sources have changed since: "
        "run `make build`, or `python setup.py build_ext --inplace`"
    )

# Callers import what follows, and modules, from here: import-linter knows this package, but no compiled module.
from unbasket.core.check import invariants
from unbasket.core.codec import row_reader, row_writer, user_hash
from unbasket.core.index import index, live_index, pool
from unbasket.core.memory import growable
from unbasket.core.model import checkpoints, events, fold, history, row_ids
from unbasket.core.search import search
from unbasket.core.util import sharded_dict

CHECKPOINT_EVERY = checkpoints.CHECKPOINT_EVERY
MAX_BASKET = index.MAX_BASKET
ONE = fold.ONE
SHARD_SIZE = index.SHARD_SIZE
STRUCTURES = invariants.STRUCTURES
TIED = events.TIED
UNTIMED = history.UNTIMED

BasketRowWriter = row_writer.BasketRowWriter
Baskets = events.Baskets
UserHasher = user_hash.UserHasher
GrowableArray = growable.GrowableArray
EventApplier = events.EventApplier
FoldWorkspace = fold.FoldWorkspace
Histories = history.Histories
Index = index.Index
LiveIndex = live_index.LiveIndex
RowIds = row_ids.RowIds
ShardedDict = sharded_dict.ShardedDict
Pool = pool.Pool
Query = search.Query
QueryBatch = search.QueryBatch
Rule = fold.Rule
SearchWorkspace = search.SearchWorkspace
RowReader = row_reader.RowReader
Vector = fold.Vector
