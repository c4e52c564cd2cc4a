cimport cython
from cpython.object cimport PyObject_Hash

cdef enum:
    SHARDS = 256


@cython.final
cdef class ShardedDict:
    cdef list shards  # dicts
    cdef Py_ssize_t count  # keys in all shards

    cdef inline dict shard_of(self, key):
        return <dict> self.shards[PyObject_Hash(key) & (SHARDS - 1)]
