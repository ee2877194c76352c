/*
 * Counts the statements of a recording without making an object: the part of Castellan::Detect::Tally that runs for every
 * statement. lib/castellan/detect/tally.rb and group.rb hold the same in
 * Ruby, which must count the same.
 *
 * What a text is (its shape, whether it writes) is asked of Ruby once and kept for the life of the process under two hashes of the
 * text and of its name; no text is kept. Everything else belongs to one recording. Whoever calls Ruby must look up its group anew
 * afterwards: that call may have counted a statement itself.
 */
#include "tally.h"
#include "call_site.h"

#define MOST_TEXTS 2000 /* of the process; past them it starts anew */
#define TEXT_SLOTS 4096
#define MOST_FINGERPRINTS 10000
#define BUCKETS 64
#define MOST_SHAPES 500 /* these as in tally.rb */
#define MOST_LOADS 500
#define MOST_DIGESTS 32 /* these as in group.rb */
#define ALL_SITES 16
#define STEADY 5
#define MOST_FRAMES 50
#define SOME_SITES 7
#define MANY 64
#define FEW_SITES 29
#define MOST_PIECES 12 /* as MOST in pieces.rb */

enum { READS = 1, WRITES = 2, WRITES_BULK = 4, HAS_PIECES = 8, JOINS = 16 }; /* as in tally.rb */

struct text {
    st_index_t hash; /* 0: a free slot */
    st_index_t name;
    long length;
    long shape; /* index in kept_shapes */
    int fingerprint;
    int flags; /* 0: not counted */
};

struct site {
    VALUE site; /* Integer or nil */
    long count;
};

struct digest {
    st_index_t values;
    unsigned long long writes;
};

struct group {
    VALUE shape, owner, association;
    VALUE pieces;
    VALUE sql, binds; /* the first statement's */
    VALUE stack; /* the application's frames at the second statement, or nil */
    long count, cached, again, quietly, order, naps;
    long long total_ns, started_ns, ended_ns;
    struct site *sites;
    struct digest *digests;
    st_index_t first_text;
    unsigned long long first_writes;
    int fingerprint, next;
    int site_count, site_room, site;
    int digest_count, pieces_told;
    char waited, settled, has_pieces, writes;
    char later; /* whether the values of the first statement are still to be compared: most shapes are sent once */
};

struct load {
    VALUE site, model;
    long count, times, order;
    int joined;
};

struct tally {
    VALUE owner, association; /* of the walk that is going on */
    VALUE observer; /* the Tally in Ruby */
    VALUE shape; /* of the last statement, or nil */
    VALUE failure; /* what went wrong in here: nothing is counted any more */
    VALUE site, site_of; /* where the last statement was asked for, and its name; nil where that was not looked up */
    VALUE *around;
    struct group *groups;
    struct load *loads;
    long long slow_ns;
    long order, naps, writes, told;
    int around_count, around_room;
    int group_count, group_room, heads;
    int load_count, load_room;
    int joins;
    int buckets[BUCKETS]; /* 1 + the index of a group; 0: none */
};

static struct text texts[TEXT_SLOTS];
static int text_count;
static VALUE kept_shapes = Qnil; /* by index, because a moved object has another address */
static VALUE fingerprints = Qnil; /* text => number */
static int fingerprint_count;
static VALUE pieces_class = Qnil, tally_class = Qnil, call_site = Qnil;
static ID id_read, id_slow, id_wrote, id_written, id_add, id_new, id_fingerprint;

/* ---- memory ---- */

static void tally_mark(void *pointer)
{
    const struct tally *tally = pointer;
    rb_gc_mark(tally->owner);
    rb_gc_mark(tally->association);
    rb_gc_mark(tally->observer);
    rb_gc_mark(tally->shape);
    rb_gc_mark(tally->site_of);
    rb_gc_mark(tally->failure);
    for (int index = 0; index < tally->around_count; index++) rb_gc_mark(tally->around[index]);
    for (int index = 0; index < tally->load_count; index++) rb_gc_mark(tally->loads[index].model);
    for (int index = 0; index < tally->group_count; index++) {
        const struct group *group = &tally->groups[index];
        rb_gc_mark(group->shape);
        rb_gc_mark(group->owner);
        rb_gc_mark(group->association);
        rb_gc_mark(group->pieces);
        rb_gc_mark(group->sql);
        rb_gc_mark(group->binds);
        rb_gc_mark(group->stack);
    }
}

