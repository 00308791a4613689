// SQLite's settings. Its memory comes from blocks that each thread keeps (CBlocks).
#include "CSQLite.h"

#include <sqlite3.h>

#include "CBlocks.h"

// The library asks for sizes as int, and for none that is negative.
static void *take(int asked) { return asked <= 0 ? NULL : sealbell_blocks_take((size_t)asked); }
static void *change(void *given, int asked) {
    return sealbell_blocks_change(given, asked <= 0 ? 0 : (size_t)asked);
}
static int size_of(void *of) { return (int)sealbell_blocks_size(of); }

static int rounded(int size) {
    // Next to the largest number there is no multiple; SQLite itself asks for less.
    size_t bytes = size < 0 ? 0 : sealbell_blocks_rounded((size_t)size);
    return bytes > 0x7fffffff ? size : (int)bytes;
}

static int begin(void *unused) {
    (void)unused;
    // Without its lists it does as well.
    (void)sealbell_blocks_begin();
    return SQLITE_OK;
}

static void end(void *unused) { (void)unused; }

int sealbell_sqlite_configure(void) {
    int result = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    if (result != SQLITE_OK) return result;
    // The library copies it.
    sqlite3_mem_methods memory = {take, sealbell_blocks_give, change, size_of, rounded, begin, end, NULL};
    return sqlite3_config(SQLITE_CONFIG_MALLOC, &memory);
}

int sealbell_sqlite_keeps_blocks(void) { return sealbell_blocks_are_kept(); }
