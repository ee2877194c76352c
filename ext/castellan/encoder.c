/*
 * Writes documents from rows: the twin of lib/castellan/serialize/ruby_encoder.rb, which says what is written and in which
 * order. What is rare (a time that is a Ruby object, an id beyond 64 bits, every error) is left to Ruby: see
 * `encoder_ask_ruby` and `encoder_refuse`.
 *
 * Memory: everything that is allocated hangs on one `struct encoder` and is freed by rb_ensure, however the work ends. The
 * Ruby objects it names stand in memory of the C stack, where the garbage collector finds them and does not move them.
 */
#include "encoder.h"
#include "buffer.h"
#include "escape.h"
#include "ids.h"
#include "index.h"
#include "number.h"
#include "source.h"
#include "template.h"
#include "timestamp.h"
#include <math.h>
#include <ruby.h>

enum coder { CODER_NONE, CODER_INTEGER, CODER_TEXT, CODER_BOOLEAN, CODER_FLOAT, CODER_DECIMAL, CODER_DATE, CODER_DATETIME, CODER_JSON, CODER_COUNT };

static const char *const coder_names[CODER_COUNT] = { NULL, "integer", "text", "boolean", "float", "decimal", "date", "datetime", "json" };
static VALUE coder_symbols[CODER_COUNT];
static ID id_rows, id_coders, id_links, id_computed, id_asides, id_after, id_members, id_edges, id_edges_after, id_position, id_parent_position, id_related_position, id_pairs;
static ID id_write, id_refuse, id_id_text, id_unknown_coder;

/* One end of a pair: the related id where that is a number (else the pair has it), and the row with that id. */
struct link_target {
    int64_t integer;
    int32_t row;         /* of the child, -1: there is none */
    int32_t pair;        /* -1: the id is `integer` */
};

/* A linked record as it is written, with the comma before it: the same few are linked again and again. */
struct fragment {
    int64_t integer;
    uint8_t length;      /* 0: nothing is kept here */
    char bytes[55];
};

#define FRAGMENTS 128

/* How one edge's links are read. */
struct links {
    bool grouped;        /* in rows of their own; else in a column of the parent */
    long column;         /* of the parent, when not grouped */
    struct source pairs; /* of lists only how many there are */
    long parent, related;
    int64_t *parents;    /* of lists: the parent of each pair */
    int32_t *rows;       /* of each pair the row of its parent, -1 where there is none */
    struct link_target *found;   /* of each pair */
    struct link_target *targets; /* the same, sorted by the rows of their parents */
    int32_t *starts;     /* for each row of the parent, where its targets begin; one more at the end */
    struct fragment *fragments;  /* by id */
    VALUE shown;         /* an Array that says for each row whether the relationship is written, or nil */
    VALUE after;         /* an Array of texts, one for each row, or nil */
};

/* One node's rows. */
struct section {
    const struct node_parts *parts;
    struct source source;
    enum coder *coders;
    long coder_count;
    VALUE *computed;      /* for each member an Array of JSON texts, or nil */
    VALUE *shown;         /* for each member an Array that says for each row whether it is written, or nil */
    VALUE after;          /* an Array of texts, one for each row, or nil */
    struct links *links;  /* for each edge of the template */
    VALUE texts;          /* the ids as strings where the driver's are neither small integers nor UTF-8 text, or nil */
    int64_t *numbers;     /* the ids where all of them are numbers, once they have been read */
    bool read;
    struct index index;   /* id → row */
    int32_t *first;       /* row → the first row with the same id; NULL when no id comes twice */
    uint32_t *walked;     /* row → the round in which it was walked */
    int32_t *ordinals;    /* row → its number in the family, -1: not asked yet */
    struct index family;  /* of the family's first node: id → (node, row) */
    uint32_t *known;      /* of the family's first node: ordinal → the round in which it was written */
};

struct encoder {
    struct template *template;
    VALUE ruby_template, compiled, tables, tail, holes, result;
    struct section *sections;
    struct buffer buffer;
    uint32_t round;
    bool single, each, part;
    size_t written;   /* included objects of this round */
    VALUE included;   /* for encode_each the objects, for encode_part node and id of each */
};

/* ---- What Ruby decides ------------------------------------------------------------------------------------------- */

static VALUE ruby_side(void)
{
    return rb_path2class("Castellan::Serialize::NativeEncoder");
}

/* After each call into Ruby: results are found again, or PG::Error says that one was cleared. */
static void encoder_refresh(struct encoder *encoder)
{
    for (long i = 0; i < encoder->template->node_count; i++) {
        struct section *section = &encoder->sections[i];
        source_refresh(&section->source);
        for (long j = 0; j < section->parts->edge_count; j++) {
            if (section->links[j].grouped) source_refresh(&section->links[j].pairs);
        }
    }
}

