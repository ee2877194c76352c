/*
 * Bytes that grow. Plain malloc, not Ruby's: growing must never run the garbage collector, because callers hold pointers
 * into Ruby strings and PostgreSQL results while they write.
 *
 *   buffer_reserve(buffer, 20);                       room for 20 bytes
 *   buffer_consumed(buffer, digits_write(buffer_end(buffer), 7));
 *
 * With CASTELLAN_DEBUG a write past what was reserved is a bug report at once and not a crash later.
 */
#ifndef CASTELLAN_BUFFER_H
#define CASTELLAN_BUFFER_H

#include <ruby.h>
#include <stdlib.h>
#include <string.h>

struct buffer {
    char *bytes;
    size_t length;
    size_t capacity;
#ifdef CASTELLAN_DEBUG
    size_t reserved;
#endif
};

static inline void buffer_free(struct buffer *buffer)
{
    free(buffer->bytes);
    memset(buffer, 0, sizeof(*buffer));
}

/* Kept out of line: it runs a few times a document. Raises NoMemoryError with the buffer still whole. */
static void buffer_grow(struct buffer *buffer, size_t room)
{
    size_t needed = buffer->length + room;
    size_t capacity = buffer->capacity ? buffer->capacity : 4096;
    char *bytes;
    if (needed < room) rb_memerror();
    while (capacity < needed) capacity += capacity / 2 + 4096;
    bytes = realloc(buffer->bytes, capacity);
    if (!bytes) rb_memerror();
    buffer->bytes = bytes;
    buffer->capacity = capacity;
}

static inline void buffer_reserve(struct buffer *buffer, size_t room)
{
    if (buffer->capacity - buffer->length < room) buffer_grow(buffer, room);
#ifdef CASTELLAN_DEBUG
    buffer->reserved = room;
#endif
}

static inline char *buffer_end(struct buffer *buffer)
{
    return buffer->bytes + buffer->length;
}

static inline void buffer_consumed(struct buffer *buffer, size_t written)
{
#ifdef CASTELLAN_DEBUG
    if (written > buffer->reserved) rb_bug("castellan: %zu bytes written where %zu were reserved", written, buffer->reserved);
    buffer->reserved -= written;
#endif
    buffer->length += written;
}

static inline void buffer_append(struct buffer *buffer, const char *bytes, size_t length)
{
    buffer_reserve(buffer, length);
    if (length) memcpy(buffer_end(buffer), bytes, length);
    buffer_consumed(buffer, length);
}

static inline void buffer_byte(struct buffer *buffer, char byte)
{
    buffer_reserve(buffer, 1);
    *buffer_end(buffer) = byte;
    buffer_consumed(buffer, 1);
}

#define buffer_literal(buffer, text) buffer_append((buffer), (text), sizeof(text) - 1)

#endif
