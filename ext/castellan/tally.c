/*
 * Counts the statements of a recording without making an object: the part of Castellan::Detect::Tally that runs for every
 * statement. lib/castellan/detect/tally.rb and group.rb hold the same in Ruby, which must count the same.
 *
 * Each header is a part of it, and all of them are compiled here, as one: tally_text.h (what a text is), tally_state.h (what a tally
 * holds), tally_group.h (the statements of one shape), tally_values.h (their values), tally_again.h (those that repeat), tally_answers.h.
 * Here is also a request in production, which makes a tally and asks it (Castellan::NativeProduction; in Ruby detect/production.rb).
 *
 * What a text is belongs to the process, everything else to one recording. Whoever calls Ruby must look up its group anew afterwards:
 * that call may have counted a statement itself.
 */
#include "tally.h"
#include "recording.h"
#include "tally_again.h"
#include "tally_answers.h"
#include "tally_group.h"
#include "tally_values.h"
#include <time.h>

#define MOST_LOADS 500 /* as in tally.rb */

static ID id_slow, id_wrote;
static ID id_active_record, id_name; /* of a reflection */
static ID id_slow_after, id_strands, id_native; /* of a Tally in Ruby */
static ID id_observer, id_parent, id_wants, id_told, id_listener, id_walker; /* of a Recording */
static ID id_answer, id_call, id_over, id_requests, id_settle, id_singles, id_slow_ns, id_watched_ns; /* of a Production and its Tally */
static VALUE no_strands = Qnil, recording_class = Qnil, tally_wants = Qnil, native_class = Qnil;
static long long window_ns; /* Breaker::WINDOW_NS */

static void wrote(struct tally *tally, VALUE shape)
{
    tally->writes++;
    rb_funcall(tally->observer, id_wrote, 1, shape);
}

static void slow(struct tally *tally, VALUE shape, long long duration_ns)
{
    if (duration_ns >= tally->slow_ns) rb_funcall(tally->observer, id_slow, 2, shape, LL2NUM(duration_ns));
}

static void count(struct tally *tally, VALUE sql, VALUE name, long long started_ns, long long duration_ns, int cached, VALUE binds,
                  int lasting)
{
    VALUE shape;
    if (!RB_TYPE_P(sql, T_STRING)) sql = rb_obj_as_string(sql);
    const struct repeated *known = repeated_find(tally, sql, name);
    struct text text;
    if (known) {
        text = known->text;
        shape = known->shape;
    } else {
        text = text_of(sql, name, &shape);
    }
    tally->told++;
    tally->site_of = Qnil;
    tally->joins = text.flags & JOINS;
    tally->shape = text.flags & WRITES_BULK ? Qnil : shape;
    int failed = tally->failed;
    tally->failed = 0;
    if (!text.flags) return;
    if (text.flags & WRITES_BULK) return wrote(tally, shape);

    int index = group_of(tally, &text, shape);
    if (index < 0) return;

    struct group *group = &tally->groups[index];
    if (cached) {
        group->cached++;
        return;
    }
    int instead = group->refused && !failed; /* it takes the place of the one that was refused */
    group->refused = failed;
    group_time(tally, group, started_ns, duration_ns);
    if (instead) {
        if (text.flags & WRITES) wrote(tally, shape);
        return slow(tally, shape, duration_ns);
    }
    group->count++;
    if (group->count > 1 && !(known && known->group == index)) repeated_keep(tally, index, &text, shape, sql, name);
    int settled = group->settled;
    group_locate(tally, index, name);
    if (text.flags & WRITES) {
        wrote(tally, shape);
        if (tally->groups[index].has_pieces) values_read(tally, index, sql, binds);
    } else if (!settled) values_learn(tally, index, text.hash, shape, sql, binds, lasting);
    slow(tally, shape, duration_ns);
}

/* ---- what a recording tells ---- */

/* These are written in Ruby and loaded after this. */
static void find_classes(void)
{
    if (!NIL_P(text_reader)) return;

    pieces_class = rb_path2class("Castellan::Detect::Pieces");
    group_call_site = rb_path2class("Castellan::CallSite");
    recording_class = rb_path2class("Castellan::Recording");
    tally_wants = rb_funcall(rb_path2class("Castellan::Detect::Tally"), rb_intern("wants"), 0);
    text_reader = rb_path2class("Castellan::Detect::Tally");
}

