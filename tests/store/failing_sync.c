/* Preloaded into a process, lets one of its syncs fail: `fail_sync(3)` the third from now on. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/types.h>

static int left = 0;

void fail_sync(int number) { left = number; }

int sync_has_failed(void) { return left < 0; }

static int fails(void) {
    if (left <= 0 || --left > 0) return 0;
    left = -1;
    errno = EIO;
    return 1;
}

int fsync(int file) {
    return fails() ? -1 : ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file);
}

int fdatasync(int file) {
    return fails() ? -1 : ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(file);
}

int sync_file_range(int file, off64_t offset, off64_t size, unsigned flags) {
    typedef int (*function)(int, off64_t, off64_t, unsigned);
    return fails() ? -1 : ((function)dlsym(RTLD_NEXT, "sync_file_range"))(file, offset, size, flags);
}
