/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that each await one future, on a runtime that the test turns by hand: who is through, in
 * which order, and with what.
 *
 *     struct in_line a, b;
 *     begin_line();
 *     join_line(&a, blz_semaphore_acquire(&ops[0], &semaphore, 1));
 *     join_line(&b, blz_semaphore_acquire(&ops[1], &semaphore, 1));
 *     blz_ignore(blz_semaphore_release(&semaphore, 1));
 *     assert_int_equal(outcome_of(&a), 0);
 *     assert_true(is_waiting(&b));
 *     ...
 *     end_line();
 */
#ifndef IN_LINE_H
#define IN_LINE_H

#include "harness.h"

static blz_rt *line_rt;
static int64_t line_turns;

struct in_line {
    blz_handle handle;
    int64_t turn; /* the how manieth to be through; 0: not yet */
};

struct stands_in_line {
    BLZ_FRAME;
    blz_future *future;
    struct in_line *who;
    int64_t rc;
};

BLZ_ASYNC(stands_in_line)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, self->future);
    self->who->turn = ++line_turns;
    BLZ_END(self->rc);
}

static inline void begin_line(void)
{
    line_rt = new_embedded_rt();
    line_turns = 0;
}

static inline void end_line(void)
{
    free_rt(line_rt);
}

/* Without a turn: it has not been polled. */
static inline void spawn_line(struct in_line *who, blz_future *future)
{
    who->turn = 0;
    assert_int_equal(BLZ_SPAWN_ON(line_rt, &who->handle, stands_in_line, .future = future,
                                  .who = who),
                     0);
}

static inline void join_line(struct in_line *who, blz_future *future)
{
    spawn_line(who, future);
    turn_all(line_rt);
}

static inline bool is_waiting(struct in_line *who)
{
    turn_all(line_rt);
    return !blz_handle_done(&who->handle);
}

static inline int64_t outcome_of(struct in_line *who)
{
    assert_false(is_waiting(who));
    assert_int_equal(blz_handle_wait(&who->handle), 0);
    return who->handle.result;
}

/* Cancels it, and gives what became of it. */
static inline int64_t outcome_of_cancel(struct in_line *who)
{
    blz_handle_cancel(&who->handle);
    return outcome_of(who);
}

#endif
