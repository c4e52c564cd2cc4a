"""A dict in many pieces. A dict that is full is copied as a whole when it grows: with a million keys, for 50 ms."""

cimport cython
from cpython.object cimport PyObject_Hash
from libc.stdint cimport uint32_t

import numpy as np

cdef enum:
    PIECES = 256


@cython.final
cdef class ShardedDict:
    """A mapping from what can be hashed; each key's hash says which piece it is in. In no order."""

    cdef list pieces
    cdef Py_ssize_t count

    def __cinit__(self):
        self.pieces = [{} for _ in range(PIECES)]

    cdef inline dict piece_of(self, key):
        return <dict> self.pieces[PyObject_Hash(key) & (PIECES - 1)]

    def __len__(self):
        return self.count

    def __contains__(self, key):
        return key in self.piece_of(key)

    def __getitem__(self, key):
        return self.piece_of(key)[key]

    def __setitem__(self, key, value):
        cdef dict piece = self.piece_of(key)
        self.count -= len(piece)
        piece[key] = value
        self.count += len(piece)

    def __delitem__(self, key):
        del self.piece_of(key)[key]
        self.count -= 1

    def __iter__(self):
        for piece in self.pieces:
            yield from <dict> piece

    def get(self, key, default=None):
        """The value of a key, or what is given for a key that is not there."""
        return self.piece_of(key).get(key, default)

    def codes_of(self, keys):
        """The values, which are codes, of those of the keys that are there, in an array."""
        cdef list wanted = keys if isinstance(keys, list) else list(keys)
        cdef Py_ssize_t count = 0
        codes = np.empty(len(wanted), np.uint32)
        cdef uint32_t[::1] code = codes
        for key in wanted:
            value = self.piece_of(key).get(key)
            if value is not None:
                code[count] = value
                count += 1
        return codes[:count]

    def pop(self, key):
        """Remove a key and return its value."""
        value = self.piece_of(key).pop(key)
        self.count -= 1
        return value

    def lists(self):
        """All keys, in lists of a piece each; a list is made when its turn comes."""
        for piece in self.pieces:
            yield list(<dict> piece)

    def items(self):
        """All keys and values."""
        for piece in self.pieces:
            yield from (<dict> piece).items()

    def values(self):
        """All values."""
        for piece in self.pieces:
            yield from (<dict> piece).values()

    def __repr__(self):
        return repr(dict(self.items()))
