/*
 * What ActiveSupport::Notifications calls after each statement (Castellan::NativeListener).
 * lib/castellan/instrument/active_record_instrument.rb holds the same in Ruby.
 */
#include "listener.h"
#include "recording.h"
#include "tally.h"

static ID id_failed, id_query;
static VALUE sym_sql, sym_name, sym_binds, sym_cached, sym_rows, sym_exception;

static VALUE listener_call(VALUE self, VALUE event, VALUE started, VALUE finished, VALUE id, VALUE payload)
{
    VALUE listener = castellan_recording_listener();
    if (NIL_P(listener) || !RB_TYPE_P(payload, T_HASH)) return Qnil;

    VALUE sql = rb_hash_lookup(payload, sym_sql), name = rb_hash_lookup(payload, sym_name);
    VALUE binds = rb_hash_lookup(payload, sym_binds); /* a Proc (of a cached query) is not called: it would cast every value */
    if (!RB_TYPE_P(binds, T_ARRAY)) binds = Qnil;
    VALUE cached = RTEST(rb_hash_lookup(payload, sym_cached)) ? Qtrue : Qfalse;
    double begin = NUM2DBL(started), end = NUM2DBL(finished);
    long long started_ns = (long long)(begin * 1e9), duration_ns = (long long)((end - begin) * 1e9);

    if (RTEST(rb_hash_lookup(payload, sym_exception))) rb_funcall(castellan_recording_current(), id_failed, 0);
    if (castellan_tally_p(listener)) {
        castellan_tally_tell(listener, sql, name, started_ns, duration_ns, cached == Qtrue, binds);
    } else {
        rb_funcall(listener, id_query, 7, sql, name, LL2NUM(started_ns), LL2NUM(duration_ns), cached,
                   rb_hash_lookup(payload, sym_rows), binds);
    }
    return Qnil;
}

void Init_listener(VALUE castellan)
{
    id_failed = rb_intern("failed");
    id_query = rb_intern("query");
    sym_sql = ID2SYM(rb_intern("sql"));
    sym_name = ID2SYM(rb_intern("name"));
    sym_binds = ID2SYM(rb_intern("type_casted_binds"));
    sym_cached = ID2SYM(rb_intern("cached"));
    sym_rows = ID2SYM(rb_intern("row_count"));
    sym_exception = ID2SYM(rb_intern("exception"));

    rb_define_method(rb_define_module_under(castellan, "NativeListener"), "call", listener_call, 5);
}
