/*
 * What a tally holds, and its memory.
 */
#ifndef CASTELLAN_TALLY_STATE_H
#define CASTELLAN_TALLY_STATE_H

#include "tally_text.h"

#define BUCKETS 64
#define WALKS 4 /* a power of two */
#define REPEATED 4 /* as well */
#define MOST_DIGESTS 32 /* as in group.rb */

struct site {
    VALUE site; /* Integer or nil */
    long count;
};

struct digest {
    st_index_t values;
    unsigned long long writes;
};

/* What every statement touches comes first, within one line of the processor's cache. */
struct group {
    VALUE owner, association;
    long count, naps;
    long long total_ns, ended_ns;
    struct site *sites;
    int site;
    char waited, settled, has_pieces;
    char refused; /* whether its last statement was, by the database */
    char later; /* whether the values of the first statement are still to be compared: most shapes are sent once */

    struct digest *digests;
    int digest_count, pieces_told;
    long again, quietly, cached, order;
    char writes;
    int fingerprint, next;
    int site_count, site_room;
    long long started_ns;
    VALUE shape, pieces;
    VALUE sql, binds; /* the first statement's */
    VALUE stack; /* the application's frames at the second statement, or nil */
    st_index_t first_text;
    unsigned long long first_writes;
};

struct load {
    VALUE site, model;
    long count, times, order;
    int joined;
};

/* What a reflection of ActiveRecord's says and never changes. Kept as long as the recording, because to ask it takes longer than all else
   that is done for a walk. */
struct walk {
    VALUE reflection; /* 0: a free place */
    VALUE owner, association;
};

/* A text that was told more than once under one name. */
struct repeated {
    char *bytes; /* of the text and then of its name */
    long name_length, room;
    struct text text; /* its length is 0 where nothing is kept */
    VALUE shape;
    int group; /* that of the statement that was told last */
};

struct tally {
    VALUE owner, association; /* of the walk that is going on */
    VALUE *around;
    int around_count, around_room;
    VALUE failure; /* what went wrong in here: nothing is counted any more */
    VALUE shape; /* of the last statement, or nil */
    struct group *groups;
    long long slow_ns;
    long told, writes, naps;
    int joins;
    int failed; /* whether the statement that is told next did */
    VALUE site, site_of; /* where the last statement was asked for, and its name; nil where that was not looked up */
    struct repeated repeated[REPEATED]; /* each at a place that its length gives */
    struct walk walks[WALKS]; /* each at a place that the address of its reflection gives */
    VALUE observer; /* the Tally in Ruby */
    struct load *loads;
    long order;
    int group_count, group_room, heads;
    int load_count, load_room;
    int buckets[BUCKETS]; /* 1 + the index of a group; 0: none */
};

static void tally_mark(void *pointer)
{
    const struct tally *tally = pointer;
    rb_gc_mark(tally->owner);
    rb_gc_mark(tally->association);
    rb_gc_mark(tally->observer);
    rb_gc_mark(tally->shape);
    rb_gc_mark(tally->site_of);
    rb_gc_mark(tally->failure);
    for (int index = 0; index < WALKS; index++) {
        rb_gc_mark(tally->walks[index].reflection);
        rb_gc_mark(tally->walks[index].owner);
        rb_gc_mark(tally->walks[index].association);
    }
    for (int index = 0; index < tally->around_count; index++) rb_gc_mark(tally->around[index]);
    for (int index = 0; index < REPEATED; index++) rb_gc_mark(tally->repeated[index].shape);
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
    for (int index = 0; index < REPEATED; index++) xfree(tally->repeated[index].bytes);
    xfree(tally->groups);
    xfree(tally->loads);
    xfree(tally->around);
    xfree(tally);
}

static size_t tally_size(const void *pointer)
{
    const struct tally *tally = pointer;
    size_t size = sizeof(*tally) + tally->group_room * sizeof(struct group) + tally->load_room * sizeof(struct load) +
                  tally->around_room * sizeof(VALUE);
    for (int index = 0; index < tally->group_count; index++) {
        const struct group *group = &tally->groups[index];
        size += group->site_room * sizeof(struct site) + (group->digests ? MOST_DIGESTS * sizeof(struct digest) : 0);
    }
    for (int index = 0; index < REPEATED; index++) size += tally->repeated[index].room;
    return size;
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

/* As rb_typeddata_is_kind_of, which asks for the types of types, too. */
static int is_tally(VALUE object)
{
    return RB_TYPE_P(object, T_DATA) && RTYPEDDATA_P(object) && RTYPEDDATA_TYPE(object) == &tally_type;
}

static struct tally *tally_of(VALUE self)
{
    return is_tally(self) ? RTYPEDDATA_DATA(self) : rb_check_typeddata(self, &tally_type);
}

#endif
