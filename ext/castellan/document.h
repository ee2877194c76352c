/*
 * A whole document, its records one by one, or a part of a document.
 */
#ifndef CASTELLAN_DOCUMENT_H
#define CASTELLAN_DOCUMENT_H

#include "included.h"

static void encoder_primary(struct encoder *encoder, long count)
{
    struct section *root = encoder->sections;
    if (encoder->single && count == 0) {
        buffer_literal(&encoder->buffer, "null");
        return;
    }
    if (!encoder->single) buffer_byte(&encoder->buffer, '[');
    for (long row = 0; row < count; row++) {
        if (row) buffer_byte(&encoder->buffer, ',');
        encoder_write(encoder, root, row);
    }
    if (!encoder->single) buffer_byte(&encoder->buffer, ']');
}

static void encoder_included(struct encoder *encoder, long count)
{
    struct section *root = encoder->sections;
    for (long row = 0; row < count; row++) encoder_known(encoder, root, row);
    buffer_literal(&encoder->buffer, ",\"included\":[");
    for (long row = 0; row < count; row++) encoder_walk(encoder, root, row);
    buffer_byte(&encoder->buffer, ']');
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
        if (encoder->template->compound) encoder_included(encoder, count);
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
    for (long row = 0; row < root->source.size; row++) {
        VALUE id = section_id_string(encoder, root, row), bytes;
        encoder->holes = rb_ary_new();
        encoder_write(encoder, root, row);
        bytes = encoder_take(encoder);
        rb_ary_push(encoder->result, rb_ary_new_from_args(3, id, bytes, encoder->holes));
    }
}

/* The primary records with commas between them, and what they lead to by node and id. */
static void encoder_part(struct encoder *encoder)
{
    struct section *root = encoder->sections;
    encoder->round = 1;
    for (long row = 0; row < root->source.size; row++) {
        if (row) buffer_byte(&encoder->buffer, ',');
        encoder_write(encoder, root, row);
    }
    encoder->result = encoder_take(encoder);
    if (!encoder->template->compound) return;
    for (long row = 0; row < root->source.size; row++) encoder_known(encoder, root, row);
    for (long row = 0; row < root->source.size; row++) encoder_walk(encoder, root, row);
}

#endif
