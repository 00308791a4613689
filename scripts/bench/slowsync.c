/* slowsync.c: a preloaded shim that makes every sync take longer, as on a disk that is slower than this one.
 * SLOWSYNC_MICROSECONDS (5000 by default) are added to each fsync and fdatasync, in the calling thread alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long microseconds = 5000;

__attribute__((constructor)) static void start(void) {
    const char *text = getenv("SLOWSYNC_MICROSECONDS");
    if (text) microseconds = atol(text);
}

static void wait(void) {
    struct timespec span = {microseconds / 1000000, microseconds % 1000000 * 1000};
    nanosleep(&span, NULL);
}

int fsync(int fd) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    wait();
    return real(fd);
}

int fdatasync(int fd) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    wait();
    return real(fd);
}
