// Blocks of memory that a thread keeps. SQLite asks for one for each text or blob of a row that is read and for
// each row that is written, and gives it back with the statement: 18 to 32 a push. libnghttp2 asks for a dozen
// for each request. Each thread keeps a few of these by size for the next. Threads share no list, so there is
// no lock; a block may be given back on another thread than it was taken on, which keeps it then.
#include "CBlocks.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEALBELL_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SEALBELL_SANITIZED 1
#endif
#endif

// Sizes in bytes. Blocks of up to LISTED are kept, each size (a multiple of STEP) in its own list of at most
// KEPT bytes: 256 KiB a thread at the very most.
enum { STEP = 64, LISTED = 2048, LISTS = LISTED / STEP, KEPT = 8192 };

// Stands before each block, which is aligned as malloc aligns.
typedef struct head {
    // Of the block without its head; a multiple of STEP.
    size_t size;
    // While the block is in a list. Here and not in the block, which is all zeros then.
    struct head *next;
} head;
_Static_assert(sizeof(head) % 16 == 0 || sizeof(void *) < 8, "blocks are aligned as malloc aligns");

typedef struct {
    head *first;
    size_t bytes;
} list;

typedef struct {
    // By size: 64 bytes, 128 bytes, and so on.
    list lists[LISTS];
    // Whether the thread's end gives them back.
    int ends;
} kept;

static __thread kept mine;
static pthread_key_t end_of_thread;
static pthread_once_t once = PTHREAD_ONCE_INIT;
// Without it nothing is kept: a thread that ends would leave its blocks behind.
static int has_end = 0;

static void *block(head *of) { return of + 1; }
static head *before(void *block) { return (head *)block - 1; }

// More than anybody can be given, and no multiple: the heap says so then.
static const size_t MOST = SIZE_MAX / 2;

size_t sealbell_blocks_rounded(size_t bytes) {
    return bytes > MOST ? bytes : (bytes + STEP - 1) / STEP * STEP;
}

// A block of that size out of the thread's list, all zeros; NULL: there is none.
static head *find(size_t size) {
    if (size > LISTED) return NULL;
    list *of_size = &mine.lists[size / STEP - 1];
    head *found = of_size->first;
    if (found == NULL) return NULL;
    of_size->first = found->next;
    of_size->bytes -= size;
    found->next = NULL;
    return found;
}

// - Parameter isZeroed: of a block that comes from the heap. Those that were kept are zeros anyhow.
static inline void *take(size_t bytes, int is_zeroed) {
    if (bytes == 0 || bytes > MOST) return NULL;
    size_t size = sealbell_blocks_rounded(bytes);
    head *found = find(size);
    if (found != NULL) return block(found);
    head *made = is_zeroed ? calloc(1, sizeof(head) + size) : malloc(sizeof(head) + size);
    if (made == NULL) return NULL;
    made->size = size;
    made->next = NULL;
    return block(made);
}

void *sealbell_blocks_take(size_t bytes) { return take(bytes, 0); }

#ifndef SEALBELL_SANITIZED
// Whether this thread's lists are given back when it ends.
static int is_known(kept *own) {
    if (!own->ends && has_end) own->ends = pthread_setspecific(end_of_thread, own) == 0;
    return own->ends;
}
#endif

void sealbell_blocks_give(void *given) {
    if (given == NULL) return;
    head *it = before(given);
#ifndef SEALBELL_SANITIZED
    size_t size = it->size;
    if (size <= LISTED) {
        kept *own = &mine;
        list *of_size = &own->lists[size / STEP - 1];
        if (of_size->bytes + size <= KEPT && is_known(own)) {
            memset(given, 0, size);
            __asm__ __volatile__("" : : "r"(given) : "memory");
            it->next = of_size->first;
            of_size->first = it;
            of_size->bytes += size;
            return;
        }
    }
#endif
    // The heap wipes it (CWiping), as it wipes every block.
    free(it);
}

size_t sealbell_blocks_size(void *of) { return of == NULL ? 0 : before(of)->size; }

// A block that grows is another one afterwards, so that the first can be wiped. What is left over at the end
// of one that shrinks is wiped with it.
void *sealbell_blocks_change(void *given, size_t bytes) {
    if (given == NULL) return sealbell_blocks_take(bytes);
    size_t had = before(given)->size;
    if (bytes > 0 && bytes <= had && bytes >= had / 2) return given;
    void *other = sealbell_blocks_take(bytes);
    // Whoever asks keeps the first one then.
    if (other == NULL) return NULL;
    memcpy(other, given, bytes < had ? bytes : had);
    sealbell_blocks_give(given);
    return other;
}

// A block of no bytes is one all the same.
static size_t at_least_one(size_t bytes) { return bytes == 0 ? 1 : bytes; }

void *sealbell_blocks_malloc(size_t bytes, void *unused) {
    (void)unused;
    return take(at_least_one(bytes), 0);
}

void sealbell_blocks_free(void *given, void *unused) {
    (void)unused;
    sealbell_blocks_give(given);
}

void *sealbell_blocks_calloc(size_t count, size_t bytes, void *unused) {
    (void)unused;
    if (bytes != 0 && count > MOST / bytes) return NULL;
    return take(at_least_one(count * bytes), 1);
}

void *sealbell_blocks_realloc(void *given, size_t bytes, void *unused) {
    (void)unused;
    return sealbell_blocks_change(given, at_least_one(bytes));
}

// What the thread's other ends still give back begins the lists anew, and the system asks for this once more.
static void empty(void *of_thread) {
    kept *all = of_thread;
    all->ends = 0;
    for (size_t index = 0; index < LISTS; index++) {
        head *next = all->lists[index].first;
        all->lists[index] = (list){NULL, 0};
        while (next != NULL) {
            head *it = next;
            next = it->next;
            free(it);
        }
    }
}

static void begin_once(void) { has_end = pthread_key_create(&end_of_thread, empty) == 0; }

int sealbell_blocks_begin(void) { return pthread_once(&once, begin_once) == 0 && has_end; }

int sealbell_blocks_are_kept(void) {
#ifdef SEALBELL_SANITIZED
    return 0;
#else
    return has_end;
#endif
}
