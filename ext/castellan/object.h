/*
 * One record: id, attributes, relationships, links and meta objects.
 */
#ifndef CASTELLAN_OBJECT_H
#define CASTELLAN_OBJECT_H

#include "linkage.h"
#include "value.h"

static void encoder_id(struct encoder *encoder, struct section *section, long row)
{
    struct record_id id;
    if (encoder->template->nested) {
        struct cell cell = source_cell(&section->source, row, 0);
        if (cell.kind == CELL_NULL || (section->coder_count && section->coders[0] == CODER_INTEGER)) {
            if (!value_append(encoder, CODER_INTEGER, &cell)) {
                encoder_ask_ruby(encoder, section, row, -1, coder_symbols[CODER_INTEGER], source_value(&cell));
            }
            RB_GC_GUARD(cell.value);
            return;
        }
    }
    id = section_id(encoder, section, row);
    if ((index_empty_id(&id) && !encoder->template->nested) || !id_append(encoder, &id)) {
        struct cell cell = source_cell(&section->source, row, 0);
        encoder_refuse(encoder, section, 0, 0, id_string(&id), source_value(&cell));
    }
    RB_GC_GUARD(id.keep);
}


/* Links and meta objects: ready bytes that begin with a comma, and the end of the object that they stand in. */
static void encoder_after(struct encoder *encoder, struct section *section, VALUE after, long row, bool comma)
{
    VALUE text = NIL_P(after) ? Qnil : rb_ary_entry(after, row);
    if (!NIL_P(text)) {
        size_t skipped = 0;
        Check_Type(text, T_STRING);
        if (!comma && RSTRING_LEN(text) && *RSTRING_PTR(text) == ',') skipped = 1;
        if (!source_utf8_p(text) ||
            !escape_append(&encoder->buffer, RSTRING_PTR(text) + skipped, (size_t)RSTRING_LEN(text) - skipped, encoder->template->mode, true)) {
            encoder_refuse(encoder, section, 3, 0, section_id_string(encoder, section, row), text);
        }
    }
    RB_GC_GUARD(text);
    buffer_byte(&encoder->buffer, '}');
}

static bool encoder_shown(VALUE conditions, long row)
{
    return NIL_P(conditions) || RTEST(rb_ary_entry(conditions, row));
}

/* What stands in front of a member of an object: the comma, or what opens the object that groups the members. */
static void encoder_name(struct encoder *encoder, const struct bytes *name, bool first, const char *opening)
{
    struct buffer *buffer = &encoder->buffer;
    if (!first || encoder->template->nested) buffer_byte(buffer, ',');
    else buffer_append(buffer, opening, strlen(opening));
    buffer_append(buffer, name->text, name->length);
}

static void encoder_irregular_edge(struct encoder *encoder, struct section *section, long row, long edge)
{
    const struct edge_parts *parts = &section->parts->edges[edge];
    if (encoder->template->nested) {
        encoder_links(encoder, section, row, edge);
        return;
    }
    buffer_byte(&encoder->buffer, '{');
    if (parts->data) {
        buffer_literal(&encoder->buffer, "\"data\":");
        encoder_links(encoder, section, row, edge);
    }
    encoder_after(encoder, section, section->links[edge].after, row, parts->data);
}

/* A row whose members are not those of all others: see RubyEncoder::Irregular. */
static void encoder_write_irregular(struct encoder *encoder, struct section *section, long row)
{
    const struct node_parts *parts = section->parts;
    bool first = true;
    for (long member = 0; member < parts->member_count; member++) {
        if (!encoder_shown(section->shown[member], row)) continue;
        encoder_name(encoder, &parts->members[member].name, first, ",\"attributes\":{");
        encoder_value(encoder, section, row, member);
        first = false;
    }
    if (!first && !encoder->template->nested) buffer_byte(&encoder->buffer, '}');
    first = true;
    for (long edge = 0; edge < parts->edge_count; edge++) {
        if (!parts->edges[edge].written || !encoder_shown(section->links[edge].shown, row)) continue;
        encoder_name(encoder, &parts->edges[edge].name, first, ",\"relationships\":{");
        encoder_irregular_edge(encoder, section, row, edge);
        first = false;
    }
    if (!first && !encoder->template->nested) buffer_byte(&encoder->buffer, '}');
    encoder_after(encoder, section, section->after, row, true);
}

static void encoder_write(struct encoder *encoder, struct section *section, long row)
{
    const struct node_parts *parts = section->parts;
    buffer_append(&encoder->buffer, parts->open.text, parts->open.length);
    encoder_id(encoder, section, row);
    if (!parts->regular) {
        encoder_write_irregular(encoder, section, row);
        return;
    }
    for (long member = 0; member < parts->member_count; member++) encoder_member(encoder, section, row, member);
    for (long edge = 0; edge < parts->edge_count; edge++) {
        if (parts->edges[edge].written) encoder_edge(encoder, section, row, edge);
    }
    buffer_append(&encoder->buffer, parts->close.text, parts->close.length);
    if (parts->after) encoder_after(encoder, section, section->after, row, true);
}

#endif
