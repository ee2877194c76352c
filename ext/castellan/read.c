/*
 * Reads the input of a document: rows (an Array of Arrays, or a PG::Result in place, without a String for
 * each value), template, ids, and tables.
 *
 * The extension does not link libpq, because the pg gem brings its own. It looks up the functions in the
 * loaded pg_ext; if one is missing, it calls PG::Result#values. A `struct source` is on the C stack, which
 * keeps its objects alive and in place. The text of a cell is valid until the next call into Ruby; call
 * source_refresh after each.
 */
#include "internal.h"
#include <dlfcn.h>

struct libpq libpq;
VALUE coder_symbols[CODER_COUNT];

/* ---- memory ---- */

/* @raise NoMemoryError */
void *arena_allocate(struct arena *arena, size_t count, size_t size)
{
    struct arena_block *block = NULL;
    if (count <= (SIZE_MAX - sizeof(*block)) / size) block = calloc(1, sizeof(*block) + count * size);
    if (!block) rb_memerror();
    block->next = arena->blocks;
    arena->blocks = block;
    return block->bytes;
}

void arena_free(struct arena *arena)
{
    while (arena->blocks) {
        struct arena_block *block = arena->blocks;
        arena->blocks = block->next;
        free(block);
    }
}

/* Not inline, because it runs a few times per document. The buffer stays valid if it raises NoMemoryError. */
void buffer_grow(struct buffer *buffer, size_t room)
{
    size_t needed = buffer->length + room;
    size_t capacity = buffer->capacity ? buffer->capacity : 4096;
    char *bytes;
    if (needed < room) rb_memerror();
    while (capacity < needed) capacity += capacity / 2 + 4096;
    bytes = realloc(buffer->bytes, capacity);
    if (!bytes) rb_memerror();
    buffer->bytes = bytes;
    buffer->capacity = capacity;
}

/* @raise NoMemoryError */
void index_allocate(struct arena *arena, struct index *index, size_t rows)
{
    size_t capacity = 16;
    while (capacity < rows * 2) capacity *= 2;
    index->entries = arena_allocate(arena, capacity, sizeof(*index->entries));
    index->mask = capacity - 1;
    for (size_t i = 0; i < capacity; i++) index->entries[i].row = -1;
}

/* @raise NoMemoryError */
void index_allocate_near(struct arena *arena, struct index *index, int64_t least, int64_t greatest)
{
    index->least = least;
    index->near_count = (uint64_t)greatest - (uint64_t)least + 1;
    index->near = arena_allocate(arena, index->near_count, sizeof(*index->near));
    for (uint64_t i = 0; i < index->near_count; i++) index->near[i] = -1;
}

/* ---- rows of an Array or a PG::Result ---- */

static void *source_symbol(void *library, const char *name)
{
    void *symbol = dlsym(library, name);
    if (!symbol) libpq.found = false;
    return symbol;
}

/* Looks up the functions in the library at this path. RTLD_NOLOAD: only if the process has already loaded
 * it. */
static void source_resolve(const char *path)
{
    void *library = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
    if (!library) return;
    libpq.found = true;
    *(void **)&libpq.get = source_symbol(library, "pgresult_get");
    *(void **)&libpq.value = source_symbol(library, "PQgetvalue");
    *(void **)&libpq.length = source_symbol(library, "PQgetlength");
    *(void **)&libpq.is_null = source_symbol(library, "PQgetisnull");
    *(void **)&libpq.rows = source_symbol(library, "PQntuples");
    *(void **)&libpq.columns = source_symbol(library, "PQnfields");
    if (!libpq.found) dlclose(library);
}

void source_find_libpq(void)
{
    VALUE features = rb_gv_get("$LOADED_FEATURES");
    libpq.tried = true;
    for (long i = RARRAY_LEN(features) - 1; i >= 0 && !libpq.found; i--) {
        VALUE path = rb_ary_entry(features, i);
        const char *name = RB_TYPE_P(path, T_STRING) ? strrchr(StringValueCStr(path), '/') : NULL;
        if (name && strncmp(name, "/pg_ext.", 8) == 0) source_resolve(StringValueCStr(path));
        RB_GC_GUARD(path);
    }
}

