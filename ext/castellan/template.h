/*
 * The C form of Castellan::Serialize::Template: the same constant bytes, in one block of memory. Built once per plan,
 * shared by all threads, and immutable except for a hint.
 */
#ifndef CASTELLAN_TEMPLATE_H
#define CASTELLAN_TEMPLATE_H

#include "escape.h"
#include <ruby.h>

struct bytes {
    const char *text;
    size_t length;
};

struct member_parts {
    struct bytes before, name;
    long column;  /* -1: not in the row */
    long hole;    /* -1: none */
};

/* What a relationship to several types writes and leads to for one of them. */
struct kind_parts {
    struct bytes link;
    long child;     /* -1: linkage only */
};

struct edge_parts {
    struct bytes before, name, link, link_end; /* of a linked record: what stands before and after its id */
    long child;     /* -1: linkage only */
    long kind_count;          /* 1, or of how many types the linked records are; `link` and `child` are those of the first */
    struct kind_parts *kinds; /* NULL where there is one */
    long position;  /* in the node's links */
    bool to_many;
    bool written;   /* false: it only leads to included records */
    bool data;      /* false: its linkage is left out */
};

struct node_parts {
    struct bytes open, close, type;
    long member_count, edge_count;
    struct member_parts *members;
    struct edge_parts *edges;
    long family;   /* nodes of one type are a family: a record that two of them hold is included once */
    bool related;  /* whether another node of the family exists */
    bool regular;  /* whether each row is written alike, so that `before` and `close` hold */
    bool after;    /* whether links and meta objects stand at the end of each record */
};

struct template {
    enum escape_mode mode;
    bool nested, compound;
    long node_count;
    struct node_parts *nodes;
    char *block;
    size_t block_used, block_size;
    size_t last_length;  /* of the last document: how much room the next one begins with; the one thing that changes */
};

static void template_free(void *pointer)
{
    struct template *template = pointer;
    for (long i = 0; template->nodes && i < template->node_count; i++) {
        for (long j = 0; template->nodes[i].edges && j < template->nodes[i].edge_count; j++) xfree(template->nodes[i].edges[j].kinds);
        xfree(template->nodes[i].members);
        xfree(template->nodes[i].edges);
    }
    xfree(template->nodes);
    xfree(template->block);
    xfree(template);
}

static size_t template_memsize(const void *pointer)
{
    const struct template *template = pointer;
    return sizeof(*template) + template->block_size + template->node_count * sizeof(struct node_parts);
}

static const rb_data_type_t template_type = {
    "Castellan::Native::Template", { NULL, template_free, template_memsize }, NULL, NULL, RUBY_TYPED_FREE_IMMEDIATELY
};

static VALUE template_read(VALUE object, const char *name)
{
    return rb_funcall(object, rb_intern(name), 0);
}

static long template_index(VALUE number)
{
    return NIL_P(number) ? -1 : NUM2LONG(number);
}

/* Copies a string into the block. The first of two rounds has no block yet and only adds up how much is needed. */
static struct bytes template_keep(struct template *template, VALUE string)
{
    struct bytes kept = { NULL, 0 };
    StringValue(string);
    kept.length = (size_t)RSTRING_LEN(string);
    if (template->block) {
        kept.text = memcpy(template->block + template->block_used, RSTRING_PTR(string), kept.length);
    }
    template->block_used += kept.length;
    RB_GC_GUARD(string);
    return kept;
}

static void template_member(struct template *template, struct member_parts *parts, VALUE member)
{
    parts->before = template_keep(template, template_read(member, "before"));
    parts->name = template_keep(template, template_read(member, "name"));
    parts->column = template_index(template_read(member, "column"));
    parts->hole = template_index(template_read(member, "hole"));
}

static long template_child(const struct template *template, VALUE number)
{
    long child = template_index(number);
    if (child >= template->node_count) rb_raise(rb_eArgError, "an edge leads to node %ld of %ld", child, template->node_count);
    return child;
}

static void template_kinds(struct template *template, struct edge_parts *parts, VALUE edge)
{
    VALUE links = rb_convert_type(template_read(edge, "links"), T_ARRAY, "Array", "to_ary");
    VALUE children = rb_convert_type(template_read(edge, "children"), T_ARRAY, "Array", "to_ary");
    parts->kind_count = RARRAY_LEN(links);
    if (parts->kind_count > INT16_MAX) rb_raise(rb_eArgError, "a relationship to %ld types", parts->kind_count);
    if (parts->kind_count <= 1) return;
    if (!parts->kinds) parts->kinds = ZALLOC_N(struct kind_parts, parts->kind_count);
    for (long i = 0; i < parts->kind_count; i++) {
        parts->kinds[i].link = template_keep(template, rb_ary_entry(links, i));
        parts->kinds[i].child = template_child(template, rb_ary_entry(children, i));
    }
    RB_GC_GUARD(links);
    RB_GC_GUARD(children);
}

