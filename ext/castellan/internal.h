/*
 * What read.c, link.c and write.c share: the state of one encoding, and the functions that are too hot to be called across files.
 *
 * Memory: all allocations belong to the arena of one `struct encoder`, which rb_ensure frees. References to Ruby objects
 * are in memory that the garbage collector marks (ALLOCV).
 */
#ifndef CASTELLAN_INTERNAL_H
#define CASTELLAN_INTERNAL_H

#include <ruby.h>
#include <ruby/encoding.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Zeroed memory of one encoding, freed at once, also after an error. */
struct arena_block {
    struct arena_block *next;
    int64_t bytes[]; /* what is kept here needs no stricter alignment */
};

struct arena {
    struct arena_block *blocks;
};

/*
 * Bytes that grow. Plain malloc, not Ruby's: growing must never run the garbage collector, because callers hold pointers
 * into Ruby strings and PostgreSQL results while they write.
 *
 *   buffer_reserve(buffer, 20);                       room for 20 bytes
 *   buffer_consumed(buffer, digits_write(buffer_end(buffer), 7));
 *
 * With CASTELLAN_DEBUG a write past what was reserved is a bug report at once and not a crash later.
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

/* number_parse handles every integer between these two, exclusive. */
#define NUMBER_PARSED_FROM -100000000000000000LL
#define NUMBER_PARSED_TO 1000000000000000000LL

static inline bool number_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* @return how many of at most 20 bytes were written */
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

/* Whether this is an integer as Ruby writes it: no sign but "-", no leading zero. */
static inline bool number_integer_text(const char *text, size_t length)
{
    size_t sign = length && text[0] == '-';
    if (length == sign || (text[sign] == '0' && length > sign + 1)) return false;
    for (size_t i = sign; i < length; i++) {
        if (!number_digit(text[i])) return false;
    }
    return true;
}

/* The integer that is written so, when it surely fits and no other text means it. */
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
 * Ids compare by their text; an id that is a 64-bit integer compares as a number, without hashing bytes. An index finds the row of an
 * id by open addressing; dense integers need no search: `near` has a row for each value between the smallest and the largest. The size
 * of an index is known before and never grows. Entries name a row of a node; two nodes of one type may share an index.
 */
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

/* Whether there may be a row for each integer from least to greatest: no more than a few for each that is needed. */
static inline bool index_near_p(int64_t least, int64_t greatest, size_t rows)
{
    return (uint64_t)greatest - (uint64_t)least < rows * 8 + 64;
}

/* Where the row of this integer stands, NULL beyond the others. */
static inline int32_t *index_near(const struct index *index, int64_t integer)
{
    uint64_t at = (uint64_t)integer - (uint64_t)index->least;
    return at < index->near_count ? &index->near[at] : NULL;
}

typedef struct pg_result PGresult;

/* The functions of the libpq that the pg gem has loaded. */
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
    const char *text;   /* bytes that are UTF-8 if they are valid: only for CELL_TEXT */
    size_t length;
    VALUE value;        /* the Ruby object, Qundef when the text is PostgreSQL's */
};

static inline bool source_utf8_p(VALUE string)
{
    int encoding = RB_ENCODING_GET(string);
    return encoding == rb_utf8_encindex() || encoding == rb_usascii_encindex() || encoding == rb_ascii8bit_encindex();
}

/* @raise PG::Error when the result was cleared */
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

/* The value as the Ruby encoder sees it. */
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

/* What a relationship to several types writes and leads to for one of them. */
struct kind_parts {
    struct bytes link;
    long child;     /* -1: linkage only */
};

struct edge_parts {
    struct bytes before, name, link, link_end; /* of a linked record: what stands before and after its id */
    long child;     /* -1: linkage only */
    long kind_count;          /* 1, or of how many types the linked records are; `link` and `child` are those of the first */
    struct kind_parts *kinds; /* NULL where there is one */
    long position;  /* in the node's links */
    bool to_many;
    bool written;   /* false: it only leads to included records */
    bool data;      /* false: its linkage is left out */
};

struct node_parts {
    struct bytes open, close, type;
    long member_count, edge_count;
    struct member_parts *members;
    struct edge_parts *edges;
    long family;   /* nodes of one type are a family: a record that two of them hold is included once */
    bool related;  /* whether another node of the family exists */
    bool regular;  /* whether each row is written alike, so that `before` and `close` hold */
    bool after;    /* whether links and meta objects stand at the end of each record */
};

struct template {
    enum escape_mode mode;
    bool nested, compound;
    bool several_types; /* each primary row is written as the row that the root's only edge leads to */
    long node_count;
    struct node_parts *nodes;
    char *block;
    size_t block_used, block_size;
    size_t last_length;  /* of the last document: how much room the next one begins with; the one thing that changes */
};

enum coder { CODER_NONE, CODER_INTEGER, CODER_TEXT, CODER_BOOLEAN, CODER_FLOAT, CODER_DECIMAL, CODER_DATE, CODER_DATETIME, CODER_JSON, CODER_COUNT };

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

/* How one edge's links are read. */
struct links {
    struct arena *arena; /* the encoding's */
    bool grouped;        /* in rows of their own; else in a column of the parent */
    long column;         /* of the parent, when not grouped */
    struct source pairs; /* of lists only how many there are */
    long parent, related, kind; /* columns of the pairs; -1: all are of the first type */
    int64_t *parents;    /* of lists: the parent of each pair */
    int32_t *rows;       /* of each pair the row of its parent, -1 where there is none */
    struct link_target *found;   /* of each pair */
    struct link_target *targets; /* the same, sorted by the rows of their parents */
    int16_t *found_kinds, *kinds; /* the type of each, where there are several: of `found` and of `targets` */
    int32_t *starts;     /* for each row of the parent, where its targets begin; one more at the end */
    struct fragment *fragments;  /* by id */
    VALUE shown;         /* an Array that says for each row whether the relationship is written, or nil */
    VALUE after;         /* an Array of texts, one for each row, or nil */
};

/* One node's rows. */
struct section {
    struct arena *arena; /* the encoding's */
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
    struct arena arena;
    struct buffer buffer;
    uint32_t round;
    bool single, each, part;
    size_t written;   /* included objects of this round */
    VALUE included;   /* for encode_each the objects, for encode_part node and id of each */
};

extern VALUE coder_symbols[CODER_COUNT];

/* The targets of a row are those from `at` up to `end`. */
struct link_range {
    long at, end;
};

/* Goes through the ids of a column "1,2,3": up to `at` they have been read. A caller that may have called Ruby passes the column to be
 * read anew. */
struct column_walk {
    size_t at;
    bool ended, read;
    struct record_id whole, id;
};

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

static inline long encoder_number(const struct encoder *encoder, const struct section *section)
{
    return section - encoder->sections;
}

static inline bool encoder_shown(VALUE conditions, long row)
{
    return NIL_P(conditions) || RTEST(rb_ary_entry(conditions, row));
}

/* The node that a target's record is in. */
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
VALUE loaded_rows(VALUE self, VALUE records, VALUE attribute_set, VALUE names, VALUE coders);
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