/* Checks for PG::Result, because libpq's functions crash with anything else. */
bool source_pg_result_p(VALUE rows)
{
    VALUE pg, result;
    if (!RB_TYPE_P(rows, T_DATA) || !RTYPEDDATA_P(rows) || !RTYPEDDATA_DATA(rows)) return false;
    if (!rb_const_defined(rb_cObject, rb_intern("PG"))) return false;
    pg = rb_const_get(rb_cObject, rb_intern("PG"));
    if (!RB_TYPE_P(pg, T_MODULE) || !rb_const_defined(pg, rb_intern("Result"))) return false;
    result = rb_const_get(pg, rb_intern("Result"));
    return RB_TYPE_P(result, T_CLASS) && RTEST(rb_obj_is_kind_of(rows, result));
}

/* A result's strings have the encoding of its connection, and so has the name of its first column. */
static bool source_readable(VALUE rows, const PGresult *result)
{
    if (libpq.columns(result) == 0) return true;
    return source_utf8_p(rb_funcall(rows, rb_intern("fname"), 1, INT2FIX(0)));
}

struct source source_of(VALUE rows)
{
    struct source source = { rows, NULL, 0, 0 };
    if (!RB_TYPE_P(rows, T_ARRAY) && source_pg_result_p(rows)) {
        if (!libpq.tried) source_find_libpq();
        if (libpq.found && source_readable(rows, libpq.get(rows))) {
            source.result = libpq.get(rows);
            source.size = libpq.rows(source.result);
            source.columns = libpq.columns(source.result);
            return source;
        }
    }
    if (!RB_TYPE_P(rows, T_ARRAY)) source.rows = rows = rb_funcall(rows, rb_intern("values"), 0);
    Check_Type(rows, T_ARRAY);
    source.size = RARRAY_LEN(rows);
    return source;
}

/* ---- the template ---- */

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

VALUE template_read(VALUE object, const char *name)
{
    return rb_funcall(object, rb_intern(name), 0);
}

long template_index(VALUE number)
{
    return NIL_P(number) ? -1 : NUM2LONG(number);
}

/* Copies a string into the block. In the first of two passes there is no block; it only adds up the size. */
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

/* Native.compile(template) → the template's copy in C */
VALUE template_compile(VALUE self, VALUE source)
{
    struct template *template;
    VALUE compiled = TypedData_Make_Struct(rb_cObject, struct template, &template_type, template);
    VALUE nodes = rb_convert_type(template_read(source, "nodes"), T_ARRAY, "Array", "to_ary");
    template->mode = template_mode(template_read(source, "escape"));
    template->nested = RTEST(template_read(source, "nested?"));
    template->compound = RTEST(template_read(source, "compound?"));
    template->several_types = RTEST(template_read(source, "several_types?"));
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
    if (template->several_types && (template->node_count < 1 || template->nodes[0].edge_count != 1)) {
        rb_raise(rb_eArgError, "a root of several types needs one edge");
    }
    template_families(template);
    RB_GC_GUARD(nodes);
    return rb_obj_freeze(compiled);
}

struct template *template_of(VALUE compiled)
{
    return rb_check_typeddata(compiled, &template_type);
}

/* ---- calls into Ruby ---- */

VALUE ruby_side(void)
{
    return rb_path2class("Castellan::Serialize::NativeEncoder");
}

/* Call it after each call into Ruby. Refreshes the pointers to results; raises PG::Error if one was
 * cleared. */
void encoder_refresh(struct encoder *encoder)
{
    for (long i = 0; i < encoder->template->node_count; i++) {
        struct section *section = &encoder->sections[i];
        source_refresh(&section->source);
        for (long j = 0; j < section->parts->edge_count; j++) {
            if (section->links[j].grouped) source_refresh(&section->links[j].pairs);
        }
    }
}

/* Raises NativeEncoder.refuse's error. `kind`: 0 the record's id, 2 a linked id, 3 links and meta objects. */
void encoder_refuse(struct encoder *encoder, const struct section *section, int kind, long position, VALUE id, VALUE value)
{
    rb_funcall(ruby_side(), rb_intern("refuse"), 6, encoder->ruby_template, LONG2NUM(encoder_number(encoder, section)), INT2FIX(kind),
               LONG2NUM(position), id, value);
    rb_raise(rb_eRuntimeError, "a value could not be written, and Ruby does not say why");
}