static VALUE tally_initialize(VALUE self, VALUE observer, VALUE slow_ns, VALUE order)
{
    struct tally *tally = tally_of(self);
    find_classes();
    tally->observer = observer;
    tally->slow_ns = NIL_P(slow_ns) ? LLONG_MAX : NUM2LL(slow_ns);
    tally->order = NUM2LONG(order);
    return self;
}

/* What Tally.recording answers without this extension, in one call: a Recording, within the current one, of a new Tally. */
static VALUE tally_recording(VALUE native, VALUE slow_ns)
{
    find_classes();
    VALUE parent = castellan_recording_current();
    VALUE tally = rb_obj_alloc(text_reader), recording = rb_obj_alloc(recording_class);
    VALUE self = tally_initialize(tally_allocate(native), tally, slow_ns, INT2FIX(0));
    VALUE told = NIL_P(parent) ? self : recording;
    rb_ivar_set(tally, id_slow_after, slow_ns);
    rb_ivar_set(tally, id_strands, no_strands);
    rb_ivar_set(tally, id_native, self);
    rb_ivar_set(recording, id_observer, tally);
    rb_ivar_set(recording, id_parent, parent);
    rb_ivar_set(recording, id_wants, tally_wants);
    rb_ivar_set(recording, id_told, self);
    rb_ivar_set(recording, id_listener, told);
    rb_ivar_set(recording, id_walker, told);
    return rb_obj_freeze(recording);
}

/* ---- a request in production, of which most have nothing to say ---- */

struct request {
    VALUE watch, app, env, recording;
    long long started_ns;
    int answered; /* whether the application returned */
    int left; /* whether Ruby sees to the end of it */
};

static long long monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static VALUE request_call(VALUE pointer)
{
    const struct request *request = (const struct request *)pointer;
    return rb_funcallv(request->app, id_call, 1, &request->env);
}

static VALUE request_work(VALUE pointer)
{
    struct request *request = (struct request *)pointer;
    VALUE response = castellan_recording_resume(request->recording, request_call, pointer);
    request->answered = 1;
    if (RB_TYPE_P(response, T_ARRAY) && RARRAY_LEN(response) == 3 && RB_TYPE_P(RARRAY_AREF(response, 2), T_ARRAY)) return response;

    request->left = 1;
    return rb_funcall(request->watch, id_answer, 4, response, request->env, request->recording, LL2NUM(request->started_ns));
}

/* Tally#once? */
static int once(VALUE observer)
{
    return RTEST(tally_once(rb_attr_get(observer, id_native))) && rb_attr_get(observer, id_strands) == no_strands &&
           NIL_P(rb_attr_get(observer, id_singles));
}

/* Production#spend */
static void spend(VALUE watch, VALUE env, long long duration_ns)
{
    long long watched_ns = NUM2LL(rb_ivar_get(watch, id_watched_ns)) + duration_ns;
    rb_ivar_set(watch, id_watched_ns, LL2NUM(watched_ns));
    rb_ivar_set(watch, id_requests, LONG2NUM(NUM2LONG(rb_ivar_get(watch, id_requests)) + 1));
    if (watched_ns >= window_ns) rb_funcall(watch, id_settle, 1, env);
}

static VALUE request_over(VALUE pointer)
{
    const struct request *request = (const struct request *)pointer;
    if (request->left) return Qnil;

    long long duration_ns = monotonic_ns() - request->started_ns;
    VALUE observer = rb_ivar_get(request->recording, id_observer);
    if (request->answered && once(observer)) spend(request->watch, request->env, duration_ns);
    else rb_funcall(request->watch, id_over, 4, observer, Qnil, request->env, LL2NUM(duration_ns));
    return Qnil;
}

/* Castellan::NativeProduction#watch_plainly */
static VALUE production_watch_plainly(VALUE self, VALUE app, VALUE env)
{
    VALUE recording = tally_recording(native_class, rb_ivar_get(self, id_slow_ns));
    if (!window_ns) window_ns = NUM2LL(rb_const_get(rb_path2class("Castellan::Detect::Production::Breaker"), rb_intern("WINDOW_NS")));
    struct request request = { self, app, env, recording, monotonic_ns(), 0, 0 };
    return rb_ensure(request_work, (VALUE)&request, request_over, (VALUE)&request);
}

