/*
 * Allocates the zeroed memory of one encoding and frees it at once, also after an error.
 */
#ifndef CASTELLAN_ARENA_H
#define CASTELLAN_ARENA_H

#include <ruby.h>
#include <stdint.h>
#include <stdlib.h>

struct arena_block {
    struct arena_block *next;
    int64_t bytes[]; /* what is kept here needs no stricter alignment */
};

struct arena {
    struct arena_block *blocks;
};

/* @raise NoMemoryError */
static void *arena_allocate(struct arena *arena, size_t count, size_t size)
{
    struct arena_block *block = NULL;
    if (count <= (SIZE_MAX - sizeof(*block)) / size) block = calloc(1, sizeof(*block) + count * size);
    if (!block) rb_memerror();
    block->next = arena->blocks;
    arena->blocks = block;
    return block->bytes;
}

static void arena_free(struct arena *arena)
{
    while (arena->blocks) {
        struct arena_block *block = arena->blocks;
        arena->blocks = block->next;
        free(block);
    }
}

#endif
