/*
 * JSON strings: escaping and checking UTF-8 in one pass, eight bytes at a time while nothing is special.
 *
 * The three ways are those of serialize/text.rb: what RFC 8259 demands, plus U+2028 and U+2029, plus < > &.
 */
#ifndef CASTELLAN_ESCAPE_H
#define CASTELLAN_ESCAPE_H

#include "buffer.h"
#include <stdbool.h>
#include <stdint.h>

enum escape_mode { ESCAPE_JSON, ESCAPE_RAILS, ESCAPE_RAILS_HTML };

#define ESCAPE_ONES 0x0101010101010101ULL
#define ESCAPE_HIGHS 0x8080808080808080ULL
#define ESCAPE_COPIED 256 /* up to so many bytes are copied while it is seen whether any is special */

static inline uint64_t escape_has(uint64_t word, unsigned char byte)
{
    uint64_t differing = word ^ (ESCAPE_ONES * byte);
    return (differing - ESCAPE_ONES) & ~differing & ESCAPE_HIGHS;
}

/* Not zero if one of the eight bytes may be special; false positives are possible, false negatives are not. */
static inline uint64_t escape_special_word(uint64_t word, bool markup)
{
    uint64_t special = (word & ESCAPE_HIGHS) | ((word - ESCAPE_ONES * 0x20) & ~word & ESCAPE_HIGHS);
    special |= escape_has(word, '"') | escape_has(word, '\\');
    if (markup) special |= escape_has(word, '<') | escape_has(word, '>') | escape_has(word, '&');
    return special;
}

static inline bool escape_special(unsigned char byte, bool markup)
{
    return byte < 0x20 || byte >= 0x80 || byte == '"' || byte == '\\' || (markup && (byte == '<' || byte == '>' || byte == '&'));
}

/* Returns the position of the next special byte, or end. */
static inline const char *escape_next(const char *at, const char *end, bool markup)
{
    while (end - at >= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        if (escape_special_word(word, markup)) break;
        at += 8;
    }
    while (at < end && !escape_special((unsigned char)*at, markup)) at++;
    return at;
}

static inline bool escape_continues(const unsigned char *at, int count)
{
    for (int i = 1; i <= count; i++) {
        if ((at[i] & 0xC0) != 0x80) return false;
    }
    return true;
}

/* How many bytes the character at `at` (not ASCII) has, 0 when it is not well-formed UTF-8 (Unicode 15, table 3-7). */
static inline int escape_character(const char *text, const char *end)
{
    const unsigned char *at = (const unsigned char *)text;
    ptrdiff_t left = end - text;
    if (at[0] < 0xC2 || at[0] > 0xF4) return 0;
    if (at[0] < 0xE0) return left >= 2 && escape_continues(at, 1) ? 2 : 0;
    if (at[0] < 0xF0) {
        if (left < 3 || !escape_continues(at, 2)) return 0;
        if (at[0] == 0xE0 && at[1] < 0xA0) return 0;
        return at[0] == 0xED && at[1] > 0x9F ? 0 : 3;
    }
    if (left < 4 || !escape_continues(at, 3)) return 0;
    if (at[0] == 0xF0 && at[1] < 0x90) return 0;
    return at[0] == 0xF4 && at[1] > 0x8F ? 0 : 4;
}

static inline void escape_code(struct buffer *buffer, unsigned int code)
{
    static const char digits[] = "0123456789abcdef";
    char text[6] = { '\\', 'u', digits[code >> 12 & 15], digits[code >> 8 & 15], digits[code >> 4 & 15], digits[code & 15] };
    buffer_append(buffer, text, sizeof(text));
}

static inline void escape_byte(struct buffer *buffer, unsigned char byte)
{
    switch (byte) {
      case '"': buffer_literal(buffer, "\\\""); break;
      case '\\': buffer_literal(buffer, "\\\\"); break;
      case '\b': buffer_literal(buffer, "\\b"); break;
      case '\f': buffer_literal(buffer, "\\f"); break;
      case '\n': buffer_literal(buffer, "\\n"); break;
      case '\r': buffer_literal(buffer, "\\r"); break;
      case '\t': buffer_literal(buffer, "\\t"); break;
      default: escape_code(buffer, byte);
    }
}

static inline bool escape_separator(const char *at)
{
    return (unsigned char)at[0] == 0xE2 && (unsigned char)at[1] == 0x80 && ((unsigned char)at[2] & 0xFE) == 0xA8;
}

/* Appends the text escaped. `json`: it is JSON already, only separators and markup are escaped. False, with nothing
 * appended, when it is not UTF-8. */
static bool escape_append(struct buffer *buffer, const char *text, size_t length, enum escape_mode mode, bool json)
{
    const char *end = text + length, *run = text, *at = text;
    const size_t start = buffer->length;
    const bool markup = mode == ESCAPE_RAILS_HTML;

    while ((at = escape_next(at, end, markup)) < end) {
        unsigned char byte = (unsigned char)*at;
        int width = 1;
        if (byte >= 0x80) {
            width = escape_character(at, end);
            if (!width) {
                buffer->length = start;
                return false;
            }
            if (mode == ESCAPE_JSON || width != 3 || !escape_separator(at)) {
                at += width;
                continue;
            }
        }
        else if (json && byte != '<' && byte != '>' && byte != '&') {
            at++;
            continue;
        }
        buffer_append(buffer, run, at - run);
        if (width == 3) escape_code(buffer, 0x2028 + ((unsigned char)at[2] & 1));
        else if (byte < 0x20 || byte == '"' || byte == '\\') escape_byte(buffer, byte);
        else escape_code(buffer, byte);
        at += width;
        run = at;
    }
    buffer_append(buffer, run, end - run);
    return true;
}

/* Copies a text into which nothing has to be put, eight bytes at a time. False where something has; the room may then hold some of it. */
static inline bool escape_copy(char *target, const char *text, size_t length, bool markup)
{
    uint64_t special = 0, word;
    size_t at = 0;
    if (length >= 8) {
        for (; at + 8 <= length; at += 8) {
            memcpy(&word, text + at, 8);
            special |= escape_special_word(word, markup);
            memcpy(target + at, &word, 8);
        }
        memcpy(&word, text + length - 8, 8); /* what is left, with some of what has been read */
        memcpy(target + length - 8, &word, 8);
        return !(special | escape_special_word(word, markup));
    }
    for (; at < length; at++) {
        if (escape_special((unsigned char)text[at], markup)) return false;
        target[at] = text[at];
    }
    return true;
}

static inline bool escape_string(struct buffer *buffer, const char *text, size_t length, enum escape_mode mode)
{
    if (length <= ESCAPE_COPIED) {
        char *start;
        buffer_reserve(buffer, length + 2);
        start = buffer_end(buffer);
        if (escape_copy(start + 1, text, length, mode == ESCAPE_RAILS_HTML)) {
            start[0] = start[length + 1] = '"';
            buffer_consumed(buffer, length + 2);
            return true;
        }
    }
    buffer_byte(buffer, '"');
    if (!escape_append(buffer, text, length, mode, false)) {
        buffer->length--;
        return false;
    }
    buffer_byte(buffer, '"');
    return true;
}

#endif
