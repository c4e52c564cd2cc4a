/* Memory that is needed soon. */

#ifndef UNBASKET_PREFETCH
#define UNBASKET_PREFETCH

#include <stddef.h>

/* Ask for the start of what is read next: a processor sees by itself how it goes on. A macro, since a compiler that takes
   a function that does nothing else for one that does nothing leaves it out. */
#define prefetch(memory, bytes)                                         \
    do {                                                                \
        const char *at_ = (const char *)(memory);                       \
        for (size_t i_ = 0; i_ < (size_t)(bytes) && i_ < 1024; i_ += 64) \
            __builtin_prefetch(at_ + i_);                               \
    } while (0)

#endif
