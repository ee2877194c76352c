/*
 * What a text is (its shape, whether it writes): asked of Ruby once and kept for the life of the process under two hashes of the text and
 * of its name. No text is kept.
 */
#ifndef CASTELLAN_TALLY_TEXT_H
#define CASTELLAN_TALLY_TEXT_H

#include "ruby.h"

#define MOST_TEXTS 2000 /* of the process; past them it starts anew */
#define TEXT_SLOTS 4096
#define MOST_FINGERPRINTS 10000

enum { READS = 1, WRITES = 2, WRITES_BULK = 4, HAS_PIECES = 8, JOINS = 16 }; /* as in tally.rb */

struct text {
    st_index_t hash; /* 0: a free slot */
    st_index_t name;
    long length;
    long shape; /* index in text_shapes */
    int fingerprint;
    int flags; /* 0: not counted */
};

static struct text texts[TEXT_SLOTS];
static int text_count;
static VALUE text_shapes = Qnil; /* by index, because a moved object has another address */
static VALUE text_fingerprints = Qnil; /* fingerprint => number */
static int text_fingerprint_count;
static VALUE text_reader = Qnil; /* Castellan::Detect::Tally */
static ID id_read, id_key;

static st_index_t text_hash(VALUE text)
{
    if (!RB_TYPE_P(text, T_STRING)) return 1;

    st_index_t hash = rb_memhash(RSTRING_PTR(text), RSTRING_LEN(text));
    return hash ? hash : 1;
}

static void text_forget_all(void)
{
    memset(texts, 0, sizeof(texts));
    text_count = 0;
    text_shapes = rb_ary_new();
}

static int text_number(VALUE fingerprint)
{
    VALUE number = rb_hash_lookup(text_fingerprints, fingerprint);
    if (!NIL_P(number)) return FIX2INT(number);

    if (text_fingerprint_count % MOST_FINGERPRINTS == 0) text_fingerprints = rb_hash_new();
    rb_hash_aset(text_fingerprints, fingerprint, INT2FIX(++text_fingerprint_count));
    return text_fingerprint_count;
}

/* Tally.read answers [shape, flags], or nil. */
static struct text text_read(VALUE sql, VALUE name, struct text text, VALUE *shape)
{
    VALUE read = rb_funcall(text_reader, id_read, 2, sql, name);
    *shape = Qnil;
    text.shape = -1;
    if (RB_TYPE_P(read, T_ARRAY)) {
        *shape = rb_ary_entry(read, 0);
        text.flags = FIX2INT(rb_ary_entry(read, 1));
        text.fingerprint = text_number(rb_funcall(*shape, id_key, 0));
    }
    if (text_count >= MOST_TEXTS) text_forget_all();
    long slot = text.hash % TEXT_SLOTS;
    while (texts[slot].hash) slot = (slot + 1) % TEXT_SLOTS;
    if (!NIL_P(*shape)) {
        text.shape = RARRAY_LEN(text_shapes);
        rb_ary_push(text_shapes, *shape);
    }
    texts[slot] = text;
    text_count++;
    return text;
}

static struct text text_of(VALUE sql, VALUE name, VALUE *shape)
{
    struct text text = { text_hash(sql), text_hash(name), RSTRING_LEN(sql), 0, 0, 0 };
    for (long slot = text.hash % TEXT_SLOTS; texts[slot].hash; slot = (slot + 1) % TEXT_SLOTS) {
        const struct text *known = &texts[slot];
        if (known->hash == text.hash && known->length == text.length && known->name == text.name) {
            *shape = known->flags ? RARRAY_AREF(text_shapes, known->shape) : Qnil;
            return *known;
        }
    }
    return text_read(sql, name, text, shape);
}

/* The number of a fingerprint may have changed since it was given, because numbers start anew. */
static int text_numbers_changed(void)
{
    return text_fingerprint_count > MOST_FINGERPRINTS;
}

static void text_set_up(void)
{
    rb_gc_register_address(&text_shapes);
    rb_gc_register_address(&text_fingerprints);
    rb_gc_register_address(&text_reader);
    text_forget_all();
    text_fingerprints = rb_hash_new();
    id_read = rb_intern("read");
    id_key = rb_intern("key");
}

#endif
