"""A dict in shards: a plain dict copies all its keys when it grows, which takes 50 ms with a million of them."""

cimport cython
from libc.stdint cimport uint32_t

import numpy as np


@cython.final
cdef class ShardedDict:
    """A mapping whose keys are spread over dicts by their hash; unordered."""

    def __cinit__(self):
        self.shards = [{} for _ in range(SHARDS)]

    def __len__(self):
        return self.count

    def __contains__(self, key):
        return key in self.shard_of(key)

    def __getitem__(self, key):
        return self.shard_of(key)[key]

    def __setitem__(self, key, value):
        cdef dict shard = self.shard_of(key)
        self.count -= len(shard)
        shard[key] = value
        self.count += len(shard)

    def __delitem__(self, key):
        del self.shard_of(key)[key]
        self.count -= 1

    def __iter__(self):
        for shard in self.shards:
            yield from <dict> shard

    def get(self, key, default=None):
        return self.shard_of(key).get(key, default)

    def codes_of(self, keys):
        """Return an array of the values, which are codes, of the keys that are present."""
        cdef list wanted = keys if isinstance(keys, list) else list(keys)
        cdef Py_ssize_t count = 0
        codes = np.empty(len(wanted), np.uint32)
        cdef uint32_t[::1] code = codes
        for key in wanted:
            value = self.shard_of(key).get(key)
            if value is not None:
                code[count] = value
                count += 1
        return codes[:count]

    def pop(self, key):
        value = self.shard_of(key).pop(key)
        self.count -= 1
        return value

    def lists(self):
        """Yield all keys, a list per shard; each list is made when it is yielded."""
        for shard in self.shards:
            yield list(<dict> shard)

    def items(self):
        for shard in self.shards:
            yield from (<dict> shard).items()

    def values(self):
        for shard in self.shards:
            yield from (<dict> shard).values()

    def __repr__(self):
        return repr(dict(self.items()))
