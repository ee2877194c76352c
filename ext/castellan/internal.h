/*
 * Shared by read.c, link.c and write.c: the state of one encoding, and inline functions for hot paths.
 *
 * Memory: all allocations belong to the arena of one `struct encoder`, which rb_ensure frees. References
 * to Ruby objects are in memory that the garbage collector marks (ALLOCV).
 */
#ifndef CASTELLAN_INTERNAL_H
#define CASTELLAN_INTERNAL_H

#include <ruby.h>
#include <ruby/encoding.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Zeroed memory of one encoding, freed as a whole, also after an error. */
struct arena_block {
    struct arena_block *next;
    int64_t bytes[]; /* sufficient alignment for everything stored here */
};

struct arena {
    struct arena_block *blocks;
};

/*
 * A growing byte buffer. Uses plain malloc, not Ruby's: growing must never run the garbage collector,
 * because callers hold pointers into Ruby strings and PostgreSQL results while they write.
 *
 *   buffer_reserve(buffer, NUMBER_DIGITS);
 *   buffer_consumed(buffer, number_format(buffer_end(buffer), 7));
 *
 * With CASTELLAN_DEBUG, a write beyond the reserved room calls rb_bug immediately instead of crashing
 * later.
 */
struct buffer {
    char *bytes;
    size_t length;
    size_t capacity;
#ifdef CASTELLAN_DEBUG
    size_t reserved;
#endif
};

/* Both raise NoMemoryError. */
void *arena_allocate(struct arena *arena, size_t count, size_t size);
void buffer_grow(struct buffer *buffer, size_t room);

static inline void buffer_free(struct buffer *buffer)
{
    free(buffer->bytes);
    memset(buffer, 0, sizeof(*buffer));
}

static inline void buffer_reserve(struct buffer *buffer, size_t room)
{
    if (buffer->capacity - buffer->length < room) buffer_grow(buffer, room);
#ifdef CASTELLAN_DEBUG
    buffer->reserved = room;
#endif
}

static inline char *buffer_end(struct buffer *buffer)
{
    return buffer->bytes + buffer->length;
}

static inline void buffer_consumed(struct buffer *buffer, size_t written)
{
#ifdef CASTELLAN_DEBUG
    if (written > buffer->reserved) rb_bug("castellan: %zu bytes written where %zu were reserved", written, buffer->reserved);
    buffer->reserved -= written;
#endif
    buffer->length += written;
}

static inline void buffer_append(struct buffer *buffer, const char *bytes, size_t length)
{
    buffer_reserve(buffer, length);
    if (length) memcpy(buffer_end(buffer), bytes, length);
    buffer_consumed(buffer, length);
}

static inline void buffer_byte(struct buffer *buffer, char byte)
{
    buffer_reserve(buffer, 1);
    *buffer_end(buffer) = byte;
    buffer_consumed(buffer, 1);
}

#define buffer_literal(buffer, text) buffer_append((buffer), (text), sizeof(text) - 1)

#define NUMBER_DIGITS 20

/* number_parse supports the integers between these two, exclusive. */
#define NUMBER_PARSED_FROM -100000000000000000LL
#define NUMBER_PARSED_TO 1000000000000000000LL

