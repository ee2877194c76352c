/*
 * What is read of a text without literals: the sign of one, lists of them, rows of values.
 */
#ifndef CASTELLAN_FINGERPRINT_LISTS_H
#define CASTELLAN_FINGERPRINT_LISTS_H

#include "fingerprint_literals.h"

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

#endif
