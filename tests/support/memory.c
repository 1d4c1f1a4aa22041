/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocator of memory.h. What is known of a block is kept behind it, because in front there is
 * no room when a block is aligned to 64 KiB.
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

struct trailer {
    uint64_t magic;
    uint64_t size;
    uint64_t align;
};

enum { RUBBISH = 0xa5, GONE = 0xdd };

static uint64_t magic_of(const void *ptr)
{
    return (uint64_t)(uintptr_t)ptr ^ 0x6d656d6f7279u;
}

static bool fails_now(struct memory *m)
{
    int64_t call = __atomic_add_fetch(&m->calls, 1, __ATOMIC_RELAXED);
    int64_t fail_at = __atomic_load_n(&m->fail_at, __ATOMIC_RELAXED);

    if (fail_at == 0 || call < fail_at || (call > fail_at && !m->fail_on))
        return false;
    __atomic_store_n(&m->failed, true, __ATOMIC_RELAXED);
    return true;
}

static void note_peak(struct memory *m, int64_t bytes)
{
    int64_t peak = __atomic_load_n(&m->peak_bytes, __ATOMIC_RELAXED);

    while (bytes > peak && !__atomic_compare_exchange_n(&m->peak_bytes, &peak, bytes, true,
                                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static void *counted_alloc(size_t size, size_t align, void *ctx)
{
    struct memory *m = ctx;
    struct trailer trailer = {.size = size, .align = align};
    size_t at_least = align < 16 ? 16 : align, total = size + sizeof trailer;
    char *ptr;

    check(align != 0 && (align & (align - 1)) == 0);
    if (fails_now(m))
        return NULL;
    ptr = aligned_alloc(at_least, (total + at_least - 1) & ~(at_least - 1));
    if (!ptr)
        return NULL;
    trailer.magic = magic_of(ptr);
    memset(ptr, RUBBISH, size);
    memcpy(ptr + size, &trailer, sizeof trailer);
    __atomic_fetch_add(&m->blocks, 1, __ATOMIC_RELAXED);
    note_peak(m, __atomic_add_fetch(&m->bytes, (int64_t)size, __ATOMIC_RELAXED));
    return ptr;
}

static void counted_free(void *ptr, size_t size, size_t align, void *ctx)
{
    struct memory *m = ctx;
    struct trailer trailer;

    check(ptr != NULL);
    memcpy(&trailer, (char *)ptr + size, sizeof trailer);
    check(trailer.magic == magic_of(ptr)); /* not ours, freed before, or of another size */
    check(trailer.size == size);
    check(trailer.align == align);
    memset(ptr, GONE, size + sizeof trailer);
    __atomic_fetch_sub(&m->blocks, 1, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&m->bytes, (int64_t)size, __ATOMIC_RELAXED);
    free(ptr);
}

void memory_init(struct memory *m)
{
    *m = (struct memory){.allocator = {.alloc = counted_alloc, .free = counted_free, .ctx = m}};
}

void memory_fail_at(struct memory *m, int64_t n, bool all)
{
    m->fail_on = all;
    m->failed = false;
    __atomic_store_n(&m->fail_at, n ? m->calls + n : 0, __ATOMIC_RELAXED);
}

int64_t memory_blocks(const struct memory *m)
{
    return __atomic_load_n(&m->blocks, __ATOMIC_RELAXED);
}

int64_t memory_bytes(const struct memory *m)
{
    return __atomic_load_n(&m->bytes, __ATOMIC_RELAXED);
}

struct memory *the_memory(void)
{
    static struct memory m;

    if (!m.allocator.alloc)
        memory_init(&m);
    return &m;
}

const blz_allocator *test_memory(void)
{
    return &the_memory()->allocator;
}
