/*
 * The statements of a profile, each with its frames (Castellan::NativeLog): the part of Castellan::Profile::Recorder that runs for every
 * statement. It tells the tally, too. lib/castellan/profile/recorder.rb and nesting.rb hold the same in Ruby, which must give the same
 * answers.
 *
 * A statement is a few words in a list, and no object: its shape is the tally's, its frames are those of the last time where they are the
 * same. Whoever calls Ruby must look up what it points to anew afterwards.
 */
#include "log.h"
#include "call_site.h"
#include "list.h"
#include "number.h"
#include "ruby/encoding.h"
#include "tally.h"

#define MOST_KINDS 8
#define MOST_PLACES 8

struct statement {
    VALUE text;  /* nil where texts are not kept */
    VALUE shape; /* a Shape, or the fingerprint of what has none */
    VALUE sites, owner, association, rows;
    long long started_ns, duration_ns;
    int cached;
};

struct time {
    long long started_ns, duration_ns;
};

struct sum {
    VALUE kind; /* Symbol */
    long long total_ns;
};

struct log {
    VALUE tally, recorder, failure;
    VALUE *walks;
    struct statement *statements;
    struct time *ended; /* those that nothing has enclosed so far */
    struct sum sums[MOST_KINDS];
    long most, frames;
    long left_out, queries, cached_queries, rows;
    int walk_count, walk_room, statement_count, statement_room, ended_count, ended_room, sum_count;
    char texts;
};

static VALUE call_site = Qnil;
static ID id_shape, id_fingerprint, id_fingerprint_of, id_query, id_enter, id_leave, id_loaded, id_site_of, id_slept;
static VALUE sym_sql;

/* ---- memory ---- */

static void log_mark(void *pointer)
{
    const struct log *log = pointer;
    rb_gc_mark(log->tally);
    rb_gc_mark(log->recorder);
    rb_gc_mark(log->failure);
    for (int index = 0; index < log->walk_count; index++) rb_gc_mark(log->walks[index]);
    for (int index = 0; index < log->sum_count; index++) rb_gc_mark(log->sums[index].kind);
    for (int index = 0; index < log->statement_count; index++) {
        const struct statement *statement = &log->statements[index];
        rb_gc_mark(statement->text);
        rb_gc_mark(statement->shape);
        rb_gc_mark(statement->sites);
        rb_gc_mark(statement->owner);
        rb_gc_mark(statement->association);
        rb_gc_mark(statement->rows);
    }
}

static void log_free(void *pointer)
{
    struct log *log = pointer;
    xfree(log->walks);
    xfree(log->statements);
    xfree(log->ended);
    xfree(log);
}

static size_t log_size(const void *pointer)
{
    const struct log *log = pointer;
    return sizeof(*log) + log->walk_room * sizeof(VALUE) + log->statement_room * sizeof(struct statement) +
           log->ended_room * sizeof(struct time);
}

static const rb_data_type_t log_type = {
    "Castellan::NativeLog", { log_mark, log_free, log_size, NULL, { NULL } }, NULL, NULL, RUBY_TYPED_FREE_IMMEDIATELY
};

static VALUE log_allocate(VALUE class)
{
    struct log *log;
    VALUE self = TypedData_Make_Struct(class, struct log, &log_type, log);
    log->tally = log->recorder = log->failure = Qnil;
    return self;
}

static struct log *log_of(VALUE self)
{
    return rb_check_typeddata(self, &log_type);
}

/* ---- times that lie within each other ---- */

static long long *total_of(struct log *log, VALUE kind)
{
    int index = 0;
    while (index < log->sum_count && log->sums[index].kind != kind) index++;
    if (index == MOST_KINDS) return NULL;
    if (index == log->sum_count) log->sums[log->sum_count++] = (struct sum){ kind, 0 };
    return &log->sums[index].total_ns;
}

