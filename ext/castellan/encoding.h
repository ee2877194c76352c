/*
 * The state of one encoding: the rows of each node, the readers of each relationship's links, and the output.
 */
#ifndef CASTELLAN_ENCODING_H
#define CASTELLAN_ENCODING_H

#include "buffer.h"
#include "index.h"
#include "source.h"
#include "template.h"
#include <ruby.h>

enum coder { CODER_NONE, CODER_INTEGER, CODER_TEXT, CODER_BOOLEAN, CODER_FLOAT, CODER_DECIMAL, CODER_DATE, CODER_DATETIME, CODER_JSON, CODER_COUNT };

static const char *const coder_names[CODER_COUNT] = { NULL, "integer", "text", "boolean", "float", "decimal", "date", "datetime", "json" };
static VALUE coder_symbols[CODER_COUNT];
static ID id_rows, id_coders, id_links, id_computed, id_asides, id_after, id_members, id_edges, id_edges_after, id_position, id_parent_position, id_related_position, id_kind_position, id_pairs;
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

#endif
