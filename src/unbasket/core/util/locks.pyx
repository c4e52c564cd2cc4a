"""Locks that an interrupt can't leave held, lost or half changed.

Python raises an interrupt (Ctrl-C, or a signal handler of the program) between two bytecodes. Compiled code has none:
here an interrupt arrives only while a lock is waited for, and that lock is not held then. A `with` statement calls
`__exit__` for every interrupt after `__enter__`. Other threads run only where an object is allocated (garbage may be
collected) or a lock is waited for, so the GIL makes everything between two such places atomic.

An interrupt may still arrive in the block of the `with` statement, and leave the data that the lock guards half
changed. Such data is *torn*: an error other than the `clean` ones, which say that nothing has changed, marks the lock.
"""

cimport cython

from threading import Lock


cdef bint tears(kind, clean) except -1:
    """Return whether a block that ended with this type of error (None: without one) may have left torn data."""
    return kind is not None and not issubclass(kind, clean)


@cython.final
cdef class ReadWriteLock:
    """A lock that `with lock.reading:` shares and `with lock.writing:` does not. Neither nests.

    Readers wait at a gate that a waiting writer holds shut, so a stream of readers can't starve it. After the timeout of
    `with lock.reading_within(seconds):`, or if the data is torn, a caller gets an error of type `busy`.
    """

    cdef public object reading, writing
    cdef readonly Py_ssize_t readers  # inside
    cdef readonly bint is_shut  # by a writer
    cdef readonly bint is_torn  # by an interrupted writer
    cdef object gate
    cdef object emptied  # released when the last reader has left a lock that is shut
    cdef object busy, clean

    def __init__(self, type busy, type clean):
        self.busy, self.clean = busy, clean
        self.gate, self.emptied = Lock(), Lock()
        self.emptied.acquire()
        self.reading, self.writing = Reading(self, -1), Writing(self)

    def reading_within(self, timeout):
        """Return a context manager like `reading` that waits this many seconds at most; None is without a limit."""
        return self.reading if timeout is None else Reading(self, max(0.0, timeout))

    cdef int enter(self, double timeout) except -1:
        if self.is_shut:
            self.wait(timeout)
            self.readers += 1
            self.gate.release()
        else:
            self.readers += 1
        if self.is_torn:
            self.leave()
            self.refuse_torn()

    cdef int wait(self, double timeout) except -1:
        """Acquire the gate in time; a negative timeout is none."""
        if not self.gate.acquire(timeout != 0, timeout if timeout > 0 else -1):
            raise self.busy("the engine is being changed; ask again in a moment")

    cdef int leave(self) except -1:
        self.readers -= 1
        if self.readers == 0 and self.is_shut and self.emptied.locked():
            self.emptied.release()

    cdef int shut(self) except -1:
        self.gate.acquire()
        self.is_shut = True
        try:
            while self.readers:
                self.emptied.acquire()
        except BaseException:
            self.open()
            raise
        if self.is_torn:
            self.open()
            self.refuse_torn()

    cdef int open(self) except -1:
        self.is_shut = False
        self.gate.release()

    cdef int refuse_torn(self) except -1:
        raise self.busy("a change was interrupted, and is being completed or undone; ask again in a moment")


@cython.final
cdef class Reading:
    cdef ReadWriteLock lock
    cdef double timeout

    def __cinit__(self, ReadWriteLock lock, double timeout):
        self.lock, self.timeout = lock, timeout

    def __enter__(self):
        self.lock.enter(self.timeout)

    def __exit__(self, kind, error, traceback):
        self.lock.leave()


@cython.final
cdef class Writing:
    cdef ReadWriteLock lock

    def __cinit__(self, ReadWriteLock lock):
        self.lock = lock

    def __enter__(self):
        self.lock.shut()

    def __exit__(self, kind, error, traceback):
        self.lock.is_torn |= tears(kind, self.lock.clean)
        self.lock.open()


@cython.final
cdef class RecoveringLock:
    """A lock of data that is recovered before its next use if an interrupt has torn it.

    `with lock.after(recover):` acquires it and calls `recover` if need be. If that is interrupted in turn, the data
    stays torn, so `recover` must be fit to run again.
    """

    cdef readonly bint is_torn
    cdef object lock, clean

    def __init__(self, type clean):
        self.lock, self.clean = Lock(), clean

    def after(self, recover):
        """Return a context manager that holds the lock. It is made for one use, so the lock keeps no caller alive."""
        return Held(self, recover)


@cython.final
cdef class Held:
    cdef RecoveringLock lock
    cdef object recover

    def __cinit__(self, RecoveringLock lock, recover):
        self.lock, self.recover = lock, recover

    def __enter__(self):
        cdef RecoveringLock lock = self.lock
        lock.lock.acquire()
        if lock.is_torn:
            try:
                self.recover()
                lock.is_torn = False
            except BaseException:
                lock.lock.release()
                raise

    def __exit__(self, kind, error, traceback):
        self.lock.is_torn |= tears(kind, self.lock.clean)
        self.lock.lock.release()


@cython.final
cdef class TryLock:
    """A lock without waiting: `with lock:` raises `busy(message)` if another caller holds it."""

    cdef readonly bint is_held
    cdef object busy, message

    def __init__(self, type busy, str message):
        self.busy, self.message = busy, message

    def __enter__(self):
        if self.is_held:
            raise self.busy(self.message)
        self.is_held = True

    def __exit__(self, kind, error, traceback):
        self.is_held = False