static void tally_free(void *pointer)
{
    struct tally *tally = pointer;
    for (int index = 0; index < tally->group_count; index++) {
        xfree(tally->groups[index].sites);
        xfree(tally->groups[index].digests);
    }
    xfree(tally->groups);
    xfree(tally->loads);
    xfree(tally->around);
    xfree(tally);
}

static size_t tally_size(const void *pointer)
{
    const struct tally *tally = pointer;
    return sizeof(*tally) + tally->group_room * sizeof(struct group) + tally->load_room * sizeof(struct load);
}

static const rb_data_type_t tally_type = {
    "Castellan::NativeTally", { tally_mark, tally_free, tally_size, NULL, { NULL } }, NULL, NULL, RUBY_TYPED_FREE_IMMEDIATELY
};

static VALUE tally_allocate(VALUE class)
{
    struct tally *tally;
    VALUE self = TypedData_Make_Struct(class, struct tally, &tally_type, tally);
    tally->owner = tally->association = tally->observer = tally->shape = tally->site = tally->site_of = tally->failure = Qnil;
    return self;
}

static struct tally *tally_of(VALUE self)
{
    return rb_check_typeddata(self, &tally_type);
}

/* @return the list, with room for one more */
static void *grown(void *list, int count, int *room, size_t size)
{
    if (count < *room) return list;

    int more = *room ? *room * 2 : 4;
    list = xrealloc2(list, more, size);
    *room = more;
    return list;
}

/* These are written in Ruby and loaded after this. */
static VALUE known_as(VALUE *kept, const char *name)
{
    return NIL_P(*kept) ? *kept = rb_path2class(name) : *kept;
}

/* ---- what a text is ---- */

static st_index_t hash_of(VALUE text)
{
    if (!RB_TYPE_P(text, T_STRING)) return 1;

    st_index_t hash = rb_memhash(RSTRING_PTR(text), RSTRING_LEN(text));
    return hash ? hash : 1;
}

static void forget_texts(void)
{
    memset(texts, 0, sizeof(texts));
    text_count = 0;
    kept_shapes = rb_ary_new();
}

static int fingerprint_number(VALUE fingerprint)
{
    VALUE number = rb_hash_lookup(fingerprints, fingerprint);
    if (!NIL_P(number)) return FIX2INT(number);

    if (fingerprint_count % MOST_FINGERPRINTS == 0) fingerprints = rb_hash_new();
    rb_hash_aset(fingerprints, fingerprint, INT2FIX(++fingerprint_count));
    return fingerprint_count;
}

/* Tally.read answers [shape, flags], or nil. */
static struct text read_text(VALUE sql, VALUE name, struct text text, VALUE *shape)
{
    VALUE read = rb_funcall(tally_class, id_read, 2, sql, name);
    *shape = Qnil;
    text.shape = -1;
    if (RB_TYPE_P(read, T_ARRAY)) {
        *shape = rb_ary_entry(read, 0);
        text.flags = FIX2INT(rb_ary_entry(read, 1));
        text.fingerprint = fingerprint_number(rb_funcall(*shape, id_fingerprint, 0));
    }
    if (text_count >= MOST_TEXTS) forget_texts();
    long slot = text.hash % TEXT_SLOTS;
    while (texts[slot].hash) slot = (slot + 1) % TEXT_SLOTS;
    if (!NIL_P(*shape)) {
        text.shape = RARRAY_LEN(kept_shapes);
        rb_ary_push(kept_shapes, *shape);
    }
    texts[slot] = text;
    text_count++;
    return text;
}

