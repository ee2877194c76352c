/*
 * Numbers as JSON, from 64-bit integers and from a driver's text. Each function returns false for other forms of text,
 * which Ruby (serialize/values.rb) handles, so that only common cases are implemented twice.
 */
#ifndef CASTELLAN_NUMBER_H
#define CASTELLAN_NUMBER_H

#include "buffer.h"
#include <stdbool.h>
#include <stdint.h>

#define NUMBER_DIGITS 20

/* number_parse handles every integer between these two, exclusive. */
#define NUMBER_PARSED_FROM -100000000000000000LL
#define NUMBER_PARSED_TO 1000000000000000000LL

static inline bool number_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* @return how many of at most 20 bytes were written */
static inline size_t number_format(char *target, int64_t number)
{
    char digits[NUMBER_DIGITS];
    size_t length = 0, sign = number < 0;
    uint64_t rest = sign ? 0 - (uint64_t)number : (uint64_t)number;
    do {
        digits[length++] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (sign) *target++ = '-';
    for (size_t i = 0; i < length; i++) target[i] = digits[length - 1 - i];
    return length + sign;
}

static inline void number_append(struct buffer *buffer, int64_t number)
{
    buffer_reserve(buffer, NUMBER_DIGITS);
    buffer_consumed(buffer, number_format(buffer_end(buffer), number));
}

/* Whether this is an integer as Ruby writes it: no sign but "-", no leading zero. */
static inline bool number_integer_text(const char *text, size_t length)
{
    size_t sign = length && text[0] == '-';
    if (length == sign || (text[sign] == '0' && length > sign + 1)) return false;
    for (size_t i = sign; i < length; i++) {
        if (!number_digit(text[i])) return false;
    }
    return true;
}

/* The integer that is written so, when it surely fits and no other text means it. */
static inline bool number_parse(const char *text, size_t length, int64_t *number)
{
    int64_t value = 0;
    size_t sign = length && text[0] == '-';
    if (length > 18 || !number_integer_text(text, length) || (sign && text[1] == '0')) return false;
    for (size_t i = sign; i < length; i++) value = value * 10 + (text[i] - '0');
    *number = sign ? -value : value;
    return true;
}

/* A number without exponent, cut into its parts: leading zeros of the whole and trailing ones of the fraction left out. */
struct number_parts {
    bool negative;
    const char *whole, *fraction;
    size_t whole_length, fraction_length;
};

static inline bool number_split(const char *text, size_t length, struct number_parts *parts)
{
    const char *end = text + length;
    parts->negative = length && *text == '-';
    if (parts->negative) text++;
    parts->whole = text;
    while (text < end && number_digit(*text)) text++;
    if (text == parts->whole) return false;
    parts->whole_length = text - parts->whole;
    parts->fraction = text;
    parts->fraction_length = 0;
    if (text < end) {
        if (*text++ != '.' || text == end) return false;
        parts->fraction = text;
        while (text < end && number_digit(*text)) text++;
        if (text < end) return false;
        parts->fraction_length = text - parts->fraction;
    }
    while (parts->whole_length && *parts->whole == '0') parts->whole++, parts->whole_length--;
    while (parts->fraction_length && parts->fraction[parts->fraction_length - 1] == '0') parts->fraction_length--;
    return true;
}

static inline void number_append_parts(struct buffer *buffer, const struct number_parts *parts)
{
    if (parts->negative) buffer_byte(buffer, '-');
    if (parts->whole_length) buffer_append(buffer, parts->whole, parts->whole_length);
    else buffer_byte(buffer, '0');
    buffer_byte(buffer, '.');
    if (parts->fraction_length) buffer_append(buffer, parts->fraction, parts->fraction_length);
    else buffer_byte(buffer, '0');
}

/* As BigDecimal#to_s("F"), a JSON string. */
static inline bool number_append_decimal(struct buffer *buffer, const char *text, size_t length)
{
    struct number_parts parts;
    if (!number_split(text, length, &parts)) return false;
    buffer_byte(buffer, '"');
    number_append_parts(buffer, &parts);
    buffer_byte(buffer, '"');
    return true;
}

/* As Float#to_s. With at most 15 significant digits the shortest text of the double is these digits, and from 0.0001 up to
 * 15 digits before the point Ruby writes it without an exponent. */
static inline bool number_append_float(struct buffer *buffer, const char *text, size_t length)
{
    struct number_parts parts;
    size_t zeros = 0;
    if (!number_split(text, length, &parts)) return false;
    if (!parts.whole_length) {
        while (zeros < parts.fraction_length && parts.fraction[zeros] == '0') zeros++;
        if (zeros > 3) return false;
    }
    if (parts.whole_length + parts.fraction_length - zeros > 15) return false;
    number_append_parts(buffer, &parts);
    return true;
}

#endif
