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

void free(void *block) {
    if (block == NULL) return;
    wipe(block, malloc_usable_size(block));
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
#endif
