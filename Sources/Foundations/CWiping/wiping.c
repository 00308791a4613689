// The program's heap, with one addition: memory that is given back is wiped first, whoever gives it back.
//
// Tokens and payloads of our own live in owned buffers that are wiped. But on their way they pass through
// strings, arrays and buffers of libraries (NIO, BoringSSL, libnghttp2, SQLite), which give their memory back
// as it is, and there it stays until somebody is given the same block. These definitions take the place of
// the C library's for the whole process, libraries included, since the program's own come first when
// symbols are bound. The allocator itself remains the C library's. Where another one was preloaded into the
// process, its blocks are not the C library's to free or to measure: then these definitions pass every call on
// to it and wipe nothing.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "CWiping.h"

#if defined(__linux__)
#include <sys/prctl.h>
#endif
#include <stddef.h>
#include <string.h>

int sealbell_forbid_reading(void) {
#if defined(__linux__)
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#else
    return -1;
#endif
}

// A plain memset that the compiler may not take for a dead store.
static void wipe(void *block, size_t size) {
    memset(block, 0, size);
    __asm__ __volatile__("" : : "r"(block) : "memory");
}

__attribute__((noinline)) void sealbell_wipe_stack(void) {
    // As deep as the C library's resolver goes, several times over.
    char room[128 * 1024];
    wipe(room, sizeof room);
}

