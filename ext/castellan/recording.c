/*
 * Where the current recording lives (Castellan::NativeRecording), where Ruby has no storage that fibers inherit. lib/castellan/recording.rb
 * holds the same in Ruby, and asks itself where Ruby has it: C cannot read that storage.
 */
#include "recording.h"
#include "ruby/fiber/scheduler.h"

static VALUE recording_class = Qnil;
static ID id_current, id_recording;
static int asks_ruby;

/* What is kept is a list of two: the recording (false once its work has ended) and what was kept before. Fibers of one thread may end in
   another order than they began, and then what was there before is over. */
enum { RECORDING, BEFORE };

/* A thread keeps it in a variable that Ruby does not see, since its own are asked for by a method: that takes half of what a statement
   costs that is seen again. Under a scheduler each fiber may be a request of its own. */
struct place {
    VALUE thread;
    int of_fiber;
};

static struct place place_here(void)
{
    struct place place = { rb_thread_current(), !NIL_P(rb_fiber_scheduler_get()) };
    return place;
}

static VALUE place_get(const struct place *place)
{
    return place->of_fiber ? rb_thread_local_aref(place->thread, id_recording) : rb_attr_get(place->thread, id_recording);
}

static void place_put(const struct place *place, VALUE kept)
{
    if (place->of_fiber) rb_thread_local_aset(place->thread, id_recording, kept);
    else rb_ivar_set(place->thread, id_recording, kept);
}

VALUE castellan_recording_current(void)
{
    if (asks_ruby) {
        if (NIL_P(recording_class)) recording_class = rb_path2class("Castellan::Recording"); /* written in Ruby and loaded after this */
        return rb_funcall(recording_class, id_current, 0);
    }
    const struct place place = place_here();
    const VALUE kept = place_get(&place);
    return NIL_P(kept) ? Qnil : RARRAY_AREF(kept, RECORDING);
}

/* Castellan::NativeRecording#current */
static VALUE recording_current(VALUE self)
{
    return castellan_recording_current();
}

struct resumed {
    struct place place;
    VALUE kept;
    VALUE (*work)(VALUE);
    VALUE given;
};

static VALUE resumed_work(VALUE pointer)
{
    const struct resumed *resumed = (const struct resumed *)pointer;
    place_put(&resumed->place, resumed->kept);
    return resumed->work(resumed->given);
}

static VALUE resumed_end(VALUE pointer)
{
    const struct resumed *resumed = (const struct resumed *)pointer;
    VALUE before = RARRAY_AREF(resumed->kept, BEFORE);
    while (!NIL_P(before) && RARRAY_AREF(before, RECORDING) == Qfalse) before = RARRAY_AREF(before, BEFORE);
    rb_ary_store(resumed->kept, RECORDING, Qfalse);
    rb_ary_store(resumed->kept, BEFORE, before);
    place_put(&resumed->place, before);
    return Qnil;
}

VALUE castellan_recording_resume(VALUE recording, VALUE (*work)(VALUE), VALUE given)
{
    struct resumed resumed = { place_here(), Qnil, work, given };
    resumed.kept = rb_ary_new_from_args(2, recording, place_get(&resumed.place));
    return rb_ensure(resumed_work, (VALUE)&resumed, resumed_end, (VALUE)&resumed);
}

static VALUE yielded(VALUE nothing)
{
    return rb_yield_values(0);
}

/* Castellan::NativeRecording#resume */
static VALUE recording_resume(VALUE self, VALUE recording)
{
    return castellan_recording_resume(recording, yielded, Qnil);
}

int castellan_recording_native_p(void)
{
    return !asks_ruby;
}

void Init_recording(VALUE castellan)
{
    rb_gc_register_address(&recording_class);
    id_current = rb_intern("current");
    id_recording = rb_intern("castellan_recording"); /* KEY of recording.rb */
    asks_ruby = rb_respond_to(rb_path2class("Fiber"), rb_intern("[]"));
    if (asks_ruby) return;

    VALUE native = rb_define_module_under(castellan, "NativeRecording");
    rb_define_method(native, "current", recording_current, 0);
    rb_define_method(native, "resume", recording_resume, 1);
}
