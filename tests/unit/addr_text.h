/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses from text, and to text. */
#ifndef ADDR_TEXT_H
#define ADDR_TEXT_H

#include "harness.h"

#include <stdlib.h>
#include <string.h>

static inline blz_addr parsed(const char *text)
{
    blz_addr addr;

    if (blz_addr_parse(&addr, text) != 0)
        fail_msg("not an address: %s", text);
    return addr;
}

static inline const char *text_of(const blz_addr *addr)
{
    static char text[BLZ_ADDR_TEXT];
    int len = blz_addr_format(addr, text, sizeof text);

    assert_int_equal(len, strlen(text));
    assert_int_equal(blz_addr_format(addr, NULL, 0), len);
    return text;
}

/* Parses from memory that ends where the text does, so that a look behind it is noticed. */
static inline int parse_exactly(blz_addr *addr, const char *text, size_t len)
{
    char *copy = malloc(len);
    int rc;

    if (len > 0)
        memcpy(copy, text, len);
    rc = blz_addr_parse_n(addr, copy, len);
    free(copy);
    return rc;
}

#endif
