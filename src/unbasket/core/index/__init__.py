"""All users: the inverted index in shards, hubs, the pool, and the path of an event into it."""