static void template_edge(struct template *template, struct edge_parts *parts, VALUE edge)
{
    VALUE before = template_read(edge, "before");
    parts->written = !NIL_P(before);
    if (parts->written) parts->before = template_keep(template, before);
    parts->name = template_keep(template, template_read(edge, "name"));
    parts->data = RTEST(template_read(edge, "data"));
    parts->link = template_keep(template, template_read(edge, "link"));
    parts->link_end = template_keep(template, template_read(edge, "link_end"));
    parts->child = template_child(template, template_read(edge, "child"));
    template_kinds(template, parts, edge);
    parts->position = template_index(template_read(edge, "position"));
    parts->to_many = RTEST(template_read(edge, "to_many"));
}

static void template_node(struct template *template, struct node_parts *parts, VALUE node)
{
    VALUE members = rb_convert_type(template_read(node, "members"), T_ARRAY, "Array", "to_ary");
    VALUE edges = rb_convert_type(template_read(node, "edges"), T_ARRAY, "Array", "to_ary");
    parts->open = template_keep(template, template_read(node, "open"));
    parts->close = template_keep(template, template_read(node, "close"));
    parts->type = template_keep(template, template_read(node, "type"));
    parts->after = RTEST(template_read(node, "after"));
    parts->regular = RTEST(template_read(node, "regular"));
    if (!parts->members) parts->members = ZALLOC_N(struct member_parts, RARRAY_LEN(members) + 1);
    if (!parts->edges) parts->edges = ZALLOC_N(struct edge_parts, RARRAY_LEN(edges) + 1);
    parts->member_count = RARRAY_LEN(members);
    parts->edge_count = RARRAY_LEN(edges);
    for (long i = 0; i < parts->member_count; i++) template_member(template, &parts->members[i], rb_ary_entry(members, i));
    for (long i = 0; i < parts->edge_count; i++) template_edge(template, &parts->edges[i], rb_ary_entry(edges, i));
    RB_GC_GUARD(members);
    RB_GC_GUARD(edges);
}

static bool template_same(struct bytes one, struct bytes other)
{
    return one.length == other.length && memcmp(one.text, other.text, one.length) == 0;
}

static void template_families(struct template *template)
{
    for (long i = 0; i < template->node_count; i++) {
        struct node_parts *node = &template->nodes[i];
        node->family = i;
        for (long j = 0; j < i; j++) {
            struct node_parts *other = &template->nodes[j];
            if (other->family != j || !template_same(node->type, other->type)) continue;
            node->family = j;
            node->related = other->related = true;
            break;
        }
    }
}

static enum escape_mode template_mode(VALUE escape)
{
    if (escape == ID2SYM(rb_intern("json"))) return ESCAPE_JSON;
    if (escape == ID2SYM(rb_intern("rails"))) return ESCAPE_RAILS;
    if (escape == ID2SYM(rb_intern("rails_html"))) return ESCAPE_RAILS_HTML;
    rb_raise(rb_eArgError, "%" PRIsVALUE " is no way of escaping", escape);
}

/* Native.compile(template) → the same for C */
static VALUE template_compile(VALUE self, VALUE source)
{
    struct template *template;
    VALUE compiled = TypedData_Make_Struct(rb_cObject, struct template, &template_type, template);
    VALUE nodes = rb_convert_type(template_read(source, "nodes"), T_ARRAY, "Array", "to_ary");
    template->mode = template_mode(template_read(source, "escape"));
    template->nested = RTEST(template_read(source, "nested?"));
    template->compound = RTEST(template_read(source, "compound?"));
    template->nodes = ZALLOC_N(struct node_parts, RARRAY_LEN(nodes) + 1);
    template->node_count = RARRAY_LEN(nodes);
    for (int round = 0; round < 2; round++) {
        if (round) {
            template->block_size = template->block_used;
            template->block = ALLOC_N(char, template->block_size + 1);
            template->block_used = 0;
        }
        for (long i = 0; i < template->node_count; i++) template_node(template, &template->nodes[i], rb_ary_entry(nodes, i));
    }
    template_families(template);
    RB_GC_GUARD(nodes);
    return rb_obj_freeze(compiled);
}

static struct template *template_of(VALUE compiled)
{
    return rb_check_typeddata(compiled, &template_type);
}

#endif
