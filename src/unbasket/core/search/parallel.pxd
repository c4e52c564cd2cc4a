cdef int together(helpers, list works) except -1
