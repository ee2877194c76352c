/*
 * Writes documents from rows, with the same bytes as lib/castellan/serialize/ruby_encoder.rb. Ruby handles
 * rare values (a DateTime, an id beyond 64 bits) and all errors: see `encoder_ask_ruby` and
 * `encoder_refuse`. Functions that return false have appended nothing.
 */
#include "internal.h"
#include <math.h>

/* ---- text: escapes and checks UTF-8 in one pass, eight bytes at a time while none is special ----
 *
 * The three modes are those of serialize/text.rb: only RFC 8259; also U+2028 and U+2029; also < > &. */

#define ESCAPE_ONES 0x0101010101010101ULL
#define ESCAPE_HIGHS 0x8080808080808080ULL
#define ESCAPE_COPIED 256 /* up to this length, text is copied while it is checked for special bytes */

static inline uint64_t escape_has(uint64_t word, unsigned char byte)
{
    uint64_t differing = word ^ (ESCAPE_ONES * byte);
    return (differing - ESCAPE_ONES) & ~differing & ESCAPE_HIGHS;
}

/* Nonzero if any of the eight bytes may be special; false positives are possible, false negatives are not. */
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

/* Returns the length of a character (not ASCII) in bytes, 0 if it is not well-formed UTF-8 (Unicode 15,
 * table 3-7). */
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

/* Appends the escaped text. `json`: the text is JSON, so escape only separators and markup. Returns false
 * and appends nothing if it is not UTF-8. */
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

/* Copies text, eight bytes at a time. Returns false if a byte needs escaping; `target` then contains a
 * part of it. */
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
        memcpy(&word, text + length - 8, 8); /* the rest, overlapping bytes that were already read */
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

/* ---- numbers: return false for formats that are left to Ruby (serialize/values.rb) ---- */

/* The parts of a number without exponent, without leading zeros of `whole` and trailing zeros of
 * `fraction`. */
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

/* Like BigDecimal#to_s("F"), as a JSON string. */
static inline bool number_append_decimal(struct buffer *buffer, const char *text, size_t length)
{
    struct number_parts parts;
    if (!number_split(text, length, &parts)) return false;
    buffer_byte(buffer, '"');
    number_append_parts(buffer, &parts);
    buffer_byte(buffer, '"');
    return true;
}

/* Like Float#to_s. With at most 15 significant digits, these digits are also the shortest text of the
 * double; from 0.0001 up to 15 digits before the point, Ruby writes it without an exponent. */
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

/* ---- dates and times: "2024-01-31", "2024-01-31 10:00:00.123456" in UTC ----
 *
 * Return false for other formats, which are left to Ruby (serialize/timestamp.rb). */

static inline int timestamp_pair(const char *text)
{
    return number_digit(text[0]) && number_digit(text[1]) ? (text[0] - '0') * 10 + (text[1] - '0') : -1;
}

static inline int timestamp_last_day(int year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    return month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : days[month - 1];
}

/* Ten bytes: 2024-01-31. */
static inline bool timestamp_day(const char *text)
{
    int century = timestamp_pair(text), year = timestamp_pair(text + 2), month = timestamp_pair(text + 5), day = timestamp_pair(text + 8);
    if (century < 0 || year < 0 || text[4] != '-' || text[7] != '-' || month < 1 || month > 12) return false;
    return day >= 1 && day <= timestamp_last_day(century * 100 + year, month);
}

/* Eight bytes: 10:00:00. */
static inline bool timestamp_clock(const char *text)
{
    int hour = timestamp_pair(text), minute = timestamp_pair(text + 3), second = timestamp_pair(text + 6);
    return text[2] == ':' && text[5] == ':' && hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second < 60;
}

static inline bool timestamp_utc(const char *text, size_t length)
{
    return length == 0 || (length == 1 && *text == 'Z') || (length == 3 && memcmp(text, "+00", 3) == 0) ||
           (length == 6 && memcmp(text, "+00:00", 6) == 0);
}

static inline bool timestamp_append_date(struct buffer *buffer, const char *text, size_t length)
{
    if (length != 10 || !timestamp_day(text)) return false;
    buffer_byte(buffer, '"');
    buffer_append(buffer, text, length);
    buffer_byte(buffer, '"');
    return true;
}

