/* SPDX-License-Identifier: MIT */
/* Memory, owned texts and growing buffers of the model server. They do not go through
 * base/memory.h, because its gate is there to starve the clients of a simulation, not its servers;
 * without memory the simulation ends. */
#ifndef HF_SIM_BYTES_H
#define HF_SIM_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "resp/encode.h" /* hf__slice */

void *sim_alloc(size_t size); /* zeroed, never NULL */
void *sim_resize(void *block, size_t size);

/* Owned bytes, with a NUL after them that does not count. */
typedef struct sim_bytes {
    char *bytes;
    size_t length;
} sim_bytes;

sim_bytes sim_bytes_copy(hf__slice slice);
void sim_bytes_set(sim_bytes *bytes, hf__slice slice); /* frees what was there */
void sim_bytes_free(sim_bytes *bytes);

static inline hf__slice sim_bytes_slice(const sim_bytes *bytes)
{
    return (hf__slice){bytes->bytes, bytes->length};
}

/* Appended at the end, taken from the front. */
typedef struct sim_buffer {
    char *bytes;
    size_t start;
    size_t end;
    size_t capacity;
} sim_buffer;

char *sim_buffer_room(sim_buffer *buffer, size_t count); /* the caller adds to `end` what it used */
void sim_buffer_append(sim_buffer *buffer, const void *bytes, size_t count);
void sim_buffer_take(sim_buffer *buffer, size_t count);
void sim_buffer_clear(sim_buffer *buffer);
void sim_buffer_free(sim_buffer *buffer);

static inline hf__slice sim_buffer_slice(const sim_buffer *buffer)
{
    return (hf__slice){buffer->bytes + buffer->start, buffer->end - buffer->start};
}

/* ---- Texts as arguments ---- */

int sim_compare(hf__slice a, hf__slice b); /* bytewise, the shorter one first */
bool sim_equal(hf__slice a, hf__slice b);
bool sim_is(hf__slice word, const char *text); /* without regard to case */
/* As strict as Redis: no blanks, no '+', no leading zeros, all of it. */
bool sim_parse_integer(hf__slice word, int64_t *number);
bool sim_parse_double(hf__slice word, double *number);
size_t sim_print_integer(char digits[21], int64_t number);
size_t sim_print_number(char text[40], double number); /* with all its digits, as %.17g */

#endif
