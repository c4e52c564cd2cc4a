"""All users: the inverted index in shards, hubs, the pool, and the live index that events keep up to date."""