static long encoder_number(const struct encoder *encoder, const struct section *section)
{
    return section - encoder->sections;
}

/* Raises what Ruby says about this value. `kind`: 0 the id, 1 a member, 2 an edge. */
NORETURN(static void encoder_refuse(struct encoder *encoder, const struct section *section, int kind, long position, VALUE id, VALUE value));
static void encoder_refuse(struct encoder *encoder, const struct section *section, int kind, long position, VALUE id, VALUE value)
{
    rb_funcall(ruby_side(), id_refuse, 6, encoder->ruby_template, LONG2NUM(encoder_number(encoder, section)), INT2FIX(kind),
               LONG2NUM(position), id, value);
    rb_raise(rb_eRuntimeError, "a value could not be written, and Ruby does not say why");
}

/* ---- Ids --------------------------------------------------------------------------------------------------------- */

/* Whether the id can be read without asking Ruby. */
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

/* ---- Finding the row of an id ------------------------------------------------------------------------------------ */

static void *encoder_allocate(size_t count, size_t size);

/* Whether all ids can be read without asking Ruby; those that are numbers are kept. */
static bool section_read_numbers(struct section *section)
{
    long row;
    int64_t *numbers = section->numbers = encoder_allocate((size_t)section->source.size, sizeof(int64_t)); /* freed with the section */
    bool all = true, known = true;
    for (row = 0; row < section->source.size && known; row++) {
        struct cell cell = source_cell(&section->source, row, 0);
        struct record_id id;
        known = id_of_cell(&cell, &id);
        all = all && known && id.number;
        numbers[row] = id.integer;
    }
    if (!all) {
        free(numbers);
        section->numbers = NULL;
    }
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

static void *encoder_allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory) rb_memerror();
    return memory;
}