/* ---- ids: if only Ruby can read them, they are read all at once ---- */

void id_of_string(VALUE string, struct record_id *id)
{
    struct cell cell = { CELL_TEXT, RSTRING_PTR(string), (size_t)RSTRING_LEN(string), string };
    id_of_cell(&cell, id);
}

VALUE id_ask_ruby(VALUE value, VALUE type, VALUE member)
{
    VALUE string = rb_funcall(ruby_side(), rb_intern("id_text"), 3, value, type, member);
    Check_Type(string, T_STRING);
    return string;
}

VALUE section_type(const struct section *section)
{
    return rb_utf8_str_new(section->parts->type.text, (long)section->parts->type.length);
}

struct record_id section_id(struct encoder *encoder, struct section *section, long row)
{
    struct record_id id;
    struct cell cell;
    if (section->numbers) {
        memset(&id, 0, sizeof(id));
        id.number = true;
        id.integer = section->numbers[row];
        id.keep = Qnil;
        return id;
    }
    if (!NIL_P(section->texts)) {
        id_of_string(rb_ary_entry(section->texts, row), &id);
        return id;
    }
    cell = source_cell(&section->source, row, 0);
    if (id_of_cell(&cell, &id)) return id;
    id_of_string(id_ask_ruby(cell.value, section_type(section), Qnil), &id);
    encoder_refresh(encoder);
    return id;
}

VALUE id_string(const struct record_id *id)
{
    char digits[NUMBER_DIGITS];
    if (id->text || !id->number) return rb_utf8_str_new(id->text ? id->text : "", (long)id->length);
    return rb_utf8_str_new(digits, (long)number_format(digits, id->integer));
}

VALUE section_id_string(struct encoder *encoder, struct section *section, long row)
{
    struct record_id id = section_id(encoder, section, row);
    VALUE string = id_string(&id);
    RB_GC_GUARD(id.keep);
    return string;
}

/* Stores the ids if all are numbers. Returns false if only Ruby can read one of them. */
static bool section_read_numbers(struct section *section)
{
    long row;
    int64_t *numbers = section->numbers = arena_allocate(section->arena, (size_t)section->source.size, sizeof(int64_t));
    bool all = true, known = true;
    for (row = 0; row < section->source.size && known; row++) {
        struct cell cell = source_cell(&section->source, row, 0);
        struct record_id id;
        known = id_of_cell(&cell, &id);
        all = all && known && id.number;
        numbers[row] = id.integer;
    }
    if (!all) section->numbers = NULL;
    return known;
}

/* Reads all ids at once if only Ruby can read them, so that comparing ids never calls Ruby. */
void section_read_ids(struct encoder *encoder, struct section *section)
{
    VALUE texts;
    if (section->read) return;
    section->read = true;
    if (section_read_numbers(section)) return;
    texts = rb_ary_new_capa(section->source.size);
    for (long row = 0; row < section->source.size; row++) {
        struct record_id id = section_id(encoder, section, row);
        rb_ary_push(texts, id_string(&id));
        RB_GC_GUARD(id.keep);
    }
    section->texts = texts;
    encoder_refresh(encoder);
}

static bool id_equal(struct encoder *encoder, struct section *section, long row, const struct record_id *id)
{
    struct record_id other = section_id(encoder, section, row);
    return !other.number && other.length == id->length && (id->length == 0 || memcmp(other.text, id->text, id->length) == 0);
}

/* Returns the entry of the id, or the free entry for it. */
struct index_entry *index_find(struct encoder *encoder, const struct index *index, const struct record_id *id)
{
    uint64_t key = index_key(id);
    size_t at = index_mix(key) & index->mask;
    for (;; at = (at + 1) & index->mask) {
        struct index_entry *entry = &index->entries[at];
        if (entry->row < 0) return entry;
        if (entry->key != key || entry->number != id->number) continue;
        if (id->number || id_equal(encoder, &encoder->sections[entry->node], entry->row, id)) return entry;
    }
}

