/*
 * What a tally answers when the work is over.
 */
#ifndef CASTELLAN_TALLY_ANSWERS_H
#define CASTELLAN_TALLY_ANSWERS_H

#include "tally_state.h"
#include "tally_values.h"

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

/* Whether there is nothing to look at: no shape was sent twice, nothing was written, no association was walked for two shapes, and nothing
 * went wrong. Where it is false, Detect::Verdict knows. */
static VALUE tally_once(VALUE self)
{
    const struct tally *tally = tally_of(self);
    if (!NIL_P(tally->failure)) return Qfalse;

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
        if (tally->groups[index].later) values_compare_first(tally, index);
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

#endif
