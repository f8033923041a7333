/* SPDX-License-Identifier: MIT */
/* Where a lock lives: its slot, and its side keys in the same slot. See docs/wire.md. */
#ifndef HF_CORE_NAME_H
#define HF_CORE_NAME_H

#include <holdfast.h>

#include "resp/encode.h"

enum {
    HF__SLOTS = 16384,
    HF__SIDE_KEY_EXTRA = 32 + HF_SIDE_PREFIX_MAX /* bytes that a side key adds to its lock's */
};

extern const uint32_t hf__slot_tags[HF__SLOTS];

/* The cluster's hash slot of a key: of the part between the first '{' and the next '}' if there is
 * one and it is not empty, else of the whole key. */
unsigned hf__slot(const char *key, size_t length);

/* Writes the side key of the given letter, "<prefix>hf:<letter>:{T}<key>", into `place`, which has
 * room for length + HF__SIDE_KEY_EXTRA bytes; returns its length. The prefix has no '{' in it. T is
 * the smallest decimal number in the key's slot, so the side key is in that slot too, and different
 * keys have different side keys. */
size_t hf__side_key(char *place, hf__slice prefix, char letter, hf__slice key, unsigned slot);

/* The same with T itself, for those who need it often: the table is large, and cold. */
size_t hf__side_key_tagged(char *place, hf__slice prefix, char letter, hf__slice key, uint32_t tag);
/* The same for the mark of a slot, which all its locks share: "<prefix>hf:m:{T}". */
size_t hf__slot_key(char *place, hf__slice prefix, uint32_t tag);
/* Makes the side key there that of another letter. */
void hf__side_key_change(char *place, hf__slice prefix, char letter);

#endif
