/* swift.c: tells ThreadSanitizer what Swift's own libraries order; preloaded into tests that are built for it.
 *
 * Mutex: on Linux it is a word in memory that the kernel helps with once two threads meet there. Taking and giving it
 * back without company is compiled into the program, where ThreadSanitizer sees it; the rest is in the library
 * Synchronization, which is not compiled for it. Without this, whatever a contended mutex protects is reported as a
 * race.
 *
 * Continuations: the runtime tells ThreadSanitizer of a task that was put to sleep and is woken, but not of one whose
 * continuation was resumed before it came to wait. Without this, whatever was handed over so is reported as a race.
 *
 * Processes without ThreadSanitizer pass through unchanged.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define SWIFT __attribute__((swiftcall))
#define ASYNC __attribute__((swiftasynccall))
#define SELF __attribute__((swift_context))
/* _MutexHandle._lockSlow(_:), ._tryLockSlow() and ._unlockSlow() of Swift 6.3 on Linux. */
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define TRY "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

extern void __tsan_acquire(void *) __attribute__((weak));
extern void __tsan_release(void *) __attribute__((weak));

SWIFT void lock_slow(uint32_t thread, SELF void *mutex) __asm__(LOCK);
SWIFT bool try_lock_slow(SELF void *mutex) __asm__(TRY);
SWIFT void unlock_slow(SELF void *mutex) __asm__(UNLOCK);
SWIFT void *swift_task_getCurrent(void);

static void *library(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    /* Another version of Swift: scripts/sanitize/run has tried it on a small program and told. */
    if (!found) abort();
    return found;
}

SWIFT void lock_slow(uint32_t thread, SELF void *mutex) {
    SWIFT void (*real)(uint32_t, SELF void *) = library(LOCK);
    real(thread, mutex);
    if (__tsan_acquire) __tsan_acquire(mutex);
}

SWIFT bool try_lock_slow(SELF void *mutex) {
    SWIFT bool (*real)(SELF void *) = library(TRY);
    bool taken = real(mutex);
    if (taken && __tsan_acquire) __tsan_acquire(mutex);
    return taken;
}

SWIFT void unlock_slow(SELF void *mutex) {
    SWIFT void (*real)(SELF void *) = library(UNLOCK);
    if (__tsan_release) __tsan_release(mutex);
    real(mutex);
}

/* Whoever resumes a task is ordered before what the task does once it waited. */
SWIFT void swift_continuation_resume(void *task) {
    SWIFT void (*real)(void *) = library("swift_continuation_resume");
    if (__tsan_release) __tsan_release(task);
    real(task);
}

SWIFT void swift_continuation_throwingResume(void *task) {
    SWIFT void (*real)(void *) = library("swift_continuation_throwingResume");
    if (__tsan_release) __tsan_release(task);
    real(task);
}

SWIFT void swift_continuation_throwingResumeWithError(void *task, void *error) {
    SWIFT void (*real)(void *, void *) = library("swift_continuation_throwingResumeWithError");
    if (__tsan_release) __tsan_release(task);
    real(task, error);
}

/* Goes on in the task's code, if it was resumed already: nothing can be told after it. */
ASYNC void swift_continuation_await(void *continuation) {
    typedef ASYNC void wait(void *);
    void *task = swift_task_getCurrent();
    if (__tsan_acquire && task) __tsan_acquire(task);
    wait *real = (wait *)library("swift_continuation_await");
    __attribute__((musttail)) return real(continuation);
}