static inline bool timestamp_append(struct buffer *buffer, const char *text, size_t length)
{
    static const char whole[] = "\"0000-00-00T00:00:00.000Z\"";
    size_t digits = 0;
    char *target;
    if (length < 19 || !timestamp_day(text) || (text[10] != ' ' && text[10] != 'T') || !timestamp_clock(text + 11)) return false;
    if (length > 19 && text[19] == '.') {
        while (20 + digits < length && number_digit(text[20 + digits])) digits++;
        if (digits == 0 || digits > 9) return false;
    }
    if (!timestamp_utc(text + 19 + digits + (digits > 0), length - 19 - digits - (digits > 0))) return false;
    buffer_reserve(buffer, sizeof(whole) - 1);
    target = buffer_end(buffer);
    memcpy(target, whole, sizeof(whole) - 1);
    memcpy(target + 1, text, 10);
    memcpy(target + 12, text + 11, 8);
    memcpy(target + 21, text + 20, digits > 3 ? 3 : digits);
    buffer_consumed(buffer, sizeof(whole) - 1);
    return true;
}

/* Writes a number with `count` digits, including leading zeros. */
static inline void timestamp_digits(char *target, int count, int number)
{
    while (count--) {
        target[count] = (char)('0' + number % 10);
        number /= 10;
    }
}

/* Appends seconds since 1970 as a timestamp, for years of four digits. Counts the days of a year from
 * March, so that the leap day is the last:
 * http://howardhinnant.github.io/date_algorithms.html#civil_from_days */
static inline bool timestamp_append_seconds(struct buffer *buffer, long long seconds, long nanoseconds)
{
    char text[] = "0000-00-00 00:00:00.000";
    long long days = seconds / 86400 - (seconds % 86400 < 0), since_march, era, of_era, year_of_era, of_year, month, year;
    int clock = (int)(seconds - days * 86400);
    since_march = days + 719468;
    if (since_march < 0) return false;
    era = since_march / 146097;
    of_era = since_march % 146097;
    year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    month = (5 * of_year + 2) / 153;
    year = year_of_era + era * 400 + (month >= 10);
    if (year < 1 || year > 9999) return false;
    timestamp_digits(text, 4, (int)year);
    timestamp_digits(text + 5, 2, (int)(month < 10 ? month + 3 : month - 9));
    timestamp_digits(text + 8, 2, (int)(of_year - (153 * month + 2) / 5 + 1));
    timestamp_digits(text + 11, 2, clock / 3600);
    timestamp_digits(text + 14, 2, clock / 60 % 60);
    timestamp_digits(text + 17, 2, clock % 60);
    timestamp_digits(text + 20, 3, (int)(nanoseconds / 1000000));
    return timestamp_append(buffer, text, sizeof(text) - 1);
}

/* ---- values ---- */

static bool id_append(struct encoder *encoder, const struct record_id *id)
{
    struct buffer *buffer = &encoder->buffer;
    if (!id->number) return escape_string(buffer, id->text ? id->text : "", id->length, encoder->template->mode);
    buffer_reserve(buffer, NUMBER_DIGITS + 2);
    *buffer_end(buffer) = '"';
    buffer_consumed(buffer, 1);
    buffer_consumed(buffer, number_format(buffer_end(buffer), id->integer));
    *buffer_end(buffer) = '"';
    buffer_consumed(buffer, 1);
    return true;
}

/* For rare values: Ruby writes the value or raises. */
static void encoder_ask_ruby(struct encoder *encoder, struct section *section, long row, long member, VALUE coder, VALUE value)
{
    VALUE id = section_id_string(encoder, section, row);
    VALUE json = rb_funcall(ruby_side(), rb_intern("write"), 6, encoder->ruby_template, LONG2NUM(encoder_number(encoder, section)), LONG2NUM(member), id, coder, value);
    Check_Type(json, T_STRING);
    buffer_append(&encoder->buffer, RSTRING_PTR(json), (size_t)RSTRING_LEN(json));
    RB_GC_GUARD(json);
    encoder_refresh(encoder);
}

