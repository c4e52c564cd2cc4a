/* Software prefetch. */

#ifndef UNBASKET_PREFETCH
#define UNBASKET_PREFETCH

#include <stddef.h>

/* Prefetch the start of an array; the hardware prefetcher fetches the rest. A macro, since compilers drop calls of a
   function that only prefetches. */
#define prefetch(memory, bytes)                                         \
    do {                                                                \
        const char *at_ = (const char *)(memory);                       \
        for (size_t i_ = 0; i_ < (size_t)(bytes) && i_ < 1024; i_ += 64) \
            __builtin_prefetch(at_ + i_);                               \
    } while (0)

#endif
