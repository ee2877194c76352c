/*
 * Reads a Plan::RowSet::Table into a section: its rows, the coder of each column, its links and extras.
 */
#ifndef CASTELLAN_TABLE_H
#define CASTELLAN_TABLE_H

#include "ids.h"
#include "record.h"

static enum coder coder_of(VALUE symbol, const struct section *section)
{
    if (NIL_P(symbol)) return CODER_NONE;
    for (int coder = CODER_INTEGER; coder < CODER_COUNT; coder++) {
        if (symbol == coder_symbols[coder]) return coder;
    }
    rb_funcall(ruby_side(), id_unknown_coder, 2, section_type(section), symbol);
    return CODER_NONE;
}

/* Reads two lists of integers; false where there is anything else, or not as many in the one as in the other. */
static bool links_read_lists(struct links *links, VALUE rows)
{
    struct source source = source_of(rows);
    struct cell one = source_cell(&source, 0, 0), other = source_cell(&source, 0, 1);
    struct id_text parents = id_text_of(one.text, one.length), related = id_text_of(other.text, other.length);
    size_t most = (size_t)(related.end - related.at + 1) / 2; /* a digit and a comma each */
    long count = 0;
    if (source.size > 1 || one.kind == CELL_VALUE || one.kind != other.kind || most > INT32_MAX) return false;
    links->parents = arena_allocate(links->arena, most, sizeof(int64_t));
    links->found = arena_allocate(links->arena, most, sizeof(struct link_target));
    for (; related.at < related.end; count++) {
        struct link_target *target = &links->found[count];
        if (!id_text_next(&related, &target->integer) || !id_text_next(&parents, &links->parents[count])) return false;
        target->pair = -1;
    }
    links->pairs = (struct source){ Qnil, NULL, count, 0 };
    RB_GC_GUARD(one.value);
    RB_GC_GUARD(other.value);
    RB_GC_GUARD(source.rows);
    return parents.at == parents.end;
}

/* Lists are read at once; those that cannot be are pairs. */
static VALUE links_lists(struct links *links, VALUE link)
{
    links->grouped = true;
    if (links_read_lists(links, rb_funcall(link, id_rows, 0))) return Qnil;
    links->parents = NULL;
    links->found = NULL;
    return rb_funcall(link, id_pairs, 0);
}

static void section_links(struct section *section, VALUE links)
{
    for (long i = 0; i < section->parts->edge_count; i++) {
        struct links *target = &section->links[i];
        VALUE link = NIL_P(links) ? Qnil : rb_ary_entry(links, section->parts->edges[i].position);
        if (NIL_P(link) && !section->parts->edges[i].data) continue;
        if (rb_respond_to(link, id_position)) {
            target->column = NUM2LONG(rb_funcall(link, id_position, 0));
            continue;
        }
        if (rb_respond_to(link, id_pairs) && NIL_P(link = links_lists(target, link))) continue;
        target->pairs = source_of(rb_funcall(link, id_rows, 0));
        target->parent = NUM2LONG(rb_funcall(link, id_parent_position, 0));
        target->related = NUM2LONG(rb_funcall(link, id_related_position, 0));
        target->kind = template_index(rb_funcall(link, id_kind_position, 0));
        target->grouped = true;
        if (target->pairs.size > INT32_MAX / 2) rb_raise(rb_eArgError, "more than %d links in one document", INT32_MAX / 2);
        RB_GC_GUARD(link);
    }
}

static VALUE section_array(VALUE hash, long key)
{
    VALUE array = NIL_P(hash) ? Qnil : rb_hash_aref(hash, LONG2NUM(key));
    if (!NIL_P(array)) Check_Type(array, T_ARRAY);
    return array;
}

static void section_asides(struct section *section, VALUE asides)
{
    VALUE members = rb_funcall(asides, id_members, 0), edges = rb_funcall(asides, id_edges, 0), around = rb_funcall(asides, id_edges_after, 0);
    section->after = rb_funcall(asides, id_after, 0);
    if (!NIL_P(section->after)) Check_Type(section->after, T_ARRAY);
    for (long i = 0; i < section->parts->member_count; i++) section->shown[i] = section_array(members, i);
    for (long i = 0; i < section->parts->edge_count; i++) {
        section->links[i].shown = section_array(edges, section->parts->edges[i].position);
        section->links[i].after = section_array(around, section->parts->edges[i].position);
    }
    RB_GC_GUARD(members);
    RB_GC_GUARD(edges);
    RB_GC_GUARD(around);
}

static void section_set_up(struct section *section, VALUE table)
{
    VALUE coders = rb_convert_type(rb_funcall(table, id_coders, 0), T_ARRAY, "Array", "to_ary");
    VALUE computed = rb_funcall(table, id_computed, 0);
    VALUE asides = rb_funcall(table, id_asides, 0);
    if (RARRAY_LEN(coders) < section->coder_count) section->coder_count = RARRAY_LEN(coders);
    for (long i = 0; i < section->coder_count; i++) section->coders[i] = coder_of(rb_ary_entry(coders, i), section);
    for (long i = 0; i < section->parts->member_count && !NIL_P(computed); i++) {
        section->computed[i] = rb_hash_aref(computed, LONG2NUM(i));
        if (!NIL_P(section->computed[i])) Check_Type(section->computed[i], T_ARRAY);
    }
    if (!NIL_P(asides)) section_asides(section, asides);
    section->source = source_of(rb_funcall(table, id_rows, 0));
    if (section->source.size > INT32_MAX / 2) rb_raise(rb_eArgError, "more than %d rows in one document", INT32_MAX / 2);
    section_links(section, rb_funcall(table, id_links, 0));
    RB_GC_GUARD(coders);
}

#endif