static bool value_append_boolean(struct buffer *buffer, const struct cell *cell)
{
    bool text = cell->kind == CELL_TEXT && cell->length == 1;
    if (text ? (*cell->text == 't' || *cell->text == '1') : (cell->value == Qtrue || cell->value == INT2FIX(1))) {
        buffer_literal(buffer, "true");
        return true;
    }
    if (text ? (*cell->text == 'f' || *cell->text == '0') : (cell->value == Qfalse || cell->value == INT2FIX(0))) {
        buffer_literal(buffer, "false");
        return true;
    }
    return false;
}

/* Uses Float#to_s, which finds the shortest digits. Returns false for floats with an exponent. */
static bool value_append_double(struct encoder *encoder, enum coder coder, VALUE value)
{
    VALUE text = rb_funcall(value, rb_intern("to_s"), 0);
    bool written;
    encoder_refresh(encoder);
    if (!isfinite(RFLOAT_VALUE(value))) return false;
    if (coder == CODER_DECIMAL) {
        written = number_append_decimal(&encoder->buffer, RSTRING_PTR(text), (size_t)RSTRING_LEN(text));
    } else {
        written = !memchr(RSTRING_PTR(text), 'e', (size_t)RSTRING_LEN(text));
        if (written) buffer_append(&encoder->buffer, RSTRING_PTR(text), (size_t)RSTRING_LEN(text));
    }
    RB_GC_GUARD(text);
    return written;
}

static bool value_append_number(struct encoder *encoder, enum coder coder, VALUE value)
{
    char text[NUMBER_DIGITS];
    size_t length;
    if (RB_FLOAT_TYPE_P(value)) return (coder == CODER_FLOAT || coder == CODER_DECIMAL) && value_append_double(encoder, coder, value);
    if (!FIXNUM_P(value)) return false;
    length = number_format(text, FIX2LONG(value));
    if (coder == CODER_FLOAT) return number_append_float(&encoder->buffer, text, length);
    if (coder == CODER_DECIMAL) return number_append_decimal(&encoder->buffer, text, length);
    if (coder != CODER_INTEGER) return false;
    buffer_append(&encoder->buffer, text, length);
    return true;
}

/* Only for instances of Time itself, because subclasses and delegators may override its methods. */
static bool value_append_time(struct buffer *buffer, VALUE value)
{
    struct timespec time;
    if (SPECIAL_CONST_P(value) || rb_obj_class(value) != rb_cTime) return false;
    time = rb_time_timespec(value);
    return timestamp_append_seconds(buffer, time.tv_sec, time.tv_nsec);
}

/* Returns false and appends nothing if Ruby must write the value. */
static bool value_append(struct encoder *encoder, enum coder coder, const struct cell *cell)
{
    struct buffer *buffer = &encoder->buffer;
    if (cell->kind == CELL_NULL) {
        buffer_literal(buffer, "null");
        return true;
    }
    if (coder == CODER_BOOLEAN) return value_append_boolean(buffer, cell);
    if (cell->kind == CELL_VALUE && coder == CODER_DATETIME) return value_append_time(buffer, cell->value);
    if (cell->kind == CELL_VALUE) return value_append_number(encoder, coder, cell->value);
    switch (coder) {
      case CODER_TEXT: return escape_string(buffer, cell->text, cell->length, encoder->template->mode);
      case CODER_FLOAT: return number_append_float(buffer, cell->text, cell->length);
      case CODER_DECIMAL: return number_append_decimal(buffer, cell->text, cell->length);
      case CODER_DATE: return timestamp_append_date(buffer, cell->text, cell->length);
      case CODER_DATETIME: return timestamp_append(buffer, cell->text, cell->length);
      case CODER_JSON: return cell->length && escape_append(buffer, cell->text, cell->length, encoder->template->mode, true);
      case CODER_INTEGER:
        if (!number_integer_text(cell->text, cell->length)) return false;
        buffer_append(buffer, cell->text, cell->length);
        return true;
      default: return false;
    }
}

static void encoder_hole(struct encoder *encoder, struct section *section, long row, long hole)
{
    VALUE id = section_id_string(encoder, section, row);
    rb_ary_push(encoder->holes, SIZET2NUM(encoder->buffer.length));
    rb_ary_push(encoder->holes, LONG2NUM(hole));
    rb_ary_push(encoder->holes, id);
}

