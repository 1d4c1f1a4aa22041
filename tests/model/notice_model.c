/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The notice of a stop signal: handlers, the herald, waiters, and the last one closing. A signal is
 * never lost: a waiter gets it, or the closer has it in hand, or the handler passes it on. Only a
 * signal that comes after the waiters have been told kills.
 */
#include "signal/notice.h"

enum { FIRST = 2, SECOND = 15, MAX_WAITERS = 2 };

static stop_notice notice;
static enum notice_verdict verdicts[2];

struct waiter {
    blz_stop_op op;
    uint32_t woken;
    blz_wake_callback callback;
    int signal;
};

static struct waiter waiters[MAX_WAITERS];

static void begin(void)
{
    notice = (stop_notice){0};
    for (int i = 0; i < MAX_WAITERS; i++)
        waiters[i] = (struct waiter){.signal = 0};
    notice_open(&notice);
}

static void herald(void *unused)
{
    (void)unused;
    blz__notice_herald(&notice);
}

static void first_signal(void *unused)
{
    (void)unused;
    verdicts[0] = notice_signal(&notice, FIRST);
}

static void second_signal(void *unused)
{
    (void)unused;
    verdicts[1] = notice_signal(&notice, SECOND);
}

static void wake_waiter(void *arg)
{
    struct waiter *waiter = arg;

    blz__store(&waiter->woken, 1u, RELEASE);
    blz__futex_wake(&waiter->woken, 1);
}

static blz_waker waker_of(struct waiter *waiter)
{
    waiter->callback = (blz_wake_callback){wake_waiter, waiter};
    return blz_waker_callback(&waiter->callback);
}

/* What the future does: links itself, and looks again each time it is woken. */
static void wait_for_signal(void *arg)
{
    struct waiter *waiter = arg;

    waiter->signal = blz__notice_wait(&notice, &waiter->op, waker_of(waiter));
    while (!waiter->signal) {
        while (!blz__load(&waiter->woken, ACQUIRE))
            blz__futex_wait(&waiter->woken, 0);
        waiter->signal = notice_look(&notice);
    }
}

static void cancelled_at_once(void *arg)
{
    struct waiter *waiter = arg;

    waiter->signal = blz__notice_wait(&notice, &waiter->op, waker_of(waiter));
    blz__notice_leave(&notice, &waiter->op);
}

/* ---- models ---- */

static void a_waiter_gets_the_signal(void)
{
    begin();
    model_thread h = model_start_named(herald, NULL, "herald");
    model_thread w = model_start_named(wait_for_signal, &waiters[0], "waiter");
    first_signal(NULL);
    model_join(w);
    model_assert(waiters[0].signal == FIRST && verdicts[0] == NOTICE_TAKEN);
    model_assert(notice_close(&notice) == 0); /* it has been seen */
    model_join(h);
    model_assert(notice.waiters == NULL);
}

static void all_waiters_get_the_signal(void)
{
    begin();
    model_thread h = model_start_named(herald, NULL, "herald");
    model_thread a = model_start_named(wait_for_signal, &waiters[0], "waiter");
    model_thread b = model_start_named(wait_for_signal, &waiters[1], "waiter");
    first_signal(NULL);
    model_join(a);
    model_join(b);
    model_assert(waiters[0].signal == FIRST && waiters[1].signal == FIRST);
    model_assert(notice_close(&notice) == 0);
    model_join(h);
    model_assert(notice.waiters == NULL);
}

static void of_two_signals_the_first_stands(void)
{
    begin();
    model_thread h = model_start_named(herald, NULL, "herald");
    model_thread s = model_start_named(second_signal, NULL, "second signal");
    first_signal(NULL);
    wait_for_signal(&waiters[0]);
    model_join(s);
    int loser = waiters[0].signal == FIRST ? 1 : 0;
    model_assert(verdicts[!loser] == NOTICE_TAKEN && verdicts[loser] != NOTICE_CLOSED);
    model_assert(notice_close(&notice) == 0);
    model_join(h);
}

