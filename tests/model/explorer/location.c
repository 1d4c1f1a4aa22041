/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From addresses to what is known of them.
 *
 * A location is a piece of memory that atomic operations touch; a plain record is one that the code
 * under test has annotated. Both are found in a hash table by address and numbered in order of
 * first touch, so nothing depends on where the allocator puts things. A table is emptied by moving
 * its generation on.
 *
 * The memory itself always holds the newest value. Where it differs from the newest store in the
 * history, somebody has written it plainly, as initialisation does: the location then begins a new
 * life with that value, visible to all.
 */
#include "explorer.h"

#include <string.h>

#define TABLE_SIZE (4 * MAX_LOCATIONS) /* a power of two */

struct table_slot {
    uint32_t generation;
    uint32_t index;
};

struct table {
    uint32_t generation;
    uint32_t used;
    struct table_slot slots[TABLE_SIZE];
};

static struct table location_table = {.generation = 1};
static struct table plain_table = {.generation = 1};
static struct location locations[MAX_LOCATIONS];
static struct plain plains[MAX_LOCATIONS];

uint64_t model__memory_read(const volatile void *address, size_t size)
{
    switch (size) {
    case 1:
        return *(const volatile uint8_t *)address;
    case 2:
        return *(const volatile uint16_t *)address;
    case 4:
        return *(const volatile uint32_t *)address;
    default:
        return *(const volatile uint64_t *)address;
    }
}

void model__memory_write(volatile void *address, size_t size, uint64_t value)
{
    switch (size) {
    case 1:
        *(volatile uint8_t *)address = (uint8_t)value;
        break;
    case 2:
        *(volatile uint16_t *)address = (uint16_t)value;
        break;
    case 4:
        *(volatile uint32_t *)address = (uint32_t)value;
        break;
    default:
        *(volatile uint64_t *)address = value;
        break;
    }
}

static void table_reset(struct table *table)
{
    table->generation++;
    table->used = 0;
}

void model__locations_reset(void)
{
    table_reset(&location_table);
    table_reset(&plain_table);
}

const char *model__location_name(uint32_t number)
{
    return locations[number].what;
}

/* The first slot to look at. Neighbours within eight bytes share it: see overlaps_another. */
static uint32_t hash_of(uintptr_t address)
{
    return (uint32_t)(((uint64_t)(address >> 3) * 0x9E3779B97F4A7C15u) >> 40) & (TABLE_SIZE - 1);
}

/* A new index in the free slot. */
static uint32_t table_add(struct table *table, uint32_t slot)
{
    if (table->used == MAX_LOCATIONS)
        model_fail("more than %d locations in one execution", MAX_LOCATIONS);
    table->slots[slot] = (struct table_slot){table->generation, table->used};
    return table->used++;
}

/* True if memory that another location covers is now accessed as something else. */
static bool overlaps_another(uintptr_t address, size_t size)
{
    for (uint32_t at = hash_of(address);; at = (at + 1) & (TABLE_SIZE - 1)) {
        const struct table_slot *slot = &location_table.slots[at];

        if (slot->generation != location_table.generation)
            return false;
        struct location *other = &locations[slot->index];
        if (other->live && address < other->address + other->size &&
            other->address < address + size)
            return true;
    }
}

static bool on_a_stack(uintptr_t address)
{
    for (int id = 0; id < MODEL_MAX_THREADS; id++)
        if (model__fibre_owns(&model__run.threads[id].fibre, address))
            return true;
    return false;
}

static void location_begin(struct location *location, size_t size)
{
    struct store *initial = &location->stores[0];

    location->size = (uint8_t)size;
    location->live = true;
    location->newest = location->oldest = 0;
    memset(initial, 0, sizeof *initial);
    initial->value = model__memory_read((const void *)location->address, size);
    initial->seen = (clock_vector){0} + NEVER;
}

/* Stack frames come and go, and what lies there changes its type; elsewhere that is an error. */
static void location_resize(struct location *location, size_t size)
{
    if (!on_a_stack(location->address))
        model_fail("location %u is accessed as %zu bytes, and was as %d", location->number, size,
                   location->size);
    location->live = false;
}

static struct location *location_new(uint32_t slot, uintptr_t address, size_t size)
{
    if (!on_a_stack(address) && overlaps_another(address, size))
        model_fail("an access to %zu bytes overlaps another location", size);
    uint32_t index = table_add(&location_table, slot);
    struct location *location = &locations[index];

    location->address = address;
    location->number = index;
    location->what = "";
    location->live = false;
    location->trail = 0;
    location->block = model__heap_block(address);
    return location;
}

static struct location *location_find(uintptr_t address, size_t size)
{
    for (uint32_t at = hash_of(address);; at = (at + 1) & (TABLE_SIZE - 1)) {
        const struct table_slot *slot = &location_table.slots[at];

        if (slot->generation != location_table.generation)
            return location_new(at, address, size);
        if (locations[slot->index].address == address)
            return &locations[slot->index];
    }
}

struct location *model__location(const volatile void *memory, size_t size)
{
    struct location *location = location_find((uintptr_t)memory, size);

    if (location->block >= 0)
        model__heap_check(location->block, location->address);
    if (unlikely(location->live && location->size != size))
        location_resize(location, size);
    if (!location->live || newest_store(location)->value != model__memory_read(memory, size))
        location_begin(location, size);
    return location;
}

struct plain *model__plain(const volatile void *memory)
{
    uintptr_t address = (uintptr_t)memory;
    uint32_t at = hash_of(address);

    while (plain_table.slots[at].generation == plain_table.generation &&
           plains[plain_table.slots[at].index].address != address)
        at = (at + 1) & (TABLE_SIZE - 1);
    if (plain_table.slots[at].generation != plain_table.generation) {
        struct plain *plain = &plains[table_add(&plain_table, at)];
        *plain = (struct plain){.address = address, .block = model__heap_block(address)};
    }
    struct plain *plain = &plains[plain_table.slots[at].index];
    if (plain->block >= 0)
        model__heap_check(plain->block, address);
    if (!plain->live)
        *plain =
            (struct plain){.address = address, .block = plain->block, .live = true, .writer = -1};
    return plain;
}

void model_forget(const volatile void *memory, size_t size)
{
    for (uint32_t i = 0; i < location_table.used; i++)
        if (locations[i].address - (uintptr_t)memory < size)
            locations[i].live = false;
    for (uint32_t i = 0; i < plain_table.used; i++)
        if (plains[i].address - (uintptr_t)memory < size)
            plains[i].live = false;
}
