/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Telling those who wait: see notice.h.
 *
 * Lists are under their locks, and wakers are called outside of them. A future whose waiter the
 * herald has taken from a list is not ready before the herald is through with the waiter.
 */
#include "signal/notice.h"

#include "sched/sched.h"
#include "task/task.h"
#include "system/futex.h"
#include "time/time.h"

/* ---- subscriptions ---- */

/* Somebody has received it up to this count. */
static void mark_seen(signal_slot *slot, uint64_t count)
{
    uint64_t seen = blz__load(&slot->seen, RELAXED);

    while (seen < count && !blz__cas_weak(&slot->seen, &seen, count, RELAXED, RELAXED))
        continue;
}

uint64_t blz__slot_take(signal_slot *slot, uint64_t *seen)
{
    uint64_t mine = blz__load(seen, ACQUIRE), count; /* pairs with the release below */

    do {
        count = slot_count(slot);
        if (count == mine)
            return 0;
        /* release: the count that we have read; who sees ours sees one that is not older */
    } while (!blz__cas_weak(seen, &mine, count, RELEASE, ACQUIRE));
    mark_seen(slot, count);
    return count - mine;
}

/* ---- the stop ---- */

static signal_slot *stop_slot(const signal_notice *notice, int i)
{
    return &notice->slots[notice->stops[i]];
}

void blz__notice_open_stop(signal_notice *notice)
{
    blz__lock_acquire(&notice->stop.lock);
    blz__plain_write(&notice->stop_signal);
    notice->stop_signal = 0;
    blz__store(&notice->stop_first, 0u, RELAXED);
    blz__store(&notice->stop_ns, (int64_t)0, RELAXED);
    for (int i = 0; i < NR_STOPS; i++)
        notice->base[i] = slot_open(stop_slot(notice, i), SLOT_STOP);
    blz__lock_release(&notice->stop.lock);
}

void blz__notice_close_stop(signal_notice *notice, bool unseen[NR_STOPS])
{
    blz__lock_acquire(&notice->stop.lock);
    for (int i = 0; i < NR_STOPS; i++)
        unseen[i] = slot_close(stop_slot(notice, i), SLOT_STOP | SLOT_DEADLY);
    blz__lock_release(&notice->stop.lock);
}

static bool has_come(const signal_notice *notice, int i)
{
    return slot_count(stop_slot(notice, i)) != notice->base[i];
}

bool blz__notice_stop_has_come(const signal_notice *notice)
{
    return has_come(notice, 0) || has_come(notice, 1);
}

/* Which one it is, of those that have come. The hint is read last: it came before the second. */
static int choose_stop(const signal_notice *notice)
{
    bool come[NR_STOPS] = {has_come(notice, 0), has_come(notice, 1)};

    if (come[0] && come[1])
        return (int)blz__load(&notice->stop_first, RELAXED) == notice->stops[1] ? notice->stops[1]
                                                                                : notice->stops[0];
    return come[0] ? notice->stops[0] : come[1] ? notice->stops[1] : 0;
}

/* The signal that has come, or 0; from here on another one kills. With the lock. */
static int decide(signal_notice *notice)
{
    blz__plain_write(&notice->stop_signal);
    if (!notice->stop_signal)
        notice->stop_signal = choose_stop(notice);
    /* release: the count that we have seen; pairs with the acquire in notice_signal */
    for (int i = 0; i < NR_STOPS && notice->stop_signal; i++)
        if (!(blz__load(&stop_slot(notice, i)->word, RELAXED) & SLOT_DEADLY))
            blz__fetch_or(&stop_slot(notice, i)->word, (uint64_t)SLOT_DEADLY, RELEASE);
    return notice->stop_signal;
}

int blz__notice_look(signal_notice *notice)
{
    int signal;

    if (!blz__notice_stop_has_come(notice))
        return 0;
    blz__lock_acquire(&notice->stop.lock);
    signal = decide(notice);
    for (int i = 0; i < NR_STOPS; i++)
        mark_seen(stop_slot(notice, i), slot_count(stop_slot(notice, i)));
    blz__lock_release(&notice->stop.lock);
    return signal;
}

/* ---- the herald ---- */

static uint32_t renumber(signal_notice *notice, uint32_t rung)
{
    uint32_t word = blz__load(&notice->bell, RELAXED), next;

    do {
        next = (word & ~BELL_RUNG) + BELL_NEXT;
        /* release: as in notice_ring */
    } while (!blz__cas_weak(&notice->bell, &word, next | rung, RELEASE, RELAXED));
    return next;
}

uint32_t blz__notice_begin_herald(signal_notice *notice)
{
    return renumber(notice, BELL_RUNG);
}

void blz__notice_end_herald(signal_notice *notice)
{
    renumber(notice, 0);
    blz__futex_wake(&notice->bell, INT32_MAX);
}

