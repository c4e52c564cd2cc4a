cdef extern from *:
    """
    /* Return the next index of a loop that several threads share: each index is returned once. */
    static inline long next_index(volatile long *counter) { return __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED); }
    """
    long next_index(long *counter) nogil

cdef int fork_join(thread_pool, list works) except -1