static struct text text_of(VALUE sql, VALUE name, VALUE *shape)
{
    struct text text = { hash_of(sql), hash_of(name), RSTRING_LEN(sql), 0, 0, 0 };
    for (long slot = text.hash % TEXT_SLOTS; texts[slot].hash; slot = (slot + 1) % TEXT_SLOTS) {
        const struct text *known = &texts[slot];
        if (known->hash == text.hash && known->length == text.length && known->name == text.name) {
            *shape = known->flags ? RARRAY_AREF(kept_shapes, known->shape) : Qnil;
            return *known;
        }
    }
    return read_text(sql, name, text, shape);
}

/* ---- groups ---- */

static int find_group(const struct tally *tally, int fingerprint, int *known)
{
    for (int next = tally->buckets[fingerprint % BUCKETS]; next; next = tally->groups[next - 1].next) {
        const struct group *group = &tally->groups[next - 1];
        if (group->fingerprint != fingerprint) continue;

        *known = 1;
        if (group->association == tally->association && group->owner == tally->owner) return next - 1;
    }
    return -1;
}

static int new_group(struct tally *tally, VALUE shape, int fingerprint, int flags)
{
    tally->groups = grown(tally->groups, tally->group_count, &tally->group_room, sizeof(struct group));
    struct group *group = &tally->groups[tally->group_count];
    memset(group, 0, sizeof(*group));
    group->shape = shape;
    group->owner = tally->owner;
    group->association = tally->association;
    group->pieces = group->sql = group->binds = group->stack = Qnil;
    group->writes = (flags & WRITES) != 0;
    group->has_pieces = (flags & HAS_PIECES) && NIL_P(group->association);
    group->order = ++tally->order;
    group->waited = 1;
    group->naps = -1;
    group->site = -1;
    group->fingerprint = fingerprint;
    /* At the end of its bucket: the first of a fingerprint stays the first. */
    int *link = &tally->buckets[fingerprint % BUCKETS];
    while (*link) link = &tally->groups[*link - 1].next;
    *link = tally->group_count + 1;
    return tally->group_count++;
}

/* The number of a fingerprint may have changed since its group was made, because numbers start anew. */
static int same_fingerprint(const struct tally *tally, VALUE fingerprint)
{
    for (int index = 0; index < tally->group_count; index++) {
        VALUE other = rb_funcall(tally->groups[index].shape, id_fingerprint, 0);
        if (other == fingerprint || RTEST(rb_str_equal(other, fingerprint))) return tally->groups[index].fingerprint;
    }
    return 0;
}

/* @return the index of the group, or -1 where there are too many shapes */
static int group_of(struct tally *tally, const struct text *text, VALUE shape)
{
    int known = 0, fingerprint = text->fingerprint;
    int index = find_group(tally, fingerprint, &known);
    if (index >= 0) return index;

    if (!known && fingerprint_count > MOST_FINGERPRINTS) {
        int other = same_fingerprint(tally, rb_funcall(shape, id_fingerprint, 0));
        if (other) fingerprint = other;
        index = find_group(tally, fingerprint, &known);
        if (index >= 0) return index;
    }
    if (!known && tally->heads >= MOST_SHAPES) return -1;

    if (!known) tally->heads++;
    return new_group(tally, shape, fingerprint, text->flags);
}

static void locate(struct tally *tally, int index, VALUE name)
{
    long count = tally->groups[index].count;
    long all = tally->groups[index].site_count > 1 ? ALL_SITES : STEADY;
    if (count <= all || count % (count < MANY ? SOME_SITES : FEW_SITES) == 0) {
        VALUE site = castellan_call_site(call_site);
        struct group *group = &tally->groups[index];
        if (group->site < 0 || group->sites[group->site].site != site) {
            int at = 0;
            while (at < group->site_count && group->sites[at].site != site) at++;
            if (at == group->site_count) {
                group->sites = grown(group->sites, group->site_count, &group->site_room, sizeof(struct site));
                group->sites[at].site = site;
                group->sites[at].count = 0;
                group->site_count++;
            }
            group->site = at;
        }
        tally->site = site;
        tally->site_of = name;
    }
    if (count == 2) { /* it repeats */
        VALUE stack = castellan_call_site_frames(call_site, MOST_FRAMES);
        tally->groups[index].stack = stack;
    }
    struct group *group = &tally->groups[index];
    if (group->site >= 0) group->sites[group->site].count++;
}

