/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking at futures: what a future that waits tells about what it waits for. The console
 * (blitz/console.h) asks every future of a task that waits; a future of your own that waits for
 * something that has a name should say so:
 *
 *     static void door_describe(const blz_future *self, blz_wait_info *info)
 *     {
 *         info->kind = "door";
 *         info->object = ((const struct door_wait *)self)->door;
 *     }
 *     static const blz_future_ops door_ops = {
 *         .name = "door", .poll = door_poll, .cancel = door_cancel,
 *         .describe_wait = door_describe};
 *
 * The function is called while nobody polls the task, by any thread, under a lock of the library:
 * it reads the future's own fields, and those of others only by atomic operations; it does not
 * allocate, wake or wait.
 */
#ifndef BLITZ_WAIT_INFO_H
#define BLITZ_WAIT_INFO_H

#include <blitz/future.h>

BLZ_BEGIN_DECLS

/* All zero, but for `fd`, which is -1, when it is handed to the function. */
typedef struct blz_wait_info {
    const char *kind;   /* of what it waits for: "mutex", "channel", "socket"; static storage */
    const void *object; /* which one: futures that wait for the same have the same here */
    uint64_t holder;    /* the task that it waits for, by its number (blz_task_id); 0: unknown */
    uint32_t holder32;  /* the same, where only the lower half of the number is kept */
    blz_sysfd fd;       /* the descriptor that it waits for */
    int64_t due_ns;     /* when it ends by itself; 0: it does not */

    /* The futures that it awaits, if they are several: those with a bit in `live`. */
    blz_future *const *branches;
    uint64_t live;
    uint32_t nr_branches;
    bool any; /* it may end before what it awaits does: a select, a limit */
    uint64_t reserved[4];
} blz_wait_info;

BLZ_END_DECLS
#endif
