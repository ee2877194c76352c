/*
 * The shape of a statement, in passes over its bytes. lib/castellan/fingerprint.rb holds the same as regular expressions and is the
 * oracle: for every text this gives what they give, or nil, and then they are asked. It gives nil for what is rare and hard to
 * read alike: letters outside ASCII anywhere but in a literal, control characters, a backslash before a quote, broken text.
 *
 * Everything is read by `at`, an offset that a reader moves past what it has read; a reader that finds nothing leaves it.
 */
#include "fingerprint.h"
#include "ruby/encoding.h"
#include <string.h>

#define LONGEST (1 << 20) /* as in fingerprint.rb */

struct text {
    const char *bytes;
    long length;
};

struct shape {
    char *bytes;
    long length;
    int signs;  /* whether a sign was met, */
    int opened; /* or an opening bracket: only then are the later passes worth their time */
};

static int is_space(int byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }
static int is_digit(int byte) { return byte >= '0' && byte <= '9'; }
static int lower(int byte) { return byte >= 'A' && byte <= 'Z' ? byte + 32 : byte; }
static int is_letter(int byte) { byte = lower(byte); return byte >= 'a' && byte <= 'z'; }
static int is_hex(int byte) { byte = lower(byte); return is_digit(byte) || (byte >= 'a' && byte <= 'f'); }
static int is_word(int byte) { return is_letter(byte) || is_digit(byte) || byte == '_'; }

/* Outside the text there is a byte that is neither word nor space nor sign. */
static int byte_at(const struct text *text, long at)
{
    return at >= 0 && at < text->length ? (unsigned char)text->bytes[at] : 0;
}

static int starts_with(const struct text *text, long at, const char *word)
{
    for (; *word; word++, at++) {
        if (lower(byte_at(text, at)) != *word) return 0;
    }
    return 1;
}

static int ends_with(const struct text *text, long end, const char *word)
{
    long length = (long)strlen(word);
    return end >= length && memcmp(text->bytes + end - length, word, length) == 0;
}

static int is_boundary(const struct text *text, long at)
{
    return is_word(byte_at(text, at - 1)) != is_word(byte_at(text, at));
}

static long after_word(const struct text *text, long at)
{
    while (is_word(byte_at(text, at))) at++;
    return at;
}

static long after_digits(const struct text *text, long at)
{
    while (is_digit(byte_at(text, at))) at++;
    return at;
}

static long after_byte(const struct text *text, long at, int byte)
{
    const char *found = at < text->length ? memchr(text->bytes + at, byte, text->length - at) : NULL;
    return found ? found - text->bytes + 1 : -1;
}

/* 'it''s', E'it', _utf8 'it' */
static long after_string(const struct text *text, long at)
{
    int byte = lower(byte_at(text, at));
    if (byte == '_' && !is_word(byte_at(text, at - 1))) {
        long quote = after_word(text, at);
        if (quote == at + 1) return at;
        while (is_space(byte_at(text, quote))) quote++;
        if (byte_at(text, quote) != '\'') return at;
        at = quote;
    } else if (byte != '\'') {
        if (!(byte == 'e' || byte == 'x' || byte == 'b' || byte == 'n') || byte_at(text, at + 1) != '\'') return at;
        if (is_word(byte_at(text, at - 1))) return at;
        at++;
    }
    do {
        at = after_byte(text, at + 1, '\'');
        if (at < 0) return text->length;
    } while (byte_at(text, at) == '\'');
    return at;
}

static int same_tag(const struct text *text, long at, long tag, long length)
{
    for (long index = 0; index < length; index++) {
        if (lower(byte_at(text, at + index)) != lower(byte_at(text, tag + index))) return 0;
    }
    return 1;
}

/* $$it$$, $tag$it$tag$ */
static long after_dollar(const struct text *text, long at)
{
    long tag = at + 1;
    long end = is_digit(byte_at(text, tag)) ? tag : after_word(text, tag);
    if (byte_at(text, end) != '$') return at;

    long length = end - at + 1;
    for (long close = end + 1; close + length <= text->length; close++) {
        if (text->bytes[close] == '$' && same_tag(text, close, at, length)) return close + length;
    }
    return text->length;
}

static long after_comment(const struct text *text, long at)
{
    int byte = byte_at(text, at), next = byte_at(text, at + 1);
    if (byte == '/' && next == '*') {
        for (long end = at + 2; (end = after_byte(text, end, '*')) > 0;) {
            if (byte_at(text, end) == '/') return end + 1;
        }
        return text->length;
    }
    if (!(byte == '-' && next == '-') && !(byte == '#' && next == ' ')) return at;

    long end = after_byte(text, at, '\n');
    return end < 0 ? text->length : end - 1;
}

/* "it", `it`, [it] */
static long after_identifier(const struct text *text, long at)
{
    int byte = byte_at(text, at);
    if (byte == '[') {
        int first = byte_at(text, at + 1);
        long end = after_word(text, at + 1);
        return (is_letter(first) || first == '_') && byte_at(text, end) == ']' ? end + 1 : at;
    }
    long end = after_byte(text, at + 1, byte);
    return end > 0 ? end : at;
}

/* $1, ?1, :name, but not ::type */
static long after_bind(const struct text *text, long at)
{
    int byte = byte_at(text, at), next = byte_at(text, at + 1);
    if (byte != ':') return is_digit(next) ? after_digits(text, at + 1) : at;
    if (byte_at(text, at - 1) == ':' || is_word(byte_at(text, at - 1))) return at;
    return is_letter(next) || next == '_' ? after_word(text, at + 1) : at;
}

