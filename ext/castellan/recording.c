/*
 * Where the current recording lives (Castellan::NativeRecording), where Ruby has no storage that fibers inherit. lib/castellan/recording.rb
 * holds the same in Ruby, and asks itself where Ruby has it: C cannot read that storage.
 */
#include "recording.h"
#include "ruby/fiber/scheduler.h"
#include "tally.h"

static VALUE recording_class = Qnil;
static ID id_current, id_recording;
static ID id_listener, id_walker; /* of a Recording */
static ID id_enter, id_active_record, id_name;
static int asks_ruby;

/* Fibers of one thread may end in another order than they began, and then what was there before is over. Whom the recording tells is
   kept with it, because it is asked for at every statement. */
struct kept {
    VALUE recording; /* false once its work has ended */
    VALUE before; /* what was kept before, or nil */
    VALUE listener, walker;
};

static void kept_mark(void *pointer)
{
    const struct kept *kept = pointer;
    rb_gc_mark(kept->recording);
    rb_gc_mark(kept->before);
    rb_gc_mark(kept->listener);
    rb_gc_mark(kept->walker);
}

static const rb_data_type_t kept_type = {
    "Castellan::NativeRecording kept", { kept_mark, RUBY_TYPED_DEFAULT_FREE, NULL, NULL, { NULL } }, NULL, NULL, RUBY_TYPED_FREE_IMMEDIATELY
};

static struct kept *kept_of(VALUE kept)
{
    return RTYPEDDATA_DATA(kept);
}

static VALUE kept_new(VALUE recording, VALUE before)
{
    struct kept *kept;
    VALUE made = TypedData_Make_Struct(rb_cObject, struct kept, &kept_type, kept);
    *kept = (struct kept){ recording, before, rb_attr_get(recording, id_listener), rb_attr_get(recording, id_walker) };
    return made;
}

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

/* The thread that asked last and what it keeps, which is never nil: a statement mostly follows one of the same thread, and its variables
   are found in a table of all objects that are not Ruby's own. */
static VALUE last_thread = Qnil, last_kept = Qnil;

static void last_put(VALUE thread, VALUE kept)
{
    last_thread = NIL_P(kept) ? Qnil : thread;
    last_kept = kept;
}

static VALUE place_get(const struct place *place)
{
    if (place->of_fiber) return rb_thread_local_aref(place->thread, id_recording);
    if (place->thread == last_thread) return last_kept;

    VALUE kept = rb_attr_get(place->thread, id_recording);
    if (!NIL_P(kept)) last_put(place->thread, kept);
    return kept;
}

static void place_put(const struct place *place, VALUE kept)
{
    if (place->of_fiber) {
        rb_thread_local_aset(place->thread, id_recording, kept);
    } else {
        rb_ivar_set(place->thread, id_recording, kept);
        last_put(place->thread, kept);
    }
}

/* @return what is kept here, or NULL */
static const struct kept *kept_here(void)
{
    const struct place place = place_here();
    const VALUE kept = place_get(&place);
    return NIL_P(kept) ? NULL : kept_of(kept);
}

VALUE castellan_recording_current(void)
{
    if (asks_ruby) {
        if (NIL_P(recording_class)) recording_class = rb_path2class("Castellan::Recording"); /* written in Ruby and loaded after this */
        return rb_funcall(recording_class, id_current, 0);
    }
    const struct kept *kept = kept_here();
    return kept ? kept->recording : Qnil;
}

VALUE castellan_recording_listener(void)
{
    if (asks_ruby) {
        const VALUE recording = castellan_recording_current();
        return NIL_P(recording) ? Qnil : rb_attr_get(recording, id_listener);
    }
    const struct kept *kept = kept_here();
    return kept ? kept->listener : Qnil;
}

/* Castellan::NativeRecording#current */
static VALUE recording_current(VALUE self)
{
    return castellan_recording_current();
}

/* Castellan::NativeRecording#walk */
static VALUE recording_walk(VALUE self, VALUE reflection)
{
    const struct kept *kept = kept_here();
    const VALUE walker = kept ? kept->walker : Qnil;
    if (NIL_P(walker)) return Qnil;

    if (castellan_tally_p(walker)) castellan_tally_walk(walker, reflection);
    else rb_funcall(walker, id_enter, 2, rb_funcall(reflection, id_active_record, 0), rb_funcall(reflection, id_name, 0));
    return walker;
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
    struct kept *kept = kept_of(resumed->kept);
    while (!NIL_P(kept->before) && kept_of(kept->before)->recording == Qfalse) kept->before = kept_of(kept->before)->before;
    kept->recording = Qfalse;
    kept->listener = kept->walker = Qnil;
    place_put(&resumed->place, kept->before);
    return Qnil;
}

VALUE castellan_recording_resume(VALUE recording, VALUE (*work)(VALUE), VALUE given)
{
    struct resumed resumed = { place_here(), Qnil, work, given };
    resumed.kept = kept_new(recording, place_get(&resumed.place));
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
    rb_gc_register_address(&last_thread);
    rb_gc_register_address(&last_kept);
    id_current = rb_intern("current");
    id_recording = rb_intern("castellan_recording"); /* KEY of recording.rb */
    id_listener = rb_intern("@listener");
    id_walker = rb_intern("@walker");
    id_enter = rb_intern("enter");
    id_active_record = rb_intern("active_record");
    id_name = rb_intern("name");
    asks_ruby = rb_respond_to(rb_path2class("Fiber"), rb_intern("[]"));
    if (asks_ruby) return;

    VALUE native = rb_define_module_under(castellan, "NativeRecording");
    rb_define_method(native, "current", recording_current, 0);
    rb_define_method(native, "walk", recording_walk, 1);
    rb_define_method(native, "resume", recording_resume, 1);
}
