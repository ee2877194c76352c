/*
 * The id of a row, and the row of an id. Ids that only Ruby can read are requested once, all together.
 */
#ifndef CASTELLAN_RECORD_H
#define CASTELLAN_RECORD_H

#include "ruby_side.h"

/* Whether the id can be read without calling Ruby. */
static inline bool id_of_cell(const struct cell *cell, struct record_id *id)
{
    memset(id, 0, sizeof(*id));
    id->keep = cell->value;
    if (cell->kind == CELL_TEXT) {
        id->text = cell->text;
        id->length = cell->length;
        id->number = number_parse(id->text, id->length, &id->integer);
        return true;
    }
    if (cell->kind == CELL_NULL) return true;
    if (!FIXNUM_P(cell->value)) return false;
    id->integer = FIX2LONG(cell->value);
    id->number = id->integer > NUMBER_PARSED_FROM && id->integer < NUMBER_PARSED_TO;
    return id->number;
}

static void id_of_string(VALUE string, struct record_id *id)
{
    struct cell cell = { CELL_TEXT, RSTRING_PTR(string), (size_t)RSTRING_LEN(string), string };
    id_of_cell(&cell, id);
}

static VALUE id_ask_ruby(VALUE value, VALUE type, VALUE member)
{
    VALUE string = rb_funcall(ruby_side(), id_id_text, 3, value, type, member);
    Check_Type(string, T_STRING);
    return string;
}

static VALUE section_type(const struct section *section)
{
    return rb_utf8_str_new(section->parts->type.text, (long)section->parts->type.length);
}

static struct record_id section_id(struct encoder *encoder, struct section *section, long row)
{
    struct record_id id;
    struct cell cell;
    if (section->numbers) {
        memset(&id, 0, sizeof(id));
        id.number = true;
        id.integer = section->numbers[row];
        id.keep = Qnil;
        return id;
    }
    if (!NIL_P(section->texts)) {
        id_of_string(rb_ary_entry(section->texts, row), &id);
        return id;
    }
    cell = source_cell(&section->source, row, 0);
    if (id_of_cell(&cell, &id)) return id;
    id_of_string(id_ask_ruby(cell.value, section_type(section), Qnil), &id);
    encoder_refresh(encoder);
    return id;
}

static VALUE id_string(const struct record_id *id)
{
    char digits[NUMBER_DIGITS];
    if (id->text || !id->number) return rb_utf8_str_new(id->text ? id->text : "", (long)id->length);
    return rb_utf8_str_new(digits, (long)number_format(digits, id->integer));
}

static bool id_append(struct encoder *encoder, const struct record_id *id)
{
    struct buffer *buffer = &encoder->buffer;
    if (!id->number) return escape_string(buffer, id->text ? id->text : "", id->length, encoder->template->mode);
    buffer_reserve(buffer, NUMBER_DIGITS + 2);
    *buffer_end(buffer) = '"';
    buffer_consumed(buffer, 1);
    buffer_consumed(buffer, number_format(buffer_end(buffer), id->integer));
    *buffer_end(buffer) = '"';
    buffer_consumed(buffer, 1);
    return true;
}

static VALUE section_id_string(struct encoder *encoder, struct section *section, long row)
{
    struct record_id id = section_id(encoder, section, row);
    VALUE string = id_string(&id);
    RB_GC_GUARD(id.keep);
    return string;
}

/* Whether all ids can be read without asking Ruby; those that are numbers are kept. */
static bool section_read_numbers(struct section *section)
{
    long row;
    int64_t *numbers = section->numbers = arena_allocate(section->arena, (size_t)section->source.size, sizeof(int64_t));
    bool all = true, known = true;
    for (row = 0; row < section->source.size && known; row++) {
        struct cell cell = source_cell(&section->source, row, 0);
        struct record_id id;
        known = id_of_cell(&cell, &id);
        all = all && known && id.number;
        numbers[row] = id.integer;
    }
    if (!all) section->numbers = NULL;
    return known;
}

