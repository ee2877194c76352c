/*
 * Lists of integers as databases write them: "{1,2,3}" or "1,2,3". Read and made without a Ruby object for each.
 *
 *   Native.id_list(result)                 # => "{1,2,3}", of the first column
 *   Native.distinct_ids(["3,1", "1,2"])    # => [3, 1, 2]
 *   Native.column_ids([[7, "3,1"]], 1)     # => [3, 1], of that column
 *
 * All return nil for values other than integers of at most 17 digits (id_list: of NUMBER_DIGITS characters), which Ruby
 * then reads (rows/id_list.rb).
 */
#ifndef CASTELLAN_IDS_H
#define CASTELLAN_IDS_H

#include "number.h"
#include "source.h"

#define ID_DIGITS 17

struct id_text {
    const char *at, *end;
};

/* The text between the braces, if there are such. */
static inline struct id_text id_text_of(const char *text, size_t length)
{
    struct id_text list = { text, text + length };
    if (length >= 2 && text[0] == '{' && text[length - 1] == '}') {
        list.at++;
        list.end--;
    }
    return list;
}

/* Reads one, and the comma behind it. False where it is anything else. */
static inline bool id_text_next(struct id_text *list, int64_t *number)
{
    const char *start = list->at, *at = start;
    int64_t value = 0;
    bool negative = at < list->end && *at == '-';
    if (negative) start = ++at;
    while (at < list->end && number_digit(*at) && at - start <= ID_DIGITS) value = value * 10 + (*at++ - '0');
    if (at == start || at - start > ID_DIGITS || (*start == '0' && (at - start > 1 || negative))) return false;
    if (at < list->end && (*at != ',' || at + 1 == list->end)) return false;
    list->at = at + (at < list->end);
    *number = negative ? -value : value;
    return true;
}

/* Integers, each once, in the order in which they came. */
struct id_set {
    VALUE memory;         /* of both arrays: the collector's, so that nothing has to be freed */
    int64_t *numbers;
    int32_t *places;      /* by hash: position in `numbers`, -1: free */
    size_t count, mask;
};

static inline size_t id_set_hash(int64_t number)
{
    uint64_t key = (uint64_t)number * 0x9E3779B97F4A7C15ULL;
    return (size_t)(key >> 32);
}

static int32_t *id_set_place(const struct id_set *set, int64_t number)
{
    size_t at = id_set_hash(number) & set->mask;
    while (set->places[at] >= 0 && set->numbers[set->places[at]] != number) at = (at + 1) & set->mask;
    return &set->places[at];
}

/* Half of the places stay free. @raise NoMemoryError */
static void id_set_allocate(struct id_set *set, size_t places)
{
    const struct id_set old = *set;
    VALUE kept = old.memory;
    set->memory = rb_str_tmp_new((long)(places / 2 * sizeof(int64_t) + places * sizeof(int32_t)));
    set->numbers = (int64_t *)RSTRING_PTR(set->memory);
    set->places = (int32_t *)(set->numbers + places / 2);
    set->mask = places - 1;
    memset(set->places, 0xFF, places * sizeof(int32_t));
    if (old.count) memcpy(set->numbers, old.numbers, old.count * sizeof(int64_t));
    for (size_t i = 0; i < old.count; i++) *id_set_place(set, set->numbers[i]) = (int32_t)i;
    RB_GC_GUARD(kept);
}

static void id_set_add(struct id_set *set, int64_t number)
{
    int32_t *place = id_set_place(set, number);
    if (*place >= 0) return;
    if (set->count == (set->mask + 1) / 2) {
        id_set_allocate(set, (set->mask + 1) * 4);
        place = id_set_place(set, number);
    }
    set->numbers[set->count] = number;
    *place = (int32_t)set->count++;
}

/* Adds those of a text; false where there is anything else in it. */
static bool id_set_add_text(struct id_set *set, const char *text, size_t length)
{
    struct id_text list = id_text_of(text, length);
    int64_t number;
    while (list.at < list.end) {
        if (!id_text_next(&list, &number) || set->count > INT32_MAX / 8) return false;
        id_set_add(set, number);
    }
    return true;
}

static VALUE id_set_array(const struct id_set *set)
{
    VALUE ids = rb_ary_new_capa((long)set->count);
    for (size_t i = 0; i < set->count; i++) rb_ary_push(ids, LL2NUM(set->numbers[i]));
    return ids;
}

/* Native.distinct_ids(texts) → an array of Integers, or nil */
static VALUE ids_distinct(VALUE self, VALUE texts)
{
    struct id_set set = { Qnil, NULL, NULL, 0, 0 };
    VALUE ids;
    Check_Type(texts, T_ARRAY);
    id_set_allocate(&set, 512);
    for (long i = 0; i < RARRAY_LEN(texts); i++) {
        VALUE text = rb_ary_entry(texts, i);
        if (!RB_TYPE_P(text, T_STRING) || !id_set_add_text(&set, RSTRING_PTR(text), (size_t)RSTRING_LEN(text))) return Qnil;
        RB_GC_GUARD(text);
    }
    ids = id_set_array(&set);
    RB_GC_GUARD(set.memory);
    return ids;
}

/* Native.column_ids(rows, position) → an array of Integers, or nil */
static VALUE ids_column(VALUE self, VALUE rows, VALUE position)
{
    struct id_set set = { Qnil, NULL, NULL, 0, 0 };
    struct source source = source_of(rows);
    long column = NUM2LONG(position);
    VALUE ids;
    id_set_allocate(&set, 512);
    source_refresh(&source);
    for (long row = 0; row < source.size; row++) {
        struct cell cell = source_cell(&source, row, column);
        if (cell.kind == CELL_VALUE) return Qnil;
        if (cell.kind == CELL_TEXT && !id_set_add_text(&set, cell.text, cell.length)) return Qnil;
        RB_GC_GUARD(cell.value);
    }
    ids = id_set_array(&set);
    RB_GC_GUARD(set.memory);
    RB_GC_GUARD(source.rows);
    return ids;
}

/* Native.id_list(rows) → the integers of the first column as text of an array, or nil */
static VALUE ids_list(VALUE self, VALUE rows)
{
    struct source source;
    VALUE text;
    char *at, *first;
    if (RB_TYPE_P(rows, T_ARRAY) || !source_pg_result_p(rows)) return Qnil;
    source = source_of(rows);
    if (!source.result) return Qnil;
    text = rb_utf8_str_new(NULL, source.size * (NUMBER_DIGITS + 1) + 2);
    source_refresh(&source);
    at = RSTRING_PTR(text);
    *at++ = '{';
    first = at;
    for (long row = 0; row < source.size; row++) {
        struct cell cell = source_cell(&source, row, 0);
        if (cell.kind == CELL_NULL) continue;
        if (cell.length > NUMBER_DIGITS || !number_integer_text(cell.text, cell.length)) return Qnil;
        memcpy(at, cell.text, cell.length);
        at += cell.length;
        *at++ = ',';
    }
    if (at > first) at--;
    *at++ = '}';
    rb_str_resize(text, at - RSTRING_PTR(text));
    RB_GC_GUARD(source.rows);
    return text;
}

#endif
