/*
 * Finds the nearest frame of the application without allocating an object. lib/castellan/call_site.rb
 * decides which files belong to the application; the decision is cached by the address of the path. That
 * file also has a Ruby implementation, which must return the same results.
 */
#include "call_site.h"
#include "ruby/debug.h"
#include <string.h>

#define LINE_BITS 24 /* as in call_site.rb */
#define SHALLOWEST 32
#define DEEPEST 1024
#define GAP 32 /* after so many foreign frames below the application's, only the server follows */
#define SLOTS 4096 /* far more than the files on a stack */

struct slot {
    VALUE path;
    long number;
};

static struct slot slots[SLOTS];
static VALUE kept = Qnil; /* path => true, by identity: keeps the paths alive and in place */
static int usual = SHALLOWEST; /* the depth that recent calls needed; it hardly changes */
static VALUE labels = Qnil; /* site => name of the method that was last found there */
static ID id_number;
static ID id_current_in_ruby;

static struct slot *slot_of(VALUE path)
{
    return &slots[(path >> 3 ^ path >> 15) % SLOTS];
}

/* Caches only interned strings, such as paths of loaded files, because other addresses may be reused. */
static long path_number(VALUE call_site, VALUE path)
{
    struct slot *slot = slot_of(path);
    if (slot->path == path) return slot->number;

    long number = NUM2LONG(rb_funcall(call_site, id_number, 1, path));
    if (FL_TEST_RAW(path, RSTRING_FSTR)) {
        rb_hash_aset(kept, path, Qtrue);
        slot->path = path;
        slot->number = number;
    }
    return number;
}

/* Grows immediately and shrinks slowly: a second, deeper read costs more than some extra frames. */
static void look_went(int seen)
{
    int enough = seen < SHALLOWEST - 4 ? SHALLOWEST : seen < DEEPEST - 4 ? seen + 4 : DEEPEST;
    usual = enough < usual ? usual - 1 : enough;
}

/* Castellan::NativeCallSite#current; also called from C */
VALUE castellan_call_site(VALUE self)
{
    /* Ruby 3.1 ignores the start argument of rb_profile_frames (Bug #14607), so each deeper read starts at
     * the top. */
    VALUE frames[DEEPEST];
    int lines[DEEPEST];
    int seen = 0;
    VALUE gem = Qnil; /* the nearest frame of a gem (no framework), for stacks without the application */

    for (int depth = usual;; depth = depth * 3 / 2 < DEEPEST ? depth * 3 / 2 : DEEPEST) {
        int count = rb_profile_frames(0, depth, frames, lines);
        for (; seen < count; seen++) {
            VALUE path = rb_profile_frame_path(frames[seen]);
            if (!RB_TYPE_P(path, T_STRING)) continue; /* a method written in C */

            long number = path_number(self, path);
            if (number > 0) {
                look_went(seen);
                return LONG2FIX(number << LINE_BITS | lines[seen]);
            }
            if (number < 0 && NIL_P(gem)) gem = LONG2FIX(-number << LINE_BITS | lines[seen]);
        }
        if (count < depth) return gem;
        if (depth == DEEPEST) return rb_funcall(self, id_current_in_ruby, 0);
    }
}

/* Stores the method name of a site, one String per line of code, so that later calls allocate no object. */
static void frame_label(VALUE site, VALUE frame)
{
    VALUE label = rb_profile_frame_base_label(frame);
    if (rb_hash_lookup(labels, site) == label) return;

    rb_hash_aset(labels, site, RB_TYPE_P(label, T_STRING) ? rb_str_new_frozen(label) : rb_str_freeze(rb_str_new_lit("")));
}

/*
 * A cache of stacks, because a loop queries from the same frames and lines again and again. If the frames
 * are cached, only the lines of the application's frames are read and compared: finding a line takes
 * several times as long as finding a frame. Cached frames must stay alive and must not move, so that their
 * addresses stay valid.
 */
#define BUCKETS 8
#define WAYS 4
#define ALIKE 24 /* the innermost frames that are hashed; all frames are compared */

struct stack {
    int count; /* the number of frames that were read; 0: free */
    int whole; /* whether these are all frames */
    int places; /* the number of the application's frames */
    long most;
    VALUE sites;
    VALUE *frames;
    int *lines; /* for the application's frames alternately: position in `frames`, line */
};

struct bucket {
    struct stack stacks[WAYS];
    int next; /* the entry to replace next */
};

static struct bucket buckets[BUCKETS];
static VALUE stacks_kept = Qnil;

static void stacks_mark(void *_buckets)
{
    (void)_buckets;
    for (int i = 0; i < BUCKETS * WAYS; i++) {
        const struct stack *stack = &buckets[i / WAYS].stacks[i % WAYS];
        if (stack->count == 0) continue;
        rb_gc_mark(stack->sites);
        for (int j = 0; j < stack->count; j++) rb_gc_mark(stack->frames[j]);
    }
}

static const rb_data_type_t stacks_type = {"Castellan::NativeCallSite stacks", {stacks_mark, NULL, NULL}, 0, 0, 0};

static struct bucket *bucket_of(int count, const VALUE *frames)
{
    unsigned long hash = 0;
    if (count > ALIKE) count = ALIKE;
    for (int i = 0; i < count; i++) hash = hash * 31 + (frames[i] >> 3);
    return &buckets[(hash ^ hash >> 7 ^ hash >> 17) % BUCKETS];
}

