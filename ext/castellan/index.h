/*
 * Finds the row of an id, by open addressing. Ids compare by their text; an id that is a 64-bit integer compares as a
 * number, without hashing bytes. Dense integers need no search: `near` has a row for each value between the smallest
 * and the largest.
 *
 * Entries name a row of a node; two nodes of one type may share an index. The size is known before and never grows.
 */
#ifndef CASTELLAN_INDEX_H
#define CASTELLAN_INDEX_H

#include "arena.h"
#include "number.h"
#include <ruby.h>

struct record_id {
    bool number;
    int64_t integer;      /* when it is a number */
    const char *text;     /* NULL when the number came from a Ruby Integer */
    size_t length;
    VALUE keep;           /* the string that `text` points into */
};

struct index_entry {
    uint64_t key;  /* the integer, or a hash of the text: Ruby's, seeded, because clients may have chosen the ids */
    int32_t row;   /* -1: free */
    int16_t node;
    bool number;
};

struct index {
    struct index_entry *entries;
    size_t mask;
    int32_t *near;         /* row of least + i, -1: none; instead of entries */
    int64_t least;
    uint64_t near_count;
};

static inline bool index_empty_id(const struct record_id *id)
{
    return !id->number && id->length == 0;
}

static inline uint64_t index_mix(uint64_t key)
{
    key ^= key >> 32;
    key *= 0x9E3779B97F4A7C15ULL;
    return key ^ key >> 29;
}

static inline uint64_t index_key(const struct record_id *id)
{
    return id->number ? (uint64_t)id->integer : (uint64_t)rb_memhash(id->text, (long)id->length);
}

/* @raise NoMemoryError */
static void index_allocate(struct arena *arena, struct index *index, size_t rows)
{
    size_t capacity = 16;
    while (capacity < rows * 2) capacity *= 2;
    index->entries = arena_allocate(arena, capacity, sizeof(*index->entries));
    index->mask = capacity - 1;
    for (size_t i = 0; i < capacity; i++) index->entries[i].row = -1;
}

/* Whether there may be a row for each integer from least to greatest: no more than a few for each that is needed. */
static inline bool index_near_p(int64_t least, int64_t greatest, size_t rows)
{
    return (uint64_t)greatest - (uint64_t)least < rows * 8 + 64;
}

/* @raise NoMemoryError */
static void index_allocate_near(struct arena *arena, struct index *index, int64_t least, int64_t greatest)
{
    index->least = least;
    index->near_count = (uint64_t)greatest - (uint64_t)least + 1;
    index->near = arena_allocate(arena, index->near_count, sizeof(*index->near));
    for (uint64_t i = 0; i < index->near_count; i++) index->near[i] = -1;
}

/* Where the row of this integer stands, NULL beyond the others. */
static inline int32_t *index_near(const struct index *index, int64_t integer)
{
    uint64_t at = (uint64_t)integer - (uint64_t)index->least;
    return at < index->near_count ? &index->near[at] : NULL;
}

#endif
