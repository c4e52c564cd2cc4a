/* Memory that is zero when it comes and zero when it goes. */

#ifndef UNBASKET_BUFFERS
#define UNBASKET_BUFFERS

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#ifdef CYTHON_WITHOUT_ASSERTIONS
#define CHECKED 0
#else
#define CHECKED 1
#endif

#define HUGE_FROM ((size_t)1 << 22) /* bytes from which on huge pages are asked for: many fewer page faults */

/* A compiler may leave out a memset before a free; it must not leave out a call through this. */
static void *(*const volatile set_memory)(void *, int, size_t) = memset;

/* Zeroed memory, or NULL if there is none. */
static inline void *zeroed(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (memory && count * size >= HUGE_FROM) {
        uintptr_t page = 4096, begin = ((uintptr_t)memory + page - 1) & ~(page - 1);
        madvise((void *)begin, count * size - (begin - (uintptr_t)memory), MADV_HUGEPAGE); /* advice: it may fail */
    }
#endif
    return memory;
}

/* Wipe memory, then free it. */
static inline void give_back(void *memory, size_t bytes)
{
    if (memory) {
        set_memory(memory, 0, bytes);
        free(memory);
    }
}

#endif
