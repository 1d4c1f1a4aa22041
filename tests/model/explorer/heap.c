/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of the code under test: model_alloc and model_free.
 *
 * One arena, handed out upwards and taken back as a whole when the execution ends. So addresses
 * are the same in each execution, no memory is reused within one, and an access to freed memory
 * is recognised for certain: by the atomic operations, by the annotations, and by the address
 * sanitizer, which is told what is free. Fresh memory holds 0xA5 and freed memory 0xDD, so that
 * what else reads them fails soon.
 */
#include "explorer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef MODEL_ASAN
#include <sanitizer/asan_interface.h>
#else
#define __asan_poison_memory_region(p, n)   ((void)(p), (void)(n))
#define __asan_unpoison_memory_region(p, n) ((void)(p), (void)(n))
#endif

#define ARENA_SIZE ((size_t)256 << 20)
#define MAX_BLOCKS 65536
#define RED_ZONE   16 /* between blocks: an overrun by one is not in the next block */

struct block {
    uintptr_t address;
    size_t size;
    int step; /* of the allocation, for the report */
    uint8_t thread;
    bool freed;
    uint8_t freed_by;
    int freed_step;
};

static struct {
    char *memory;
    size_t used;
    int32_t count;
    int32_t live;
    struct block blocks[MAX_BLOCKS];
} arena;

static void arena_map(void)
{
    arena.memory = mmap(NULL, ARENA_SIZE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (arena.memory == MAP_FAILED) {
        perror("model: no memory for the arena");
        exit(2);
    }
    __asan_poison_memory_region(arena.memory, ARENA_SIZE);
}

/* Also beyond what is handed out: nothing else lies there, so it is an overrun. */
static bool arena_holds(uintptr_t address)
{
    return arena.count > 0 && address - (uintptr_t)arena.memory < ARENA_SIZE;
}

void model__heap_reset(void)
{
    if (arena.used > 0)
        __asan_poison_memory_region(arena.memory, arena.used);
    arena.used = 0;
    arena.count = 0;
    arena.live = 0;
}

static void *arena_alloc(size_t size, size_t alignment)
{
    uintptr_t base = (uintptr_t)arena.memory;
    uintptr_t address = (base + arena.used + RED_ZONE + alignment - 1) & ~(alignment - 1);

    if (arena.count == MAX_BLOCKS || size > ARENA_SIZE || address + size - base > ARENA_SIZE)
        return NULL;
    arena.used = address + size - base;
    arena.blocks[arena.count++] = (struct block){.address = address,
                                                 .size = size,
                                                 .step = model__run.step,
                                                 .thread = (uint8_t)model_thread_id()};
    arena.live++;
    return (void *)address;
}

void *model_alloc(size_t size, size_t alignment)
{
    if (alignment < 16)
        alignment = 16;
    if (size == 0)
        size = 1;
    if (!model__run.active)
        return aligned_alloc(alignment, (size + alignment - 1) & ~(alignment - 1));
    if (arena.memory == NULL)
        arena_map();
    void *memory = arena_alloc(size, alignment);
    if (memory == NULL)
        return NULL;
    __asan_unpoison_memory_region(memory, size);
    memset(memory, 0xA5, size);
    struct trace_event *event = model__trace(model__run.self, TRACE_ALLOC);
    event->value = size;
    event->location = (uint32_t)(arena.count - 1);
    return memory;
}

/* Blocks lie in ascending order: the last one that begins at or below the address, or the first. */
int32_t model__heap_block(uintptr_t address)
{
    if (!arena_holds(address))
        return -1;
    int32_t low = 0, high = arena.count;
    while (high - low > 1) {
        int32_t middle = (low + high) / 2;
        if (arena.blocks[middle].address <= address)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void model__heap_check(int32_t index, uintptr_t address)
{
    const struct block *block = &arena.blocks[index];

    if (unlikely(block->freed))
        model_fail("use after free: block %d of %zu bytes, allocated by thread %d at step %d, was "
                   "freed by thread %d at step %d and is accessed by thread %u",
                   index, block->size, block->thread, block->step, block->freed_by,
                   block->freed_step, model_thread_id());
    if (unlikely(address - block->address >= block->size))
        model_fail("access outside of block %d of %zu bytes", index, block->size);
}

void model_free(void *memory)
{
    uintptr_t address = (uintptr_t)memory;

    if (memory == NULL)
        return;
    if (!model__run.active || !arena_holds(address)) {
        if (model__run.active)
            model_fail("model_free of memory that is not of this execution");
        if (!arena_holds(address))
            free(memory);
        return;
    }
    int32_t index = model__heap_block(address);
    struct block *block = &arena.blocks[index];
    if (block->address != address)
        model_fail("model_free of an address inside block %d", index);
    if (block->freed)
        model_fail("double free: block %d of %zu bytes was freed by thread %d at step %d and is "
                   "freed again by thread %u",
                   index, block->size, block->freed_by, block->freed_step, model_thread_id());
    block->freed = true;
    block->freed_by = (uint8_t)model_thread_id();
    block->freed_step = model__run.step;
    arena.live--;
    struct trace_event *event = model__trace(model__run.self, TRACE_FREE);
    event->value = block->size;
    event->location = (uint32_t)index;
    memset(memory, 0xDD, block->size);
    __asan_poison_memory_region(memory, block->size);
}

void model__heap_check_leaks(void)
{
    if (arena.live == 0 || model__run.options.allow_leaks)
        return;
    for (int32_t index = 0; index < arena.count; index++) {
        const struct block *block = &arena.blocks[index];
        if (!block->freed)
            model_fail("leak: block %d of %zu bytes, allocated by thread %d at step %d, was never "
                       "freed (%d leaked in all)",
                       index, block->size, block->thread, block->step, arena.live);
    }
}
