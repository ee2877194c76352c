/*
 * Calls into Ruby (serialize/native_encoder.rb): all errors, and finding a PG::Result again after such a call.
 */
#ifndef CASTELLAN_RUBY_SIDE_H
#define CASTELLAN_RUBY_SIDE_H

#include "encoding.h"

static VALUE ruby_side(void)
{
    return rb_path2class("Castellan::Serialize::NativeEncoder");
}

/* After each call into Ruby: finds results again, or raises PG::Error if one was cleared. */
static void encoder_refresh(struct encoder *encoder)
{
    for (long i = 0; i < encoder->template->node_count; i++) {
        struct section *section = &encoder->sections[i];
        source_refresh(&section->source);
        for (long j = 0; j < section->parts->edge_count; j++) {
            if (section->links[j].grouped) source_refresh(&section->links[j].pairs);
        }
    }
}

static long encoder_number(const struct encoder *encoder, const struct section *section)
{
    return section - encoder->sections;
}

/* Raises what Ruby says about this value. `kind`: 0 the id, 1 a member, 2 an edge. */
NORETURN(static void encoder_refuse(struct encoder *encoder, const struct section *section, int kind, long position, VALUE id, VALUE value));
static void encoder_refuse(struct encoder *encoder, const struct section *section, int kind, long position, VALUE id, VALUE value)
{
    rb_funcall(ruby_side(), id_refuse, 6, encoder->ruby_template, LONG2NUM(encoder_number(encoder, section)), INT2FIX(kind),
               LONG2NUM(position), id, value);
    rb_raise(rb_eRuntimeError, "a value could not be written, and Ruby does not say why");
}

#endif
