/*
 * Writes documents from rows, with the same bytes as lib/castellan/serialize/ruby_encoder.rb. Rare values (a time that
 * is a Ruby object, an id beyond 64 bits) and all errors are handled in Ruby: see `encoder_ask_ruby` and
 * `encoder_refuse`.
 *
 * Its headers are compiled here as one unit: encoding.h (state), ruby_side.h, table.h (rows), record.h (ids), links.h,
 * then the output: value.h, linkage.h, object.h, included.h, document.h.
 *
 * Memory: all allocations belong to the arena of one `struct encoder`, which rb_ensure frees. References to Ruby objects
 * are in memory that the garbage collector marks (ALLOCV).
 */
#include "encoder.h"
#include "document.h"
#include "ids.h"
#include "table.h"

/* The memory of the last document, for the next one: fresh pages cost more than what is written into them. Under Ruby's lock. */
static struct buffer encoder_spare;

#define SPARE_MOST (1 << 20)

static VALUE encoder_free(VALUE pointer)
{
    struct encoder *encoder = (struct encoder *)pointer;
    arena_free(&encoder->arena);
    if (!encoder_spare.bytes && encoder->buffer.capacity <= SPARE_MOST) {
        encoder_spare = encoder->buffer;
        encoder_spare.length = 0;
    }
    else buffer_free(&encoder->buffer);
    return Qnil;
}

static VALUE encoder_work(VALUE pointer)
{
    struct encoder *encoder = (struct encoder *)pointer;
    for (long i = 0; i < encoder->template->node_count; i++) section_set_up(&encoder->sections[i], rb_ary_entry(encoder->tables, i));
    encoder_refresh(encoder);
    if (encoder->each) encoder_records(encoder);
    else if (encoder->part) encoder_part(encoder);
    else encoder_document(encoder);
    return encoder->result;
}

static long section_coder_count(VALUE table)
{
    VALUE coders = rb_funcall(table, id_coders, 0);
    Check_Type(coders, T_ARRAY);
    return RARRAY_LEN(coders);
}

/* Everything that names Ruby objects is in these five pieces, which the collector looks through; large ones are on the heap. */
static VALUE encoder_run(struct encoder *encoder)
{
    const struct template *template = encoder->template;
    long computed = 0, edges = 0, coders = 0;
    struct section *sections;
    VALUE *computed_values, *shown_values, result;
    VALUE sections_memory, computed_memory, shown_memory, links_memory, coders_memory;
    struct links *links;
    enum coder *coder_values;

    Check_Type(encoder->tables, T_ARRAY);
    if (RARRAY_LEN(encoder->tables) != template->node_count || template->node_count > 500) {
        rb_raise(rb_eArgError, "%ld tables for a plan of %ld nodes (at most 500)", RARRAY_LEN(encoder->tables), template->node_count);
    }
    sections = ALLOCV_N(struct section, sections_memory, template->node_count);
    memset(sections, 0, sizeof(struct section) * template->node_count);
    for (long i = 0; i < template->node_count; i++) {
        sections[i].arena = &encoder->arena;
        sections[i].parts = &template->nodes[i];
        sections[i].texts = Qnil;
        sections[i].after = Qnil;
        sections[i].coder_count = section_coder_count(rb_ary_entry(encoder->tables, i));
        computed += template->nodes[i].member_count;
        edges += template->nodes[i].edge_count;
        coders += sections[i].coder_count;
    }
    if (computed + edges + coders > 10000) rb_raise(rb_eArgError, "a plan with %ld members, edges and columns", computed + edges + coders);
    computed_values = ALLOCV_N(VALUE, computed_memory, computed + 1);
    shown_values = ALLOCV_N(VALUE, shown_memory, computed + 1);
    links = ALLOCV_N(struct links, links_memory, edges + 1);
    coder_values = ALLOCV_N(enum coder, coders_memory, coders + 1);
    memset(links, 0, sizeof(struct links) * (edges + 1));
    for (long i = 0; i < computed; i++) computed_values[i] = shown_values[i] = Qnil;
    for (long i = 0; i < edges; i++) {
        links[i].arena = &encoder->arena;
        links[i].shown = links[i].after = Qnil;
    }
    for (long i = 0; i < template->node_count; i++) {
        sections[i].computed = computed_values;
        sections[i].shown = shown_values;
        sections[i].links = links;
        sections[i].coders = coder_values;
        computed_values += template->nodes[i].member_count;
        shown_values += template->nodes[i].member_count;
        links += template->nodes[i].edge_count;
        coder_values += sections[i].coder_count;
    }
    encoder->sections = sections;
    encoder->buffer = encoder_spare;
    memset(&encoder_spare, 0, sizeof(encoder_spare));
    result = rb_ensure(encoder_work, (VALUE)encoder, encoder_free, (VALUE)encoder);
    RB_GC_GUARD(encoder->tables);
    RB_GC_GUARD(encoder->compiled);
    ALLOCV_END(sections_memory);
    ALLOCV_END(computed_memory);
    ALLOCV_END(shown_memory);
    ALLOCV_END(links_memory);
    ALLOCV_END(coders_memory);
    return result;
}

