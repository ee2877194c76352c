/*
 * The text of a statement, and what of it is a literal, a comment or a quoted name.
 *
 * Everything is read by `at`, an offset that a reader moves past what it has read; a reader that finds nothing leaves it.
 */
#ifndef CASTELLAN_FINGERPRINT_LITERALS_H
#define CASTELLAN_FINGERPRINT_LITERALS_H

#include <string.h>

struct text {
    const char *bytes;
    long length;
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

#endif
