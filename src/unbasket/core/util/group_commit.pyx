"""Group commit: callers in many threads share the transaction and the sync of one of them, the leader.

It is compiled for the reason given in `locks`: an interrupt of one caller never leaves the others waiting.
"""

cimport cython

from threading import Lock


@cython.final
cdef class Waiter:
    """A request in the queue. Its caller sleeps on `wake` until it was served or is to lead."""

    cdef object request, wake
    cdef bint leads
    cdef bint has_left  # interrupted

    def __cinit__(self, request):
        self.request, self.wake = request, Lock()
        self.wake.acquire()


@cython.final
cdef class GroupCommit:
    """A queue of requests. While one caller serves, others wait; then one of them serves the whole queue.

    It has no thread of its own, so a single caller pays for no switch of threads.
    """

    cdef list queue
    cdef bint is_serving

    def __cinit__(self):
        self.queue = []

    @property
    def waiting(self):
        """The number of requests in the queue."""
        return len(self.queue)

    def submit(self, request, serve):
        """Return when the request was served, by this caller's `serve` or by another's.

        If the caller is interrupted while waiting, the request may be served or not.
        """
        cdef list alone = [request], none = []
        cdef Waiter waiter = None
        while self.is_serving and waiter is None:
            waiter = Waiter(request)  # an allocation: garbage may be collected, and other threads run
        if not self.is_serving:
            self.is_serving = True
            self.lead(alone, none, serve)
            return
        self.queue.append(waiter)
        try:
            waiter.wake.acquire()
        except BaseException:
            waiter.has_left = True
            if waiter.leads:
                self.choose_leader()
            raise
        if waiter.leads:
            waiters, self.queue = self.queue, []
            self.lead([(<Waiter> each).request for each in waiters], waiters, serve)

    cdef int lead(self, list requests, list waiters, serve) except -1:
        """Serve requests and wake their callers, then let one of those that came meanwhile lead."""
        cdef Waiter waiter
        try:
            serve(requests)
        finally:
            for waiter in waiters:
                if not waiter.leads:
                    waiter.wake.release()
            self.choose_leader()

    cdef int choose_leader(self) except -1:
        cdef Waiter waiter
        for waiter in self.queue:
            if not waiter.has_left:
                waiter.leads = True
                waiter.wake.release()
                return 0
        self.is_serving = False
        self.queue.clear()
