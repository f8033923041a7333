/* SPDX-License-Identifier: MIT */
/* Build-time tool: prints the table that src/core/name.c needs, the smallest decimal number in each
 * of the 16384 hash slots of a Redis cluster. Finding them all takes milliseconds here; at run time
 * it would be work in every process. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/crc16.h"

enum { SLOTS = 16384 };

int main(void)
{
    static uint32_t tags[SLOTS];
    static unsigned char found[SLOTS];
    char digits[16];
    for (uint32_t number = 0, missing = SLOTS; missing > 0; number++) {
        snprintf(digits, sizeof(digits), "%u", number);
        unsigned slot = hf__crc16(digits, strlen(digits)) % SLOTS;
        if (found[slot])
            continue;
        found[slot] = 1;
        tags[slot] = number;
        missing--;
    }
    printf("/* Made by tools/slot_tags.c. */\n#include \"core/name.h\"\n\n");
    printf("const uint32_t hf__slot_tags[HF__SLOTS] = {\n");
    for (int slot = 0; slot < SLOTS; slot++)
        printf("%u,%c", tags[slot], slot % 12 == 11 ? '\n' : ' ');
    printf("};\n");
    return ferror(stdout) ? 1 : 0;
}
