"""Work for another thread. It is compiled for the reason given in `locks`: an interrupt never leaves a thread at work
unnoticed.
"""

from threading import Lock


cdef class Task:
    """Work that one thread runs, unless it is cancelled first. At the end of a `with` block, no thread runs it."""

    cdef object work  # until it starts or is cancelled: a queued task keeps no data alive
    cdef object ended
    cdef bint has_started
    cdef object answer
    cdef readonly object error

    def __init__(self, work):
        self.work, self.ended = work, Lock()
        self.ended.acquire()

    def run(self):
        """Run the work unless it was started or cancelled, and keep its error for the caller."""
        work, self.work = self.work, None
        if work is None:
            return
        self.has_started = True
        try:
            self.answer = work()
        except BaseException as error:
            self.error = error
        finally:
            self.ended.release()

    def cancel(self):
        """Cancel the task unless a thread has started it.

        Returns whether it was cancelled; safe to call again after an interrupt.
        """
        self.work = None
        return not self.has_started

    def wait(self):
        """Wait for the end of a task that a thread has started; safe to call again after an interrupt."""
        self.ended.acquire()
        self.ended.release()

    def result(self):
        """Return the result or raise the error, once. If no thread has started the work, this thread does it."""
        self.run()
        self.wait()
        error, self.error = self.error, None  # its traceback may reference this task: the cycle would keep both
        if error is not None:
            raise error
        return self.answer

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        interrupt = None
        while not self.cancel():
            try:
                self.wait()
                break
            except BaseException as another:
                interrupt = another
        if interrupt is not None:
            raise interrupt
