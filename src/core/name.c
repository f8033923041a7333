/* SPDX-License-Identifier: MIT */
/* A lock's side keys must be in the slot of the lock, or one script could not touch both in a
 * cluster. Putting the name into braces does not do: the side keys of "x" and "{x}" would be the
 * same, and of "a}b" in another slot. So the braces hold a number that is in the right slot, and
 * the name follows unchanged. */
#include "core/name.h"

#include <string.h>

#include "base/mutant.h"
#include "base/text.h"
#include "core/crc16.h"

enum { LETTER_AT = 3 };

unsigned hf__slot(const char *key, size_t length)
{
    const char *open = memchr(key, '{', length);
    if (open != NULL) {
        const char *inside = open + 1;
        size_t rest = length - (size_t)(inside - key);
        const char *close = memchr(inside, '}', rest);
        if (close != NULL && close != inside)
            return hf__crc16(inside, (size_t)(close - inside)) % HF__SLOTS;
    }
    return hf__crc16(key, length) % HF__SLOTS;
}

size_t hf__side_key(char *place, hf__slice prefix, char letter, hf__slice key, unsigned slot)
{
    return hf__side_key_tagged(place, prefix, letter, key, hf__slot_tags[slot]);
}

/* Returns where it ends. */
static char *put_tag(char *place, hf__slice prefix, char letter, uint32_t tag)
{
    char *end = hf__slice_put(place, prefix);
    memcpy(end, "hf:?:{", 6);
    end[LETTER_AT] = letter;
    end += 6;
    end += hf__digits(end, tag);
    *end++ = '}';
    return end;
}

size_t hf__side_key_tagged(char *place, hf__slice prefix, char letter, hf__slice key, uint32_t tag)
{
    size_t last = key.length - 1;
    if (HF__MUTANT(SIDE_KEYS_SHARED) && last > 1 && key.bytes[0] == '{' && key.bytes[last] == '}')
        key = (hf__slice){key.bytes + 1, key.length - 2};
    return (size_t)(hf__slice_put(put_tag(place, prefix, letter, tag), key) - place);
}

size_t hf__slot_key(char *place, hf__slice prefix, uint32_t tag)
{
    return (size_t)(put_tag(place, prefix, 'm', tag) - place);
}

void hf__side_key_change(char *place, hf__slice prefix, char letter)
{
    place[prefix.length + LETTER_AT] = letter;
}
