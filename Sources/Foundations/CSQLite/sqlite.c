// SQLite's settings, and its memory. The library asks for a block for each text or blob of a row that is read
// and for each row that is written, and gives it back with the statement: 18 to 32 blocks a push. Each thread
// keeps a few of these by size for its next statement. Threads share no list, so there is no lock.
#include "CSQLite.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stddef.h>
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

static int rounded(int size) {
    // Next to the largest number there is no multiple; SQLite itself asks for less.
    return size > 0x7fffffff - STEP ? size : (size + STEP - 1) / STEP * STEP;
}

static void *take(int asked) {
    if (asked <= 0) return NULL;
    size_t size = (size_t)rounded(asked);
    if (size <= LISTED) {
        list *of_size = &mine.lists[size / STEP - 1];
        head *found = of_size->first;
        if (found != NULL) {
            of_size->first = found->next;
            of_size->bytes -= size;
            found->next = NULL;
            return block(found);
        }
    }
    head *made = malloc(sizeof(head) + size);
    if (made == NULL) return NULL;
    made->size = size;
    made->next = NULL;
    return block(made);
}

#ifndef SEALBELL_SANITIZED
// Whether this thread's lists are given back when it ends.
static int is_known(kept *own) {
    if (!own->ends && has_end) own->ends = pthread_setspecific(end_of_thread, own) == 0;
    return own->ends;
}
#endif

static void give(void *given) {
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

static int size_of(void *of) { return of == NULL ? 0 : (int)before(of)->size; }

// A block that grows is another one afterwards, so that the first can be wiped. What is left over at the end
// of one that shrinks is wiped with it.
static void *change(void *given, int asked) {
    if (given == NULL) return take(asked);
    size_t had = before(given)->size;
    if (asked > 0 && (size_t)asked <= had && (size_t)asked >= had / 2) return given;
    void *other = take(asked);
    // The library keeps the first one then.
    if (other == NULL) return NULL;
    memcpy(other, given, (size_t)asked < had ? (size_t)asked : had);
    give(given);
    return other;
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

static int begin(void *unused) {
    (void)unused;
    return pthread_once(&once, begin_once) == 0 ? SQLITE_OK : SQLITE_ERROR;
}

static void end(void *unused) { (void)unused; }

int sealbell_sqlite_configure(void) {
    int result = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    if (result != SQLITE_OK) return result;
    // The library copies it.
    sqlite3_mem_methods memory = {take, give, change, size_of, rounded, begin, end, NULL};
    return sqlite3_config(SQLITE_CONFIG_MALLOC, &memory);
}

int sealbell_sqlite_keeps_blocks(void) {
#ifdef SEALBELL_SANITIZED
    return 0;
#else
    return has_end;
#endif
}
