/*
 * The links of one relationship: read once, and sorted by the rows of their parents. Links in a column of the parent
 * are read in place.
 */
#ifndef CASTELLAN_LINKS_H
#define CASTELLAN_LINKS_H

#include "record.h"

static struct record_id links_id(struct encoder *encoder, struct section *section, long edge, const struct source *source, long row, long column)
{
    struct cell cell = source_cell(source, row, column);
    struct record_id id;
    if (id_of_cell(&cell, &id)) return id;
    id_of_string(id_ask_ruby(cell.value, section_type(section), LONG2NUM(edge)), &id);
    encoder_refresh(encoder);
    return id;
}

/* The node that the records of a pair are in, -1 where there is none. Where there are several types, which one is noted. */
static long links_child(struct section *section, long edge, long pair)
{
    const struct edge_parts *parts = &section->parts->edges[edge];
    struct links *links = &section->links[edge];
    struct cell cell;
    long kind;
    if (!links->found_kinds) return parts->child;
    cell = source_cell(&links->pairs, pair, links->kind);
    kind = cell.kind == CELL_VALUE && FIXNUM_P(cell.value) ? FIX2LONG(cell.value) : -1;
    if (kind < 0 || kind >= parts->kind_count) rb_raise(rb_eArgError, "a link to a type that is none of %ld", parts->kind_count);
    links->found_kinds[pair] = (int16_t)kind;
    return parts->kinds[kind].child;
}

/* Reads the pairs; counts[row + 1] is how many a row of the parents has. */
static void links_read_pairs(struct encoder *encoder, struct section *section, long edge, int32_t *counts)
{
    struct links *links = &section->links[edge];
    struct record_id previous = { .number = false };
    long parent = -1;
    for (long pair = 0; pair < links->pairs.size; pair++) {
        long child = links_child(section, edge, pair);
        struct record_id id = links_id(encoder, section, edge, &links->pairs, pair, links->related);
        struct link_target *target = &links->found[pair];
        links->rows[pair] = -1;
        if (index_empty_id(&id)) continue;
        target->integer = id.integer;
        target->pair = id.number ? -1 : (int32_t)pair;
        target->row = child < 0 ? -1 : (int32_t)section_row(encoder, &encoder->sections[child], &id);
        RB_GC_GUARD(id.keep);
        id = links_id(encoder, section, edge, &links->pairs, pair, links->parent);
        if (!id.number || !previous.number || id.integer != previous.integer) {
            parent = index_empty_id(&id) ? -1 : section_row(encoder, section, &id);
        }
        links->rows[pair] = (int32_t)parent;
        if (parent >= 0) counts[parent + 1]++;
        previous = id;
        RB_GC_GUARD(id.keep);
    }
}

/* The same for lists, whose ids have been read. */
static void links_find_lists(struct encoder *encoder, struct section *section, long edge, int32_t *counts)
{
    struct links *links = &section->links[edge];
    long child = section->parts->edges[edge].child, parent = -1;
    struct record_id id = { .number = true, .keep = Qnil };
    for (long pair = 0; pair < links->pairs.size; pair++) {
        if (pair == 0 || links->parents[pair] != links->parents[pair - 1]) {
            id.integer = links->parents[pair];
            parent = section_row(encoder, section, &id);
        }
        links->rows[pair] = (int32_t)parent;
        if (parent < 0) continue;
        counts[parent + 1]++;
        id.integer = links->found[pair].integer;
        links->found[pair].row = child < 0 ? -1 : (int32_t)section_row(encoder, &encoder->sections[child], &id);
    }
}

/* Sorts the pairs by their parent's row, each parent's in their own order: a counting sort. */
static void links_group(struct encoder *encoder, struct section *section, long edge)
{
    struct links *links = &section->links[edge];
    const struct edge_parts *parts = &section->parts->edges[edge];
    long pairs = links->pairs.size, rows = section->source.size;
    bool several = parts->kind_count > 1 && !links->parents && links->kind >= 0;
    if (links->targets) return;
    section_index(encoder, section); /* all of them while no id is held */
    if (parts->child >= 0) section_index(encoder, &encoder->sections[parts->child]);
    for (long kind = 0; several && kind < parts->kind_count; kind++) {
        if (parts->kinds[kind].child >= 0) section_index(encoder, &encoder->sections[parts->kinds[kind].child]);
    }
    if (several) {
        links->found_kinds = arena_allocate(&encoder->arena, (size_t)pairs, sizeof(int16_t));
        links->kinds = arena_allocate(&encoder->arena, (size_t)pairs, sizeof(int16_t));
    }
    links->starts = arena_allocate(&encoder->arena, (size_t)rows + 1, sizeof(int32_t));
    links->rows = arena_allocate(&encoder->arena, (size_t)pairs, sizeof(int32_t));
    if (!links->found) links->found = arena_allocate(&encoder->arena, (size_t)pairs, sizeof(struct link_target));
    if (links->parents) links_find_lists(encoder, section, edge, links->starts);
    else links_read_pairs(encoder, section, edge, links->starts);
    links->targets = arena_allocate(&encoder->arena, (size_t)pairs, sizeof(struct link_target));
    for (long row = 0; row < rows; row++) links->starts[row + 1] += links->starts[row];
    for (long pair = 0; pair < pairs; pair++) {
        int32_t place;
        if (links->rows[pair] < 0) continue;
        place = links->starts[links->rows[pair]]++;
        links->targets[place] = links->found[pair];
        if (several) links->kinds[place] = links->found_kinds[pair];
    }
    for (long row = rows; row > 0; row--) links->starts[row] = links->starts[row - 1];
    links->starts[0] = 0;
}

/* The targets of a row are those from `at` up to `end`. */
struct link_range {
    long at, end;
};

static struct link_range links_of(struct encoder *encoder, struct section *section, long row, long edge)
{
    struct links *links = &section->links[edge];
    struct link_range range;
    if (!links->targets) links_group(encoder, section, edge);
    if (section->first) row = section->first[row];
    range.at = links->starts[row];
    range.end = links->starts[row + 1];
    if (!section->parts->edges[edge].to_many && range.end > range.at) range.end = range.at + 1;
    return range;
}

/* The node that a target's record is in. */
static inline long links_node(const struct section *section, long edge, long at)
{
    const struct edge_parts *parts = &section->parts->edges[edge];
    const int16_t *kinds = section->links[edge].kinds;
    return kinds ? parts->kinds[kinds[at]].child : parts->child;
}

/* Goes through the ids of a column "1,2,3": up to `at` they have been read. Whoever may have called Ruby says that the column has to be
 * read anew. */
struct column_walk {
    size_t at;
    bool ended, read;
    struct record_id whole, id;
};

/* Whether there is one more; it is in walk->id. */
static bool column_next(struct encoder *encoder, struct section *section, long row, long edge, struct column_walk *walk)
{
    struct record_id *whole = &walk->whole;
    if (walk->ended) return false;
    if (!walk->read) *whole = links_id(encoder, section, edge, &section->source, row, section->links[edge].column);
    walk->read = true;
    if (!whole->text || !section->parts->edges[edge].to_many) {
        walk->ended = true;
        walk->id = *whole;
        return !index_empty_id(whole);
    }
    while (walk->at < whole->length) {
        const char *text = whole->text + walk->at;
        const char *comma = memchr(text, ',', whole->length - walk->at);
        struct cell part = { CELL_TEXT, text, comma ? (size_t)(comma - text) : whole->length - walk->at, whole->keep };
        walk->at += part.length + 1;
        if (part.length) return id_of_cell(&part, &walk->id);
    }
    walk->ended = true;
    return false;
}

#endif