/* Without what began after it, and therefore lies within. */
static void nest(struct log *log, VALUE kind, long long started_ns, long long duration_ns)
{
    long long own_ns = duration_ns;
    while (log->ended_count > 0 && log->ended[log->ended_count - 1].started_ns >= started_ns) {
        own_ns -= log->ended[--log->ended_count].duration_ns;
    }
    long long *total = total_of(log, kind);
    if (total && own_ns > 0) *total += own_ns;
    log->ended = list_grown(log->ended, log->ended_count, 1, &log->ended_room, sizeof(struct time));
    log->ended[log->ended_count++] = (struct time){ started_ns, duration_ns };
}

/* ---- what a recording tells ---- */

struct told {
    VALUE self, sql, name, rows, binds;
    long long started_ns, duration_ns;
    int cached;
    int lasting; /* whether the binds stay as they are */
};

static void keep(struct log *log, const struct told *told, VALUE shape, VALUE text, VALUE sites)
{
    log->statements = list_grown(log->statements, log->statement_count, 1, &log->statement_room, sizeof(struct statement));
    log->statements[log->statement_count++] = (struct statement){
        text, shape, sites, log->walk_count ? log->walks[log->walk_count - 2] : Qnil,
        log->walk_count ? log->walks[log->walk_count - 1] : Qnil, told->rows, told->started_ns, told->duration_ns, told->cached
    };
}

static VALUE count(VALUE pointer)
{
    const struct told *told = (const struct told *)pointer;
    struct log *log = log_of(told->self);
    VALUE sql = RB_TYPE_P(told->sql, T_STRING) ? told->sql : rb_obj_as_string(told->sql);

    nest(log, sym_sql, told->started_ns, told->duration_ns);
    if (told->lasting) {
        castellan_tally_count(log->tally, sql, told->name, told->started_ns, told->duration_ns, told->cached, told->binds);
    } else {
        rb_funcall(log->tally, id_query, 7, sql, told->name, LL2NUM(told->started_ns), LL2NUM(told->duration_ns),
                   told->cached ? Qtrue : Qfalse, told->rows, told->binds);
    }
    VALUE shape = rb_funcallv(log->tally, id_shape, 0, NULL);
    if (NIL_P(shape)) shape = rb_funcall(log->recorder, id_fingerprint_of, 2, sql, told->name);
    if (!RTEST(shape)) return Qnil;

    if (told->cached) log->cached_queries++;
    else log->queries++;
    if (FIXNUM_P(told->rows)) log->rows += FIX2LONG(told->rows);
    if (log->statement_count >= log->most) {
        log->left_out++;
        return Qnil;
    }
    VALUE sites = castellan_call_site_frames(call_site, log->frames);
    keep(log, told, shape, log->texts ? rb_str_new_frozen(sql) : Qnil, sites);
    return Qnil;
}

static VALUE failed(VALUE self, VALUE error)
{
    log_of(self)->failure = error;
    return Qnil;
}

static void tell(struct told *told)
{
    if (!NIL_P(log_of(told->self)->failure)) return;

    rb_rescue2(count, (VALUE)told, failed, told->self, rb_eStandardError, (VALUE)0);
    RB_GC_GUARD(told->self);
}

static VALUE log_initialize(VALUE self, VALUE tally, VALUE recorder, VALUE most, VALUE frames, VALUE texts)
{
    struct log *log = log_of(self);
    if (NIL_P(call_site)) call_site = rb_path2class("Castellan::CallSite"); /* written in Ruby and loaded after this */
    if (!castellan_tally_p(tally)) rb_raise(rb_eTypeError, "a log tells a Castellan::NativeTally");
    log->tally = tally;
    log->recorder = recorder;
    log->most = NUM2LONG(most);
    log->frames = NUM2LONG(frames);
    log->texts = RTEST(texts);
    return self;
}

static VALUE log_query(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 6, 7);
    struct told told = { self, argv[0], argv[1], argv[5], argc > 6 ? argv[6] : Qnil, NUM2LL(argv[2]), NUM2LL(argv[3]),
                         RTEST(argv[4]), 0 };
    tell(&told);
    return Qnil;
}