struct told {
    VALUE self, sql, name, binds;
    long long started_ns, duration_ns;
    int cached, lasting;
};

static VALUE count_told(VALUE pointer)
{
    const struct told *told = (const struct told *)pointer;
    count(tally_of(told->self), told->sql, told->name, told->started_ns, told->duration_ns, told->cached, told->binds, told->lasting);
    return Qnil;
}

static VALUE failed(VALUE self, VALUE error)
{
    tally_of(self)->failure = error;
    return Qnil;
}

/* A mistake in here must not reach whoever sent the statement. */
static void tell(struct told *told)
{
    struct tally *tally = tally_of(told->self);
    if (!NIL_P(tally->failure)) return;

    if (told->cached || !counted_again(tally, told->sql, told->name, told->started_ns, told->duration_ns, told->binds)) {
        rb_rescue2(count_told, (VALUE)told, failed, told->self, rb_eStandardError, (VALUE)0);
    }
    RB_GC_GUARD(told->self);
}

static VALUE tally_query(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 6, 7);
    struct told told = { self, argv[0], argv[1], argc > 6 ? argv[6] : Qnil, NUM2LL(argv[2]), NUM2LL(argv[3]), RTEST(argv[4]), 0 };
    tell(&told);
    return Qnil;
}

static void enter(struct tally *tally, VALUE owner, VALUE association)
{
    tally->around = list_grown(tally->around, tally->around_count, 2, &tally->around_room, sizeof(VALUE));
    tally->around[tally->around_count++] = tally->owner;
    tally->around[tally->around_count++] = tally->association;
    tally->owner = owner;
    tally->association = association;
}

static VALUE tally_enter(VALUE self, VALUE owner, VALUE association)
{
    enter(tally_of(self), owner, association);
    return Qnil;
}

void castellan_tally_walk(VALUE self, VALUE reflection)
{
    struct tally *tally = tally_of(self);
    struct walk *walk = &tally->walks[(reflection >> 3 ^ reflection >> 6) & (WALKS - 1)];
    if (walk->reflection != reflection) {
        VALUE owner = rb_funcall(reflection, id_active_record, 0), association = rb_funcall(reflection, id_name, 0);
        *walk = (struct walk){ reflection, owner, association };
    }
    enter(tally, walk->owner, walk->association);
    RB_GC_GUARD(self);
}

static VALUE tally_leave(VALUE self)
{
    struct tally *tally = tally_of(self);
    int some = tally->around_count > 0;
    tally->association = some ? tally->around[--tally->around_count] : Qnil;
    tally->owner = some ? tally->around[--tally->around_count] : Qnil;
    return Qnil;
}

static VALUE tally_loaded(VALUE self, VALUE model, VALUE count, VALUE site)
{
    struct tally *tally = tally_of(self);
    int known = 0;
    model = rb_obj_as_string(model); /* a class may have no name */
    long records = NUM2LONG(count);
    tally->told++;
    for (int index = 0; index < tally->load_count; index++) {
        struct load *load = &tally->loads[index];
        if (load->site != site) continue;

        known = 1;
        if (load->model != model && !RTEST(rb_str_equal(load->model, model))) continue;
        load->count += records;
        load->times++;
        return Qnil;
    }
    if (!known && tally->load_count >= MOST_LOADS) return Qnil;

    tally->loads = list_grown(tally->loads, tally->load_count, 1, &tally->load_room, sizeof(struct load));
    tally->loads[tally->load_count++] = (struct load){ site, model, records, 1, ++tally->order, tally->joins };
    return Qnil;
}

static VALUE tally_slept(VALUE self)
{
    tally_of(self)->naps++;
    return Qnil;
}

static VALUE tally_failed(VALUE self)
{
    tally_of(self)->failed = 1;
    return Qnil;
}

/* @return whether ActiveRecord calls a statement for records of this model by that name: "User Load" */
static int loads(VALUE name, VALUE model)
{
    if (!RB_TYPE_P(name, T_STRING) || !RB_TYPE_P(model, T_STRING)) return 0;

    long length = RSTRING_LEN(model);
    return RSTRING_LEN(name) == length + 5 && memcmp(RSTRING_PTR(name), RSTRING_PTR(model), length) == 0 &&
           memcmp(RSTRING_PTR(name) + length, " Load", 5) == 0;
}