static long after_exponent(const struct text *text, long at)
{
    if (lower(byte_at(text, at)) != 'e') return at;

    int sign = byte_at(text, at + 1);
    long digits = at + 1 + (sign == '+' || sign == '-');
    return is_digit(byte_at(text, digits)) ? after_digits(text, digits) : at;
}

/* 7, 7.5, 7e-5, .5, 0xff, as long as no word follows */
static long after_number(const struct text *text, long at)
{
    int before = byte_at(text, at - 1);
    if (is_word(before) || before == '.') return at;
    if (byte_at(text, at) == '0' && lower(byte_at(text, at + 1)) == 'x' && is_hex(byte_at(text, at + 2))) {
        long end = at + 2;
        while (is_hex(byte_at(text, end))) end++;
        if (is_boundary(text, end)) return end;
    }
    int fraction_only = byte_at(text, at) == '.';
    long whole = after_digits(text, at + fraction_only);
    if (whole == at + fraction_only) return at;

    long ends[4] = { -1, -1, after_exponent(text, whole), whole };
    if (!fraction_only && byte_at(text, whole) == '.') {
        ends[1] = after_digits(text, whole + 1);
        ends[0] = after_exponent(text, ends[1]);
    }
    for (int index = 0; index < 4; index++) {
        if (ends[index] > 0 && is_boundary(text, ends[index])) return ends[index];
    }
    return at;
}

static long after_boolean(const struct text *text, long at)
{
    if (is_word(byte_at(text, at - 1))) return at;

    long end = starts_with(text, at, "true") ? at + 4 : starts_with(text, at, "false") ? at + 5 : at;
    return is_word(byte_at(text, end)) ? at : end;
}

static long after_literal(const struct text *text, long at)
{
    int byte = byte_at(text, at);
    long end = at;
    if (byte == '\'' || is_letter(byte) || byte == '_') end = after_string(text, at);
    if (end == at && (byte == '$' || byte == '?' || byte == ':')) end = after_bind(text, at);
    if (end == at && (is_digit(byte) || byte == '.')) end = after_number(text, at);
    if (end == at && is_letter(byte)) end = after_boolean(text, at);
    return end;
}

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

/* A sign belongs to the literal behind it when what is before it cannot end a term. */
static long after_signed(const struct text *text, long at)
{
    int byte = byte_at(text, at);
    if (byte != '-' && byte != '+') return at;

    long mark = at + 1 + (byte_at(text, at + 1) == ' ');
    if (byte_at(text, mark) != '?') return at;

    int before = byte_at(text, at - (byte_at(text, at - 1) == ' ') - 1);
    if (before && strchr("=<>(,", before)) return mark + 1;
    if (ends_with(text, at, "between ") || ends_with(text, at, "and ") || ends_with(text, at, "limit ")) return mark + 1;
    return at;
}

/* ", ?" as often as it comes; `after` reads what stands between two commas */
static long after_more(const struct text *text, long at, long (*after)(const struct text *, long))
{
    for (;;) {
        long comma = at + (byte_at(text, at) == ' ');
        if (byte_at(text, comma) != ',') return at;

        long item = comma + 1 + (byte_at(text, comma + 1) == ' ');
        long end = after(text, item);
        if (end == item) return at;
        at = end;
    }
}

static long after_mark(const struct text *text, long at)
{
    return at + (byte_at(text, at) == '?');
}

/* (?, ?) */
static long after_marks(const struct text *text, long at)
{
    if (byte_at(text, at) != '(' || byte_at(text, at + 1) != '?') return at;

    long end = after_more(text, at + 2, after_mark);
    return byte_at(text, end) == ')' ? end + 1 : at;
}

static long after_spaces(const struct text *text, long at)
{
    while (is_space(byte_at(text, at))) at++;
    return at;
}

/* in (?, ?), any(array[?, ?]), in ((?, ?), (?, ?)) */
static long after_list(const struct text *text, long at)
{
    long word = starts_with(text, at, "in") ? 2 : starts_with(text, at, "any") ? 3 : 0;
    if (!word || is_word(byte_at(text, at - 1))) return at;

    long end = at + word + (byte_at(text, at + word) == ' ');
    if (byte_at(text, end) != '(') return at;

    end++;
    if (starts_with(text, end, "array[")) end += 6;
    long item = after_spaces(text, end);
    end = byte_at(text, item) == '?' ? after_mark(text, item) : after_marks(text, item);
    if (end == item) return at;

    end = after_more(text, end, byte_at(text, item) == '?' ? after_mark : after_marks);
    end = after_spaces(text, end + (byte_at(text, end) == ']'));
    return byte_at(text, end) == ')' ? end + 1 : at;
}

/* (lower(?), ?): brackets one deep within the brackets */
static long after_row(const struct text *text, long at)
{
    if (byte_at(text, at) != '(') return at;

    for (long end = at + 1, depth = 1; end < text->length; end++) {
        if (text->bytes[end] == '(' && ++depth > 2) return at;
        if (text->bytes[end] == ')' && --depth == 0) return end + 1;
    }
    return at;
}

static long after_values(const struct text *text, long at)
{
    if (!starts_with(text, at, "values") || is_word(byte_at(text, at - 1))) return at;

    long row = at + 6 + (byte_at(text, at + 6) == ' ');
    long end = after_row(text, row);
    return end == row ? at : after_more(text, end, after_row);
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
