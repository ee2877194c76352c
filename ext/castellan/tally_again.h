/*
 * A statement that repeats: what was found out about its text in this recording, known again by its bytes. Most statements of a page
 * that repeats itself are counted here, where nothing can be raised and Ruby is not called.
 */
#ifndef CASTELLAN_TALLY_AGAIN_H
#define CASTELLAN_TALLY_AGAIN_H

#include "tally_group.h"
#include "tally_values.h"

#define LONGEST_KEPT 1024

static struct repeated *repeated_place(struct tally *tally, VALUE sql, VALUE name)
{
    return &tally->repeated[(RSTRING_LEN(sql) + RSTRING_LEN(name)) % REPEATED];
}

/* @return what is known of the text under this name, or NULL */
static const struct repeated *repeated_find(struct tally *tally, VALUE sql, VALUE name)
{
    if (!RB_TYPE_P(sql, T_STRING) || !RB_TYPE_P(name, T_STRING)) return NULL;

    const struct repeated *known = repeated_place(tally, sql, name);
    const long length = RSTRING_LEN(sql), name_length = RSTRING_LEN(name);
    if (length == 0 || known->text.length != length || known->name_length != name_length) return NULL;
    if (memcmp(known->bytes, RSTRING_PTR(sql), length) != 0) return NULL;
    return memcmp(known->bytes + length, RSTRING_PTR(name), name_length) == 0 ? known : NULL;
}

static void repeated_keep(struct tally *tally, int group, const struct text *text, VALUE shape, VALUE sql, VALUE name)
{
    if (!RB_TYPE_P(sql, T_STRING) || !RB_TYPE_P(name, T_STRING)) return;

    const long length = RSTRING_LEN(sql), name_length = RSTRING_LEN(name);
    if (length == 0 || length + name_length > LONGEST_KEPT) return;

    struct repeated *place = repeated_place(tally, sql, name);
    if (length + name_length > place->room) {
        place->text.length = 0;
        place->bytes = xrealloc(place->bytes, length + name_length);
        place->room = length + name_length;
    }
    memcpy(place->bytes, RSTRING_PTR(sql), length);
    memcpy(place->bytes + length, RSTRING_PTR(name), name_length);
    place->name_length = name_length;
    place->text = *text;
    place->shape = shape;
    place->group = group;
}

/* @return whether it was counted; where not, nothing was done */
static int counted_again(struct tally *tally, VALUE sql, VALUE name, long long started_ns, long long duration_ns, VALUE binds)
{
    const struct repeated *known = repeated_find(tally, sql, name);
    if (!known || tally->failed || tally->writes || duration_ns >= tally->slow_ns) return 0;

    struct group *group = &tally->groups[known->group];
    if (group->owner != tally->owner || group->association != tally->association) return 0;
    if (group->count < 2 || group->refused || group->writes || group->has_pieces || group->later) return 0;
    if (group_looks(group, group->count + 1)) return 0;

    st_index_t values = known->text.hash;
    if (!group->settled && !NIL_P(binds)) {
        st_index_t hash;
        if (!values_known(binds, &hash)) return 0;
        values ^= hash;
    }
    tally->told++;
    tally->site_of = Qnil;
    tally->joins = known->text.flags & JOINS;
    tally->shape = known->shape;
    group_time(tally, group, started_ns, duration_ns);
    group->count++;
    group_count_site(group);
    if (!group->settled) values_compare(tally, known->group, values, 0);
    return 1;
}

#endif