void index_fill(struct index_entry *entry, const struct record_id *id, long node, long row)
{
    entry->key = index_key(id);
    entry->number = id->number;
    entry->node = (int16_t)node;
    entry->row = (int32_t)row;
}

/* Stores that an earlier row has the same id. */
static void section_again(struct section *section, long row, int32_t first)
{
    if (!section->first) {
        section->first = arena_allocate(section->arena, (size_t)section->source.size, sizeof(int32_t));
        for (long i = 0; i < section->source.size; i++) section->first[i] = (int32_t)i;
    }
    section->first[row] = first;
}

/* Fills index.near if the ids are dense integers; otherwise returns false. */
static bool section_index_near(struct section *section)
{
    long size = section->source.size;
    int64_t least = INT64_MAX, greatest = INT64_MIN;
    if (!section->numbers || size == 0) return false;
    for (long row = 0; row < size; row++) {
        if (section->numbers[row] < least) least = section->numbers[row];
        if (section->numbers[row] > greatest) greatest = section->numbers[row];
    }
    if (!index_near_p(least, greatest, (size_t)size)) return false;
    index_allocate_near(section->arena, &section->index, least, greatest);
    for (long row = 0; row < size; row++) {
        int32_t *place = index_near(&section->index, section->numbers[row]);
        if (*place < 0) *place = (int32_t)row;
        else section_again(section, row, *place);
    }
    return true;
}

void section_index(struct encoder *encoder, struct section *section)
{
    if (section->index.entries || section->index.near) return;
    section_read_ids(encoder, section);
    if (section_index_near(section)) return;
    index_allocate(section->arena, &section->index, (size_t)section->source.size);
    for (long row = 0; row < section->source.size; row++) {
        struct record_id id = section_id(encoder, section, row);
        struct index_entry *entry = index_find(encoder, &section->index, &id);
        if (entry->row < 0) index_fill(entry, &id, encoder_number(encoder, section), row);
        else section_again(section, row, entry->row);
        RB_GC_GUARD(id.keep);
    }
}

/* @return the row with this id, -1: none */
long section_row(struct encoder *encoder, struct section *section, const struct record_id *id)
{
    section_index(encoder, section);
    if (section->index.near) {
        int32_t *place = id->number ? index_near(&section->index, id->integer) : NULL;
        return place ? *place : -1;
    }
    return index_find(encoder, &section->index, id)->row;
}

/* ---- lists of integers ----
 *
 *   Native.id_list(result)                 # => "{1,2,3}", the first column
 *   Native.distinct_ids(["3,1", "1,2"])    # => [3, 1, 2]
 *   Native.column_ids([[7, "3,1"]], 1)     # => [3, 1], that column
 *
 * All return nil unless the values are integers of at most 17 digits (id_list: NUMBER_DIGITS characters);
 * Ruby then reads them (rows/ids.rb). */

#define ID_DIGITS 17

struct id_text {
    const char *at, *end;
};

/* Removes the braces, if there are any. */
static inline struct id_text id_text_of(const char *text, size_t length)
{
    struct id_text list = { text, text + length };
    if (length >= 2 && text[0] == '{' && text[length - 1] == '}') {
        list.at++;
        list.end--;
    }
    return list;
}

/* Reads an integer and the comma after it. Returns false for anything else. */
static inline bool id_text_next(struct id_text *list, int64_t *number)
{
    const char *start = list->at, *at = start;
    int64_t value = 0;
    bool negative = at < list->end && *at == '-';
    if (negative) start = ++at;
    while (at < list->end && number_digit(*at) && at - start <= ID_DIGITS) value = value * 10 + (*at++ - '0');
    if (at == start || at - start > ID_DIGITS || (*start == '0' && (at - start > 1 || negative))) return false;
    if (at < list->end && (*at != ',' || at + 1 == list->end)) return false;
    list->at = at + (at < list->end);
    *number = negative ? -value : value;
    return true;
}

/* A set of integers, in insertion order. */
struct id_set {
    VALUE memory;         /* of both arrays, owned by the GC, so that nothing must be freed */
    int64_t *numbers;
    int32_t *places;      /* by hash: position in `numbers`, -1: free */
    size_t count, mask;
};

