"""The workspaces of readers, and the threads that share the work of a search.

A search of the only reader is shared by one thread fewer than there are cores, started when first needed.

Why not `concurrent.futures.ThreadPoolExecutor`: a KeyboardInterrupt inside `submit` or `Future.cancel` can leave a
`threading.Condition` locked, and the next search waits forever. Interrupted at random moments, the executor hung
within 400 interrupts in six runs of six, this pool in none of 20,000. A `with` on a plain lock can't be interrupted
in that way. A fork and join of two small tasks takes 9 µs here and 37 µs there.
"""

import os
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread

from unbasket.core.model import FoldWorkspace
from unbasket.core.search import SearchWorkspace
from unbasket.errors import UnbasketError

Work = Callable[[], object]


class Task:
    """Work that one thread of the pool runs, unless it is cancelled first."""

    def __init__(self, work: Work) -> None:
        self._work: Work | None = work  # until it starts or is cancelled: a queued task keeps no data alive
        self._choosing, self._ended = Lock(), Lock()
        self._has_started = False
        self._ended.acquire()
        self.error: BaseException | None = None

    def run(self) -> None:
        """Run the work unless it was cancelled, and keep its error for the caller."""
        with self._choosing:
            work, self._work = self._work, None
            self._has_started = work is not None
        if work is not None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
                self.error = error
            finally:
                self._ended.release()

    def cancel(self) -> bool:
        """Cancel the task unless a thread has started it.

        Returns whether it was cancelled; safe to call again after an interrupt.
        """
        with self._choosing:
            self._work = None
            return not self._has_started

    def wait(self) -> None:
        """Wait for the end of a task that a thread has started; safe to call again after an interrupt."""
        with self._ended:
            pass


class ThreadPool:
    """Daemon threads that run tasks; the process exits without waiting for them.

    `users_per_thread` is the number of users that a thread must scan to be worth waking.
    """

    def __init__(self, size: int, users_per_thread: int = 1 << 17) -> None:
        self.size, self.users_per_thread = size, users_per_thread
        self.reset()

    def reset(self) -> None:
        """Start over without threads: a forked process has none."""
        self._tasks: SimpleQueue[Task] = SimpleQueue()
        self._starting = Lock()
        self._started = 0

    def task(self, work: Work) -> Task:
        """Return a task that no thread knows yet."""
        return Task(work)

    def submit(self, task: Task) -> None:
        """Queue a task; a thread runs it, if there is one, unless it is cancelled first."""
        with self._starting:
            while self._started < self.size and self._start_thread():
                pass
            has_threads = self._started > 0
        if has_threads:
            self._tasks.put(task)

    def _start_thread(self) -> bool:
        """Start a thread; return False if the system allows no more: then the caller of the search works alone."""
        self._started += 1
        try:
            Thread(target=self._run_tasks, name=f"unbasket search {self._started}", daemon=True).start()
        except RuntimeError:
            self._started -= 1
            return False
        return True

    def _run_tasks(self) -> None:
        while True:
            self._tasks.get().run()


THREAD_POOL = ThreadPool((os.cpu_count() or 1) - 1)
os.register_at_fork(after_in_child=THREAD_POOL.reset)


class Workspace:
    """The workspaces of one reader at a time: of a search, and of a fold."""

    def __init__(self, made: "list[Workspace]", free: "list[Workspace]") -> None:
        self.search, self.fold = SearchWorkspace(), FoldWorkspace()
        self._made, self._free = made, free
        made.append(self)

    def __enter__(self) -> "Workspace":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or issubclass(kind, UnbasketError):
            self._free.append(self)
        else:  # an interrupt, for one: its residue would get into the next answer
            self._made.remove(self)


class WorkspacePool:
    """All workspaces, and those that are free. A list's append and pop need no lock."""

    def __init__(self) -> None:
        self._made: list[Workspace] = []
        self._free: list[Workspace] = []

    def take(self) -> Workspace:
        """Return a free workspace. If no other is in use, the thread pool shares its searches."""
        try:
            workspace = self._free.pop()
        except IndexError:
            workspace = Workspace(self._made, self._free)
        workspace.search.thread_pool = THREAD_POOL if len(self._made) - len(self._free) == 1 else None
        return workspace
