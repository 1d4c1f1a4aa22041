/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate of a shutdown: those who enter and leave against the runner, who goes through the
 * phases. When a phase is done nobody is inside, nobody gets in any more, and what was done inside
 * is seen; the memory is freed once, by the owner or by the last to leave.
 */
#include "shutdown/gate.h"

#include "support/hand_polled.h"

/* What the gate is part of. */
struct shutdown {
    shutdown_gate gate;
    uint32_t rest[2]; /* plain: who is inside uses it */
};

static struct shutdown *shutdown;
static shutdown_gate *gate;
static uint32_t work[2];  /* plain: each is written by one thread */
static int results[2];    /* of entering */
static uint32_t nr_freed; /* plain */

static void begin(void)
{
    shutdown = model_alloc(sizeof *shutdown, _Alignof(struct shutdown));
    gate = &shutdown->gate;
    blz__gate_init(gate);
    nr_freed = 0;
    for (int i = 0; i < 2; i++) {
        work[i] = 0;
        results[i] = 1;
    }
}

static void free_gate(void)
{
    blz__plain_write(&nr_freed);
    nr_freed++;
    for (int i = 0; i < 2; i++)
        blz__plain_write(&shutdown->rest[i]);
    model_free(shutdown);
}

static void do_work(int i)
{
    blz__plain_write(&shutdown->rest[i]);
    blz__plain_write(&work[i]);
    work[i]++;
}

static void leave(uint64_t one)
{
    if (blz__gate_leave(gate, one))
        free_gate();
}

static void enter_and_leave(void *arg)
{
    int i = (int)(uintptr_t)arg;

    results[i] = blz__gate_enter(gate, GATE_WORKER);
    if (results[i] == 0) {
        do_work(i);
        leave(GATE_WORKER);
    }
}

/* Was counted before it began. */
static void work_and_leave(void *arg)
{
    do_work((int)(uintptr_t)arg);
    leave(GATE_WORKER);
}

static void accept_and_leave(void *arg)
{
    do_work((int)(uintptr_t)arg);
    leave(GATE_ACCEPTOR);
}

/* Work that makes more work. */
static void work_and_pass_on(void *arg)
{
    (void)arg;
    model_assert(blz__gate_enter_again(gate, GATE_WORKER) == 0);
    do_work(0);
    leave(GATE_WORKER);
    do_work(1);
    leave(GATE_WORKER);
}

static void hurry(void *arg)
{
    (void)arg;
    blz__gate_ask(gate, true);
}

static void await_done(int phase)
{
    gate_wait wait;
    hand_polled hand;

    hand_begin(&hand);
    blz__gate_advance(gate, phase);
    model_assert(hand_await(&hand, blz__gate_wait(&wait, gate)) == 0);
    hand_end(&hand);
}

static void check_work(int i, uint32_t expected)
{
    blz__plain_read(&work[i]);
    model_assert(work[i] == expected);
}

/* ---- models ---- */

static void who_gets_in_is_waited_for(void)
{
    begin();
    model_thread a = model_start_named(enter_and_leave, (void *)0, "worker");
    await_done(BLZ_SHUTDOWN_DRAINING);
    gate_view view = blz__gate_look(gate);
    model_assert(!(view.word & GATE_INSIDE) && view.wanted == 0);
    blz__plain_read(&work[0]);
    uint32_t done = work[0];
    model_join(a);
    model_assert(done == (results[0] == 0));
    model_assert(results[0] == 0 || results[0] == -ESHUTDOWN);
    model_assert(blz__gate_enter(gate, GATE_WORKER) == -ESHUTDOWN);
    model_assert(blz__gate_disown(gate));
    free_gate();
}

static void what_was_done_inside_is_seen(void)
{
    begin();
    model_assert(blz__gate_enter(gate, GATE_WORKER) == 0);
    model_assert(blz__gate_enter(gate, GATE_WORKER) == 0);
    model_thread a = model_start_named(work_and_leave, (void *)0, "worker");
    model_thread b = model_start_named(work_and_leave, (void *)1, "worker");
    await_done(BLZ_SHUTDOWN_DRAINING);
    check_work(0, 1);
    check_work(1, 1);
    model_assert(blz__gate_disown(gate)); /* though those who left may not have returned */
    free_gate();
    model_join(a);
    model_join(b);
}