static int frames_met(const struct stack *stack, long most, int count, const VALUE *frames)
{
    return stack->count > 0 && stack->most == most && (stack->whole ? count == stack->count : count >= stack->count) &&
           memcmp(stack->frames, frames, (size_t)stack->count * sizeof(VALUE)) == 0;
}

static int lines_met(const struct stack *stack, const int *lines)
{
    for (int i = 0; i < stack->places; i++) {
        if (lines[stack->lines[2 * i]] != stack->lines[2 * i + 1]) return 0;
    }
    return 1;
}

/* `lines` is scratch memory. */
static const struct stack *stack_met(const struct bucket *bucket, long most, int count, VALUE *frames, int *lines)
{
    int known = 0;
    for (int i = 0; i < WAYS; i++) {
        const struct stack *stack = &bucket->stacks[i];
        if (!frames_met(stack, most, count, frames)) continue;

        int needed = stack->places ? stack->lines[2 * (stack->places - 1)] + 1 : 0;
        if (needed > known) known = rb_profile_frames(0, needed, frames, lines);
        if (known >= needed && lines_met(stack, lines)) return stack;
    }
    return NULL;
}

static void stack_keep(struct bucket *bucket, VALUE sites, long most, int count, int whole, const VALUE *frames, const int *lines,
                       const char *ours)
{
    struct stack *stack = &bucket->stacks[bucket->next];
    bucket->next = (bucket->next + 1) % WAYS;
    stack->count = 0;
    REALLOC_N(stack->frames, VALUE, count); /* may run the GC, so the entry must be free meanwhile */
    REALLOC_N(stack->lines, int, 2 * count);
    memcpy(stack->frames, frames, (size_t)count * sizeof(VALUE));
    stack->places = 0;
    for (int i = 0; i < count; i++) {
        if (!ours[i]) continue;
        stack->lines[2 * stack->places] = i;
        stack->lines[2 * stack->places++ + 1] = lines[i];
    }
    stack->sites = sites;
    stack->most = most;
    stack->whole = whole;
    stack->count = count;
}

/* Appends the sites of `count` frames, innermost first, to `sites` and marks the application's frames in
 * `ours`. Returns the number of frames that were sufficient, or count + 1. */
static int sites_among(VALUE self, VALUE sites, long most, int count, const VALUE *frames, const int *lines, char *ours)
{
    VALUE last = Qnil;
    int foreign = 0;

    for (int seen = 0; seen < count; seen++) {
        VALUE path = rb_profile_frame_path(frames[seen]);
        long number = RB_TYPE_P(path, T_STRING) ? path_number(self, path) : 0;
        ours[seen] = number > 0;
        if (number <= 0 || lines[seen] <= 0) { /* the outermost frame of a program has no line */
            if (++foreign > GAP && RARRAY_LEN(sites) > 0) return seen + 1;
            continue;
        }
        foreign = 0;
        VALUE site = LONG2FIX(number << LINE_BITS | lines[seen]);
        if (site == last) continue; /* a block and the method around it, on one line */

        frame_label(site, frames[seen]);
        rb_ary_push(sites, last = site);
        if (RARRAY_LEN(sites) >= most) return seen + 1;
    }
    return count + 1; /* further frames may be needed */
}

VALUE castellan_call_site_frames(VALUE self, long most)
{
    static int usual_for_frames = 2 * SHALLOWEST;
    VALUE frames[DEEPEST];
    int lines[DEEPEST];
    char ours[DEEPEST];

    for (int depth = usual_for_frames;; depth = depth * 2 < DEEPEST ? depth * 2 : DEEPEST) {
        int count = rb_profile_frames(0, depth, frames, NULL);
        struct bucket *bucket = bucket_of(count, frames);
        const struct stack *met = stack_met(bucket, most, count, frames, lines);
        if (met) return met->sites;

        rb_profile_frames(0, depth, frames, lines);
        VALUE sites = rb_ary_new();
        int seen = sites_among(self, sites, most, count, frames, lines, ours);
        int whole = seen > count;
        if (!whole || count < depth || depth == DEEPEST) {
            if (whole) seen = count;
            usual_for_frames = seen < DEEPEST - 8 ? seen + 8 : DEEPEST;
            stack_keep(bucket, rb_ary_freeze(sites), most, seen, whole, frames, lines, ours);
            RB_GC_GUARD(sites);
            return sites;
        }
    }
}

/* Castellan::NativeCallSite#frames */
static VALUE call_site_frames(VALUE self, VALUE limit)
{
    return castellan_call_site_frames(self, NUM2LONG(limit));
}

/* Castellan::NativeCallSite#label */
static VALUE call_site_label(VALUE self, VALUE site)
{
    return rb_hash_lookup(labels, site);
}

void Init_call_site(VALUE castellan)
{
    id_number = rb_intern("number");
    id_current_in_ruby = rb_intern("current_in_ruby");
    rb_gc_register_address(&kept);
    kept = rb_funcall(rb_hash_new(), rb_intern("compare_by_identity"), 0);

    rb_gc_register_address(&labels);
    labels = rb_hash_new();

    rb_gc_register_address(&stacks_kept);
    stacks_kept = TypedData_Wrap_Struct(rb_cObject, &stacks_type, buckets); /* marked only if not NULL */

    VALUE native = rb_define_module_under(castellan, "NativeCallSite");
    rb_define_method(native, "current", castellan_call_site, 0);
    rb_define_method(native, "frames", call_site_frames, 1);
    rb_define_method(native, "label", call_site_label, 1);
}
