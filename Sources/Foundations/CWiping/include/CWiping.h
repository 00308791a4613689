#ifndef SEALBELL_WIPING_H
#define SEALBELL_WIPING_H

#include <stddef.h>

/// Makes the process one that no debugger and no other process of the same user may read, and that leaves no
/// core image.
///
/// Returns 0, or -1 where the system has no such switch.
int sealbell_forbid_reading(void);

/// Wipes the calling thread's stack below its caller, 128 KiB of it, after a call that left secrets there.
void sealbell_wipe_stack(void);

/// The same, but 32 KiB, in a third of a microsecond: for after each job of a pool of threads. A key was found six
/// KiB deep there.
void sealbell_wipe_stack_of_job(void);

/// 1 when the heap of this program wipes what is given back to it; 0 where it cannot.
int sealbell_heap_wipes(void);

/// 1 when another allocator than the C library's was preloaded into this process. Its blocks are passed on as
/// they are, so nothing of the heap is wiped.
int sealbell_heap_is_foreign(void);

/// Makes blocks of 256 KiB and more mappings of their own, now and later, so that the system has them back
/// as soon as they are given back, and arenas no more than processors. Called once, at the start.
void sealbell_heap_bound(void);

/// Gives the system back what lies free in the heap, page by page. Holds each arena up for some milliseconds.
void sealbell_heap_trim(void);

/// Takes the read-only pages of the program and its libraries out of this process's memory, those that only
/// the start has needed among them. Linux alone.
///
/// What is needed again comes back with the next look at it, some pages at a time, from the system's cache of
/// files. That cache is not emptied by this: the pages are the system's to keep or to drop, and a machine
/// gains free memory only where it drops them, which is easier for it when nobody maps them. So what is
/// smaller at once is the resident set; a control group's limit counts the cache as before.
///
/// Nothing that was written is touched: only segments that cannot be written to, of objects whose loader has
/// written nothing into them.
///
/// - Returns: the bytes of those segments, mapped before or not; 0 where nothing was done.
size_t sealbell_unmap_start(void);

#endif