/* The id of this row is that of an earlier one. */
static void section_again(struct section *section, long row, int32_t first)
{
    if (!section->first) {
        section->first = encoder_allocate((size_t)section->source.size, sizeof(int32_t));
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
    index_allocate_near(&section->index, least, greatest);
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
    index_allocate(&section->index, (size_t)section->source.size);
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

/* ---- Links ------------------------------------------------------------------------------------------------------- */

static struct record_id links_id(struct encoder *encoder, struct section *section, long edge, const struct source *source, long row, long column)
{
    struct cell cell = source_cell(source, row, column);
    struct record_id id;
    if (id_of_cell(&cell, &id)) return id;
    id_of_string(id_ask_ruby(cell.value, section_type(section), LONG2NUM(edge)), &id);
    encoder_refresh(encoder);
    return id;
}

/* Reads the pairs; counts[row + 1] is how many a row of the parents has. */
static void links_read_pairs(struct encoder *encoder, struct section *section, long edge, int32_t *counts)
{
    struct links *links = &section->links[edge];
    long child = section->parts->edges[edge].child;
    struct record_id previous = { .number = false };
    long parent = -1;
    for (long pair = 0; pair < links->pairs.size; pair++) {
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
    long pairs = links->pairs.size, rows = section->source.size, child = section->parts->edges[edge].child;
    if (links->targets) return;
    section_index(encoder, section); /* both while no id is held */
    if (child >= 0) section_index(encoder, &encoder->sections[child]);
    links->starts = encoder_allocate((size_t)rows + 1, sizeof(int32_t));
    links->rows = encoder_allocate((size_t)pairs, sizeof(int32_t));
    if (!links->found) links->found = encoder_allocate((size_t)pairs, sizeof(struct link_target));
    if (links->parents) links_find_lists(encoder, section, edge, links->starts);
    else links_read_pairs(encoder, section, edge, links->starts);
    links->targets = encoder_allocate((size_t)pairs, sizeof(struct link_target));
    for (long row = 0; row < rows; row++) links->starts[row + 1] += links->starts[row];
    for (long pair = 0; pair < pairs; pair++) {
        if (links->rows[pair] >= 0) links->targets[links->starts[links->rows[pair]]++] = links->found[pair];
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

/* ---- Values ------------------------------------------------------------------------------------------------------ */

static VALUE section_id_string(struct encoder *encoder, struct section *section, long row)
{
    struct record_id id = section_id(encoder, section, row);
    VALUE string = id_string(&id);
    RB_GC_GUARD(id.keep);
    return string;
}

/* The rare value: Ruby writes it, or says why not. */
static void encoder_ask_ruby(struct encoder *encoder, struct section *section, long row, long member, VALUE coder, VALUE value)
{
    VALUE id = section_id_string(encoder, section, row);
    VALUE json = rb_funcall(ruby_side(), id_write, 6, encoder->ruby_template, LONG2NUM(encoder_number(encoder, section)), LONG2NUM(member), id, coder, value);
    Check_Type(json, T_STRING);
    buffer_append(&encoder->buffer, RSTRING_PTR(json), (size_t)RSTRING_LEN(json));
    RB_GC_GUARD(json);
    encoder_refresh(encoder);
}

static bool value_append_boolean(struct buffer *buffer, const struct cell *cell)
{
    bool text = cell->kind == CELL_TEXT && cell->length == 1;
    if (text ? (*cell->text == 't' || *cell->text == '1') : (cell->value == Qtrue || cell->value == INT2FIX(1))) {
        buffer_literal(buffer, "true");
        return true;
    }
    if (text ? (*cell->text == 'f' || *cell->text == '0') : (cell->value == Qfalse || cell->value == INT2FIX(0))) {
        buffer_literal(buffer, "false");
        return true;
    }
    return false;
}

/* A Float by its own text: all that is left to Ruby of it is the shortest digits. */
static bool value_append_double(struct encoder *encoder, enum coder coder, VALUE value)
{
    VALUE text = rb_funcall(value, rb_intern("to_s"), 0);
    bool written = false;
    encoder_refresh(encoder);
    if (!isfinite(RFLOAT_VALUE(value))) return false;
    if (coder == CODER_DECIMAL) written = number_append_decimal(&encoder->buffer, RSTRING_PTR(text), (size_t)RSTRING_LEN(text));
    else buffer_append(&encoder->buffer, RSTRING_PTR(text), (size_t)RSTRING_LEN(text));
    RB_GC_GUARD(text);
    return written || coder == CODER_FLOAT;
}

static bool value_append_number(struct encoder *encoder, enum coder coder, VALUE value)
{
    char text[NUMBER_DIGITS];
    size_t length;
    if (RB_FLOAT_TYPE_P(value)) return (coder == CODER_FLOAT || coder == CODER_DECIMAL) && value_append_double(encoder, coder, value);
    if (!FIXNUM_P(value)) return false;
    length = number_format(text, FIX2LONG(value));
    if (coder == CODER_FLOAT) return number_append_float(&encoder->buffer, text, length);
    if (coder == CODER_DECIMAL) return number_append_decimal(&encoder->buffer, text, length);
    if (coder != CODER_INTEGER) return false;
    buffer_append(&encoder->buffer, text, length);
    return true;
}

/* An instance of Time itself: a class below it, or one that pretends to be it, may answer what it likes. */
static bool value_append_time(struct buffer *buffer, VALUE value)
{
    struct timespec time;
    if (SPECIAL_CONST_P(value) || rb_obj_class(value) != rb_cTime) return false;
    time = rb_time_timespec(value);
    return timestamp_append_seconds(buffer, time.tv_sec, time.tv_nsec);
}

/* False, with nothing appended, when Ruby has to decide. */
static bool value_append(struct encoder *encoder, enum coder coder, const struct cell *cell)
{
    struct buffer *buffer = &encoder->buffer;
    if (cell->kind == CELL_NULL) {
        buffer_literal(buffer, "null");
        return true;
    }
    if (coder == CODER_BOOLEAN) return value_append_boolean(buffer, cell);
    if (cell->kind == CELL_VALUE && coder == CODER_DATETIME) return value_append_time(buffer, cell->value);
    if (cell->kind == CELL_VALUE) return value_append_number(encoder, coder, cell->value);
    switch (coder) {
      case CODER_TEXT: return escape_string(buffer, cell->text, cell->length, encoder->template->mode);
      case CODER_FLOAT: return number_append_float(buffer, cell->text, cell->length);
      case CODER_DECIMAL: return number_append_decimal(buffer, cell->text, cell->length);
      case CODER_DATE: return timestamp_append_date(buffer, cell->text, cell->length);
      case CODER_DATETIME: return timestamp_append(buffer, cell->text, cell->length);
      case CODER_JSON: return cell->length && escape_append(buffer, cell->text, cell->length, encoder->template->mode, true);
      case CODER_INTEGER:
        if (!number_integer_text(cell->text, cell->length)) return false;
        buffer_append(buffer, cell->text, cell->length);
        return true;
      default: return false;
    }
}

static void encoder_hole(struct encoder *encoder, struct section *section, long row, long hole)
{
    VALUE id = section_id_string(encoder, section, row);
    rb_ary_push(encoder->holes, SIZET2NUM(encoder->buffer.length));
    rb_ary_push(encoder->holes, LONG2NUM(hole));
    rb_ary_push(encoder->holes, id);
}

static void encoder_computed(struct encoder *encoder, struct section *section, long row, long member)
{
    VALUE json = rb_ary_entry(section->computed[member], row);
    if (RB_TYPE_P(json, T_STRING) && source_utf8_p(json) && RSTRING_LEN(json) &&
        escape_append(&encoder->buffer, RSTRING_PTR(json), (size_t)RSTRING_LEN(json), encoder->template->mode, true)) {
        RB_GC_GUARD(json);
        return;
    }
    encoder_ask_ruby(encoder, section, row, member, ID2SYM(id_computed), json);
}

static void encoder_value(struct encoder *encoder, struct section *section, long row, long member)
{
    const struct member_parts *parts = &section->parts->members[member];
    struct cell cell;
    enum coder coder;
    if (parts->hole >= 0) return encoder_hole(encoder, section, row, parts->hole);
    if (!NIL_P(section->computed[member])) return encoder_computed(encoder, section, row, member);
    coder = parts->column >= 0 && parts->column < section->coder_count ? section->coders[parts->column] : CODER_NONE;
    cell = source_cell(&section->source, row, parts->column < 0 ? 0 : parts->column);
    if (coder != CODER_NONE && value_append(encoder, coder, &cell)) {
        RB_GC_GUARD(cell.value);
        return;
    }
    encoder_ask_ruby(encoder, section, row, member, coder == CODER_NONE ? Qnil : coder_symbols[coder], source_value(&cell));
}

static void encoder_member(struct encoder *encoder, struct section *section, long row, long member)
{
    const struct bytes *before = &section->parts->members[member].before;
    buffer_append(&encoder->buffer, before->text, before->length);
    encoder_value(encoder, section, row, member);
}

/* ---- Objects ----------------------------------------------------------------------------------------------------- */

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

static void encoder_write(struct encoder *encoder, struct section *section, long row);

static void encoder_link(struct encoder *encoder, struct section *section, long row, long edge, const struct record_id *id)
{
    const struct edge_parts *parts = &section->parts->edges[edge];
    struct buffer *buffer = &encoder->buffer;
    buffer_append(buffer, parts->link.text, parts->link.length);
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
    if (!links->fragments) links->fragments = encoder_allocate(FRAGMENTS, sizeof(*fragment));
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

/* A linked record, and the comma before it unless it is the first. */
static void encoder_target(struct encoder *encoder, struct section *section, long row, long edge, const struct link_target *target, bool first)
{
    struct links *links = &section->links[edge];
    struct buffer *buffer = &encoder->buffer;
    struct fragment *fragment = target->pair < 0 ? encoder_fragment(links, &section->parts->edges[edge], target->integer) : NULL;
    if (fragment) {
        buffer_reserve(buffer, sizeof(fragment->bytes));
        memcpy(buffer_end(buffer), fragment->bytes + first, sizeof(fragment->bytes) - 1); /* of one length, so that it is no call */
        buffer_consumed(buffer, (size_t)fragment->length - first);
    }
    else {
        struct record_id id = { .number = true, .integer = target->integer, .keep = Qnil };
        if (!first) buffer_byte(buffer, ',');
        if (target->pair >= 0) id = links_id(encoder, section, edge, &links->pairs, target->pair, links->related);
        encoder_link(encoder, section, row, edge, &id);
        RB_GC_GUARD(id.keep);
    }
}

/* @return whether there was any */
static bool encoder_grouped_links(struct encoder *encoder, struct section *section, long row, long edge)
{
    struct link_range range = links_of(encoder, section, row, edge);
    const struct link_target *targets = section->links[edge].targets;
    bool any = false;
    for (; range.at < range.end; range.at++) {
        const struct link_target *target = &targets[range.at];
        if (!encoder->template->nested) {
            encoder_target(encoder, section, row, edge, target, !any);
        }
        else {
            if (target->row < 0) continue;
            if (any) buffer_byte(&encoder->buffer, ',');
            encoder_write(encoder, &encoder->sections[section->parts->edges[edge].child], target->row);
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
            related = section_row(encoder, &encoder->sections[parts->child], &walk.id);
            if (related < 0) continue;
        }
        if (encoder->template->nested) {
            if (any) buffer_byte(&encoder->buffer, ',');
            encoder_write(encoder, &encoder->sections[parts->child], related);
            walk.read = false;
        }
        else if (walk.id.number) {
            struct link_target target = { walk.id.integer, -1, -1 };
            encoder_target(encoder, section, row, edge, &target, !any);
        }
        else {
            if (any) buffer_byte(&encoder->buffer, ',');
            encoder_link(encoder, section, row, edge, &walk.id);
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

/* ---- Included ---------------------------------------------------------------------------------------------------- */

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
        section->ordinals = encoder_allocate((size_t)section->source.size, sizeof(int32_t));
        for (long i = 0; i < section->source.size; i++) section->ordinals[i] = -1;
    }
    if (section->ordinals[row] >= 0) return section->ordinals[row];
    if (!family->family.entries) index_allocate(&family->family, encoder_family_size(encoder, section->parts->family));
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
    if (!family->known) family->known = encoder_allocate(encoder_family_size(encoder, section->parts->family), sizeof(uint32_t));
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

static VALUE encoder_take_holes(struct encoder *encoder)
{
    VALUE holes = encoder->holes;
    encoder->holes = rb_ary_new();
    return holes;
}

static void encoder_include_alone(struct encoder *encoder, struct section *section, long row)
{
    VALUE key = section_type(section), id = section_id_string(encoder, section, row), bytes;
    rb_str_cat(key, "/", 1);
    rb_str_append(key, id);
    encoder_write(encoder, section, row);
    bytes = encoder_take(encoder);
    rb_ary_push(encoder->included, rb_ary_new_from_args(3, key, bytes, encoder_take_holes(encoder)));
}

static void encoder_include(struct encoder *encoder, struct section *section, long row)
{
    if (encoder->each) {
        encoder_include_alone(encoder, section, row);
        return;
    }
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

static void encoder_walk(struct encoder *encoder, struct section *section, long row)
{
    for (long edge = 0; edge < section->parts->edge_count; edge++) {
        long child = section->parts->edges[edge].child;
        struct section *related = &encoder->sections[child];
        if (child < 0 || !encoder_shown(section->links[edge].shown, row)) continue;
        if (!related->walked) related->walked = encoder_allocate((size_t)related->source.size, sizeof(uint32_t));
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

/* ---- Documents --------------------------------------------------------------------------------------------------- */

static void encoder_primary(struct encoder *encoder, long count)
{
    struct section *root = encoder->sections;
    if (encoder->single && count == 0) {
        buffer_literal(&encoder->buffer, "null");
        return;
    }
    if (!encoder->single) buffer_byte(&encoder->buffer, '[');
    for (long row = 0; row < count; row++) {
        if (row) buffer_byte(&encoder->buffer, ',');
        encoder_write(encoder, root, row);
    }
    if (!encoder->single) buffer_byte(&encoder->buffer, ']');
}

static void encoder_included(struct encoder *encoder, long count)
{
    struct section *root = encoder->sections;
    for (long row = 0; row < count; row++) encoder_known(encoder, root, row);
    buffer_literal(&encoder->buffer, ",\"included\":[");
    for (long row = 0; row < count; row++) encoder_walk(encoder, root, row);
    buffer_byte(&encoder->buffer, ']');
}

static void encoder_document(struct encoder *encoder)
{
    long count = encoder->sections[0].source.size;
    if (encoder->single && count > 1) count = 1;
    encoder->round = 1;
    buffer_reserve(&encoder->buffer, encoder->template->last_length + encoder->template->last_length / 16);
    if (encoder->template->nested) {
        encoder_primary(encoder, count);
    }
    else {
        buffer_literal(&encoder->buffer, "{\"data\":");
        encoder_primary(encoder, count);
        if (encoder->template->compound) encoder_included(encoder, count);
        buffer_append(&encoder->buffer, RSTRING_PTR(encoder->tail), (size_t)RSTRING_LEN(encoder->tail));
        buffer_byte(&encoder->buffer, '}');
    }
    encoder->template->last_length = encoder->buffer.length;
    encoder->result = encoder_take(encoder);
}

static void encoder_records(struct encoder *encoder)
{
    struct section *root = encoder->sections;
    encoder->result = rb_ary_new_capa(root->source.size);
    for (long row = 0; row < root->source.size; row++) {
        VALUE id = section_id_string(encoder, root, row), bytes, holes;
        encoder->round++;
        encoder->included = rb_ary_new();
        encoder_write(encoder, root, row);
        bytes = encoder_take(encoder);
        holes = encoder_take_holes(encoder);
        if (encoder->template->compound) {
            encoder_known(encoder, root, row);
            encoder_walk(encoder, root, row);
        }
        rb_ary_push(encoder->result, rb_ary_new_from_args(4, id, bytes, encoder->included, holes));
    }
}

/* The primary records with commas between them, and what they lead to by node and id. */
static void encoder_part(struct encoder *encoder)
{
    struct section *root = encoder->sections;
    encoder->round = 1;
    for (long row = 0; row < root->source.size; row++) {
        if (row) buffer_byte(&encoder->buffer, ',');
        encoder_write(encoder, root, row);
    }
    encoder->result = encoder_take(encoder);
    if (!encoder->template->compound) return;
    for (long row = 0; row < root->source.size; row++) encoder_known(encoder, root, row);
    for (long row = 0; row < root->source.size; row++) encoder_walk(encoder, root, row);
}

/* ---- Setting up and clearing away -------------------------------------------------------------------------------- */

static void section_free(struct section *section)
{
    index_free(&section->index);
    index_free(&section->family);
    free(section->numbers);
    free(section->first);
    free(section->walked);
    free(section->ordinals);
    free(section->known);
    for (long edge = 0; section->links && edge < section->parts->edge_count; edge++) {
        free(section->links[edge].starts);
        free(section->links[edge].parents);
        free(section->links[edge].rows);
        free(section->links[edge].found);
        free(section->links[edge].targets);
        free(section->links[edge].fragments);
    }
}

/* The memory of the last document, for the next one: fresh pages cost more than what is written into them. Under Ruby's lock. */
static struct buffer encoder_spare;

#define SPARE_MOST (1 << 20)

static VALUE encoder_free(VALUE pointer)
{
    struct encoder *encoder = (struct encoder *)pointer;
    for (long i = 0; i < encoder->template->node_count; i++) section_free(&encoder->sections[i]);
    if (!encoder_spare.bytes && encoder->buffer.capacity <= SPARE_MOST) {
        encoder_spare = encoder->buffer;
        encoder_spare.length = 0;
    }
    else buffer_free(&encoder->buffer);
    return Qnil;
}

static enum coder coder_of(VALUE symbol, const struct section *section)
{
    if (NIL_P(symbol)) return CODER_NONE;
    for (int coder = CODER_INTEGER; coder < CODER_COUNT; coder++) {
        if (symbol == coder_symbols[coder]) return coder;
    }
    rb_funcall(ruby_side(), id_unknown_coder, 2, section_type(section), symbol);
    return CODER_NONE;
}

/* Reads two lists of integers; false where there is anything else, or not as many in the one as in the other. */
static bool links_read_lists(struct links *links, VALUE rows)
{
    struct source source = source_of(rows);
    struct cell one = source_cell(&source, 0, 0), other = source_cell(&source, 0, 1);
    struct id_text parents = id_text_of(one.text, one.length), related = id_text_of(other.text, other.length);
    size_t most = (size_t)(related.end - related.at + 1) / 2; /* a digit and a comma each */
    long count = 0;
    if (source.size > 1 || one.kind == CELL_VALUE || one.kind != other.kind || most > INT32_MAX) return false;
    links->parents = encoder_allocate(most, sizeof(int64_t));
    links->found = encoder_allocate(most, sizeof(struct link_target));
    for (; related.at < related.end; count++) {
        struct link_target *target = &links->found[count];
        if (!id_text_next(&related, &target->integer) || !id_text_next(&parents, &links->parents[count])) return false;
        target->pair = -1;
    }
    links->pairs = (struct source){ Qnil, NULL, count, 0 };
    RB_GC_GUARD(one.value);
    RB_GC_GUARD(other.value);
    RB_GC_GUARD(source.rows);
    return parents.at == parents.end;
}

/* Lists are read at once; those that cannot be are pairs. */
static VALUE links_lists(struct links *links, VALUE link)
{
    links->grouped = true;
    if (links_read_lists(links, rb_funcall(link, id_rows, 0))) return Qnil;
    free(links->parents);
    free(links->found);
    links->parents = NULL;
    links->found = NULL;
    return rb_funcall(link, id_pairs, 0);
}

static void section_links(struct section *section, VALUE links)
{
    for (long i = 0; i < section->parts->edge_count; i++) {
        struct links *target = &section->links[i];
        VALUE link = NIL_P(links) ? Qnil : rb_ary_entry(links, section->parts->edges[i].position);
        if (NIL_P(link) && !section->parts->edges[i].data) continue;
        if (rb_respond_to(link, id_position)) {
            target->column = NUM2LONG(rb_funcall(link, id_position, 0));
            continue;
        }
        if (rb_respond_to(link, id_pairs) && NIL_P(link = links_lists(target, link))) continue;
        target->pairs = source_of(rb_funcall(link, id_rows, 0));
        target->parent = NUM2LONG(rb_funcall(link, id_parent_position, 0));
        target->related = NUM2LONG(rb_funcall(link, id_related_position, 0));
        target->grouped = true;
        if (target->pairs.size > INT32_MAX / 2) rb_raise(rb_eArgError, "more than %d links in one document", INT32_MAX / 2);
        RB_GC_GUARD(link);
    }
}

static VALUE section_array(VALUE hash, long key)
{
    VALUE array = NIL_P(hash) ? Qnil : rb_hash_aref(hash, LONG2NUM(key));
    if (!NIL_P(array)) Check_Type(array, T_ARRAY);
    return array;
}

static void section_asides(struct section *section, VALUE asides)
{
    VALUE members = rb_funcall(asides, id_members, 0), edges = rb_funcall(asides, id_edges, 0), around = rb_funcall(asides, id_edges_after, 0);
    section->after = rb_funcall(asides, id_after, 0);
    if (!NIL_P(section->after)) Check_Type(section->after, T_ARRAY);
    for (long i = 0; i < section->parts->member_count; i++) section->shown[i] = section_array(members, i);
    for (long i = 0; i < section->parts->edge_count; i++) {
        section->links[i].shown = section_array(edges, section->parts->edges[i].position);
        section->links[i].after = section_array(around, section->parts->edges[i].position);
    }
    RB_GC_GUARD(members);
    RB_GC_GUARD(edges);
    RB_GC_GUARD(around);
}

static void section_set_up(struct section *section, VALUE table)
{
    VALUE coders = rb_convert_type(rb_funcall(table, id_coders, 0), T_ARRAY, "Array", "to_ary");
    VALUE computed = rb_funcall(table, id_computed, 0);
    VALUE asides = rb_funcall(table, id_asides, 0);
    if (RARRAY_LEN(coders) < section->coder_count) section->coder_count = RARRAY_LEN(coders);
    for (long i = 0; i < section->coder_count; i++) section->coders[i] = coder_of(rb_ary_entry(coders, i), section);
    for (long i = 0; i < section->parts->member_count && !NIL_P(computed); i++) {
        section->computed[i] = rb_hash_aref(computed, LONG2NUM(i));
        if (!NIL_P(section->computed[i])) Check_Type(section->computed[i], T_ARRAY);
    }
    if (!NIL_P(asides)) section_asides(section, asides);
    section->source = source_of(rb_funcall(table, id_rows, 0));
    if (section->source.size > INT32_MAX / 2) rb_raise(rb_eArgError, "more than %d rows in one document", INT32_MAX / 2);
    section_links(section, rb_funcall(table, id_links, 0));
    RB_GC_GUARD(coders);
}

static VALUE encoder_work(VALUE pointer)
{
    struct encoder *encoder = (struct encoder *)pointer;
    for (long i = 0; i < encoder->template->node_count; i++) section_set_up(&encoder->sections[i], rb_ary_entry(encoder->tables, i));
    encoder_refresh(encoder);
    if (encoder->each) encoder_records(encoder);
    else if (encoder->part) encoder_part(encoder);
    else encoder_document(encoder);
    return encoder->result;
}

static long section_coder_count(VALUE table)
{
    VALUE coders = rb_funcall(table, id_coders, 0);
    Check_Type(coders, T_ARRAY);
    return RARRAY_LEN(coders);
}

/* Everything that names Ruby objects is on this function's stack: one piece for all sections. */
static VALUE encoder_run(struct encoder *encoder)
{
    const struct template *template = encoder->template;
    long computed = 0, edges = 0, coders = 0;
    struct section *sections = ALLOCA_N(struct section, template->node_count);
    VALUE *computed_values, *shown_values, result;
    struct links *links;
    enum coder *coder_values;

    Check_Type(encoder->tables, T_ARRAY);
    if (RARRAY_LEN(encoder->tables) != template->node_count || template->node_count > 500) {
        rb_raise(rb_eArgError, "%ld tables for a plan of %ld nodes (at most 500)", RARRAY_LEN(encoder->tables), template->node_count);
    }
    memset(sections, 0, sizeof(struct section) * template->node_count);
    for (long i = 0; i < template->node_count; i++) {
        sections[i].parts = &template->nodes[i];
        sections[i].texts = Qnil;
        sections[i].after = Qnil;
        sections[i].coder_count = section_coder_count(rb_ary_entry(encoder->tables, i));
        computed += template->nodes[i].member_count;
        edges += template->nodes[i].edge_count;
        coders += sections[i].coder_count;
    }
    if (computed + edges + coders > 10000) rb_raise(rb_eArgError, "a plan with %ld members, edges and columns", computed + edges + coders);
    computed_values = ALLOCA_N(VALUE, computed + 1);
    shown_values = ALLOCA_N(VALUE, computed + 1);
    links = ALLOCA_N(struct links, edges + 1);
    coder_values = ALLOCA_N(enum coder, coders + 1);
    memset(links, 0, sizeof(struct links) * (edges + 1));
    for (long i = 0; i < computed; i++) computed_values[i] = shown_values[i] = Qnil;
    for (long i = 0; i < edges; i++) links[i].shown = links[i].after = Qnil;
    for (long i = 0; i < template->node_count; i++) {
        sections[i].computed = computed_values;
        sections[i].shown = shown_values;
        sections[i].links = links;
        sections[i].coders = coder_values;
        computed_values += template->nodes[i].member_count;
        shown_values += template->nodes[i].member_count;
        links += template->nodes[i].edge_count;
        coder_values += sections[i].coder_count;
    }
    encoder->sections = sections;
    encoder->buffer = encoder_spare;
    memset(&encoder_spare, 0, sizeof(encoder_spare));
    result = rb_ensure(encoder_work, (VALUE)encoder, encoder_free, (VALUE)encoder);
    RB_GC_GUARD(encoder->tables);
    RB_GC_GUARD(encoder->compiled);
    return result;
}

/* Native.encode(template, tables, single, tail, holes) → the body; holes are pushed to the array */
static VALUE encoder_encode(VALUE self, VALUE ruby_template, VALUE tables, VALUE single, VALUE tail, VALUE holes)
{
    VALUE compiled = template_read(ruby_template, "compiled");
    struct encoder encoder = {
        .template = template_of(compiled), .ruby_template = ruby_template, .compiled = compiled, .tables = tables, .tail = tail,
        .holes = holes, .result = Qnil, .single = RTEST(single), .included = Qnil
    };
    StringValue(encoder.tail);
    Check_Type(holes, T_ARRAY);
    return encoder_run(&encoder);
}

/* Native.encode_each(template, tables) → an array of [id, bytes, included, holes] */
static VALUE encoder_encode_each(VALUE self, VALUE ruby_template, VALUE tables)
{
    VALUE compiled = template_read(ruby_template, "compiled");
    struct encoder encoder = {
        .template = template_of(compiled), .ruby_template = ruby_template, .compiled = compiled, .tables = tables, .tail = Qnil,
        .holes = rb_ary_new(), .result = Qnil, .each = true, .included = Qnil
    };
    return encoder_run(&encoder);
}

/* Native.encode_part(template, tables, holes, found) → the primary records' bytes; node and id of each record that they lead to
 * are pushed to found */
static VALUE encoder_encode_part(VALUE self, VALUE ruby_template, VALUE tables, VALUE holes, VALUE found)
{
    VALUE compiled = template_read(ruby_template, "compiled");
    struct encoder encoder = {
        .template = template_of(compiled), .ruby_template = ruby_template, .compiled = compiled, .tables = tables, .tail = Qnil,
        .holes = holes, .result = Qnil, .part = true, .included = found
    };
    Check_Type(holes, T_ARRAY);
    Check_Type(found, T_ARRAY);
    return encoder_run(&encoder);
}

/* Native.reads_results? → whether a PG::Result is read in place */
static VALUE encoder_reads_results(VALUE self)
{
    if (!libpq.tried || !libpq.found) source_find_libpq();
    return libpq.found ? Qtrue : Qfalse;
}

void Init_encoder(VALUE castellan)
{
    VALUE native = rb_define_module_under(castellan, "Native");
    rb_define_singleton_method(native, "compile", template_compile, 1);
    rb_define_singleton_method(native, "encode", encoder_encode, 5);
    rb_define_singleton_method(native, "encode_each", encoder_encode_each, 2);
    rb_define_singleton_method(native, "encode_part", encoder_encode_part, 4);
    rb_define_singleton_method(native, "reads_results?", encoder_reads_results, 0);
    rb_define_singleton_method(native, "id_list", ids_list, 1);
    rb_define_singleton_method(native, "distinct_ids", ids_distinct, 1);
    for (int coder = CODER_INTEGER; coder < CODER_COUNT; coder++) coder_symbols[coder] = ID2SYM(rb_intern(coder_names[coder]));
    id_rows = rb_intern("rows");
    id_coders = rb_intern("coders");
    id_links = rb_intern("links");
    id_computed = rb_intern("computed");
    id_asides = rb_intern("asides");
    id_after = rb_intern("after");
    id_members = rb_intern("members");
    id_edges = rb_intern("edges");
    id_edges_after = rb_intern("edges_after");
    id_position = rb_intern("position");
    id_parent_position = rb_intern("parent_position");
    id_related_position = rb_intern("related_position");
    id_pairs = rb_intern("pairs");
    id_write = rb_intern("write");
    id_refuse = rb_intern("refuse");
    id_id_text = rb_intern("id_text");
    id_unknown_coder = rb_intern("unknown_coder");
}
