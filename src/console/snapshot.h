/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot: all tasks of a runtime, each as it was when the walk came by.
 *
 * With 100,000 tasks there are few different names and backtraces, so these are kept once each
 * (struct bag) and written as JSON once each; a row has numbers of them. So a row is 64 bytes, and
 * to filter by text looks at each text once.
 */
#ifndef BLZ_CONSOLE_SNAPSHOT_H
#define BLZ_CONSOLE_SNAPSHOT_H

#include "console/text.h"
#include "observe/observe.h"

#include <blitz/async.h>

/* Different byte strings, numbered from 0. */
struct bag {
    const blz_allocator *allocator;
    struct text bytes;
    struct bag_item *items;
    uint32_t *table; /* number + 1, by hash; 0: free */
    uint32_t count, max_items, table_size;
    bool failed;
};

struct bag_item {
    uint64_t hash;
    size_t at; /* in bytes */
    uint32_t len;
};

/* The number of the bytes; *fresh: they were not there before. UINT32_MAX: no memory. */
uint32_t blz__bag_add(struct bag *bag, const void *bytes, size_t len, bool *fresh);
void blz__bag_clear(struct bag *bag);
void blz__bag_free(struct bag *bag);

static inline const char *bag_get(const struct bag *bag, uint32_t i, size_t *len)
{
    *len = bag->items[i].len;
    return bag->bytes.data ? bag->bytes.data + bag->items[i].at : "";
}

struct row {
    uint64_t id;
    int64_t since_ns;
    uint64_t busy_ns;
    uint32_t polls;
    uint32_t name, origin, stack; /* of the bags */
    uint32_t first_wait;
    uint8_t nr_waits;
    uint8_t state;
    bool cancelled;
    int16_t worker;
};

struct wait {
    uint64_t id; /* of the task that waits */
    uint64_t holder;
    uintptr_t object;
    int64_t due_ns;
    uint32_t kind; /* of names */
    uint32_t holder32;
    uint32_t row;
    int fd;
    bool optional;
};

/* A stack as it is shown. */
struct stack_text {
    size_t json_at, json_len; /* in snapshot.stack_json */
};

struct snapshot {
    const blz_allocator *allocator;
    int64_t taken_ns, took_ns; /* when it was complete; how long that took */
    uint64_t number;           /* of snapshots, from 1; 0: none yet */
    bool failed;               /* there was no memory, or the runtime has ended meanwhile */
    struct row *rows;
    struct wait *waits;
    size_t nr_rows, max_rows, nr_waits, max_waits;
    size_t nr_state[3], nr_cancelled;
    struct bag names;  /* of tasks, functions and kinds */
    struct bag stacks; /* as struct observed_frame */
    struct text stack_json;
    struct stack_text *stack_texts; /* of each stack */
    size_t max_stack_texts;
    uint32_t *index; /* rows + 1, by the lower half of their numbers; 0: free */
    size_t index_size;
};

void blz__snapshot_init(struct snapshot *snapshot, const blz_allocator *allocator);
void blz__snapshot_free(struct snapshot *snapshot);

struct target;

/*
 * Takes one, in place of the old one, letting others run now and then. 0; -ENOMEM; -ESHUTDOWN: the
 * runtime has ended.
 */
struct blz__snapshot_take {
    BLZ_FRAME;
    struct target *target;
    struct observed_task *tasks;
    int64_t began_ns;
    int64_t rc;
    bool more;
    blz_future yield;
};
BLZ_DECLARE_EXTERN(blz__snapshot_take);

/*
 * The row of a task by its number, or, if that is 0, by the lower half of it, unless that is 0,
 * too. NULL: it is not there.
 */
const struct row *blz__snapshot_find(const struct snapshot *snapshot, uint64_t id, uint32_t half);

/* {"id":7,"name":"echo"} */
void blz__snapshot_write_task(const struct snapshot *snapshot, struct text *out,
                              const struct row *row);

#endif
