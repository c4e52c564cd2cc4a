"""Python code for a process that may have no more threads, memory or files, for `python -c`."""

# A thread needs an address space for its stack, and 4 GiB are left for all else.
NO_THREADS = """
import resource, threading
threading.stack_size(2**33)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**32,) * 2)
"""

FEW_FILES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv.pop(1)),) * 2)
"""
