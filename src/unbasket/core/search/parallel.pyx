"""Work that other threads help with."""


cdef int together(helpers, list works) except -1:
    """Do the first of these works, and let helpers do the others if they find the time: the first leaves nothing to do.

    Nobody is at work afterwards, whatever happens.
    """
    tasks = [helpers.task(work) for work in works[1:]]  # known here before anybody begins: an interrupt may come then
    try:
        for task in tasks:
            helpers.ask(task)
        works[0]()
    finally:
        call_off(tasks)
    for task in tasks:
        if task.error is not None:
            raise task.error
    return 0


cdef int call_off(list tasks) except -1:
    """Let nobody work on any of these tasks any longer.

    Who works reads the index, which may change as soon as this search has ended. So an interrupt waits for its turn.
    """
    interrupt = None
    for task in tasks:
        is_over = False
        while not is_over:
            try:
                if not task.give_up():
                    task.wait()
                is_over = True
            except BaseException as error:
                interrupt = error
    if interrupt is not None:
        raise interrupt
    return 0