/* The line that asked for records of ActiveRecord's: that of their statement, where it was the last and was looked up. */
static VALUE tally_site_of(VALUE self, VALUE model)
{
    const struct tally *tally = tally_of(self);
    return loads(tally->site_of, model) ? tally->site : castellan_call_site(group_call_site);
}

static VALUE tally_shape(VALUE self) { return tally_of(self)->shape; }
static VALUE tally_order(VALUE self) { return LONG2NUM(tally_of(self)->order); }
static VALUE tally_failure(VALUE self) { return tally_of(self)->failure; }
static VALUE tally_told(VALUE self) { return LONG2NUM(tally_of(self)->told); }

int castellan_tally_p(VALUE object)
{
    return is_tally(object);
}

void castellan_tally_tell(VALUE self, VALUE sql, VALUE name, long long started_ns, long long duration_ns, int cached, VALUE binds)
{
    struct told told = { self, sql, name, binds, started_ns, duration_ns, cached, 1 };
    tell(&told);
}

void castellan_tally_count(VALUE self, VALUE sql, VALUE name, long long started_ns, long long duration_ns, int cached, VALUE binds)
{
    count(tally_of(self), sql, name, started_ns, duration_ns, cached, binds, 1);
    RB_GC_GUARD(self);
}

void Init_tally(VALUE castellan)
{
    text_set_up();
    rb_gc_register_address(&pieces_class);
    rb_gc_register_address(&group_call_site);
    id_active_record = rb_intern("active_record");
    id_name = rb_intern("name");
    id_add = rb_intern("add");
    id_new = rb_intern("new");
    id_slow = rb_intern("slow");
    id_written = rb_intern("written");
    id_wrote = rb_intern("wrote");
    id_slow_after = rb_intern("@slow_after");
    id_strands = rb_intern("@strands");
    id_native = rb_intern("@native");
    id_observer = rb_intern("@observer");
    id_parent = rb_intern("@parent");
    id_wants = rb_intern("@wants");
    id_told = rb_intern("@told");
    id_listener = rb_intern("@listener");
    id_walker = rb_intern("@walker");
    id_answer = rb_intern("answer");
    id_call = rb_intern("call");
    id_over = rb_intern("over");
    id_requests = rb_intern("@requests");
    id_settle = rb_intern("settle");
    id_singles = rb_intern("@singles");
    id_slow_ns = rb_intern("@slow_ns");
    id_watched_ns = rb_intern("@watched_ns");
    rb_gc_register_address(&no_strands);
    rb_gc_register_address(&recording_class);
    rb_gc_register_address(&tally_wants);
    rb_gc_register_address(&native_class);
    no_strands = rb_ary_freeze(rb_ary_new());

    VALUE native = native_class = rb_define_class_under(castellan, "NativeTally", rb_cObject);
    rb_define_alloc_func(native, tally_allocate);
    rb_define_singleton_method(native, "recording", tally_recording, 1);
    rb_define_method(native, "initialize", tally_initialize, 3);
    rb_define_method(native, "query", tally_query, -1);
    rb_define_method(native, "enter", tally_enter, 2);
    rb_define_method(native, "leave", tally_leave, 0);
    rb_define_method(native, "loaded", tally_loaded, 3);
    rb_define_method(native, "site_of", tally_site_of, 1);
    rb_define_method(native, "slept", tally_slept, 0);
    rb_define_method(native, "failed", tally_failed, 0);
    rb_define_method(native, "repeats?", tally_repeats, 2);
    rb_define_method(native, "once?", tally_once, 0);
    rb_define_method(native, "groups", tally_groups, 0);
    rb_define_method(native, "loads", tally_loads, 0);
    rb_define_method(native, "shape", tally_shape, 0);
    rb_define_method(native, "order", tally_order, 0);
    rb_define_method(native, "told", tally_told, 0);
    rb_define_method(native, "failure", tally_failure, 0);
    if (!castellan_recording_native_p()) return;

    rb_define_private_method(rb_define_module_under(castellan, "NativeProduction"), "watch_plainly", production_watch_plainly, 2);
}
