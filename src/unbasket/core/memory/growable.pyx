"""An array of int64 that grows without a copy if it can; NumPy and the core share its memory."""

cimport cython
from libc.stdint cimport int64_t
from libc.string cimport memcpy

import numpy as np

from unbasket.core.memory.buffers cimport allocated, give_back, grown


@cython.final
cdef class GrowableArray:
    """An array of `count` rows of `width` int64 numbers, zero at first; `np.asarray` is a view of it."""

    def __cinit__(self, Py_ssize_t width, Py_ssize_t count=0):
        self.data = <int64_t *> allocated(count * width, sizeof(int64_t))
        self.shape[0], self.shape[1] = count, width
        self.strides[0], self.strides[1] = width * sizeof(int64_t), sizeof(int64_t)
        self.count, self.width = count, width

    @classmethod
    def of(cls, numbers):
        array = cls(1, len(numbers))
        np.asarray(array)[:] = numbers
        return array

    def __dealloc__(self):
        give_back(self.data, self.count * self.width * sizeof(int64_t))

    def extended(self, Py_ssize_t count):
        """Return an array with `count` rows and the same start: this one, or a copy if this one has views.

        Without views, a large array grows in place. A copy leaves this array to its views.
        """
        cdef GrowableArray longer
        if count <= self.count:
            return self
        if self.views > 0:
            longer = GrowableArray(self.width, count)
            memcpy(longer.data, self.data, self.count * self.width * sizeof(int64_t))
            return longer
        self.data = <int64_t *> grown(self.data, self.count * self.width, count * self.width, sizeof(int64_t))
        self.count = self.shape[0] = count
        return self

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        buffer.buf = self.data
        buffer.obj = self
        buffer.len = self.count * self.width * sizeof(int64_t)
        buffer.itemsize = sizeof(int64_t)
        buffer.readonly = 0
        buffer.ndim = 2 if self.width > 1 else 1
        buffer.format = "q"
        buffer.shape = self.shape
        buffer.strides = self.strides
        buffer.suboffsets = NULL
        buffer.internal = NULL
        self.views += 1

    def __releasebuffer__(self, Py_buffer *buffer):
        self.views -= 1
