/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses that can be told apart. */
#ifndef ADDR_NUMBERS_H
#define ADDR_NUMBERS_H

#include "harness.h"

/* Numbered from 0, so that the order can be checked. */
static inline blz_addr numbered(int family, int number)
{
    uint8_t ip[16] = {10, (uint8_t)(number >> 16), (uint8_t)(number >> 8), (uint8_t)number};

    return family == BLZ_ADDR_V4 ? blz_addr_v4(ip, 0) : blz_addr_v6(ip, 0, 0);
}

#endif