/* What changes from statement to statement is read by Ruby, from the second on. */
static void tell_pieces(struct tally *tally, int index, VALUE sql, VALUE binds)
{
    struct group *group = &tally->groups[index];
    if (group->pieces_told >= MOST_PIECES) return;

    if (group->pieces_told++ == 0) {
        group->sql = sql;
        group->binds = binds;
        return;
    }
    VALUE pieces = group->pieces;
    if (NIL_P(pieces)) {
        pieces = rb_funcall(pieces_class, id_new, 0);
        group = &tally->groups[index];
        group->pieces = pieces;
        rb_funcall(pieces, id_add, 2, group->sql, group->binds);
    }
    rb_funcall(pieces, id_add, 2, sql, binds);
}

static st_index_t values_of(st_index_t text, VALUE binds)
{
    return NIL_P(binds) ? text : text ^ (st_index_t)NUM2LL(rb_hash(binds));
}

static void compare(struct tally *tally, int index, st_index_t values, unsigned long long now)
{
    struct group *group = &tally->groups[index];
    if (!group->digests) {
        struct digest *digests = ALLOC_N(struct digest, MOST_DIGESTS);
        group->digests = digests;
    }
    int at = 0;
    while (at < group->digest_count && group->digests[at].values != values) at++;
    if (at < group->digest_count) {
        if (group->digests[at].writes >> 32 == now >> 32) group->again++;
        if (group->digests[at].writes == now) group->quietly++;
    } else {
        group->digests[at].values = values;
        group->digest_count++;
    }
    group->digests[at].writes = now;
    group->settled = group->digest_count >= MOST_DIGESTS;
}

static void compare_first(struct tally *tally, int index)
{
    struct group *group = &tally->groups[index];
    group->later = 0;
    st_index_t values = values_of(group->first_text, group->binds);
    compare(tally, index, values, tally->groups[index].first_writes);
}

/* `lasting`: the values stay as they are and may be looked at when there is a second statement. */
static void learn(struct tally *tally, int index, st_index_t text, VALUE shape, VALUE sql, VALUE binds, int lasting)
{
    unsigned long long written = tally->writes ? NUM2ULL(rb_funcall(tally->observer, id_written, 1, shape)) : 0;
    unsigned long long now = written << 32 | (unsigned long)tally->writes;
    struct group *group = &tally->groups[index];
    if (lasting && group->count == 1 && !group->digest_count) {
        group->later = 1;
        group->first_text = text;
        group->first_writes = now;
        group->binds = binds;
    } else {
        if (group->later) compare_first(tally, index);
        st_index_t values = values_of(text, binds);
        compare(tally, index, values, now);
    }
    if (tally->groups[index].has_pieces) tell_pieces(tally, index, sql, binds);
}

static void wrote(struct tally *tally, VALUE shape)
{
    tally->writes++;
    rb_funcall(tally->observer, id_wrote, 1, shape);
}

static void count(struct tally *tally, VALUE sql, VALUE name, long long started_ns, long long duration_ns, int cached, VALUE binds,
                  int lasting)
{
    VALUE shape;
    if (!RB_TYPE_P(sql, T_STRING)) sql = rb_obj_as_string(sql);
    struct text text = text_of(sql, name, &shape);
    tally->told++;
    tally->site_of = Qnil;
    tally->joins = text.flags & JOINS;
    tally->shape = text.flags & WRITES_BULK ? Qnil : shape;
    if (!text.flags) return;
    if (text.flags & WRITES_BULK) return wrote(tally, shape);

    int index = group_of(tally, &text, shape);
    if (index < 0) return;

    struct group *group = &tally->groups[index];
    if (cached) {
        group->cached++;
        return;
    }
    if (group->count == 0) group->started_ns = started_ns;
    if (group->waited && group->naps >= 0) group->waited = tally->naps > group->naps;
    group->naps = tally->naps;
    group->count++;
    group->total_ns += duration_ns;
    group->ended_ns = started_ns + duration_ns;
    int settled = group->settled;
    locate(tally, index, name);
    if (text.flags & WRITES) wrote(tally, shape);
    else if (!settled) learn(tally, index, text.hash, shape, sql, binds, lasting);
    if (duration_ns >= tally->slow_ns) rb_funcall(tally->observer, id_slow, 2, shape, LL2NUM(duration_ns));
}