static inline size_t id_set_hash(int64_t number)
{
    uint64_t key = (uint64_t)number * 0x9E3779B97F4A7C15ULL;
    return (size_t)(key >> 32);
}

static int32_t *id_set_place(const struct id_set *set, int64_t number)
{
    size_t at = id_set_hash(number) & set->mask;
    while (set->places[at] >= 0 && set->numbers[set->places[at]] != number) at = (at + 1) & set->mask;
    return &set->places[at];
}

/* Half of the places stay free.
 * @raise NoMemoryError */
static void id_set_allocate(struct id_set *set, size_t places)
{
    const struct id_set old = *set;
    VALUE kept = old.memory;
    set->memory = rb_str_tmp_new((long)(places / 2 * sizeof(int64_t) + places * sizeof(int32_t)));
    set->numbers = (int64_t *)RSTRING_PTR(set->memory);
    set->places = (int32_t *)(set->numbers + places / 2);
    set->mask = places - 1;
    memset(set->places, 0xFF, places * sizeof(int32_t));
    if (old.count) memcpy(set->numbers, old.numbers, old.count * sizeof(int64_t));
    for (size_t i = 0; i < old.count; i++) *id_set_place(set, set->numbers[i]) = (int32_t)i;
    RB_GC_GUARD(kept);
}

static void id_set_add(struct id_set *set, int64_t number)
{
    int32_t *place = id_set_place(set, number);
    if (*place >= 0) return;
    if (set->count == (set->mask + 1) / 2) {
        id_set_allocate(set, (set->mask + 1) * 4);
        place = id_set_place(set, number);
    }
    set->numbers[set->count] = number;
    *place = (int32_t)set->count++;
}

/* Adds the integers of a text; returns false if it contains anything else. */
static bool id_set_add_text(struct id_set *set, const char *text, size_t length)
{
    struct id_text list = id_text_of(text, length);
    int64_t number;
    while (list.at < list.end) {
        if (!id_text_next(&list, &number) || set->count > INT32_MAX / 8) return false;
        id_set_add(set, number);
    }
    return true;
}

static VALUE id_set_array(const struct id_set *set)
{
    VALUE ids = rb_ary_new_capa((long)set->count);
    for (size_t i = 0; i < set->count; i++) rb_ary_push(ids, LL2NUM(set->numbers[i]));
    return ids;
}

/* Native.distinct_ids(texts) → an Array of Integers, or nil */
VALUE ids_distinct(VALUE self, VALUE texts)
{
    struct id_set set = { Qnil, NULL, NULL, 0, 0 };
    VALUE ids;
    Check_Type(texts, T_ARRAY);
    id_set_allocate(&set, 512);
    for (long i = 0; i < RARRAY_LEN(texts); i++) {
        VALUE text = rb_ary_entry(texts, i);
        if (!RB_TYPE_P(text, T_STRING) || !id_set_add_text(&set, RSTRING_PTR(text), (size_t)RSTRING_LEN(text))) return Qnil;
        RB_GC_GUARD(text);
    }
    ids = id_set_array(&set);
    RB_GC_GUARD(set.memory);
    return ids;
}

/* Native.column_ids(rows, position) → an Array of Integers, or nil */
VALUE ids_column(VALUE self, VALUE rows, VALUE position)
{
    struct id_set set = { Qnil, NULL, NULL, 0, 0 };
    struct source source = source_of(rows);
    long column = NUM2LONG(position);
    VALUE ids;
    id_set_allocate(&set, 512);
    source_refresh(&source);
    for (long row = 0; row < source.size; row++) {
        struct cell cell = source_cell(&source, row, column);
        if (cell.kind == CELL_VALUE) return Qnil;
        if (cell.kind == CELL_TEXT && !id_set_add_text(&set, cell.text, cell.length)) return Qnil;
        RB_GC_GUARD(cell.value);
    }
    ids = id_set_array(&set);
    RB_GC_GUARD(set.memory);
    RB_GC_GUARD(source.rows);
    return ids;
}