bool blz__notice_await_ring(signal_notice *notice, uint32_t herald)
{
    for (;;) {
        uint32_t word = blz__load(&notice->bell, RELAXED);
        if ((word & ~BELL_RUNG) != herald)
            return false;
        if (!(word & BELL_RUNG))
            blz__futex_wait(&notice->bell, word);
        else if (blz__cas_weak(&notice->bell, &word, herald, ACQUIRE, RELAXED))
            return true; /* acquire: what has come; pairs with the release in notice_ring */
    }
}

/* The runtime of the task that a waiter wakes; NULL: it wakes something else. */
static blz_rt *rt_of(const blz_waiter *waiter)
{
    uint64_t group;
    blz_task *task = task_of_waker(&waiter->waker, &group);

    return task ? blz__heap_rt(task) : NULL;
}

/*
 * Under the lock. Until the herald has woken them, their tasks wait for a thread that the runtime
 * knows nothing of: a test clock is held, or it would skip to the next timer meanwhile.
 */
static blz_waiters claim_all(signal_list *list)
{
    blz_waiters claimed = waiters_claim_all(&list->waiters);

    for (blz_waiter *waiter = claimed.first; waiter; waiter = waiter->next)
        if (rt_of(waiter)) {
            blz__rt_visit(rt_of(waiter));
            blz__rt_hold_clock(rt_of(waiter));
        }
    return claimed;
}

static void serve_all(const blz_waiters *claimed)
{
    for (blz_waiter *waiter = claimed->first, *next; waiter; waiter = next) {
        blz_rt *rt = rt_of(waiter);
        next = waiter->next;
        waiter_serve_claimed(waiter, WAITER_SERVED);
        if (rt) {
            blz__rt_release_clock(rt);
            blz__rt_leave(rt);
        }
    }
}

static void tell_slot(signal_slot *slot)
{
    uint64_t word = blz__load(&slot->word, RELAXED);
    blz_waiters claimed = {NULL, NULL};

    if (!(word & SLOT_PLAIN))
        return; /* nobody waits, and who begins to looks for himself */
    blz__lock_acquire(&slot->list.lock);
    blz__plain_write(&slot->told);
    if (word / SLOT_ONE != slot->told)
        claimed = claim_all(&slot->list);
    slot->told = word / SLOT_ONE;
    blz__lock_release(&slot->list.lock);
    serve_all(&claimed);
}

static void tell_stop(signal_notice *notice)
{
    blz_waiters claimed = {NULL, NULL};

    if (!(blz__load(&stop_slot(notice, 0)->word, RELAXED) & SLOT_STOP))
        return; /* as above */
    blz__lock_acquire(&notice->stop.lock);
    if ((blz__load(&stop_slot(notice, 0)->word, RELAXED) & SLOT_STOP) && decide(notice))
        claimed = claim_all(&notice->stop);
    blz__lock_release(&notice->stop.lock);
    serve_all(&claimed);
}

void blz__notice_tell(signal_notice *notice)
{
    for (uint32_t i = 1; i < notice->nr_slots; i++)
        tell_slot(&notice->slots[i]);
    tell_stop(notice);
}

/* ---- waiting ---- */

/* future.line */
enum { WAIT_FRESH, WAIT_JOINED, WAIT_CANCELLED };

static void join_list(notice_wait *wait, signal_list *list, blz_cx *cx)
{
    blz__lock_acquire(&list->lock);
    waiter_enqueue(&wait->waiter, &list->waiters, cx);
    blz__lock_release(&list->lock);
    wait->future.line = WAIT_JOINED;
}

/* False: the herald has it in hand, or had. */
static bool leave_list(notice_wait *wait, signal_list *list)
{
    bool left;

    blz__lock_acquire(&list->lock);
    left = waiter_leave(&wait->waiter, &list->waiters);
    blz__lock_release(&list->lock);
    if (left)
        blz_waker_drop(&wait->waiter.waker);
    return left;
}

/* Whether neither the list nor the herald knows the waiter. */
static bool is_ours(const notice_wait *wait)
{
    uint32_t state = waiter_state(&wait->waiter);
    return state == WAITER_IDLE || state >= WAITER_SERVED;
}

bool blz__notice_poll(notice_wait *wait, signal_list *list, const notice_wait_ops *ops, blz_cx *cx,
                      int64_t *result)
{
    if (!is_ours(wait))
        return false;
    *result = -ECANCELED;
    if (wait->future.line == WAIT_CANCELLED)
        return true;
    if (!blz_coop_take(cx))
        return false;
    do {
        *result = ops->take(wait);
        if (*result != 0)
            return true;
        join_list(wait, list, cx);
    } while (ops->has_come(wait) && leave_list(wait, list));
    blz_coop_give_back(cx);
    return false;
}

void blz__notice_cancel(notice_wait *wait, signal_list *list)
{
    if (wait->future.line == WAIT_JOINED)
        leave_list(wait, list);
    wait->future.line = WAIT_CANCELLED;
}
