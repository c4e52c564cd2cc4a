"""All users: the inverted index in shards, hubs, the pool, and the live index that events keep up to date."""

from unbasket.core.index import hubs, index, live_index, pool, shard

Shard = shard.Shard
Hubs = hubs.Hubs
MAX_BASKET = index.MAX_BASKET
SHARD_SIZE = index.SHARD_SIZE
Index = index.Index
Pool = pool.Pool
LiveIndex = live_index.LiveIndex
