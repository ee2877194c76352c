/*
 * Groups: the statements of one shape through one association. Where they were asked for.
 */
#ifndef CASTELLAN_TALLY_GROUP_H
#define CASTELLAN_TALLY_GROUP_H

#include "call_site.h"
#include "list.h"
#include "tally_state.h"
#include "tally_text.h"

#define MOST_SHAPES 500 /* as in tally.rb */
#define ALL_SITES 16 /* these as in group.rb */
#define STEADY 5
#define MOST_FRAMES 50
#define SOME_SITES 7
#define MANY 64
#define FEW_SITES 29

static VALUE group_call_site = Qnil; /* Castellan::CallSite */

static int group_find(const struct tally *tally, int fingerprint, int *known)
{
    for (int next = tally->buckets[fingerprint % BUCKETS]; next; next = tally->groups[next - 1].next) {
        const struct group *group = &tally->groups[next - 1];
        if (group->fingerprint != fingerprint) continue;

        *known = 1;
        if (group->association == tally->association && group->owner == tally->owner) return next - 1;
    }
    return -1;
}

static int group_add(struct tally *tally, VALUE shape, int fingerprint, int flags)
{
    tally->groups = list_grown(tally->groups, tally->group_count, 1, &tally->group_room, sizeof(struct group));
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

/* @return the number under which a group of this fingerprint was made; 0: there is none */
static int group_fingerprint(const struct tally *tally, VALUE fingerprint)
{
    for (int index = 0; index < tally->group_count; index++) {
        VALUE other = rb_funcall(tally->groups[index].shape, id_key, 0);
        if (other == fingerprint || RTEST(rb_str_equal(other, fingerprint))) return tally->groups[index].fingerprint;
    }
    return 0;
}

/* @return the index of the group, or -1 where there are too many shapes */
static int group_of(struct tally *tally, const struct text *text, VALUE shape)
{
    int known = 0, fingerprint = text->fingerprint;
    int index = group_find(tally, fingerprint, &known);
    if (index >= 0) return index;

    if (!known && text_numbers_changed()) {
        int other = group_fingerprint(tally, rb_funcall(shape, id_key, 0));
        if (other) fingerprint = other;
        index = group_find(tally, fingerprint, &known);
        if (index >= 0) return index;
    }
    if (!known && tally->heads >= MOST_SHAPES) return -1;

    if (!known) tally->heads++;
    return group_add(tally, shape, fingerprint, text->flags);
}

static void group_time(const struct tally *tally, struct group *group, long long started_ns, long long duration_ns)
{
    if (group->count == 0) group->started_ns = started_ns;
    if (group->waited && group->naps >= 0) group->waited = tally->naps > group->naps;
    group->naps = tally->naps;
    group->total_ns += duration_ns;
    group->ended_ns = started_ns + duration_ns;
}

/* Whether the line of the statement of this number is looked up; else it is counted as asked for where the one before was. */
static int group_looks(const struct group *group, long count)
{
    long all = group->site_count > 1 ? ALL_SITES : STEADY;
    return count <= all || count % (count < MANY ? SOME_SITES : FEW_SITES) == 0;
}

static void group_count_site(struct group *group)
{
    if (group->site >= 0) group->sites[group->site].count++;
}

static void group_locate(struct tally *tally, int index, VALUE name)
{
    long count = tally->groups[index].count;
    if (group_looks(&tally->groups[index], count)) {
        VALUE site = castellan_call_site(group_call_site);
        struct group *group = &tally->groups[index];
        if (group->site < 0 || group->sites[group->site].site != site) {
            int at = 0;
            while (at < group->site_count && group->sites[at].site != site) at++;
            if (at == group->site_count) {
                group->sites = list_grown(group->sites, group->site_count, 1, &group->site_room, sizeof(struct site));
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
        VALUE stack = castellan_call_site_frames(group_call_site, MOST_FRAMES);
        tally->groups[index].stack = stack;
    }
    group_count_site(&tally->groups[index]);
}

#endif