static void encoder_computed(struct encoder *encoder, struct section *section, long row, long member)
{
    VALUE json = rb_ary_entry(section->computed[member], row);
    if (RB_TYPE_P(json, T_STRING) && source_utf8_p(json) && RSTRING_LEN(json) &&
        escape_append(&encoder->buffer, RSTRING_PTR(json), (size_t)RSTRING_LEN(json), encoder->template->mode, true)) {
        RB_GC_GUARD(json);
        return;
    }
    encoder_ask_ruby(encoder, section, row, member, ID2SYM(rb_intern("computed")), json);
}

static void encoder_value(struct encoder *encoder, struct section *section, long row, long member)
{
    const struct member_parts *parts = &section->parts->members[member];
    struct cell cell;
    enum coder coder;
    if (parts->hole >= 0) return encoder_hole(encoder, section, row, parts->hole);
    if (!NIL_P(section->computed[member])) return encoder_computed(encoder, section, row, member);
    coder = parts->column >= 0 && parts->column < section->coder_count ? section->coders[parts->column] : CODER_NONE;
    cell = source_cell(&section->source, row, parts->column < 0 ? 0 : parts->column);
    if (coder != CODER_NONE && value_append(encoder, coder, &cell)) {
        RB_GC_GUARD(cell.value);
        return;
    }
    encoder_ask_ruby(encoder, section, row, member, coder == CODER_NONE ? Qnil : coder_symbols[coder], source_value(&cell));
}

static void encoder_member(struct encoder *encoder, struct section *section, long row, long member)
{
    const struct bytes *before = &section->parts->members[member].before;
    buffer_append(&encoder->buffer, before->text, before->length);
    encoder_value(encoder, section, row, member);
}

/* ---- linkage ---- */

#define FRAGMENTS 128

/* `link`: the constant bytes before the id, which depend on its type. */
static void encoder_link(struct encoder *encoder, struct section *section, long row, long edge, const struct bytes *link, const struct record_id *id)
{
    const struct edge_parts *parts = &section->parts->edges[edge];
    struct buffer *buffer = &encoder->buffer;
    buffer_append(buffer, link->text, link->length);
    if (!id_append(encoder, id)) {
        VALUE wrong = id_string(id);
        encoder_refuse(encoder, section, 2, edge, section_id_string(encoder, section, row), wrong);
    }
    buffer_append(buffer, parts->link_end.text, parts->link_end.length);
}

/* Returns the cached bytes of a link to an integer id; NULL if they are too long. */
static struct fragment *encoder_fragment(struct links *links, const struct edge_parts *parts, int64_t integer)
{
    struct fragment *fragment;
    char *at;
    if (parts->link.length + parts->link_end.length + NUMBER_DIGITS + 3 >= sizeof(fragment->bytes)) return NULL;
    if (!links->fragments) links->fragments = arena_allocate(links->arena, FRAGMENTS, sizeof(*fragment));
    fragment = &links->fragments[(uint64_t)integer % FRAGMENTS];
    if (fragment->length && fragment->integer == integer) return fragment;
    at = fragment->bytes;
    *at++ = ',';
    memcpy(at, parts->link.text, parts->link.length);
    at += parts->link.length;
    *at++ = '"';
    at += number_format(at, integer);
    *at++ = '"';
    memcpy(at, parts->link_end.text, parts->link_end.length);
    at += parts->link_end.length;
    fragment->length = (uint8_t)(at - fragment->bytes);
    fragment->integer = integer;
    return fragment;
}

/* Appends a linked record, with a comma before it unless it is the first. Uses fragments only if there is
 * one type. */
static void encoder_target(struct encoder *encoder, struct section *section, long row, long edge, const struct link_target *target,
                           const struct bytes *link, bool first)
{
    struct links *links = &section->links[edge];
    struct buffer *buffer = &encoder->buffer;
    struct fragment *fragment = target->pair < 0 && !links->kinds ? encoder_fragment(links, &section->parts->edges[edge], target->integer) : NULL;
    if (fragment) {
        buffer_reserve(buffer, sizeof(fragment->bytes));
        memcpy(buffer_end(buffer), fragment->bytes + first, sizeof(fragment->bytes) - 1); /* inlined */
        buffer_consumed(buffer, (size_t)fragment->length - first);
    }
    else {
        struct record_id id = { .number = true, .integer = target->integer, .keep = Qnil };
        if (!first) buffer_byte(buffer, ',');
        if (target->pair >= 0) id = links_id(encoder, section, edge, &links->pairs, target->pair, links->related);
        encoder_link(encoder, section, row, edge, link, &id);
        RB_GC_GUARD(id.keep);
    }
}