/* A section whose ids Ruby has to read gets them all at once, so that comparing ids never calls Ruby. */
static void section_read_ids(struct encoder *encoder, struct section *section)
{
    VALUE texts;
    if (section->read) return;
    section->read = true;
    if (section_read_numbers(section)) return;
    texts = rb_ary_new_capa(section->source.size);
    for (long row = 0; row < section->source.size; row++) {
        struct record_id id = section_id(encoder, section, row);
        rb_ary_push(texts, id_string(&id));
        RB_GC_GUARD(id.keep);
    }
    section->texts = texts;
    encoder_refresh(encoder);
}

static bool id_equal(struct encoder *encoder, struct section *section, long row, const struct record_id *id)
{
    struct record_id other = section_id(encoder, section, row);
    return !other.number && other.length == id->length && (id->length == 0 || memcmp(other.text, id->text, id->length) == 0);
}

/* The entry of the id, or the free one where it belongs. */
static struct index_entry *index_find(struct encoder *encoder, const struct index *index, const struct record_id *id)
{
    uint64_t key = index_key(id);
    size_t at = index_mix(key) & index->mask;
    for (;; at = (at + 1) & index->mask) {
        struct index_entry *entry = &index->entries[at];
        if (entry->row < 0) return entry;
        if (entry->key != key || entry->number != id->number) continue;
        if (id->number || id_equal(encoder, &encoder->sections[entry->node], entry->row, id)) return entry;
    }
}

static void index_fill(struct index_entry *entry, const struct record_id *id, long node, long row)
{
    entry->key = index_key(id);
    entry->number = id->number;
    entry->node = (int16_t)node;
    entry->row = (int32_t)row;
}

/* The id of this row is that of an earlier one. */
static void section_again(struct section *section, long row, int32_t first)
{
    if (!section->first) {
        section->first = arena_allocate(section->arena, (size_t)section->source.size, sizeof(int32_t));
        for (long i = 0; i < section->source.size; i++) section->first[i] = (int32_t)i;
    }
    section->first[row] = first;
}

/* Whether the ids are numbers that lie close together; then they have their places. */
static bool section_index_near(struct section *section)
{
    long size = section->source.size;
    int64_t least = INT64_MAX, greatest = INT64_MIN;
    if (!section->numbers || size == 0) return false;
    for (long row = 0; row < size; row++) {
        if (section->numbers[row] < least) least = section->numbers[row];
        if (section->numbers[row] > greatest) greatest = section->numbers[row];
    }
    if (!index_near_p(least, greatest, (size_t)size)) return false;
    index_allocate_near(section->arena, &section->index, least, greatest);
    for (long row = 0; row < size; row++) {
        int32_t *place = index_near(&section->index, section->numbers[row]);
        if (*place < 0) *place = (int32_t)row;
        else section_again(section, row, *place);
    }
    return true;
}

static void section_index(struct encoder *encoder, struct section *section)
{
    if (section->index.entries || section->index.near) return;
    section_read_ids(encoder, section);
    if (section_index_near(section)) return;
    index_allocate(section->arena, &section->index, (size_t)section->source.size);
    for (long row = 0; row < section->source.size; row++) {
        struct record_id id = section_id(encoder, section, row);
        struct index_entry *entry = index_find(encoder, &section->index, &id);
        if (entry->row < 0) index_fill(entry, &id, encoder_number(encoder, section), row);
        else section_again(section, row, entry->row);
        RB_GC_GUARD(id.keep);
    }
}

/* @return the row with this id, -1 when there is none */
static long section_row(struct encoder *encoder, struct section *section, const struct record_id *id)
{
    section_index(encoder, section);
    if (section->index.near) {
        int32_t *place = id->number ? index_near(&section->index, id->integer) : NULL;
        return place ? *place : -1;
    }
    return index_find(encoder, &section->index, id)->row;
}

#endif
