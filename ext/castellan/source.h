/*
 * Reads rows from an array of arrays, or from a PG::Result in place, without a string for each value.
 *
 *   struct source source = source_of(rows);
 *   struct cell cell = source_cell(&source, 0, 2);
 *
 * The extension does not link libpq: the pg gem brings its own. Its functions are looked up in the loaded pg_ext; if one
 * is missing, PG::Result#values is called. A `struct source` lives on the C stack, which keeps its objects alive and in
 * place. The text of a cell is valid until the next call into Ruby; call source_refresh after each.
 */
#ifndef CASTELLAN_SOURCE_H
#define CASTELLAN_SOURCE_H

#include <dlfcn.h>
#include <ruby.h>
#include <ruby/encoding.h>
#include <stdbool.h>
#include <string.h>

typedef struct pg_result PGresult;

static struct {
    bool tried, found;
    PGresult *(*get)(VALUE);
    char *(*value)(const PGresult *, int, int);
    int (*length)(const PGresult *, int, int);
    int (*is_null)(const PGresult *, int, int);
    int (*rows)(const PGresult *);
    int (*columns)(const PGresult *);
} libpq;

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

static void *source_symbol(void *library, const char *name)
{
    void *symbol = dlsym(library, name);
    if (!symbol) libpq.found = false;
    return symbol;
}

/* The functions of the library at this path. RTLD_NOLOAD: only if the process has it already. */
static void source_resolve(const char *path)
{
    void *library = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
    if (!library) return;
    libpq.found = true;
    *(void **)&libpq.get = source_symbol(library, "pgresult_get");
    *(void **)&libpq.value = source_symbol(library, "PQgetvalue");
    *(void **)&libpq.length = source_symbol(library, "PQgetlength");
    *(void **)&libpq.is_null = source_symbol(library, "PQgetisnull");
    *(void **)&libpq.rows = source_symbol(library, "PQntuples");
    *(void **)&libpq.columns = source_symbol(library, "PQnfields");
    if (!libpq.found) dlclose(library);
}

static void source_find_libpq(void)
{
    VALUE features = rb_gv_get("$LOADED_FEATURES");
    libpq.tried = true;
    for (long i = RARRAY_LEN(features) - 1; i >= 0 && !libpq.found; i--) {
        VALUE path = rb_ary_entry(features, i);
        const char *name = RB_TYPE_P(path, T_STRING) ? strrchr(StringValueCStr(path), '/') : NULL;
        if (name && strncmp(name, "/pg_ext.", 8) == 0) source_resolve(StringValueCStr(path));
        RB_GC_GUARD(path);
    }
}

/* Whether it is a PG::Result: given anything else, libpq's functions crash. */
static bool source_pg_result_p(VALUE rows)
{
    VALUE pg, result;
    if (!RB_TYPE_P(rows, T_DATA) || !RTYPEDDATA_P(rows) || !RTYPEDDATA_DATA(rows)) return false;
    if (!rb_const_defined(rb_cObject, rb_intern("PG"))) return false;
    pg = rb_const_get(rb_cObject, rb_intern("PG"));
    if (!RB_TYPE_P(pg, T_MODULE) || !rb_const_defined(pg, rb_intern("Result"))) return false;
    result = rb_const_get(pg, rb_intern("Result"));
    return RB_TYPE_P(result, T_CLASS) && RTEST(rb_obj_is_kind_of(rows, result));
}

static inline bool source_utf8_p(VALUE string)
{
    int encoding = RB_ENCODING_GET(string);
    return encoding == rb_utf8_encindex() || encoding == rb_usascii_encindex() || encoding == rb_ascii8bit_encindex();
}

/* A result's strings are in the encoding of its connection; its first column's name tells. */
static bool source_readable(VALUE rows, const PGresult *result)
{
    if (libpq.columns(result) == 0) return true;
    return source_utf8_p(rb_funcall(rows, rb_intern("fname"), 1, INT2FIX(0)));
}

/* @raise PG::Error when the result was cleared */
static inline void source_refresh(struct source *source)
{
    if (source->result) source->result = libpq.get(source->rows);
}

static struct source source_of(VALUE rows)
{
    struct source source = { rows, NULL, 0, 0 };
    if (!RB_TYPE_P(rows, T_ARRAY) && source_pg_result_p(rows)) {
        if (!libpq.tried) source_find_libpq();
        if (libpq.found && source_readable(rows, libpq.get(rows))) {
            source.result = libpq.get(rows);
            source.size = libpq.rows(source.result);
            source.columns = libpq.columns(source.result);
            return source;
        }
    }
    if (!RB_TYPE_P(rows, T_ARRAY)) source.rows = rows = rb_funcall(rows, rb_intern("values"), 0);
    Check_Type(rows, T_ARRAY);
    source.size = RARRAY_LEN(rows);
    return source;
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

#endif
