/* SPDX-License-Identifier: MIT */
/* CRC-16/XMODEM (polynomial 0x1021, start 0), by which a Redis cluster maps keys to slots. */
#ifndef HF_CORE_CRC16_H
#define HF_CORE_CRC16_H

#include <stddef.h>
#include <stdint.h>

static inline uint16_t hf__crc16(const char *bytes, size_t count)
{
    uint32_t crc = 0;
    for (size_t i = 0; i < count; i++) {
        crc ^= (uint32_t)(unsigned char)bytes[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 0x8000u) != 0 ? (crc << 1) ^ 0x1021u : crc << 1;
        crc &= 0xffffu;
    }
    return (uint16_t)crc;
}

#endif
