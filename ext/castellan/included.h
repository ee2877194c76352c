/*
 * Collects the records that a record links to, each once. Records of one type are a family across nodes.
 */
#ifndef CASTELLAN_INCLUDED_H
#define CASTELLAN_INCLUDED_H

#include "object.h"

static size_t encoder_family_size(const struct encoder *encoder, long family)
{
    size_t size = 0;
    for (long i = 0; i < encoder->template->node_count; i++) {
        if (encoder->template->nodes[i].family == family) size += (size_t)encoder->sections[i].source.size;
    }
    return size;
}

/* The number of a record in its family: the same for the same (type, id), whichever node holds it. */
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

/* Whether it was known in this round; from now on it is. */
static bool encoder_known(struct encoder *encoder, struct section *section, long row)
{
    struct section *family = &encoder->sections[section->parts->family];
    int32_t ordinal = section_ordinal(encoder, section, row);
    if (!family->known) family->known = arena_allocate(&encoder->arena, encoder_family_size(encoder, section->parts->family), sizeof(uint32_t));
    if (family->known[ordinal] == encoder->round) return true;
    family->known[ordinal] = encoder->round;
    return false;
}

static VALUE encoder_take(struct encoder *encoder)
{
    VALUE string = rb_utf8_str_new(encoder->buffer.bytes ? encoder->buffer.bytes : "", (long)encoder->buffer.length);
    encoder->buffer.length = 0;
    return string;
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

static void encoder_walk(struct encoder *encoder, struct section *section, long row);

/* @return whether the row was new, so that something was written */
static inline bool encoder_reach(struct encoder *encoder, struct section *related, long row)
{
    if (row < 0 || related->walked[row] == encoder->round) return false;
    related->walked[row] = encoder->round;
    encoder_walk(encoder, related, row);
    if (!encoder_known(encoder, related, row)) encoder_include(encoder, related, row);
    return true;
}

/* A relationship to several types: each target says which node it is in. */
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

static void encoder_walk(struct encoder *encoder, struct section *section, long row)
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

#endif
