/* SPDX-License-Identifier: Apache-2.0 */
/* What is sorted: keys with their places before the sort. */
#ifndef PAR_ITEMS_H
#define PAR_ITEMS_H

#include "par.h"

#include <stdlib.h>

typedef struct item {
    uint32_t key, place;
} item;

static inline uint64_t *values_of(size_t n, int pattern)
{
    uint64_t *v = malloc((n + 1) * sizeof *v);

    check(v);
    fill_pattern(v, n, pattern);
    return v;
}

static inline item *items_of(size_t n, int pattern)
{
    uint64_t *v = values_of(n, pattern);
    item *items = malloc((n + 1) * sizeof *items);

    check(items);
    for (size_t i = 0; i < n; i++)
        items[i] = (item){(uint32_t)v[i], (uint32_t)i};
    free(v);
    return items;
}

/* The same if each element is still there once, in any order: a sum that knows each of them. */
static inline uint64_t sum_of(const item *v, size_t n)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += mix((uint64_t)v[i].key << 32 | v[i].place);
    return sum;
}

#endif