/* ---- what a recording tells ---- */

static VALUE tally_initialize(VALUE self, VALUE observer, VALUE slow_ns, VALUE order)
{
    struct tally *tally = tally_of(self);
    known_as(&tally_class, "Castellan::Detect::Tally");
    known_as(&pieces_class, "Castellan::Detect::Pieces");
    known_as(&call_site, "Castellan::CallSite");
    tally->observer = observer;
    tally->slow_ns = NIL_P(slow_ns) ? LLONG_MAX : NUM2LL(slow_ns);
    tally->order = NUM2LONG(order);
    return self;
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
    if (NIL_P(tally_of(told->self)->failure)) {
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

static VALUE tally_enter(VALUE self, VALUE owner, VALUE association)
{
    struct tally *tally = tally_of(self);
    tally->around = grown(tally->around, tally->around_count + 1, &tally->around_room, sizeof(VALUE)); /* for two: rooms are even */
    tally->around[tally->around_count++] = tally->owner;
    tally->around[tally->around_count++] = tally->association;
    tally->owner = owner;
    tally->association = association;
    return Qnil;
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

    tally->loads = grown(tally->loads, tally->load_count, &tally->load_room, sizeof(struct load));
    tally->loads[tally->load_count++] = (struct load){ site, model, records, 1, ++tally->order, tally->joins };
    return Qnil;
}

static VALUE tally_slept(VALUE self)
{
    tally_of(self)->naps++;
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
    return loads(tally->site_of, model) ? tally->site : castellan_call_site(call_site);
}

/* ---- what it answers ---- */

static VALUE tally_repeats(VALUE self, VALUE times, VALUE min_ns)
{
    const struct tally *tally = tally_of(self);
    for (int index = 0; index < tally->group_count; index++) {
        const struct group *group = &tally->groups[index];
        long long span = group->ended_ns - group->started_ns;
        if (group->count >= NUM2LONG(times) && (span < 0 ? -span : span) >= NUM2LL(min_ns)) return Qtrue;
    }
    return Qfalse;
}

/* Whether there is nothing to look at: no shape was sent twice, nothing was written, and no association was walked for two shapes.
 * Where it is false, Detect::Verdict knows. */
static VALUE tally_once(VALUE self)
{
    const struct tally *tally = tally_of(self);
    for (int index = 0; index < tally->group_count; index++) {
        const struct group *group = &tally->groups[index];
        if (group->count > 1 || group->writes) return Qfalse;

        for (int before = 0; before < index && !NIL_P(group->association); before++) {
            const struct group *other = &tally->groups[before];
            if (other->association == group->association && other->owner == group->owner) return Qfalse;
        }
    }
    return Qtrue;
}

static VALUE sites_of(const struct group *group)
{
    VALUE sites = rb_hash_new();
    for (int index = 0; index < group->site_count; index++) {
        rb_hash_aset(sites, group->sites[index].site, LONG2NUM(group->sites[index].count));
    }
    return sites;
}

static VALUE digests_of(const struct group *group)
{
    VALUE digests = rb_hash_new();
    for (int index = 0; index < group->digest_count; index++) {
        rb_hash_aset(digests, ULL2NUM(group->digests[index].values), ULL2NUM(group->digests[index].writes));
    }
    return digests;
}

/* For each group what Group.counted takes. */
static VALUE tally_groups(VALUE self)
{
    struct tally *tally = tally_of(self);
    VALUE groups = rb_ary_new();
    for (int index = 0; index < tally->group_count; index++) {
        if (tally->groups[index].later) compare_first(tally, index);
        VALUE pieces = tally->groups[index].pieces;
        if (NIL_P(pieces) && tally->groups[index].has_pieces) {
            pieces = rb_funcall(pieces_class, id_new, 0);
            const struct group *first = &tally->groups[index];
            if (first->pieces_told) rb_funcall(pieces, id_add, 2, first->sql, first->binds);
        }
        struct group group = tally->groups[index]; /* after the calls of Ruby: meanwhile another thread may have counted */
        VALUE row[] = { group.shape, group.owner, group.association, LONG2NUM(group.order), LONG2NUM(group.count),
                        LONG2NUM(group.cached), LL2NUM(group.total_ns), group.count ? LL2NUM(group.started_ns) : Qnil,
                        group.count ? LL2NUM(group.ended_ns) : Qnil, LONG2NUM(group.again), LONG2NUM(group.quietly),
                        group.waited ? Qtrue : Qfalse, pieces, sites_of(&group), digests_of(&group), group.stack };
        rb_ary_push(groups, rb_ary_new_from_values(sizeof(row) / sizeof(*row), row));
    }
    RB_GC_GUARD(self);
    return groups;
}

/* [[site, model, count, times, order, joined], …] */
static VALUE tally_loads(VALUE self)
{
    const struct tally *tally = tally_of(self);
    VALUE loads = rb_ary_new();
    for (int index = 0; index < tally->load_count; index++) {
        struct load load = tally->loads[index];
        rb_ary_push(loads, rb_ary_new_from_args(6, load.site, load.model, LONG2NUM(load.count), LONG2NUM(load.times),
                                                LONG2NUM(load.order), load.joined ? Qtrue : Qfalse));
    }
    return loads;
}

static VALUE tally_shape(VALUE self) { return tally_of(self)->shape; }
static VALUE tally_order(VALUE self) { return LONG2NUM(tally_of(self)->order); }
static VALUE tally_failure(VALUE self) { return tally_of(self)->failure; }
static VALUE tally_told(VALUE self) { return LONG2NUM(tally_of(self)->told); }

int castellan_tally_p(VALUE object)
{
    return rb_typeddata_is_kind_of(object, &tally_type);
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
    VALUE *const globals[] = { &kept_shapes, &fingerprints, &pieces_class, &tally_class, &call_site };
    for (size_t index = 0; index < sizeof(globals) / sizeof(*globals); index++) rb_gc_register_address(globals[index]);

    forget_texts();
    fingerprints = rb_hash_new();
    id_read = rb_intern("read");
    id_slow = rb_intern("slow");
    id_wrote = rb_intern("wrote");
    id_written = rb_intern("written");
    id_add = rb_intern("add");
    id_new = rb_intern("new");
    id_fingerprint = rb_intern("fingerprint");

    VALUE native = rb_define_class_under(castellan, "NativeTally", rb_cObject);
    rb_define_alloc_func(native, tally_allocate);
    rb_define_method(native, "initialize", tally_initialize, 3);
    rb_define_method(native, "query", tally_query, -1);
    rb_define_method(native, "enter", tally_enter, 2);
    rb_define_method(native, "leave", tally_leave, 0);
    rb_define_method(native, "loaded", tally_loaded, 3);
    rb_define_method(native, "site_of", tally_site_of, 1);
    rb_define_method(native, "slept", tally_slept, 0);
    rb_define_method(native, "repeats?", tally_repeats, 2);
    rb_define_method(native, "once?", tally_once, 0);
    rb_define_method(native, "groups", tally_groups, 0);
    rb_define_method(native, "loads", tally_loads, 0);
    rb_define_method(native, "shape", tally_shape, 0);
    rb_define_method(native, "order", tally_order, 0);
    rb_define_method(native, "told", tally_told, 0);
    rb_define_method(native, "failure", tally_failure, 0);
}