/* Native.encode(template, tables, single, tail, holes) → the body; holes are pushed to the array */
static VALUE encoder_encode(VALUE self, VALUE ruby_template, VALUE tables, VALUE single, VALUE tail, VALUE holes)
{
    VALUE compiled = template_read(ruby_template, "compiled");
    struct encoder encoder = {
        .template = template_of(compiled), .ruby_template = ruby_template, .compiled = compiled, .tables = tables, .tail = tail,
        .holes = holes, .result = Qnil, .single = RTEST(single), .included = Qnil
    };
    StringValue(encoder.tail);
    Check_Type(holes, T_ARRAY);
    return encoder_run(&encoder);
}

/* Native.encode_each(template, tables) → an array of [id, bytes, included, holes] */
static VALUE encoder_encode_each(VALUE self, VALUE ruby_template, VALUE tables)
{
    VALUE compiled = template_read(ruby_template, "compiled");
    struct encoder encoder = {
        .template = template_of(compiled), .ruby_template = ruby_template, .compiled = compiled, .tables = tables, .tail = Qnil,
        .holes = rb_ary_new(), .result = Qnil, .each = true, .included = Qnil
    };
    return encoder_run(&encoder);
}

/* Native.encode_part(template, tables, holes, found) → the primary records' bytes; node and id of each record that they lead to
 * are pushed to found */
static VALUE encoder_encode_part(VALUE self, VALUE ruby_template, VALUE tables, VALUE holes, VALUE found)
{
    VALUE compiled = template_read(ruby_template, "compiled");
    struct encoder encoder = {
        .template = template_of(compiled), .ruby_template = ruby_template, .compiled = compiled, .tables = tables, .tail = Qnil,
        .holes = holes, .result = Qnil, .part = true, .included = found
    };
    Check_Type(holes, T_ARRAY);
    Check_Type(found, T_ARRAY);
    return encoder_run(&encoder);
}

/* Native.reads_results? → whether a PG::Result is read in place */
static VALUE encoder_reads_results(VALUE self)
{
    if (!libpq.tried || !libpq.found) source_find_libpq();
    return libpq.found ? Qtrue : Qfalse;
}

void Init_encoder(VALUE castellan)
{
    VALUE native = rb_define_module_under(castellan, "Native");
    rb_define_singleton_method(native, "compile", template_compile, 1);
    rb_define_singleton_method(native, "encode", encoder_encode, 5);
    rb_define_singleton_method(native, "encode_each", encoder_encode_each, 2);
    rb_define_singleton_method(native, "encode_part", encoder_encode_part, 4);
    rb_define_singleton_method(native, "reads_results?", encoder_reads_results, 0);
    rb_define_singleton_method(native, "id_list", ids_list, 1);
    rb_define_singleton_method(native, "distinct_ids", ids_distinct, 1);
    rb_define_singleton_method(native, "column_ids", ids_column, 2);
    for (int coder = CODER_INTEGER; coder < CODER_COUNT; coder++) coder_symbols[coder] = ID2SYM(rb_intern(coder_names[coder]));
    id_rows = rb_intern("rows");
    id_coders = rb_intern("coders");
    id_links = rb_intern("links");
    id_computed = rb_intern("computed");
    id_asides = rb_intern("asides");
    id_after = rb_intern("after");
    id_members = rb_intern("members");
    id_edges = rb_intern("edges");
    id_edges_after = rb_intern("edges_after");
    id_position = rb_intern("position");
    id_parent_position = rb_intern("parent_position");
    id_related_position = rb_intern("related_position");
    id_kind_position = rb_intern("kind_position");
    id_pairs = rb_intern("pairs");
    id_write = rb_intern("write");
    id_refuse = rb_intern("refuse");
    id_id_text = rb_intern("id_text");
    id_unknown_coder = rb_intern("unknown_coder");
}
