/*
 * What ActiveSupport::Notifications calls after each statement (Castellan::NativeListener), and what it needs for that: the recording
 * that is going on (Castellan::NativeRecording). lib/castellan/instrument/active_record_instrument.rb and lib/castellan/recording.rb
 * hold the same in Ruby.
 */
#include "listener.h"
#include "log.h"
#include "tally.h"
#include "ruby/fiber/scheduler.h"

static VALUE recording_class = Qnil;
static ID id_current, id_listener, id_query, id_recording, id_thread_variable_get;
static int asks_ruby; /* where recordings are in the storage of fibers, which C cannot read */
static VALUE sym_recording, sym_sql, sym_name, sym_binds, sym_cached, sym_rows;

static VALUE current_recording(void)
{
    if (asks_ruby) {
        if (NIL_P(recording_class)) recording_class = rb_path2class("Castellan::Recording"); /* written in Ruby and loaded after this */
        return rb_funcall(recording_class, id_current, 0);
    }
    VALUE thread = rb_thread_current();
    if (!NIL_P(rb_fiber_scheduler_get())) return rb_thread_local_aref(thread, id_recording);
    return rb_funcallv(thread, id_thread_variable_get, 1, &sym_recording);
}

/* Castellan::NativeRecording#current */
static VALUE recording_current(VALUE self)
{
    return current_recording();
}

static VALUE listener_call(VALUE self, VALUE event, VALUE started, VALUE finished, VALUE id, VALUE payload)
{
    VALUE recording = current_recording();
    if (NIL_P(recording) || !RB_TYPE_P(payload, T_HASH)) return Qnil;

    VALUE listener = rb_ivar_get(recording, id_listener);
    VALUE sql = rb_hash_lookup(payload, sym_sql), name = rb_hash_lookup(payload, sym_name);
    VALUE binds = rb_hash_lookup(payload, sym_binds); /* a Proc (of a cached query) is not called: it would cast every value */
    if (!RB_TYPE_P(binds, T_ARRAY)) binds = Qnil;
    VALUE cached = RTEST(rb_hash_lookup(payload, sym_cached)) ? Qtrue : Qfalse;
    double begin = NUM2DBL(started), end = NUM2DBL(finished);
    long long started_ns = (long long)(begin * 1e9), duration_ns = (long long)((end - begin) * 1e9);

    if (castellan_tally_p(listener)) {
        castellan_tally_tell(listener, sql, name, started_ns, duration_ns, cached == Qtrue, binds);
    } else if (castellan_log_p(listener)) {
        castellan_log_add(listener, sql, name, started_ns, duration_ns, cached == Qtrue, rb_hash_lookup(payload, sym_rows), binds);
    } else {
        rb_funcall(listener, id_query, 7, sql, name, LL2NUM(started_ns), LL2NUM(duration_ns), cached,
                   rb_hash_lookup(payload, sym_rows), binds);
    }
    return Qnil;
}

void Init_listener(VALUE castellan)
{
    rb_gc_register_address(&recording_class);
    id_current = rb_intern("current");
    id_listener = rb_intern("@listener");
    id_recording = rb_intern("castellan_recording"); /* KEY of recording.rb */
    id_thread_variable_get = rb_intern("thread_variable_get");
    id_query = rb_intern("query");
    sym_recording = ID2SYM(id_recording);
    sym_sql = ID2SYM(rb_intern("sql"));
    sym_name = ID2SYM(rb_intern("name"));
    sym_binds = ID2SYM(rb_intern("type_casted_binds"));
    sym_cached = ID2SYM(rb_intern("cached"));
    sym_rows = ID2SYM(rb_intern("row_count"));
    asks_ruby = rb_respond_to(rb_path2class("Fiber"), rb_intern("[]"));

    if (!asks_ruby) rb_define_method(rb_define_module_under(castellan, "NativeRecording"), "current", recording_current, 0);
    rb_define_method(rb_define_module_under(castellan, "NativeListener"), "call", listener_call, 5);
}