/* After a waiter has been woken there is no signal that does nothing. */
static void a_signal_after_the_wake_kills(void)
{
    begin();
    waiters[0].signal = blz__notice_wait(&notice, &waiters[0].op, waker_of(&waiters[0]));
    model_thread h = model_start_named(herald, NULL, "herald");
    model_thread s = model_start_named(first_signal, NULL, "first signal");
    while (!blz__load(&waiters[0].woken, ACQUIRE))
        blz__futex_wait(&waiters[0].woken, 0);
    second_signal(NULL);
    model_assert(verdicts[1] == NOTICE_SECOND);
    model_join(s);
    model_assert(notice_close(&notice) == FIRST); /* woken, but nobody has looked */
    model_join(h);
}

/* Nor after one has looked, which may be before the herald comes. */
static void a_signal_after_a_look_kills(void)
{
    begin();
    model_thread h = model_start_named(herald, NULL, "herald");
    first_signal(NULL);
    model_assert(notice_look(&notice) == FIRST);
    second_signal(NULL);
    model_assert(verdicts[1] == NOTICE_SECOND);
    model_assert(notice_close(&notice) == 0);
    model_join(h);
}

static void a_signal_against_the_close_is_not_lost(void)
{
    begin();
    model_thread h = model_start_named(herald, NULL, "herald");
    model_thread s = model_start_named(first_signal, NULL, "signal");
    int unseen = notice_close(&notice);
    model_join(h);
    model_join(s);
    model_assert(unseen == (verdicts[0] == NOTICE_TAKEN ? FIRST : 0));
    model_assert(verdicts[0] != NOTICE_SECOND);
}

static void a_waiter_that_leaves_is_not_woken_afterwards(void)
{
    begin();
    model_thread h = model_start_named(herald, NULL, "herald");
    model_thread s = model_start_named(first_signal, NULL, "signal");
    cancelled_at_once(&waiters[0]);
    bool seen = waiters[0].signal != 0;
    model_join(s);
    model_assert(notice_close(&notice) == (seen ? 0 : FIRST));
    model_join(h);
    model_assert(notice.waiters == NULL && !waiters[0].op.link && !waiters[0].op.waker.ops);
}

static void a_waiter_may_leave_while_another_stays(void)
{
    begin();
    model_thread h = model_start_named(herald, NULL, "herald");
    model_thread w = model_start_named(cancelled_at_once, &waiters[1], "leaver");
    model_thread s = model_start_named(first_signal, NULL, "signal");
    wait_for_signal(&waiters[0]);
    model_assert(waiters[0].signal == FIRST);
    model_join(w);
    model_join(s);
    notice_close(&notice);
    model_join(h);
    model_assert(notice.waiters == NULL);
}

static const struct model models[] = {
    {"a_waiter_gets_the_signal", a_waiter_gets_the_signal, {.preemptions = 3, .reduce = true}},
    {"all_waiters_get_the_signal", all_waiters_get_the_signal, {.preemptions = 1, .reduce = true}},
    {"of_two_signals_the_first_stands",
     of_two_signals_the_first_stands,
     {.preemptions = 3, .reduce = true}},
    {"a_signal_after_the_wake_kills",
     a_signal_after_the_wake_kills,
     {.preemptions = 3, .reduce = true}},
    {"a_signal_after_a_look_kills",
     a_signal_after_a_look_kills,
     {.preemptions = 3, .reduce = true}},
    {"a_signal_against_the_close_is_not_lost",
     a_signal_against_the_close_is_not_lost,
     {.preemptions = 3, .reduce = true}},
    {"a_waiter_that_leaves_is_not_woken_afterwards",
     a_waiter_that_leaves_is_not_woken_afterwards,
     {.preemptions = 3, .reduce = true}},
    {"a_waiter_may_leave_while_another_stays",
     a_waiter_may_leave_while_another_stays,
     {.preemptions = 1, .reduce = true}},
};

MODEL_MAIN(models)
