/*
 * The shape of a statement, in passes over its bytes. lib/castellan/fingerprint.rb holds the same as regular expressions and is the
 * oracle: for every text this gives what they give, or nil, and then they are asked. It gives nil for what is rare and hard to
 * read alike: letters outside ASCII anywhere but in a literal, control characters, a backslash before a quote, broken text.
 *
 * fingerprint_literals.h and fingerprint_lists.h say what is read; both are compiled here, as one.
 */
#include "fingerprint.h"
#include "fingerprint_lists.h"
#include "ruby/encoding.h"

#define LONGEST (1 << 20) /* as in fingerprint.rb */

struct shape {
    char *bytes;
    long length;
    int signs;  /* whether a sign was met, */
    int opened; /* or an opening bracket: only then are the later passes worth their time */
};

static void put(struct shape *shape, int byte)
{
    if (byte == ' ' && (shape->length == 0 || shape->bytes[shape->length - 1] == ' ')) return;
    if (byte == '-' || byte == '+') shape->signs = 1;
    if (byte == '(') shape->opened = 1;
    shape->bytes[shape->length++] = (char)lower(byte);
}

static int readable(int byte)
{
    return byte < 0x80 && (byte >= ' ' || is_space(byte));
}

/* @return whether it could be read */
static int put_all(struct shape *shape, const struct text *text, long at, long end)
{
    for (; at < end; at++) {
        if (!readable(byte_at(text, at))) return 0;
        put(shape, byte_at(text, at));
    }
    return 1;
}

static int is_ascii(const struct text *text, long at, long end)
{
    for (; at < end; at++) {
        if (byte_at(text, at) >= 0x80) return 0;
    }
    return 1;
}

/* Literals, comments and quotes out, small letters, one space where there were several. */
static int literals_out(struct shape *shape, const struct text *text)
{
    for (long at = 0, end; at < text->length; at = end) {
        int byte = byte_at(text, at);
        if ((end = after_literal(text, at)) > at) {
            put(shape, '?');
        } else if (byte == '$' && (end = after_dollar(text, at)) > at) {
            if (!is_ascii(text, at, end)) return 0; /* how letters fold decides where it ends */
            put(shape, '?');
        } else if ((byte == '/' || byte == '-' || byte == '#') && (end = after_comment(text, at)) > at) {
            put(shape, ' ');
        } else if ((byte == '"' || byte == '`' || byte == '[') && (end = after_identifier(text, at)) > at) {
            if (!put_all(shape, text, at + 1, end - 1)) return 0;
        } else {
            end = at + 1;
            if (!readable(byte)) return 0;
            put(shape, is_space(byte) ? ' ' : byte);
        }
    }
    return 1;
}

static void strip(struct shape *shape)
{
    long start = 0;
    while (shape->length > 0 && is_space(shape->bytes[shape->length - 1])) shape->length--;
    while (start < shape->length && is_space(shape->bytes[start])) start++;
    if (shape->length > start && shape->bytes[shape->length - 1] == ';') shape->length--;
    shape->length -= start;
    memmove(shape->bytes, shape->bytes + start, shape->length);
}

/* Writes the text with all that `after` reads replaced: of that, only the word it begins with stays, and `instead` follows. */
static void collapse(struct shape *shape, const struct text *text, long (*after)(const struct text *, long), const char *instead)
{
    shape->length = 0;
    for (long at = 0, end; at < text->length; at = end) {
        if ((end = after(text, at)) == at) {
            shape->bytes[shape->length++] = text->bytes[end++];
            continue;
        }
        for (; is_word(byte_at(text, at)); at++) shape->bytes[shape->length++] = text->bytes[at];
        memcpy(shape->bytes + shape->length, instead, strlen(instead));
        shape->length += strlen(instead);
    }
}

static void swap(struct shape *shape, struct text *text, char **spare)
{
    text->bytes = shape->bytes;
    text->length = shape->length;
    shape->bytes = *spare;
    *spare = (char *)text->bytes;
}

static int has_values(const struct text *text)
{
    for (long at = 0; (at = after_byte(text, at, 'v')) > 0;) {
        if (starts_with(text, at - 1, "values")) return 1;
    }
    return 0;
}

/* What is left is in `text`. @return whether it could be read */
static int reduce(struct text *text, char *one, char *other)
{
    struct shape shape = { one, 0, 0, 0 };
    char *spare = other;
    if (!literals_out(&shape, text)) return 0;

    strip(&shape);
    swap(&shape, text, &spare);
    if (shape.signs) {
        collapse(&shape, text, after_signed, "?");
        swap(&shape, text, &spare);
    }
    if (shape.opened) {
        collapse(&shape, text, after_list, " (?)");
        swap(&shape, text, &spare);
    }
    if (shape.opened && has_values(text)) {
        collapse(&shape, text, after_values, " (?)");
        swap(&shape, text, &spare);
    }
    return 1;
}

static int known_encoding(VALUE sql)
{
    int index = rb_enc_get_index(sql);
    if (index == rb_ascii8bit_encindex()) return 1;
    if (index != rb_utf8_encindex() && index != rb_usascii_encindex()) return 0;
    return rb_enc_str_coderange(sql) != ENC_CODERANGE_BROKEN;
}

static int ambiguous_quote(const struct text *text)
{
    for (long at = 0; (at = after_byte(text, at, '\\')) > 0;) {
        if (byte_at(text, at) == '\'') return 1;
    }
    return 0;
}

/* Castellan::NativeFingerprint#shape_of */
static VALUE fingerprint_shape_of(VALUE self, VALUE sql)
{
    if (!RB_TYPE_P(sql, T_STRING) || RSTRING_LEN(sql) > LONGEST || !known_encoding(sql)) return Qnil;

    /* A pass makes its text longer by half at most: "in(?)" becomes "in (?)", "values()" becomes "values (?)". */
    VALUE one_buffer, other_buffer;
    size_t room = RSTRING_LEN(sql) * 2 + 16;
    char *one = ALLOCV_N(char, one_buffer, room);
    char *other = ALLOCV_N(char, other_buffer, room);
    struct text text = { RSTRING_PTR(sql), RSTRING_LEN(sql) };
    VALUE shape = Qnil;
    if (!ambiguous_quote(&text) && reduce(&text, one, other)) {
        shape = rb_enc_interned_str(text.bytes, text.length, rb_enc_get(sql)); /* one object for all its statements */
    }
    ALLOCV_END(one_buffer);
    ALLOCV_END(other_buffer);
    RB_GC_GUARD(sql);
    return shape;
}

void Init_fingerprint(VALUE castellan)
{
    VALUE native = rb_define_module_under(castellan, "NativeFingerprint");
    rb_define_method(native, "shape_of", fingerprint_shape_of, 1);
}
