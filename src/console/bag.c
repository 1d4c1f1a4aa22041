/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte strings that are kept once each; see snapshot.h. Open addressing, at most two thirds full.
 */
#include "base/alloc.h"
#include "console/snapshot.h"

#include <string.h>

static uint64_t hash_of(const unsigned char *bytes, size_t len)
{
    uint64_t h = 0x9e3779b97f4a7c15u ^ len, word;

    for (; len >= 8; bytes += 8, len -= 8) {
        memcpy(&word, bytes, 8);
        h = (h ^ word) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    for (; len > 0; bytes++, len--)
        h = (h ^ *bytes) * 0x100000001b3u;
    h *= 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 29;
}

static bool grow_items(struct bag *bag)
{
    uint32_t max = bag->max_items ? bag->max_items * 2 : 64;
    struct bag_item *items = blz__alloc(bag->allocator, max * sizeof *items, _Alignof(uint64_t));

    if (!items)
        return false;
    if (bag->items) {
        memcpy(items, bag->items, bag->count * sizeof *items);
        blz__free(bag->allocator, bag->items, bag->max_items * sizeof *items, _Alignof(uint64_t));
    }
    bag->items = items;
    bag->max_items = max;
    return true;
}

/* Where the item is, or would be. */
static uint32_t *find(const struct bag *bag, uint64_t hash, const void *bytes, size_t len)
{
    for (uint32_t i = (uint32_t)hash;; i++) {
        uint32_t *slot = &bag->table[i & (bag->table_size - 1)];
        const struct bag_item *item = *slot ? &bag->items[*slot - 1] : NULL;

        if (!item || (item->hash == hash && item->len == len &&
                      (len == 0 || memcmp(bag->bytes.data + item->at, bytes, len) == 0)))
            return slot;
    }
}

static bool grow_table(struct bag *bag)
{
    uint32_t size = bag->table_size ? bag->table_size * 2 : 128;
    uint32_t *table = blz__alloc(bag->allocator, size * sizeof *table, _Alignof(uint32_t));

    if (!table)
        return false;
    memset(table, 0, size * sizeof *table);
    for (uint32_t n = 0; n < bag->count; n++) {
        uint32_t i = (uint32_t)bag->items[n].hash;
        while (table[i & (size - 1)])
            i++;
        table[i & (size - 1)] = n + 1;
    }
    if (bag->table)
        blz__free(bag->allocator, bag->table, bag->table_size * sizeof *table, _Alignof(uint32_t));
    bag->table = table;
    bag->table_size = size;
    return true;
}

static bool has_room(struct bag *bag)
{
    if (bag->failed)
        return false;
    if (bag->count == bag->max_items && !grow_items(bag))
        return false;
    return bag->count * 3 < bag->table_size * 2 || grow_table(bag);
}

uint32_t blz__bag_add(struct bag *bag, const void *bytes, size_t len, bool *fresh)
{
    uint64_t hash = hash_of(bytes, len);
    uint32_t *slot;

    *fresh = false;
    if (!has_room(bag)) {
        bag->failed = true;
        return UINT32_MAX;
    }
    slot = find(bag, hash, bytes, len);
    if (*slot)
        return *slot - 1;
    bag->items[bag->count] =
        (struct bag_item){.hash = hash, .at = bag->bytes.len, .len = (uint32_t)len};
    blz__text_add(&bag->bytes, bytes, len);
    if (bag->bytes.failed) {
        bag->failed = true;
        return UINT32_MAX;
    }
    *slot = ++bag->count;
    *fresh = true;
    return bag->count - 1;
}

void blz__bag_clear(struct bag *bag)
{
    bag->count = 0;
    bag->failed = false;
    text_clear(&bag->bytes);
    if (bag->table)
        memset(bag->table, 0, bag->table_size * sizeof *bag->table);
}

void blz__bag_free(struct bag *bag)
{
    if (bag->items)
        blz__free(bag->allocator, bag->items, bag->max_items * sizeof *bag->items,
                  _Alignof(uint64_t));
    if (bag->table)
        blz__free(bag->allocator, bag->table, bag->table_size * sizeof *bag->table,
                  _Alignof(uint32_t));
    blz__text_free(&bag->bytes);
    *bag = (struct bag){.allocator = bag->allocator, .bytes.allocator = bag->allocator};
}
