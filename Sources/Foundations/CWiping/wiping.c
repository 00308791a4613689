// The program's heap, with one addition: memory that is given back is wiped first, whoever gives it back.
//
// Tokens and payloads of our own live in owned buffers that are wiped. But on their way they pass through
// strings, arrays and buffers of libraries (NIO, BoringSSL, libnghttp2, SQLite), which give their memory back
// as it is, and there it stays until somebody is given the same block. These definitions take the place of
// the C library's for the whole process, libraries included, since the program's own come first when
// symbols are bound. The allocator itself remains the C library's.
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

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SEALBELL_SANITIZED 1
#endif
#endif

#include <stdlib.h>

#if defined(__GLIBC__) && !defined(SEALBELL_SANITIZED)
#include <malloc.h>

// glibc exports its own under these names for whoever replaces the public ones.
extern void __libc_free(void *block);
extern void *__libc_malloc(size_t size);

int sealbell_heap_wipes(void) { return 1; }

// Every block of that size that is given back raises the size from which a block is a mapping of its own, up
// to 32 MiB, unless that is set. Later ones then come out of arenas, which give the system back nothing but
// their end: after a few large bodies the memory of all that are held at one time stays for good.
void sealbell_heap_bound(void) {
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    mallopt(M_TRIM_THRESHOLD, 8 << 20);
}

void sealbell_heap_trim(void) { malloc_trim(0); }

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

void free(void *block) {
    if (block == NULL) return;
    wipe_block(block);
    __libc_free(block);
}

// Whoever grows a block gets another one, so that the first can be wiped.
void *realloc(void *block, size_t size) {
    if (block == NULL) return __libc_malloc(size);
    if (size == 0) {
        free(block);
        return NULL;
    }
    size_t held = malloc_usable_size(block);
    // What is left over at the end of a block is wiped with the block.
    if (size <= held && size >= held / 2) return block;
    void *other = __libc_malloc(size);
    if (other == NULL) return NULL;
    memcpy(other, block, size < held ? size : held);
    wipe(block, held);
    __libc_free(block);
    return other;
}
#else
int sealbell_heap_wipes(void) { return 0; }
void sealbell_heap_bound(void) {}
void sealbell_heap_trim(void) {}
#endif
