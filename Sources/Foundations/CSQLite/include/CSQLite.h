#ifndef SEALBELL_CSQLITE_H
#define SEALBELL_CSQLITE_H

/// Settings of the SQLite library that hold for the whole process, through a call of variable length, which
/// Swift cannot make.
///
/// The library keeps no statistics of its memory from then on, which nobody reads, and behind which a lock
/// stands that each of its allocations takes: 58 of a push's 72 locks. And its blocks come from those that
/// each thread keeps (CBlocks). Only before the library is first used: later it changes nothing.
///
/// - Returns: SQLITE_OK, or SQLITE_MISUSE where the library is in use already.
int sealbell_sqlite_configure(void);

/// 1 when freed blocks of the library are kept in lists; 0 where a sanitizer watches over all blocks instead.
int sealbell_sqlite_keeps_blocks(void);

#endif
