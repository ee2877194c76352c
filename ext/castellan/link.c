/*
 * Sorts the links of a relationship by their parents' rows, and finds the included records, each once.
 * Links in a column of the parent are read in place. Nodes of one type are a family, which shares its
 * records.
 */
#include "internal.h"

struct record_id links_id(struct encoder *encoder, struct section *section, long edge, const struct source *source, long row, long column)
{
    struct cell cell = source_cell(source, row, column);
    struct record_id id;
    if (id_of_cell(&cell, &id)) return id;
    id_of_string(id_ask_ruby(cell.value, section_type(section), LONG2NUM(edge)), &id);
    encoder_refresh(encoder);
    return id;
}

/* Returns the node of a pair's related record, -1: none. Stores the type if there are several. */
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

/* Reads the pairs; counts[row + 1] is the number of pairs of a parent's row. */
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

/* Does the same for lists, whose ids have been read. */
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

/* Sorts the pairs by their parent's row, with a counting sort that keeps the order within a parent. */
static void links_group(struct encoder *encoder, struct section *section, long edge)
{
    struct links *links = &section->links[edge];
    const struct edge_parts *parts = &section->parts->edges[edge];
    long pairs = links->pairs.size, rows = section->source.size;
    bool several = parts->kind_count > 1 && !links->parents && links->kind >= 0;
    if (links->targets) return;
    section_index(encoder, section); /* index all nodes while no id is in use */
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

struct link_range links_of(struct encoder *encoder, struct section *section, long row, long edge)
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

/* Stores the next id in walk->id, or returns false. */
bool column_next(struct encoder *encoder, struct section *section, long row, long edge, struct column_walk *walk)
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

/* ---- included records ---- */

static size_t encoder_family_size(const struct encoder *encoder, long family)
{
    size_t size = 0;
    for (long i = 0; i < encoder->template->node_count; i++) {
        if (encoder->template->nodes[i].family == family) size += (size_t)encoder->sections[i].source.size;
    }
    return size;
}

/* Returns the number of a record in its family, which is the same for a (type, id) in every node. */
static int32_t section_ordinal(struct encoder *encoder, struct section *section, long row)
{
    struct section *family = &encoder->sections[section->parts->family];
    struct record_id id;
    struct index_entry *entry;
    size_t base = 0;
    if (!section->parts->related) return (int32_t)row;
    if (!section->ordinals) {
        section_read_ids(encoder, section);
        section->ordinals = arena_allocate(&encoder->arena, (size_t)section->source.size, sizeof(int32_t));
        for (long i = 0; i < section->source.size; i++) section->ordinals[i] = -1;
    }
    if (section->ordinals[row] >= 0) return section->ordinals[row];
    if (!family->family.entries) index_allocate(&encoder->arena, &family->family, encoder_family_size(encoder, section->parts->family));
    id = section_id(encoder, section, row);
    entry = index_find(encoder, &family->family, &id);
    if (entry->row < 0) index_fill(entry, &id, encoder_number(encoder, section), row);
    for (long i = section->parts->family; i < entry->node; i++) {
        if (encoder->template->nodes[i].family == section->parts->family) base += (size_t)encoder->sections[i].source.size;
    }
    RB_GC_GUARD(id.keep);
    return section->ordinals[row] = (int32_t)(base + (size_t)entry->row);
}

/* Marks the record as known in this round; returns whether it already was. */
bool encoder_known(struct encoder *encoder, struct section *section, long row)
{
    struct section *family = &encoder->sections[section->parts->family];
    int32_t ordinal = section_ordinal(encoder, section, row);
    if (!family->known) family->known = arena_allocate(&encoder->arena, encoder_family_size(encoder, section->parts->family), sizeof(uint32_t));
    if (family->known[ordinal] == encoder->round) return true;
    family->known[ordinal] = encoder->round;
    return false;
}

static void encoder_include(struct encoder *encoder, struct section *section, long row)
{
    if (encoder->part) {
        rb_ary_push(encoder->included, LONG2NUM(encoder_number(encoder, section)));
        rb_ary_push(encoder->included, section_id_string(encoder, section, row));
        return;
    }
    if (encoder->written++) buffer_byte(&encoder->buffer, ',');
    encoder_write(encoder, section, row);
}

/* @return whether the row was new, so that something was written and Ruby may have been called */
static inline bool encoder_reach(struct encoder *encoder, struct section *related, long row)
{
    if (row < 0 || related->walked[row] == encoder->round) return false;
    related->walked[row] = encoder->round;
    encoder_walk(encoder, related, row);
    if (!encoder_known(encoder, related, row)) encoder_include(encoder, related, row);
    return true;
}

/* Visits a relationship to several types, whose targets have different nodes. */
static void encoder_walk_kinds(struct encoder *encoder, struct section *section, long row, long edge)
{
    struct link_range range = links_of(encoder, section, row, edge);
    for (; range.at < range.end; range.at++) {
        long child = links_node(section, edge, range.at);
        struct section *related;
        if (child < 0) continue;
        related = &encoder->sections[child];
        if (!related->walked) related->walked = arena_allocate(&encoder->arena, (size_t)related->source.size, sizeof(uint32_t));
        encoder_reach(encoder, related, section->links[edge].targets[range.at].row);
    }
}

void encoder_walk(struct encoder *encoder, struct section *section, long row)
{
    for (long edge = 0; edge < section->parts->edge_count; edge++) {
        long child = section->parts->edges[edge].child;
        struct section *related;
        if (!encoder_shown(section->links[edge].shown, row)) continue;
        if (section->parts->edges[edge].kind_count > 1 && section->links[edge].grouped) {
            encoder_walk_kinds(encoder, section, row, edge);
            continue;
        }
        if (child < 0) continue;
        related = &encoder->sections[child];
        if (!related->walked) related->walked = arena_allocate(&encoder->arena, (size_t)related->source.size, sizeof(uint32_t));
        if (section->links[edge].grouped) {
            struct link_range range = links_of(encoder, section, row, edge);
            for (; range.at < range.end; range.at++) encoder_reach(encoder, related, section->links[edge].targets[range.at].row);
        }
        else {
            struct column_walk walk = { .ended = false };
            section_index(encoder, related);
            while (column_next(encoder, section, row, edge, &walk)) {
                if (encoder_reach(encoder, related, section_row(encoder, related, &walk.id))) walk.read = false;
            }
            RB_GC_GUARD(walk.whole.keep);
            RB_GC_GUARD(walk.id.keep);
        }
    }
}