/* @return whether there were any links */
static bool encoder_grouped_links(struct encoder *encoder, struct section *section, long row, long edge)
{
    struct link_range range = links_of(encoder, section, row, edge);
    const struct edge_parts *parts = &section->parts->edges[edge];
    const struct links *links = &section->links[edge];
    bool any = false;
    for (; range.at < range.end; range.at++) {
        const struct link_target *target = &links->targets[range.at];
        if (!encoder->template->nested) {
            encoder_target(encoder, section, row, edge, target, links->kinds ? &parts->kinds[links->kinds[range.at]].link : &parts->link, !any);
        }
        else {
            if (target->row < 0) continue;
            if (any) buffer_byte(&encoder->buffer, ',');
            encoder_write(encoder, &encoder->sections[links_node(section, edge, range.at)], target->row);
        }
        any = true;
    }
    return any;
}

static bool encoder_column_links(struct encoder *encoder, struct section *section, long row, long edge)
{
    const struct edge_parts *parts = &section->parts->edges[edge];
    struct column_walk walk = { .ended = false };
    bool any = false;
    if (parts->child >= 0) section_index(encoder, &encoder->sections[parts->child]); /* while no id is in use */
    while (column_next(encoder, section, row, edge, &walk)) {
        long related = -1;
        if (encoder->template->nested) {
            related = parts->child < 0 ? -1 : section_row(encoder, &encoder->sections[parts->child], &walk.id);
            if (related < 0) continue;
        }
        if (encoder->template->nested) {
            if (any) buffer_byte(&encoder->buffer, ',');
            encoder_write(encoder, &encoder->sections[parts->child], related);
            walk.read = false;
        }
        else if (walk.id.number) {
            struct link_target target = { walk.id.integer, -1, -1 };
            encoder_target(encoder, section, row, edge, &target, &parts->link, !any);
        }
        else {
            if (any) buffer_byte(&encoder->buffer, ',');
            encoder_link(encoder, section, row, edge, &parts->link, &walk.id);
        }
        any = true;
        if (!parts->to_many) break;
    }
    RB_GC_GUARD(walk.whole.keep);
    RB_GC_GUARD(walk.id.keep);
    return any;
}

static void encoder_links(struct encoder *encoder, struct section *section, long row, long edge)
{
    const struct edge_parts *parts = &section->parts->edges[edge];
    bool any;
    if (parts->to_many) buffer_byte(&encoder->buffer, '[');
    any = section->links[edge].grouped ? encoder_grouped_links(encoder, section, row, edge) : encoder_column_links(encoder, section, row, edge);
    if (parts->to_many) buffer_byte(&encoder->buffer, ']');
    else if (!any) buffer_literal(&encoder->buffer, "null");
}

static void encoder_edge(struct encoder *encoder, struct section *section, long row, long edge)
{
    const struct bytes *before = &section->parts->edges[edge].before;
    buffer_append(&encoder->buffer, before->text, before->length);
    encoder_links(encoder, section, row, edge);
}

/* ---- records ---- */

static void encoder_id(struct encoder *encoder, struct section *section, long row)
{
    struct record_id id;
    if (encoder->template->nested) {
        struct cell cell = source_cell(&section->source, row, 0);
        if (cell.kind == CELL_NULL || (section->coder_count && section->coders[0] == CODER_INTEGER)) {
            if (!value_append(encoder, CODER_INTEGER, &cell)) {
                encoder_ask_ruby(encoder, section, row, -1, coder_symbols[CODER_INTEGER], source_value(&cell));
            }
            RB_GC_GUARD(cell.value);
            return;
        }
    }
    id = section_id(encoder, section, row);
    if ((index_empty_id(&id) && !encoder->template->nested) || !id_append(encoder, &id)) {
        struct cell cell = source_cell(&section->source, row, 0);
        encoder_refuse(encoder, section, 0, 0, id_string(&id), source_value(&cell));
    }
    RB_GC_GUARD(id.keep);
}

