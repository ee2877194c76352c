/*
 * One member of a row as JSON, by the coder of its column. Returns false for rare values, which Ruby writes or rejects.
 */
#ifndef CASTELLAN_VALUE_H
#define CASTELLAN_VALUE_H

#include "escape.h"
#include "number.h"
#include "record.h"
#include "timestamp.h"
#include <math.h>

/* Rare values: Ruby writes the value or raises. */
static void encoder_ask_ruby(struct encoder *encoder, struct section *section, long row, long member, VALUE coder, VALUE value)
{
    VALUE id = section_id_string(encoder, section, row);
    VALUE json = rb_funcall(ruby_side(), id_write, 6, encoder->ruby_template, LONG2NUM(encoder_number(encoder, section)), LONG2NUM(member), id, coder, value);
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

/* A Float by its own text: all that is left to Ruby of it is the shortest digits, and how an exponent is written. */
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

/* An instance of Time itself: a class below it, or one that pretends to be it, may answer what it likes. */
static bool value_append_time(struct buffer *buffer, VALUE value)
{
    struct timespec time;
    if (SPECIAL_CONST_P(value) || rb_obj_class(value) != rb_cTime) return false;
    time = rb_time_timespec(value);
    return timestamp_append_seconds(buffer, time.tv_sec, time.tv_nsec);
}

/* False, with nothing appended, when Ruby has to decide. */
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
    encoder_ask_ruby(encoder, section, row, member, ID2SYM(id_computed), json);
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

#endif
