/* Memory that is zeroed when it is allocated and zeroed before it is freed. */

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

/* Bytes from which an allocation is a mapping of its own: huge pages cause few page faults, and mremap grows it without
   a copy. Linux only; elsewhere growing copies. */
#define LARGE ((size_t)1 << 22)

/* A compiler may drop a memset before a free, but not a call through a volatile pointer. */
static void *(*const volatile set_memory)(void *, int, size_t) = memset;

#ifdef __linux__
/* Advise the kernel to use huge pages; it may ignore that. */
static inline void *in_huge_pages(void *memory, size_t bytes)
{
    if (memory == MAP_FAILED)
        return NULL;
#ifdef MADV_HUGEPAGE
    madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    return memory;
}
#endif

/* Allocate zeroed memory; NULL if there is not enough. */
static inline void *zeroed(size_t count, size_t size)
{
#ifdef __linux__
    if (count >= LARGE / size && count * size >= LARGE && count <= PTRDIFF_MAX / size) {
        void *memory = mmap(NULL, count * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return in_huge_pages(memory, count * size);
    }
#endif
    return calloc(count ? count : 1, size);
}

/* Free memory that is zeroed already. */
static inline void release(void *memory, size_t bytes)
{
#ifdef __linux__
    if (memory && bytes >= LARGE) {
        munmap(memory, bytes);
        return;
    }
#endif
    free(memory);
}

/* Zero memory, then free it. */
static inline void give_back(void *memory, size_t bytes)
{
    if (memory) {
        set_memory(memory, 0, bytes);
        release(memory, bytes);
    }
}

/* Grow an allocation, with zeros behind the old bytes; NULL if there is not enough memory. A copied original is zeroed. */
static inline void *extended(void *old, size_t bytes, size_t new_bytes)
{
    void *memory;
#ifdef __linux__
    if (old && bytes >= LARGE)
        return in_huge_pages(mremap(old, bytes, new_bytes, MREMAP_MAYMOVE), new_bytes);
#endif
    memory = zeroed(new_bytes, 1);
    if (memory && old) {
        memcpy(memory, old, bytes);
        give_back(old, bytes);
    }
    return memory;
}

/* Count the bytes that are not zero. */
static inline size_t nonzero_bytes(const void *memory, size_t bytes)
{
    const unsigned char *at = (const unsigned char *)memory;
    size_t i = 0, count = 0;
    uint64_t word;
    for (; i + sizeof(word) <= bytes; i += sizeof(word)) {
        memcpy(&word, at + i, sizeof(word));
        if (word)
            for (size_t j = i; j < i + sizeof(word); j++)
                count += at[j] != 0;
    }
    for (; i < bytes; i++)
        count += at[i] != 0;
    return count;
}

#endif
