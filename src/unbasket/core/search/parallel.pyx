"""Fork and join: work that several threads share."""


cdef int fork_join(thread_pool, list works) except -1:
    """Run the first of `works` in this thread and offer the others to the pool's threads, then join.

    The works share an atomic counter, so the first leaves nothing to do for tasks that no thread has started: these
    are cancelled. On return no thread runs any of them, even after an error or an interrupt.
    """
    tasks = [thread_pool.task(work) for work in works[1:]]  # known before one starts: an interrupt may come then
    try:
        for task in tasks:
            thread_pool.submit(task)
        works[0]()
    finally:
        join(tasks)
    for task in tasks:
        if task.error is not None:
            raise task.error


cdef int join(list tasks) except -1:
    """Cancel each task or wait for its end.

    A running task reads the index, which may change as soon as the search ends. So an interrupt is raised only after
    all tasks are over.
    """
    interrupt = None
    for task in tasks:
        is_over = False
        while not is_over:
            try:
                if not task.cancel():
                    task.wait()
                is_over = True
            except BaseException as error:
                interrupt = error
    if interrupt is not None:
        raise interrupt