__attribute__((noinline)) void sealbell_wipe_stack_of_job(void) {
    char room[32 * 1024];
    wipe(room, sizeof room);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SEALBELL_SANITIZED 1
#endif
#endif

#include <stdlib.h>

#if defined(__GLIBC__) && !defined(SEALBELL_SANITIZED)
#include <dlfcn.h>
#include <malloc.h>
#include <unistd.h>

// glibc exports its own under these names for whoever replaces the public ones.
extern void __libc_free(void *block);
extern void *__libc_malloc(size_t size);

// Whose blocks the heap holds. Looked at with the first block that is given back, which is before the program
// begins and while it has one thread.
enum { UNSEEN, LOOKING, OURS, FOREIGN };
static int heap = UNSEEN;
// The other allocator's.
static void (*foreign_free)(void *block);
static void *(*foreign_realloc)(void *block, size_t size);

// The C library's first version on this machine: its own debugging heap, which can be preloaded too, has its
// symbols under that alone. Other allocators' have no version.
#if defined(__x86_64__)
#define FIRST_VERSION "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define FIRST_VERSION "GLIBC_2.17"
#endif

// The symbol behind this program's own, as other libraries find it.
static void *next(const char *name, int versioned) {
#if defined(FIRST_VERSION)
    if (versioned) return dlvsym(RTLD_NEXT, name, FIRST_VERSION);
#endif
    return versioned ? NULL : dlsym(RTLD_NEXT, name);
}

// Whether both symbols lie in one object.
static int are_together(void *one, void *other) {
    Dl_info of_one, of_other;
    return one != NULL && other != NULL && dladdr(one, &of_one) != 0 && dladdr(other, &of_other) != 0
        && of_one.dli_fbase == of_other.dli_fbase;
}

// The dynamic linker is asked what stands behind this program, for the names alone say nothing: an allocator may
// bring the C library's inner ones too, and a program's own reference to a function may lead to a jump of its own.
static __attribute__((noinline, cold)) int look(void) {
    __atomic_store_n(&heap, LOOKING, __ATOMIC_RELAXED);
    int found = OURS;
    // Of the C library alone.
    void *library = next("gnu_get_libc_version", 0);
    for (int versioned = 0; versioned < 2 && found == OURS; versioned++) {
        void *allocate = next("malloc", versioned);
        void *its_free = next("free", versioned), *its_realloc = next("realloc", versioned);
        if (allocate == NULL || its_free == NULL || its_realloc == NULL) continue;
        if (are_together(allocate, library)) continue;
        memcpy(&foreign_free, &its_free, sizeof its_free);
        memcpy(&foreign_realloc, &its_realloc, sizeof its_realloc);
        found = FOREIGN;
    }
    __atomic_store_n(&heap, found, __ATOMIC_RELEASE);
    return found;
}

static inline int whose(void) {
    int known = __atomic_load_n(&heap, __ATOMIC_ACQUIRE);
    return __builtin_expect(known == UNSEEN, 0) ? look() : known;
}

int sealbell_heap_wipes(void) { return whose() == OURS; }
int sealbell_heap_is_foreign(void) { return whose() == FOREIGN; }

// Every block of that size that is given back raises the size from which a block is a mapping of its own, up
// to 32 MiB, unless that is set. Later ones then come out of arenas, which give the system back nothing but
// their end: after a few large bodies the memory of all that are held at one time stays for good.
// So small that tables which grow by doubling leave no holes of hundreds of KiB behind, and larger than what any
// push or batch asks for: at full load no mapping is made.
void sealbell_heap_bound(void) {
    if (whose() != OURS) return;
    mallopt(M_MMAP_THRESHOLD, 256 << 10);
    mallopt(M_TRIM_THRESHOLD, 8 << 20);
    // glibc would make eight for each processor, and what one keeps free is of no use to the others' threads. Threads
    // wait for each other there when their own lists are full: the unit lets these be longer (decision 0054).
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    mallopt(M_ARENA_MAX, processors < 2 ? 2 : processors > 64 ? 64 : (int)processors);
}

void sealbell_heap_trim(void) {
    if (whose() == OURS) malloc_trim(0);
}

typedef long long pair __attribute__((vector_size(16), may_alias));

// Most blocks are small and there are some hundred of them for each push: two calls into the library for each
// (for its size, for clearing it) took a twentieth of the relay's time. glibc keeps a block's size in the word
// before it, the low three bits aside, of which the second says that the block is a mapping of its own; blocks
// are aligned to 16 bytes and hold a multiple of 16 and 8 more.
static inline void wipe_block(void *block) {
    size_t head = ((const size_t *)block)[-1];
    size_t size = head & ~(size_t)7;
    if (size > 1024 || (head & 2) != 0) {
        wipe(block, malloc_usable_size(block));
        return;
    }
    size -= sizeof(size_t);
    char *at = block, *end = at + (size & ~(size_t)15);
    for (; at < end; at += 16) *(pair *)at = (pair){0, 0};
    if (size & 8) memset(at, 0, 8);
    __asm__ __volatile__("" : : "r"(block) : "memory");
}

// The program's own calls, when the heap is another allocator's. What the dynamic linker gives back while it is
// asked about the heap is nobody's for the moment and stays: a few bytes, once.
static __attribute__((noinline, cold)) void free_elsewhere(int known, void *block) {
    if (known == FOREIGN) foreign_free(block);
}

void free(void *block) {
    if (block == NULL) return;
    int known = whose();
    if (__builtin_expect(known != OURS, 0)) {
        free_elsewhere(known, block);
        return;
    }
    wipe_block(block);
    __libc_free(block);
}

// Whoever grows a block gets another one, so that the first can be wiped.
void *realloc(void *block, size_t size) {
    int known = whose();
    if (__builtin_expect(known == FOREIGN, 0)) return foreign_realloc(block, size);
    if (block == NULL) return malloc(size);
    if (size == 0) {
        free(block);
        return NULL;
    }
    size_t held = malloc_usable_size(block);
    // What is left over at the end of a block is wiped with the block.
    if (size <= held && size >= held / 2) return block;
    void *other = malloc(size);
    if (other == NULL) return NULL;
    memcpy(other, block, size < held ? size : held);
    wipe(block, held);
    __libc_free(block);
    return other;
}
#else
int sealbell_heap_wipes(void) { return 0; }
int sealbell_heap_is_foreign(void) { return 0; }
void sealbell_heap_bound(void) {}
void sealbell_heap_trim(void) {}
#endif