/* Appends links and meta objects (finished JSON that begins with a comma) and the end of their object. */
static void encoder_after(struct encoder *encoder, struct section *section, VALUE after, long row, bool comma)
{
    VALUE text = NIL_P(after) ? Qnil : rb_ary_entry(after, row);
    if (!NIL_P(text)) {
        size_t skipped = 0;
        Check_Type(text, T_STRING);
        if (!comma && RSTRING_LEN(text) && *RSTRING_PTR(text) == ',') skipped = 1;
        if (!source_utf8_p(text) ||
            !escape_append(&encoder->buffer, RSTRING_PTR(text) + skipped, (size_t)RSTRING_LEN(text) - skipped, encoder->template->mode, true)) {
            encoder_refuse(encoder, section, 3, 0, section_id_string(encoder, section, row), text);
        }
    }
    RB_GC_GUARD(text);
    buffer_byte(&encoder->buffer, '}');
}

/* Appends a member's name: after a comma, or after the opening of the object that groups the members. */
static void encoder_name(struct encoder *encoder, const struct bytes *name, bool first, const char *opening)
{
    struct buffer *buffer = &encoder->buffer;
    if (!first || encoder->template->nested) buffer_byte(buffer, ',');
    else buffer_append(buffer, opening, strlen(opening));
    buffer_append(buffer, name->text, name->length);
}

static void encoder_irregular_edge(struct encoder *encoder, struct section *section, long row, long edge)
{
    const struct edge_parts *parts = &section->parts->edges[edge];
    if (encoder->template->nested) {
        encoder_links(encoder, section, row, edge);
        return;
    }
    buffer_byte(&encoder->buffer, '{');
    if (parts->data) {
        buffer_literal(&encoder->buffer, "\"data\":");
        encoder_links(encoder, section, row, edge);
    }
    encoder_after(encoder, section, section->links[edge].after, row, parts->data);
}

/* Writes a row whose members differ from other rows', like RubyEncoder#write_irregular. */
static void encoder_write_irregular(struct encoder *encoder, struct section *section, long row)
{
    const struct node_parts *parts = section->parts;
    bool first = true;
    for (long member = 0; member < parts->member_count; member++) {
        if (!encoder_shown(section->shown[member], row)) continue;
        encoder_name(encoder, &parts->members[member].name, first, ",\"attributes\":{");
        encoder_value(encoder, section, row, member);
        first = false;
    }
    if (!first && !encoder->template->nested) buffer_byte(&encoder->buffer, '}');
    first = true;
    for (long edge = 0; edge < parts->edge_count; edge++) {
        if (!parts->edges[edge].written || !encoder_shown(section->links[edge].shown, row)) continue;
        encoder_name(encoder, &parts->edges[edge].name, first, ",\"relationships\":{");
        encoder_irregular_edge(encoder, section, row, edge);
        first = false;
    }
    if (!first && !encoder->template->nested) buffer_byte(&encoder->buffer, '}');
    encoder_after(encoder, section, section->after, row, true);
}

void encoder_write(struct encoder *encoder, struct section *section, long row)
{
    const struct node_parts *parts = section->parts;
    buffer_append(&encoder->buffer, parts->open.text, parts->open.length);
    encoder_id(encoder, section, row);
    if (!parts->regular) {
        encoder_write_irregular(encoder, section, row);
        return;
    }
    for (long member = 0; member < parts->member_count; member++) encoder_member(encoder, section, row, member);
    for (long edge = 0; edge < parts->edge_count; edge++) {
        if (parts->edges[edge].written) encoder_edge(encoder, section, row, edge);
    }
    buffer_append(&encoder->buffer, parts->close.text, parts->close.length);
    if (parts->after) encoder_after(encoder, section, section->after, row, true);
}

/* ---- documents ---- */

static VALUE encoder_take(struct encoder *encoder)
{
    VALUE string = rb_utf8_str_new(encoder->buffer.bytes ? encoder->buffer.bytes : "", (long)encoder->buffer.length);
    encoder->buffer.length = 0;
    return string;
}