/* Native.id_list(rows) → the integers of the first column as a PostgreSQL array literal, or nil */
VALUE ids_list(VALUE self, VALUE rows)
{
    struct source source;
    VALUE text;
    char *at, *first;
    if (RB_TYPE_P(rows, T_ARRAY) || !source_pg_result_p(rows)) return Qnil;
    source = source_of(rows);
    if (!source.result) return Qnil;
    text = rb_utf8_str_new(NULL, source.size * (NUMBER_DIGITS + 1) + 2);
    source_refresh(&source);
    at = RSTRING_PTR(text);
    *at++ = '{';
    first = at;
    for (long row = 0; row < source.size; row++) {
        struct cell cell = source_cell(&source, row, 0);
        if (cell.kind == CELL_NULL) continue;
        if (cell.length > NUMBER_DIGITS || !number_integer_text(cell.text, cell.length)) return Qnil;
        memcpy(at, cell.text, cell.length);
        at += cell.length;
        *at++ = ',';
    }
    if (at > first) at--;
    *at++ = '}';
    rb_str_resize(text, at - RSTRING_PTR(text));
    RB_GC_GUARD(source.rows);
    return text;
}

/* ---- loaded records of ActiveRecord ----
 *
 * Reads the instance variables of ActiveModel::LazyAttributeSet, see test/contract_test.rb. */

/* Returns Qundef if only the record's reader can return the value. */
static VALUE loaded_value(VALUE name, VALUE coder, VALUE assigned, VALUE casted, VALUE values)
{
    if (RHASH_SIZE(assigned) && rb_hash_lookup2(assigned, name, Qundef) != Qundef) return Qundef;
    if (RHASH_SIZE(casted) && (coder == coder_symbols[CODER_TEXT] || coder == coder_symbols[CODER_JSON])) {
        /* A cast value may have been changed in place; a cast String is a copy of the driver's. */
        VALUE value = rb_hash_lookup2(casted, name, Qundef);
        if (value != Qundef) return coder == coder_symbols[CODER_TEXT] ? value : Qundef;
    }
    if (RB_TYPE_P(values, T_HASH)) return rb_hash_lookup2(values, name, Qundef);
    return RTEST(rb_funcall(values, rb_intern("key?"), 1, name)) ? rb_funcall(values, rb_intern("[]"), 1, name) : Qundef;
}

static VALUE loaded_row(VALUE set, VALUE names, VALUE coders)
{
    VALUE assigned = rb_ivar_get(set, rb_intern("@attributes")), casted = rb_ivar_get(set, rb_intern("@casted_values")), values = rb_ivar_get(set, rb_intern("@values"));
    VALUE row;
    if (!RB_TYPE_P(assigned, T_HASH) || !RB_TYPE_P(casted, T_HASH) || NIL_P(values)) return Qnil;
    row = rb_ary_new_capa(RARRAY_LEN(names));
    for (long i = 0; i < RARRAY_LEN(names); i++) {
        VALUE coder = rb_ary_entry(coders, i);
        VALUE value = NIL_P(coder) ? Qnil : loaded_value(rb_ary_entry(names, i), coder, assigned, casted, values);
        if (value == Qundef) rb_ary_store(coders, i, value = Qnil);
        rb_ary_push(row, value);
    }
    return row;
}

/*
 * Native.loaded_rows(records, model, attribute_set, names, coders) → an Array for each record, with nil where
 * coders has nil. Sets coders to nil if only the records' readers can return the values. Returns nil
 * unless each record is an instance of the model itself and its attributes are an attribute_set.
 */
VALUE loaded_rows(VALUE self, VALUE records, VALUE model, VALUE attribute_set, VALUE names, VALUE coders)
{
    VALUE rows;
    Check_Type(records, T_ARRAY);
    Check_Type(names, T_ARRAY);
    Check_Type(coders, T_ARRAY);
    rows = rb_ary_new_capa(RARRAY_LEN(records));
    for (long i = 0; i < RARRAY_LEN(records); i++) {
        VALUE record = rb_ary_entry(records, i), set, row;
        if (SPECIAL_CONST_P(record) || rb_obj_class(record) != model) return Qnil;
        set = rb_ivar_get(record, rb_intern("@attributes"));
        if (SPECIAL_CONST_P(set) || rb_obj_class(set) != attribute_set || NIL_P(row = loaded_row(set, names, coders))) return Qnil;
        rb_ary_push(rows, row);
    }
    return rows;
}

