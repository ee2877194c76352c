/*
 * The data of a relationship: type and id of each linked record, or the nested records themselves.
 */
#ifndef CASTELLAN_LINKAGE_H
#define CASTELLAN_LINKAGE_H

#include "links.h"

static void encoder_write(struct encoder *encoder, struct section *section, long row);

/* `link`: the constant bytes before the id, by its type. */
static void encoder_link(struct encoder *encoder, struct section *section, long row, long edge, const struct bytes *link, const struct record_id *id)
{
    const struct edge_parts *parts = &section->parts->edges[edge];
    struct buffer *buffer = &encoder->buffer;
    buffer_append(buffer, link->text, link->length);
    if (!id_append(encoder, id)) {
        VALUE wrong = id_string(id);
        encoder_refuse(encoder, section, 2, edge, section_id_string(encoder, section, row), wrong);
    }
    buffer_append(buffer, parts->link_end.text, parts->link_end.length);
}

/* Where an id that is a number is kept as it is written; NULL where that is too long. */
static struct fragment *encoder_fragment(struct links *links, const struct edge_parts *parts, int64_t integer)
{
    struct fragment *fragment;
    char *at;
    if (parts->link.length + parts->link_end.length + NUMBER_DIGITS + 3 >= sizeof(fragment->bytes)) return NULL;
    if (!links->fragments) links->fragments = arena_allocate(links->arena, FRAGMENTS, sizeof(*fragment));
    fragment = &links->fragments[(uint64_t)integer % FRAGMENTS];
    if (fragment->length && fragment->integer == integer) return fragment;
    at = fragment->bytes;
    *at++ = ',';
    memcpy(at, parts->link.text, parts->link.length);
    at += parts->link.length;
    *at++ = '"';
    at += number_format(at, integer);
    *at++ = '"';
    memcpy(at, parts->link_end.text, parts->link_end.length);
    at += parts->link_end.length;
    fragment->length = (uint8_t)(at - fragment->bytes);
    fragment->integer = integer;
    return fragment;
}

/* A linked record, and the comma before it unless it is the first. Fragments are of one type. */
static void encoder_target(struct encoder *encoder, struct section *section, long row, long edge, const struct link_target *target,
                           const struct bytes *link, bool first)
{
    struct links *links = &section->links[edge];
    struct buffer *buffer = &encoder->buffer;
    struct fragment *fragment = target->pair < 0 && !links->kinds ? encoder_fragment(links, &section->parts->edges[edge], target->integer) : NULL;
    if (fragment) {
        buffer_reserve(buffer, sizeof(fragment->bytes));
        memcpy(buffer_end(buffer), fragment->bytes + first, sizeof(fragment->bytes) - 1); /* of one length, so that it is no call */
        buffer_consumed(buffer, (size_t)fragment->length - first);
    }
    else {
        struct record_id id = { .number = true, .integer = target->integer, .keep = Qnil };
        if (!first) buffer_byte(buffer, ',');
        if (target->pair >= 0) id = links_id(encoder, section, edge, &links->pairs, target->pair, links->related);
        encoder_link(encoder, section, row, edge, link, &id);
        RB_GC_GUARD(id.keep);
    }
}

/* @return whether there was any */
static bool encoder_grouped_links(struct encoder *encoder, struct section *section, long row, long edge)
{
    struct link_range range = links_of(encoder, section, row, edge);
    const struct edge_parts *parts = &section->parts->edges[edge];
    const struct links *links = &section->links[edge];
    bool any = false;
    for (; range.at < range.end; range.at++) {
        const struct link_target *target = &links->targets[range.at];
        if (!encoder->template->nested) {
            encoder_target(encoder, section, row, edge, target, links->kinds ? &parts->kinds[links->kinds[range.at]].link : &parts->link, !any);
        }
        else {
            if (target->row < 0) continue;
            if (any) buffer_byte(&encoder->buffer, ',');
            encoder_write(encoder, &encoder->sections[links_node(section, edge, range.at)], target->row);
        }
        any = true;
    }
    return any;
}

static bool encoder_column_links(struct encoder *encoder, struct section *section, long row, long edge)
{
    const struct edge_parts *parts = &section->parts->edges[edge];
    struct column_walk walk = { .ended = false };
    bool any = false;
    if (parts->child >= 0) section_index(encoder, &encoder->sections[parts->child]); /* while no id is held */
    while (column_next(encoder, section, row, edge, &walk)) {
        long related = -1;
        if (encoder->template->nested) {
            related = parts->child < 0 ? -1 : section_row(encoder, &encoder->sections[parts->child], &walk.id);
            if (related < 0) continue;
        }
        if (encoder->template->nested) {
            if (any) buffer_byte(&encoder->buffer, ',');
            encoder_write(encoder, &encoder->sections[parts->child], related);
            walk.read = false;
        }
        else if (walk.id.number) {
            struct link_target target = { walk.id.integer, -1, -1 };
            encoder_target(encoder, section, row, edge, &target, &parts->link, !any);
        }
        else {
            if (any) buffer_byte(&encoder->buffer, ',');
            encoder_link(encoder, section, row, edge, &parts->link, &walk.id);
        }
        any = true;
        if (!parts->to_many) break;
    }
    RB_GC_GUARD(walk.whole.keep);
    RB_GC_GUARD(walk.id.keep);
    return any;
}

static void encoder_links(struct encoder *encoder, struct section *section, long row, long edge)
{
    const struct edge_parts *parts = &section->parts->edges[edge];
    bool any;
    if (parts->to_many) buffer_byte(&encoder->buffer, '[');
    any = section->links[edge].grouped ? encoder_grouped_links(encoder, section, row, edge) : encoder_column_links(encoder, section, row, edge);
    if (parts->to_many) buffer_byte(&encoder->buffer, ']');
    else if (!any) buffer_literal(&encoder->buffer, "null");
}

static void encoder_edge(struct encoder *encoder, struct section *section, long row, long edge)
{
    const struct bytes *before = &section->parts->edges[edge].before;
    buffer_append(&encoder->buffer, before->text, before->length);
    encoder_links(encoder, section, row, edge);
}

#endif
