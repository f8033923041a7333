/* SPDX-License-Identifier: MIT */
/* CRC-16/XMODEM (polynomial 0x1021, start 0), by which a Redis cluster maps keys to slots. */
#ifndef HF_CORE_CRC16_H
#define HF_CORE_CRC16_H

#include <stddef.h>
#include <stdint.h>

/* Each bit that leaves at the top comes back at the places 12, 5 and 0. Eight of them at once do
 * the same, once the upper four have come back among the lower four, where the first of these takes
 * them. */
static inline uint16_t hf__crc16(const char *bytes, size_t count)
{
    uint32_t crc = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t top = crc >> 8 ^ (unsigned char)bytes[i];
        top ^= top >> 4;
        crc = (crc << 8 ^ top << 12 ^ top << 5 ^ top) & 0xffffu;
    }
    return (uint16_t)crc;
}

#endif
