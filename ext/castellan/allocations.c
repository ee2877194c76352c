/*
 * How many objects a thread has made, counted while somebody asks. Ruby counts for the whole process only (GC.stat), so what another
 * thread does meanwhile would be charged to this one.
 *
 * Every new object of the process costs one more call while anybody counts (some 30 ns), so lib/castellan/profile/allocations.rb asks
 * for it only where other requests run at the same time.
 */
#include "allocations.h"
#include "ruby/debug.h"
#include <stdlib.h>

static __thread size_t allocated; /* a thread of Ruby is a thread of the system, but for what `countable` says */
static VALUE tracepoint = Qnil;
static long counting; /* how many ask; read and written with the GVL */

static void allocations_count(VALUE point, void *data)
{
    allocated++;
}

/* Castellan::NativeAllocations.countable?: with RUBY_MN_THREADS a thread of Ruby moves between those of the system. */
static VALUE allocations_countable(VALUE self)
{
    const char *many = getenv("RUBY_MN_THREADS");
    return many && many[0] && many[0] != '0' ? Qfalse : Qtrue;
}

/* Castellan::NativeAllocations.start: counts from now on, and returns what was counted for this thread before. */
static VALUE allocations_start(VALUE self)
{
    if (NIL_P(tracepoint)) tracepoint = rb_tracepoint_new(Qnil, RUBY_INTERNAL_EVENT_NEWOBJ, allocations_count, NULL);
    if (counting == 0) rb_tracepoint_enable(tracepoint);
    counting++;
    return SIZET2NUM(allocated);
}

/* Castellan::NativeAllocations.count: what was counted for this thread so far. */
static VALUE allocations_so_far(VALUE self)
{
    return SIZET2NUM(allocated);
}

/* Castellan::NativeAllocations.stop: one fewer asks. From any thread. */
static VALUE allocations_stop(VALUE self)
{
    if (counting > 0 && --counting == 0) rb_tracepoint_disable(tracepoint);
    return Qnil;
}

void Init_allocations(VALUE castellan)
{
    rb_gc_register_address(&tracepoint);
    VALUE native = rb_define_module_under(castellan, "NativeAllocations");
    rb_define_singleton_method(native, "countable?", allocations_countable, 0);
    rb_define_singleton_method(native, "start", allocations_start, 0);
    rb_define_singleton_method(native, "count", allocations_so_far, 0);
    rb_define_singleton_method(native, "stop", allocations_stop, 0);
}