static inline bool number_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* @return the number of bytes written, at most NUMBER_DIGITS */
static inline size_t number_format(char *target, int64_t number)
{
    char digits[NUMBER_DIGITS];
    size_t length = 0, sign = number < 0;
    uint64_t rest = sign ? 0 - (uint64_t)number : (uint64_t)number;
    do {
        digits[length++] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (sign) *target++ = '-';
    for (size_t i = 0; i < length; i++) target[i] = digits[length - 1 - i];
    return length + sign;
}

/* Returns whether Ruby would write the integer so: no sign except "-", no leading zero. */
static inline bool number_integer_text(const char *text, size_t length)
{
    size_t sign = length && text[0] == '-';
    if (length == sign || (text[sign] == '0' && length > sign + 1)) return false;
    for (size_t i = sign; i < length; i++) {
        if (!number_digit(text[i])) return false;
    }
    return true;
}

/* Parses an integer that certainly fits and has no other spelling; otherwise returns false. */
static inline bool number_parse(const char *text, size_t length, int64_t *number)
{
    int64_t value = 0;
    size_t sign = length && text[0] == '-';
    if (length > 18 || !number_integer_text(text, length) || (sign && text[1] == '0')) return false;
    for (size_t i = sign; i < length; i++) value = value * 10 + (text[i] - '0');
    *number = sign ? -value : value;
    return true;
}

/*
 * Ids are compared as strings, or as numbers if they are 64-bit integers, which needs no hashing of bytes.
 * An index finds the row of an id by open addressing. For dense integers, `near` has an entry for each
 * value between the smallest and the largest, so no search is needed. The size of an index is known
 * beforehand and never grows. Entries contain node and row, because two nodes of one type may share an
 * index.
 */
struct record_id {
    bool number;
    int64_t integer;      /* if it is a number */
    const char *text;     /* NULL if the number is a Ruby Integer */
    size_t length;
    VALUE keep;           /* the String that contains `text` */
};

struct index_entry {
    uint64_t key;  /* the integer, or Ruby's seeded hash of the text: clients may choose ids */
    int32_t row;   /* -1: free */
    int16_t node;
    bool number;
};

struct index {
    struct index_entry *entries;
    size_t mask;
    int32_t *near;         /* instead of entries: the row of least + i, -1: none */
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

/* Returns whether `near` would need at most about eight entries per row. */
static inline bool index_near_p(int64_t least, int64_t greatest, size_t rows)
{
    return (uint64_t)greatest - (uint64_t)least < rows * 8 + 64;
}

/* Returns the entry of this integer, NULL outside the range. */
static inline int32_t *index_near(const struct index *index, int64_t integer)
{
    uint64_t at = (uint64_t)integer - (uint64_t)index->least;
    return at < index->near_count ? &index->near[at] : NULL;
}

typedef struct pg_result PGresult;

/* Functions of the libpq that the pg gem has loaded. */
struct libpq {
    bool tried, found;
    PGresult *(*get)(VALUE);
    char *(*value)(const PGresult *, int, int);
    int (*length)(const PGresult *, int, int);
    int (*is_null)(const PGresult *, int, int);
    int (*rows)(const PGresult *);
    int (*columns)(const PGresult *);
};

extern struct libpq libpq;

struct source {
    VALUE rows;              /* Array, or PG::Result */
    const PGresult *result;  /* NULL for an Array */
    long size;
    int columns;
};

enum cell_kind { CELL_NULL, CELL_TEXT, CELL_VALUE };

struct cell {
    enum cell_kind kind;
    const char *text;   /* only for CELL_TEXT; must be UTF-8, not yet checked */
    size_t length;
    VALUE value;        /* the Ruby object; Qundef if PostgreSQL owns the text */
};

static inline bool source_utf8_p(VALUE string)
{
    int encoding = RB_ENCODING_GET(string);
    return encoding == rb_utf8_encindex() || encoding == rb_usascii_encindex() || encoding == rb_ascii8bit_encindex();
}

/* @raise PG::Error if the result was cleared */
static inline void source_refresh(struct source *source)
{
    if (source->result) source->result = libpq.get(source->rows);
}

static inline struct cell source_pg_cell(const struct source *source, long row, long column)
{
    struct cell cell = { CELL_NULL, NULL, 0, Qundef };
    if (row >= source->size || column >= source->columns) return cell;
    cell.length = (size_t)libpq.length(source->result, (int)row, (int)column);
    if (cell.length == 0 && libpq.is_null(source->result, (int)row, (int)column)) return cell;
    cell.kind = CELL_TEXT;
    cell.text = libpq.value(source->result, (int)row, (int)column);
    return cell;
}

static inline struct cell source_cell(const struct source *source, long row, long column)
{
    struct cell cell = { CELL_NULL, NULL, 0, Qundef };
    VALUE values;
    if (source->result) return source_pg_cell(source, row, column);
    values = rb_ary_entry(source->rows, row);
    Check_Type(values, T_ARRAY);
    cell.value = rb_ary_entry(values, column);
    if (NIL_P(cell.value)) return cell;
    cell.kind = CELL_VALUE;
    if (RB_TYPE_P(cell.value, T_STRING) && source_utf8_p(cell.value)) {
        cell.kind = CELL_TEXT;
        cell.text = RSTRING_PTR(cell.value);
        cell.length = (size_t)RSTRING_LEN(cell.value);
    }
    return cell;
}

/* Returns the value that the Ruby encoder would get. */
static inline VALUE source_value(const struct cell *cell)
{
    if (cell->kind == CELL_NULL) return Qnil;
    return cell->value == Qundef ? rb_utf8_str_new(cell->text, (long)cell->length) : cell->value;
}

enum escape_mode { ESCAPE_JSON, ESCAPE_RAILS, ESCAPE_RAILS_HTML };

struct bytes {
    const char *text;
    size_t length;
};

struct member_parts {
    struct bytes before, name;
    long column;  /* -1: not in the row */
    long hole;    /* -1: none */
};

/* The bytes and the node of one type of a relationship to several types. */
struct kind_parts {
    struct bytes link;
    long child;     /* -1: linkage only */
};

struct edge_parts {
    struct bytes before, name, link, link_end; /* link, link_end: before and after a linked id */
    long child;     /* -1: linkage only */
    long kind_count;          /* the number of types; `link` and `child` are those of the first */
    struct kind_parts *kinds; /* NULL if there is only one */
    long position;  /* among the node's links */
    bool to_many;
    bool written;   /* false: it only adds included records */
    bool data;      /* false: its linkage is omitted */
};

struct node_parts {
    struct bytes open, close, type;
    long member_count, edge_count;
    struct member_parts *members;
    struct edge_parts *edges;
    long family;   /* nodes of one type are a family: a record in two of them is included once */
    bool related;  /* whether the family has another node */
    bool regular;  /* whether all rows have the same members, so that `before` and `close` apply */
    bool after;    /* whether links and meta objects follow at the end of each record */
};

struct template {
    enum escape_mode mode;
    bool nested, compound;
    bool several_types; /* primary rows are written as the rows to which the root's only edge links */
    long node_count;
    struct node_parts *nodes;
    char *block;
    size_t block_used, block_size;
    size_t last_length;  /* of the last document, as initial size for the next; the only mutable field */
};

enum coder { CODER_NONE, CODER_INTEGER, CODER_TEXT, CODER_BOOLEAN, CODER_FLOAT, CODER_DECIMAL, CODER_DATE, CODER_DATETIME, CODER_JSON, CODER_COUNT };

/* The related end of a pair: the id if it is a number (otherwise read it from the pair), and the row with
 * that id. */
struct link_target {
    int64_t integer;
    int32_t row;         /* of the child, -1: none */
    int32_t pair;        /* -1: the id is `integer` */
};

/* The bytes of a linked record with the comma before it, cached because links to the same few records
 * repeat. */
struct fragment {
    int64_t integer;
    uint8_t length;      /* 0: free */
    char bytes[55];
};

/* How one edge's links are read. */
struct links {
    struct arena *arena; /* the encoding's */
    bool grouped;        /* in separate rows; otherwise in a column of the parent */
    long column;         /* of the parent, if not grouped */
    struct source pairs; /* for lists only the size */
    long parent, related, kind; /* columns of the pairs; -1: all have the first type */
    int64_t *parents;    /* for lists: the parent of each pair */
    int32_t *rows;       /* for each pair the row of its parent, -1: none */
    struct link_target *found;   /* for each pair */
    struct link_target *targets; /* the same, sorted by the parents' rows */
    int16_t *found_kinds, *kinds; /* for several types: those of `found` and of `targets` */
    int32_t *starts;     /* for each row of the parent, the begin of its targets; plus one at the end */
    struct fragment *fragments;  /* by id */
    VALUE shown;         /* an Array of booleans per row: whether to write the relationship, or nil */
    VALUE after;         /* an Array of Strings per row, or nil */
};

/* One node's rows. */
struct section {
    struct arena *arena; /* the encoding's */
    const struct node_parts *parts;
    struct source source;
    enum coder *coders;
    long coder_count;
    VALUE *computed;      /* for each member an Array of JSON Strings, or nil */
    VALUE *shown;         /* for each member an Array of booleans per row: whether to write it, or nil */
    VALUE after;          /* an Array of Strings per row, or nil */
    struct links *links;  /* for each edge of the template */
    VALUE texts;          /* ids as Strings if the driver's are neither small integers nor UTF-8, or nil */
    int64_t *numbers;     /* the ids, if all are numbers, once they have been read */
    bool read;
    struct index index;   /* id → row */
    int32_t *first;       /* row → the first row with the same id; NULL if all ids differ */
    uint32_t *walked;     /* row → the round in which it was visited */
    int32_t *ordinals;    /* row → its number in the family, -1: not computed yet */
    struct index family;  /* only in the family's first node: id → (node, row) */
    uint32_t *known;      /* only in the family's first node: ordinal → the round in which it was written */
};

struct encoder {
    struct template *template;
    VALUE ruby_template, compiled, tables, tail, holes, result;
    struct section *sections;
    struct arena arena;
    struct buffer buffer;
    uint32_t round;
    bool single, each, part;
    size_t written;   /* number of included objects in this round */
    VALUE included;   /* encode_part: node and id of each record to include */
};

extern VALUE coder_symbols[CODER_COUNT];

/* The targets of a row: `at` up to, not including, `end`. */
struct link_range {
    long at, end;
};

/* Iterates over the ids of a column "1,2,3"; `at` is the next byte. A caller that may have called Ruby
 * sets `read` to false, so that the column is read again. */
struct column_walk {
    size_t at;
    bool ended, read;
    struct record_id whole, id;
};

/* Returns false if only Ruby can read the id. */
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

static inline long encoder_number(const struct encoder *encoder, const struct section *section)
{
    return section - encoder->sections;
}

static inline bool encoder_shown(VALUE conditions, long row)
{
    return NIL_P(conditions) || RTEST(rb_ary_entry(conditions, row));
}

/* Returns the node of a target's record. */
static inline long links_node(const struct section *section, long edge, long at)
{
    const struct edge_parts *parts = &section->parts->edges[edge];
    const int16_t *kinds = section->links[edge].kinds;
    return kinds ? parts->kinds[kinds[at]].child : parts->child;
}

/* read.c */
void arena_free(struct arena *arena);
void index_allocate(struct arena *arena, struct index *index, size_t rows);
void index_allocate_near(struct arena *arena, struct index *index, int64_t least, int64_t greatest);
void source_find_libpq(void);
struct source source_of(VALUE rows);
bool source_pg_result_p(VALUE rows);
VALUE template_compile(VALUE self, VALUE source);
struct template *template_of(VALUE compiled);
VALUE template_read(VALUE object, const char *name);
long template_index(VALUE number);
VALUE ruby_side(void);
void encoder_refresh(struct encoder *encoder);
void id_of_string(VALUE string, struct record_id *id);
VALUE id_ask_ruby(VALUE value, VALUE type, VALUE member);
VALUE id_string(const struct record_id *id);
VALUE section_type(const struct section *section);
struct record_id section_id(struct encoder *encoder, struct section *section, long row);
VALUE section_id_string(struct encoder *encoder, struct section *section, long row);
void section_read_ids(struct encoder *encoder, struct section *section);
void section_index(struct encoder *encoder, struct section *section);
long section_row(struct encoder *encoder, struct section *section, const struct record_id *id);
void section_set_up(struct section *section, VALUE table);
struct index_entry *index_find(struct encoder *encoder, const struct index *index, const struct record_id *id);
void index_fill(struct index_entry *entry, const struct record_id *id, long node, long row);
VALUE ids_distinct(VALUE self, VALUE texts);
VALUE ids_column(VALUE self, VALUE rows, VALUE position);
VALUE ids_list(VALUE self, VALUE rows);
VALUE loaded_rows(VALUE self, VALUE records, VALUE model, VALUE attribute_set, VALUE names, VALUE coders);
NORETURN(void encoder_refuse(struct encoder *encoder, const struct section *section, int kind, long position, VALUE id, VALUE value));

/* link.c */
struct record_id links_id(struct encoder *encoder, struct section *section, long edge, const struct source *source, long row, long column);
struct link_range links_of(struct encoder *encoder, struct section *section, long row, long edge);
bool column_next(struct encoder *encoder, struct section *section, long row, long edge, struct column_walk *walk);
bool encoder_known(struct encoder *encoder, struct section *section, long row);
void encoder_walk(struct encoder *encoder, struct section *section, long row);

/* write.c */
void encoder_write(struct encoder *encoder, struct section *section, long row);
void Init_encoder(VALUE castellan);

#endif
