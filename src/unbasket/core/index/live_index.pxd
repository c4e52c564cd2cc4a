cimport cython

from unbasket.core.index.index cimport Index
from unbasket.core.index.pool cimport Pool
from unbasket.core.memory.jagged cimport JaggedArray
from unbasket.core.model.checkpoints cimport Checkpoints
from unbasket.core.model.events cimport Batch, EventApplier
from unbasket.core.model.fold cimport FoldWorkspace, VectorEntry
from unbasket.core.model.learned cimport LearnedSums, Regression


@cython.final
cdef class LiveIndex(EventApplier):
    cdef readonly Checkpoints checkpoints  # of all users' folds
    cdef readonly Index index  # of the users in the pool
    cdef readonly Pool pool  # None: every user is in the index
    cdef readonly FoldWorkspace space  # the writer's
    cdef readonly LearnedSums sums  # None: weights are not learned
    cdef readonly JaggedArray rounded  # one row: entries of a vector that is not in the index
    cdef public LiveIndex successor  # one under construction, whose sums have shares of the same users; or None

    cdef bint in_pool(self, Py_ssize_t user) except -1 nogil
    cdef bint lacks_share(self, Py_ssize_t user) except -1 nogil
    cdef int add_share(self, Py_ssize_t user, Regression regression) except -1 nogil
    cdef int remove_share(self, Py_ssize_t user) except -1 nogil
    cdef VectorEntry *_rounded(self) except NULL nogil
    cdef int replay(self, Py_ssize_t user) except -1 nogil
    cdef int _claim_slots(self, const Batch *batch) except -1 nogil
    cdef int _release_slots(self, const Batch *batch) except -1 nogil