/* ---- tables ---- */

static enum coder coder_of(VALUE symbol, const struct section *section)
{
    if (NIL_P(symbol)) return CODER_NONE;
    for (int coder = CODER_INTEGER; coder < CODER_COUNT; coder++) {
        if (symbol == coder_symbols[coder]) return coder;
    }
    rb_funcall(ruby_side(), rb_intern("unknown_coder"), 2, section_type(section), symbol);
    return CODER_NONE;
}

/* Reads two lists of integers; returns false if they contain anything else or differ in length. */
static bool links_read_lists(struct links *links, VALUE rows)
{
    struct source source = source_of(rows);
    struct cell one = source_cell(&source, 0, 0), other = source_cell(&source, 0, 1);
    struct id_text parents = id_text_of(one.text, one.length), related = id_text_of(other.text, other.length);
    size_t most = (size_t)(related.end - related.at + 1) / 2; /* at least a digit and a comma each */
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

/* Reads lists at once, or converts them to pairs if that fails. */
static VALUE links_lists(struct links *links, VALUE link)
{
    links->grouped = true;
    if (links_read_lists(links, rb_funcall(link, rb_intern("rows"), 0))) return Qnil;
    links->parents = NULL;
    links->found = NULL;
    return rb_funcall(link, rb_intern("pairs"), 0);
}

static void section_links(struct section *section, VALUE links)
{
    for (long i = 0; i < section->parts->edge_count; i++) {
        struct links *target = &section->links[i];
        VALUE link = NIL_P(links) ? Qnil : rb_ary_entry(links, section->parts->edges[i].position);
        if (NIL_P(link) && !section->parts->edges[i].data) continue;
        if (rb_respond_to(link, rb_intern("position"))) {
            target->column = NUM2LONG(rb_funcall(link, rb_intern("position"), 0));
            continue;
        }
        if (rb_respond_to(link, rb_intern("pairs")) && NIL_P(link = links_lists(target, link))) continue;
        target->pairs = source_of(rb_funcall(link, rb_intern("rows"), 0));
        target->parent = NUM2LONG(rb_funcall(link, rb_intern("parent_position"), 0));
        target->related = NUM2LONG(rb_funcall(link, rb_intern("related_position"), 0));
        target->kind = template_index(rb_funcall(link, rb_intern("kind_position"), 0));
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
    VALUE members = rb_funcall(asides, rb_intern("members"), 0), edges = rb_funcall(asides, rb_intern("edges"), 0), around = rb_funcall(asides, rb_intern("edges_after"), 0);
    section->after = rb_funcall(asides, rb_intern("after"), 0);
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

void section_set_up(struct section *section, VALUE table)
{
    VALUE coders = rb_convert_type(rb_funcall(table, rb_intern("coders"), 0), T_ARRAY, "Array", "to_ary");
    VALUE computed = rb_funcall(table, rb_intern("computed"), 0);
    VALUE asides = rb_funcall(table, rb_intern("asides"), 0);
    if (RARRAY_LEN(coders) < section->coder_count) section->coder_count = RARRAY_LEN(coders);
    for (long i = 0; i < section->coder_count; i++) section->coders[i] = coder_of(rb_ary_entry(coders, i), section);
    for (long i = 0; i < section->parts->member_count && !NIL_P(computed); i++) {
        section->computed[i] = rb_hash_aref(computed, LONG2NUM(i));
        if (!NIL_P(section->computed[i])) Check_Type(section->computed[i], T_ARRAY);
    }
    if (!NIL_P(asides)) section_asides(section, asides);
    section->source = source_of(rb_funcall(table, rb_intern("rows"), 0));
    if (section->source.size > INT32_MAX / 2) rb_raise(rb_eArgError, "more than %d rows in one document", INT32_MAX / 2);
    section_links(section, rb_funcall(table, rb_intern("links"), 0));
    RB_GC_GUARD(coders);
}
