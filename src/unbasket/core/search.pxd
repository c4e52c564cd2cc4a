cimport cython

from unbasket.core.nearest cimport Nearest
from unbasket.core.ranking cimport Ranking


@cython.final
cdef class SearchSpace:
    cdef readonly Nearest nearest
    cdef readonly Ranking ranking
    cdef public object helpers
