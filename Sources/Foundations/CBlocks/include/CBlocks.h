#ifndef SEALBELL_CBLOCKS_H
#define SEALBELL_CBLOCKS_H

#include <stddef.h>

/// Blocks for libraries that ask for some of the same sizes with each push and give them back with it: each
/// thread keeps a few of what was given back to it, by size, for the next (blocks.c).
///
/// Asked once before the others, which otherwise keep nothing. 0: nothing will be kept.
int sealbell_blocks_begin(void);

/// A block of that many bytes or a few more; NULL when memory is short, and for none.
void *sealbell_blocks_take(size_t bytes);

/// Takes a block back, which is wiped whole.
void sealbell_blocks_give(void *block);

/// The block with another size: the same one, or another that begins with the same bytes, and then the first
/// is taken back. NULL when memory is short, and the block stays as it is.
void *sealbell_blocks_change(void *block, size_t bytes);

/// Bytes that a block has room for.
size_t sealbell_blocks_size(void *block);

/// Bytes that a block has room for of which so many are asked.
size_t sealbell_blocks_rounded(size_t bytes);

// The same in the form in which libnghttp2 asks (`nghttp2_mem`), which takes NULL for a want of memory.
void *sealbell_blocks_malloc(size_t bytes, void *unused);
void sealbell_blocks_free(void *block, void *unused);
void *sealbell_blocks_calloc(size_t count, size_t bytes, void *unused);
void *sealbell_blocks_realloc(void *block, size_t bytes, void *unused);

/// 1 when blocks are kept; 0 before the beginning, and where a sanitizer watches over all blocks instead.
int sealbell_blocks_are_kept(void);

#endif