static void work_that_makes_more_is_waited_for(void)
{
    begin();
    model_assert(blz__gate_enter(gate, GATE_WORKER) == 0);
    model_thread a = model_start_named(work_and_pass_on, NULL, "worker");
    await_done(BLZ_SHUTDOWN_DRAINING);
    check_work(0, 1);
    check_work(1, 1);
    model_assert(blz__gate_disown(gate));
    free_gate();
    model_join(a);
}

static void acceptors_go_first(void)
{
    begin();
    model_assert(blz__gate_enter(gate, GATE_ACCEPTOR) == 0);
    model_assert(blz__gate_enter(gate, GATE_WORKER) == 0); /* and stays */
    model_thread a = model_start_named(accept_and_leave, (void *)0, "acceptor");
    await_done(BLZ_SHUTDOWN_STOPPING);
    check_work(0, 1);
    model_assert(gate_working(blz__gate_look(gate).word) == 1);
    model_assert(blz__gate_enter(gate, GATE_ACCEPTOR) == -ESHUTDOWN);
    model_join(a);
    leave(GATE_WORKER);
    model_assert(blz__gate_disown(gate));
    free_gate();
}

static void the_last_of_all_frees(void)
{
    begin();
    model_assert(blz__gate_enter(gate, GATE_WORKER) == 0);
    model_assert(blz__gate_enter(gate, GATE_WORKER) == 0);
    model_thread a = model_start_named(work_and_leave, (void *)0, "worker");
    model_thread b = model_start_named(work_and_leave, (void *)1, "worker");
    if (blz__gate_disown(gate))
        free_gate();
    model_join(a);
    model_join(b);
    blz__plain_read(&nr_freed);
    model_assert(nr_freed == 1);
}

static void the_last_of_all_frees_in_a_phase(void)
{
    begin();
    model_assert(blz__gate_enter(gate, GATE_WORKER) == 0);
    model_assert(blz__gate_enter(gate, GATE_WORKER) == 0);
    model_thread a = model_start_named(work_and_leave, (void *)0, "worker");
    model_thread b = model_start_named(work_and_leave, (void *)1, "worker");
    blz__gate_advance(gate, BLZ_SHUTDOWN_FORCING);
    if (blz__gate_disown(gate))
        free_gate();
    model_join(a);
    model_join(b);
    blz__plain_read(&nr_freed);
    model_assert(nr_freed == 1);
}

static void a_hurry_wakes_the_runner(void)
{
    gate_wait wait;
    hand_polled hand;

    begin();
    model_assert(blz__gate_enter(gate, GATE_WORKER) == 0); /* and stays */
    blz__gate_advance(gate, BLZ_SHUTDOWN_DRAINING);
    model_thread a = model_start_named(hurry, NULL, "hurry");
    hand_begin(&hand);
    model_assert(hand_await(&hand, blz__gate_wait(&wait, gate)) == 0);
    hand_end(&hand);
    model_assert(blz__gate_look(gate).wanted == BLZ_SHUTDOWN_CANCELLING);
    model_join(a);
    leave(GATE_WORKER);
    model_assert(blz__gate_disown(gate));
    free_gate();
}

static void a_cancelled_runner_leaves_nothing_behind(void)
{
    gate_wait wait;
    hand_polled hand;

    begin();
    model_assert(blz__gate_enter(gate, GATE_WORKER) == 0);
    blz__gate_advance(gate, BLZ_SHUTDOWN_DRAINING);
    model_thread a = model_start_named(work_and_leave, (void *)0, "worker");
    hand_begin(&hand);
    blz_future *future = blz__gate_wait(&wait, gate);
    if (blz_is_pending(future->ops->poll(future, &hand.cx))) {
        future->ops->cancel(future, &hand.cx);
        hand_await(&hand, future);
    }
    model_assert(future->result == 0 || future->result == -ECANCELED);
    hand_end(&hand);
    model_join(a);
    model_assert(!gate->runner.first && blz__gate_disown(gate));
    free_gate();
}

#define MODEL(fn, bound)                         \
    {                                            \
#fn, fn,                                 \
        {                                        \
            .preemptions = bound, .reduce = true \
        }                                        \
    }

static const struct model models[] = {
    MODEL(who_gets_in_is_waited_for, 3),
    MODEL(what_was_done_inside_is_seen, 1),
    MODEL(work_that_makes_more_is_waited_for, 3),
    MODEL(acceptors_go_first, 3),
    MODEL(the_last_of_all_frees, 3),
    MODEL(the_last_of_all_frees_in_a_phase, 2),
    MODEL(a_hurry_wakes_the_runner, 3),
    MODEL(a_cancelled_runner_leaves_nothing_behind, 3),
};

MODEL_MAIN(models)
