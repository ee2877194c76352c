/*
 * The values of a group's statements: whether the same was asked again, and what changes from one to the next. None is kept but the
 * first statement's, until there is a second.
 */
#ifndef CASTELLAN_TALLY_VALUES_H
#define CASTELLAN_TALLY_VALUES_H

#include "tally_state.h"

#define MOST_PIECES 12 /* as MOST in pieces.rb */
#define FEW_VALUES 8

static VALUE pieces_class = Qnil; /* Castellan::Detect::Pieces */
static ID id_add, id_new, id_written;

/* What changes from statement to statement is read by Ruby, from the second on. */
static void values_read(struct tally *tally, int index, VALUE sql, VALUE binds)
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

/* What stands for a value that most statements have: an Integer or a text. Values that are eql? have the same. */
static int value_known(VALUE value, st_index_t *known)
{
    if (RB_TYPE_P(value, T_STRING)) *known = rb_str_hash(value);
    else if (FIXNUM_P(value) || NIL_P(value)) *known = (st_index_t)value;
    else return 0;
    return 1;
}

/* @return whether they are few and such values */
static int values_known(VALUE binds, st_index_t *hash)
{
    st_index_t known[FEW_VALUES];
    long count = RB_TYPE_P(binds, T_ARRAY) ? RARRAY_LEN(binds) : FEW_VALUES + 1, at = 0;
    if (count > FEW_VALUES) return 0;

    while (at < count && value_known(RARRAY_AREF(binds, at), &known[at])) at++;
    if (at < count) return 0;

    *hash = rb_memhash(known, count * (long)sizeof(*known));
    return 1;
}

/* As binds.hash, without its call of a method for each value: that takes longer than all else that is done for a statement. */
static st_index_t values_hash(VALUE binds)
{
    st_index_t hash;
    return values_known(binds, &hash) ? hash : (st_index_t)NUM2LL(rb_hash(binds));
}

static st_index_t values_digest(st_index_t text, VALUE binds)
{
    return NIL_P(binds) ? text : text ^ values_hash(binds);
}

static void values_compare(struct tally *tally, int index, st_index_t values, unsigned long long now)
{
    struct group *group = &tally->groups[index];
    if (group->settled) return; /* by statements that were counted while Ruby read these values */
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

static void values_compare_first(struct tally *tally, int index)
{
    struct group *group = &tally->groups[index];
    group->later = 0;
    st_index_t values = values_digest(group->first_text, group->binds);
    values_compare(tally, index, values, tally->groups[index].first_writes);
}

/* `lasting`: the values stay as they are and may be looked at when there is a second statement. */
static void values_learn(struct tally *tally, int index, st_index_t text, VALUE shape, VALUE sql, VALUE binds, int lasting)
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
        if (group->later) values_compare_first(tally, index);
        st_index_t values = values_digest(text, binds);
        values_compare(tally, index, values, now);
    }
    if (tally->groups[index].has_pieces) values_read(tally, index, sql, binds);
}

#endif