/* Returns the root, or with several types the node of the primary row's type; NULL if the row is missing
 * there. */
static inline struct section *encoder_place(struct encoder *encoder, long *row)
{
    struct section *root = encoder->sections;
    struct link_range range;
    long child;
    if (!encoder->template->several_types) return root;
    if (!root->links[0].grouped) rb_raise(rb_eArgError, "a root of several types needs links in rows of their own");
    range = links_of(encoder, root, *row, 0);
    if (range.at >= range.end) return NULL;
    child = links_node(root, 0, range.at);
    *row = root->links[0].targets[range.at].row;
    return child < 0 || *row < 0 ? NULL : &encoder->sections[child];
}

/* Writes the primary records, separated by commas. */
static bool encoder_list(struct encoder *encoder, long count)
{
    bool any = false;
    for (long i = 0; i < count; i++) {
        long row = i;
        struct section *place = encoder_place(encoder, &row);
        if (!place) continue;
        if (any) buffer_byte(&encoder->buffer, ',');
        encoder_write(encoder, place, row);
        any = true;
    }
    return any;
}

static void encoder_primary(struct encoder *encoder, long count)
{
    bool any;
    if (!encoder->single) buffer_byte(&encoder->buffer, '[');
    any = encoder_list(encoder, count);
    if (!encoder->single) buffer_byte(&encoder->buffer, ']');
    else if (!any) buffer_literal(&encoder->buffer, "null");
}

static void encoder_lead(struct encoder *encoder, long count)
{
    for (long i = 0; i < count; i++) {
        long row = i;
        struct section *place = encoder_place(encoder, &row);
        if (place) encoder_known(encoder, place, row);
    }
    for (long i = 0; i < count; i++) {
        long row = i;
        struct section *place = encoder_place(encoder, &row);
        if (place) encoder_walk(encoder, place, row);
    }
}

static void encoder_document(struct encoder *encoder)
{
    long count = encoder->sections[0].source.size;
    if (encoder->single && count > 1) count = 1;
    encoder->round = 1;
    buffer_reserve(&encoder->buffer, encoder->template->last_length + encoder->template->last_length / 16);
    if (encoder->template->nested) {
        encoder_primary(encoder, count);
    }
    else {
        buffer_literal(&encoder->buffer, "{\"data\":");
        encoder_primary(encoder, count);
        if (encoder->template->compound) {
            buffer_literal(&encoder->buffer, ",\"included\":[");
            encoder_lead(encoder, count);
            buffer_byte(&encoder->buffer, ']');
        }
        buffer_append(&encoder->buffer, RSTRING_PTR(encoder->tail), (size_t)RSTRING_LEN(encoder->tail));
        buffer_byte(&encoder->buffer, '}');
    }
    encoder->template->last_length = encoder->buffer.length;
    encoder->result = encoder_take(encoder);
}

static void encoder_records(struct encoder *encoder)
{
    struct section *root = encoder->sections;
    encoder->result = rb_ary_new_capa(root->source.size);
    for (long i = 0; i < root->source.size; i++) {
        long row = i;
        struct section *place = encoder_place(encoder, &row);
        VALUE id, bytes;
        if (!place) continue;
        id = section_id_string(encoder, place, row);
        encoder->holes = rb_ary_new();
        encoder_write(encoder, place, row);
        bytes = encoder_take(encoder);
        rb_ary_push(encoder->result, rb_ary_new_from_args(3, id, bytes, encoder->holes));
    }
}

/* Writes the primary records, separated by commas, and lists node and id of the records to include. */
static void encoder_part(struct encoder *encoder)
{
    long count = encoder->sections[0].source.size;
    encoder->round = 1;
    encoder_list(encoder, count);
    encoder->result = encoder_take(encoder);
    if (encoder->template->compound) encoder_lead(encoder, count);
}

/* Memory of the last document, reused for the next, because fresh pages cost more than writing to them.
 * Protected by the GVL. */
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
    VALUE coders = rb_funcall(table, rb_intern("coders"), 0);
    Check_Type(coders, T_ARRAY);
    return RARRAY_LEN(coders);
}

/* All references to Ruby objects are in these five ALLOCV pieces, which the GC marks; large pieces are on
 * the heap. */
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

