/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of addresses: arrays that grow. They carry their allocator, and may outlive a runtime. */
#include <blitz/dns.h>

#include "base/alloc.h"

#include <blitz/error.h>
#include <string.h>

enum { FIRST_CAPACITY = 8 };

static const blz_allocator *allocator_of(const blz_addrs *addrs)
{
    return addrs->allocator.alloc ? &addrs->allocator : &blz__system_allocator;
}

static blz_addr *new_items(const blz_addrs *addrs, size_t capacity)
{
    if (capacity > SIZE_MAX / sizeof(blz_addr))
        return NULL;
    return blz__alloc(allocator_of(addrs), capacity * sizeof(blz_addr), _Alignof(blz_addr));
}

/* Replaces the array. */
static void set_items(blz_addrs *addrs, blz_addr *items, size_t capacity)
{
    if (addrs->items)
        blz__free(allocator_of(addrs), addrs->items, addrs->capacity * sizeof(blz_addr),
                  _Alignof(blz_addr));
    addrs->items = items;
    addrs->capacity = capacity;
}

void blz_addrs_init(blz_addrs *addrs, const blz_allocator *allocator)
{
    *addrs = (blz_addrs){.items = NULL};
    if (allocator)
        addrs->allocator = *allocator;
}

int blz_addrs_push(blz_addrs *addrs, const blz_addr *addr)
{
    if (addrs->count == addrs->capacity) {
        size_t capacity = addrs->capacity ? 2 * addrs->capacity : FIRST_CAPACITY;
        blz_addr *items = new_items(addrs, capacity), copy = *addr; /* perhaps one of the list */
        if (!items)
            return -ENOMEM;
        if (addrs->count > 0)
            memcpy(items, addrs->items, addrs->count * sizeof *items);
        set_items(addrs, items, capacity);
        items[addrs->count++] = copy;
        return 0;
    }
    addrs->items[addrs->count++] = *addr;
    return 0;
}

void blz_addrs_free(blz_addrs *addrs)
{
    set_items(addrs, NULL, 0);
    addrs->count = 0;
}

/* The next from `at` on whose being of the family is `wanted`, or the end. */
static size_t find(const blz_addrs *addrs, size_t at, int family, bool wanted)
{
    while (at < addrs->count && (blz_addr_family(&addrs->items[at]) == family) != wanted)
        at++;
    return at;
}

int blz_addrs_interleave(blz_addrs *addrs, int first)
{
    size_t count = addrs->count, next[2]; /* [1]: of the first family, [0]: of the others */
    bool turn = true;
    blz_addr *items;

    if (count < 2)
        return 0;
    items = new_items(addrs, count);
    if (!items)
        return -ENOMEM;
    if (first == BLZ_ADDR_NONE)
        first = blz_addr_family(&addrs->items[0]);
    next[true] = find(addrs, 0, first, true);
    next[false] = find(addrs, 0, first, false);
    for (size_t i = 0; i < count; i++, turn = !turn) {
        if (next[turn] == count)
            turn = !turn; /* no more of these */
        items[i] = addrs->items[next[turn]];
        next[turn] = find(addrs, next[turn] + 1, first, turn);
    }
    set_items(addrs, items, count);
    return 0;
}
