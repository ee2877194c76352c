/*
 * Lists that grow, of the observers that are written in C.
 */
#ifndef CASTELLAN_LIST_H
#define CASTELLAN_LIST_H

#include "ruby.h"

#define LIST_SHORTEST 4

/* @return the list of `count`, with room for `more`: at most LIST_SHORTEST, so one doubling is enough */
static void *list_grown(void *list, int count, int more, int *room, size_t size)
{
    if (count + more <= *room) return list;

    int wanted = *room ? *room * 2 : LIST_SHORTEST;
    list = xrealloc2(list, wanted, size);
    *room = wanted;
    return list;
}

#endif