static VALUE log_enter(VALUE self, VALUE owner, VALUE association)
{
    struct log *log = log_of(self);
    log->walks = list_grown(log->walks, log->walk_count, 2, &log->walk_room, sizeof(VALUE));
    log->walks[log->walk_count++] = owner;
    log->walks[log->walk_count++] = association;
    return rb_funcall(log->tally, id_enter, 2, owner, association);
}

static VALUE log_leave(VALUE self)
{
    struct log *log = log_of(self);
    if (log->walk_count) log->walk_count -= 2;
    return rb_funcallv(log->tally, id_leave, 0, NULL);
}

static VALUE log_loaded(VALUE self, VALUE model, VALUE count, VALUE site)
{
    return rb_funcall(log_of(self)->tally, id_loaded, 3, model, count, site);
}

static VALUE log_site_of(VALUE self, VALUE model)
{
    return rb_funcall(log_of(self)->tally, id_site_of, 1, model);
}

static VALUE log_slept(VALUE self)
{
    return rb_funcallv(log_of(self)->tally, id_slept, 0, NULL);
}

static VALUE log_add(VALUE self, VALUE kind, VALUE started_ns, VALUE duration_ns)
{
    nest(log_of(self), kind, NUM2LL(started_ns), NUM2LL(duration_ns));
    return Qnil;
}

/* ---- what it answers ---- */

static VALUE fingerprint_of(const struct statement *one)
{
    return RB_TYPE_P(one->shape, T_STRING) ? one->shape : rb_funcallv(one->shape, id_fingerprint, 0, NULL);
}

/* One after the other, what FIELDS of recorder.rb says of each. */
static VALUE log_entries(VALUE self)
{
    const struct log *log = log_of(self);
    VALUE entries = rb_ary_new();
    for (int index = 0; index < log->statement_count; index++) {
        struct statement one = log->statements[index];
        VALUE fields[] = { one.text, fingerprint_of(&one), LL2NUM(one.started_ns), LL2NUM(one.duration_ns), one.rows,
                           one.cached ? Qtrue : Qfalse, one.sites, one.owner, one.association };
        rb_ary_cat(entries, fields, sizeof(fields) / sizeof(*fields));
    }
    RB_GC_GUARD(self);
    return entries;
}

/* What stands in a table for a statement, besides its own figures: the same for all that are alike. */
struct places {
    struct statement of;
    VALUE text;
};

static int alike(const struct statement *one, const struct statement *other)
{
    return one->text == other->text && one->shape == other->shape && one->sites == other->sites && one->owner == other->owner &&
           one->association == other->association;
}

/* Asked for by a block; the last MOST_PLACES are known. */
static VALUE places_of(struct places *known, int *asked, const struct statement *one)
{
    for (int index = 0; index < *asked && index < MOST_PLACES; index++) {
        if (alike(&known[index].of, one)) return known[index].text;
    }
    VALUE text = rb_yield_values(5, one->text, fingerprint_of(one), one->sites, one->owner, one->association);
    StringValue(text);
    known[(*asked)++ % MOST_PLACES] = (struct places){ *one, text };
    return text;
}

/* Statements are told when they end, so only those that lie within another stand before it: few change places. */
static void order(const struct log *log, int *numbers)
{
    for (int index = 0; index < log->statement_count; index++) {
        int place = index;
        while (place > 0 && log->statements[numbers[place - 1]].started_ns > log->statements[index].started_ns) {
            numbers[place] = numbers[place - 1];
            place--;
        }
        numbers[place] = index;
    }
}

static size_t text_format(char *target, const char *text)
{
    size_t length = strlen(text);
    memcpy(target, text, length);
    return length;
}