/* Native.encode(template, tables, single, tail, holes) → the body; appends to `holes` */
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

/* Native.encode_each(template, tables) → an Array of [id, bytes, holes] */
static VALUE encoder_encode_each(VALUE self, VALUE ruby_template, VALUE tables)
{
    VALUE compiled = template_read(ruby_template, "compiled");
    struct encoder encoder = {
        .template = template_of(compiled), .ruby_template = ruby_template, .compiled = compiled, .tables = tables, .tail = Qnil,
        .holes = rb_ary_new(), .result = Qnil, .each = true, .included = Qnil
    };
    return encoder_run(&encoder);
}

/* Native.encode_part(template, tables, holes, found) → the primary records' bytes; appends node and id of
 * each record to include to `found` */
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

/* Reads the next "a12" of the cuts; returns false for anything else, or if it exceeds the remaining bytes. */
static bool cut_next(const char **cut, const char *end, size_t left, size_t *length)
{
    const char *at = *cut;
    size_t number = 0;
    if (at == end || *at++ != 'a' || at == end) return false;
    for (; at < end && *at >= '0' && *at <= '9'; at++) {
        number = number * 10 + (size_t)(*at - '0');
        if (number > left) return false;
    }
    *cut = at;
    *length = number;
    return true;
}

/* Native.fill(body, cuts, values) → the body with a value after each cut, like Blanks#interleave; nil if
 * the cuts do not fit the body */
static VALUE blanks_fill(VALUE self, VALUE body, VALUE cuts, VALUE values)
{
    Check_Type(body, T_STRING);
    Check_Type(cuts, T_STRING);
    Check_Type(values, T_ARRAY);
    size_t room = (size_t)RSTRING_LEN(body);
    for (long i = 0; i < RARRAY_LEN(values); i++) {
        Check_Type(RARRAY_AREF(values, i), T_STRING);
        room += (size_t)RSTRING_LEN(RARRAY_AREF(values, i));
    }
    if (room > LONG_MAX) return Qnil;

    VALUE filled = rb_utf8_str_new(NULL, (long)room);
    const char *from = RSTRING_PTR(body), *cut = RSTRING_PTR(cuts), *cuts_end = cut + RSTRING_LEN(cuts);
    size_t left = (size_t)RSTRING_LEN(body), length;
    char *to = RSTRING_PTR(filled);
    for (long i = 0; i < RARRAY_LEN(values); i++) {
        VALUE value = RARRAY_AREF(values, i);
        if (!cut_next(&cut, cuts_end, left, &length)) return Qnil;
        memcpy(to, from, length);
        memcpy(to + length, RSTRING_PTR(value), (size_t)RSTRING_LEN(value));
        to += length + (size_t)RSTRING_LEN(value);
        from += length;
        left -= length;
    }
    if (cuts_end - cut != 2 || memcmp(cut, "a*", 2) != 0) return Qnil;
    memcpy(to, from, left);
    RB_GC_GUARD(body);
    RB_GC_GUARD(cuts);
    RB_GC_GUARD(values);
    return filled;
}

void Init_encoder(VALUE castellan)
{
    static const char *const names[CODER_COUNT] = { NULL, "integer", "text", "boolean", "float", "decimal", "date", "datetime", "json" };
    VALUE native = rb_define_module_under(castellan, "Native");
    rb_define_singleton_method(native, "compile", template_compile, 1);
    rb_define_singleton_method(native, "encode", encoder_encode, 5);
    rb_define_singleton_method(native, "encode_each", encoder_encode_each, 2);
    rb_define_singleton_method(native, "encode_part", encoder_encode_part, 4);
    rb_define_singleton_method(native, "reads_results?", encoder_reads_results, 0);
    rb_define_singleton_method(native, "fill", blanks_fill, 3);
    rb_define_singleton_method(native, "id_list", ids_list, 1);
    rb_define_singleton_method(native, "distinct_ids", ids_distinct, 1);
    rb_define_singleton_method(native, "column_ids", ids_column, 2);
    rb_define_singleton_method(native, "loaded_rows", loaded_rows, 5);
    for (int coder = CODER_INTEGER; coder < CODER_COUNT; coder++) coder_symbols[coder] = ID2SYM(rb_intern(names[coder]));
}