/* The cells that are a statement's own, each with a comma; returns how many bytes were written. */
static long figures_format(char *target, const struct statement *one, long long from_ns)
{
    char *end = target;
    end += number_format(end, one->started_ns - from_ns);
    *end++ = ',';
    end += number_format(end, one->duration_ns);
    *end++ = ',';
    end += FIXNUM_P(one->rows) ? number_format(end, FIX2LONG(one->rows)) : text_format(end, "null");
    end += text_format(end, one->cached ? ",true," : ",false,");
    return end - target;
}

/* The cells of a Castellan::Profile::QueryTable, as text, in the order in which the statements began. */
static VALUE log_cells(VALUE self, VALUE from)
{
    const struct log *log = log_of(self);
    long long from_ns = NUM2LL(from);
    struct places known[MOST_PLACES];
    int asked = 0, size = log->statement_count;
    VALUE holder, cells = rb_str_buf_new(size * 48L);
    int *numbers = ALLOCV_N(int, holder, size);
    char figures[3 * NUMBER_DIGITS + 16];
    rb_enc_associate_index(cells, rb_utf8_encindex());

    order(log, numbers);
    for (int index = 0; index < size; index++) {
        struct statement one = log->statements[numbers[index]];
        if (index) rb_str_cat(cells, ",", 1);
        rb_str_cat(cells, figures, figures_format(figures, &one, from_ns));
        rb_str_append(cells, places_of(known, &asked, &one));
    }
    ALLOCV_END(holder);
    RB_GC_GUARD(self);
    return cells;
}

static VALUE log_total(VALUE self, VALUE kind)
{
    const struct log *log = log_of(self);
    for (int index = 0; index < log->sum_count; index++) {
        if (log->sums[index].kind == kind) return LL2NUM(log->sums[index].total_ns);
    }
    return INT2FIX(0);
}

static VALUE log_totals(VALUE self)
{
    const struct log *log = log_of(self);
    return rb_ary_new_from_args(3, LONG2NUM(log->queries), LONG2NUM(log->cached_queries), LONG2NUM(log->rows));
}

static VALUE log_left_out(VALUE self) { return LONG2NUM(log_of(self)->left_out); }
static VALUE log_failure(VALUE self) { return log_of(self)->failure; }

int castellan_log_p(VALUE object)
{
    return rb_typeddata_is_kind_of(object, &log_type);
}

void castellan_log_add(VALUE self, VALUE sql, VALUE name, long long started_ns, long long duration_ns, int cached, VALUE rows, VALUE binds)
{
    struct told told = { self, sql, name, rows, binds, started_ns, duration_ns, cached, 1 };
    tell(&told);
}

void Init_log(VALUE castellan)
{
    rb_gc_register_address(&call_site);
    id_shape = rb_intern("shape");
    id_fingerprint = rb_intern("fingerprint");
    id_fingerprint_of = rb_intern("fingerprint_of");
    id_query = rb_intern("query");
    id_enter = rb_intern("enter");
    id_leave = rb_intern("leave");
    id_loaded = rb_intern("loaded");
    id_site_of = rb_intern("site_of");
    id_slept = rb_intern("slept");
    sym_sql = ID2SYM(rb_intern("sql"));

    VALUE native = rb_define_class_under(castellan, "NativeLog", rb_cObject);
    rb_define_alloc_func(native, log_allocate);
    rb_define_method(native, "initialize", log_initialize, 5);
    rb_define_method(native, "query", log_query, -1);
    rb_define_method(native, "enter", log_enter, 2);
    rb_define_method(native, "leave", log_leave, 0);
    rb_define_method(native, "loaded", log_loaded, 3);
    rb_define_method(native, "site_of", log_site_of, 1);
    rb_define_method(native, "slept", log_slept, 0);
    rb_define_method(native, "add", log_add, 3);
    rb_define_method(native, "entries", log_entries, 0);
    rb_define_method(native, "cells", log_cells, 1);
    rb_define_method(native, "total", log_total, 1);
    rb_define_method(native, "totals", log_totals, 0);
    rb_define_method(native, "left_out", log_left_out, 0);
    rb_define_method(native, "failure", log_failure, 0);
}
