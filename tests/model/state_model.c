/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models of the task's state word (src/task/state.h), without anything around it: the queue, which
 * never holds the task twice, and the destructor, which runs once, are the test's.
 *
 * What a waker wrote before a wake is `data`; the poll that answers the wake must be ordered after
 * it. The ghosts are set in the same step as the operation that they speak of, since fibres
 * switch only before an atomic operation.
 */
#include "support/table.h"
#include "task/state.h"

enum { MAX_WAKERS = 2 };

struct tested {
    uint64_t word;
    uint32_t frame; /* stands for what only the polling worker may touch */
};

static struct tested *task;
static uint32_t queued; /* how often the task is in the queue */
static uint32_t phase;  /* of a shutdown */
static uint32_t data[MAX_WAKERS];

/* ghosts */
static bool woken[MAX_WAKERS], answered[MAX_WAKERS], keep_memory;
static bool brought[MAX_WAKERS]; /* it is in the queue because of this wake */
static unsigned polls, queueings, destructions;

static uint64_t refs(uint64_t count)
{
    return count * TASK_REF;
}

static void set_up(uint64_t state)
{
    task = model_alloc(sizeof *task, _Alignof(struct tested));
    task->word = state;
    queued = state & TASK_NOTIFIED ? 1 : 0;
    polls = queueings = destructions = phase = 0;
    keep_memory = false;
    for (int i = 0; i < MAX_WAKERS; i++)
        woken[i] = answered[i] = brought[i] = false;
}

/* ---- around the word ---- */

static void destroy(void)
{
    destructions++;
    model_assert(destructions == 1);
    blz__plain_write(&task->frame); /* after every other access, by anyone */
    for (int i = 0; i < MAX_WAKERS; i++)
        blz__plain_write(&data[i]);
    if (keep_memory)
        blz__store(&task->word, (uint64_t)0, RELAXED);
    else
        model_free(task);
}

static void act(enum task_action action)
{
    if (action == TASK_QUEUE) {
        queueings++;
        /* release: queues hand tasks over; pairs with the acquire in take */
        model_assert(blz__fetch_add(&queued, 1u, RELEASE) == 0);
    } else if (action == TASK_DESTROY) {
        destroy();
    }
}

static bool take(void)
{
    return blz__load(&queued, RELAXED) && blz__fetch_sub(&queued, 1u, ACQUIRE) == 1;
}

/* ---- the worker ---- */

/* All wakes up to here are answered by the poll that begins now, or just what queued the task. */
static void answer_wakes(bool all)
{
    for (int i = 0; i < MAX_WAKERS; i++) {
        if (brought[i] || (all && woken[i])) {
            blz__plain_read(&data[i]);
            answered[i] = true;
        }
        brought[i] = false;
    }
}

static uint64_t begin(void)
{
    uint64_t was = task_state_begin(&task->word, 1);

    answer_wakes(!(was & TASK_RUNNING) || (was & TASK_NOTIFIED));
    polls++;
    blz__plain_write(&task->frame);
    return was;
}

static void pend(uint32_t unused)
{
    act(task_state_pend(&task->word, unused));
}

static void run_queue(void)
{
    while (take()) {
        begin();
        pend(TASK_BIAS);
    }
}

static void complete(uint32_t unused)
{
    bool last;

    if (task_state_is_private(&task->word, unused, 1)) {
        destroy();
        return;
    }
    model_assert(!task_state_complete(&task->word, unused, &last)); /* nobody joins */
    if (last)
        destroy();
}

/* The task waits, only its own reference is left, and no wake has been forgotten. */
static void check_idle(unsigned nr_wakers)
{
    model_assert(task->word == refs(1));
    model_assert(queued == 0);
    for (unsigned i = 0; i < nr_wakers; i++)
        model_assert(woken[i] && answered[i]);
    model_free(task);
}

/* ---- others ---- */

static void wake(unsigned i, bool consume)
{
    blz__plain_write(&data[i]);
    enum task_action action = task_state_wake(&task->word, consume);
    woken[i] = true;
    brought[i] = action == TASK_QUEUE;
    answered[i] = false;
    act(action);
}

static void waker(void *i)
{
    wake((unsigned)(uintptr_t)i, true);
}

static void waker_by_reference(void *unused)
{
    (void)unused;
    wake(0, false);
    wake(1, false);
    model_assert(!task_state_unref(&task->word, 1));
}

static model_thread start(void (*fn)(void *), uintptr_t arg)
{
    return model_start(fn, (void *)arg);
}

/* ---- wakes and polls ---- */

static void a_wake_against_a_poll_is_answered(void)
{
    set_up(TASK_NOTIFIED | refs(2));
    model_thread other = start(waker, 0);
    run_queue();
    model_join(other);
    run_queue();
    model_assert(polls <= 2 && queueings == polls - 1);
    check_idle(1);
}

static void wakes_by_reference_against_a_poll_are_answered(void)
{
    set_up(TASK_NOTIFIED | refs(2));
    model_thread other = start(waker_by_reference, 0);
    run_queue();
    model_join(other);
    run_queue();
    model_assert(polls <= 3 && queueings == polls - 1);
    check_idle(2);
}

static void two_wakes_of_an_idle_task_queue_it_once_and_both_are_seen(void)
{
    set_up(refs(3));
    model_thread first = start(waker, 0), second = start(waker, 1);
    run_queue();
    model_join(first);
    model_join(second);
    run_queue();
    model_assert(polls >= 1 && polls <= 2 && queueings == polls);
    check_idle(2);
}

static void two_wakes_against_a_poll_are_both_seen(void)
{
    set_up(TASK_NOTIFIED | refs(3));
    model_thread first = start(waker, 0), second = start(waker, 1);
    run_queue();
    model_join(first);
    model_join(second);
    run_queue();
    model_assert(polls <= 3 && queueings == polls - 1);
    check_idle(2);
}

/* The waker is made during the poll, from the bias. */
static void a_waker_made_in_a_poll_is_counted(void)
{
    set_up(TASK_NOTIFIED | refs(1));
    model_assert(take());
    begin();
    model_thread other = start(waker, 0);
    pend(TASK_BIAS - 1);
    run_queue();
    model_join(other);
    run_queue();
    check_idle(1);
}

/* The task stays running, in a list of its worker, and is polled again. */
static void a_wake_against_a_yield_is_answered(void)
{
    set_up(TASK_NOTIFIED | refs(2));
    model_thread other = start(waker, 0);
    model_assert(take());
    begin();
    begin();
    pend(TASK_BIAS);
    run_queue();
    model_join(other);
    run_queue();
    model_assert(polls <= 4);
    check_idle(1);
}

static void two_wakes_against_a_yield_are_both_seen(void)
{
    set_up(TASK_NOTIFIED | refs(3));
    model_assert(take());
    begin();
    model_thread first = start(waker, 0), second = start(waker, 1);
    begin();
    pend(TASK_BIAS);
    run_queue();
    model_join(first);
    model_join(second);
    run_queue();
    check_idle(2);
}

/* ---- wake groups ---- */

/* A combinator with two branches: waker i is of branch i. */
enum { FIRST_GROUP = 5 };

static void wake_group(unsigned i, bool consume)
{
    blz__plain_write(&data[i]);
    enum task_action action =
        task_state_wake_group(&task->word, TASK_GROUP(FIRST_GROUP + i), consume);
    woken[i] = true;
    act(action);
}

static void group_waker(void *i)
{
    wake_group((unsigned)(uintptr_t)i, true);
}

static void group_waker_by_reference(void *unused)
{
    (void)unused;
    wake_group(0, false);
    wake_group(1, true);
}

/* The combinators look; those of the groups in `unreached` are not polled at all. */
static void poll_branches(uint32_t unreached)
{
    uint32_t taken = task_state_take_groups(&task->word) >> FIRST_GROUP;

    for (unsigned i = 0; i < MAX_WAKERS; i++)
        if (taken & ~unreached & 1u << i) {
            blz__plain_read(&data[i]);
            answered[i] = true;
        }
    if (taken & unreached)
        task_state_keep_groups(&task->word, (taken & unreached) << FIRST_GROUP);
}

static void run_branches(uint32_t unreached)
{
    while (take()) {
        task_state_begin(&task->word, 1);
        polls++;
        blz__plain_write(&task->frame);
        poll_branches(unreached);
        pend(TASK_BIAS);
    }
}

static void a_woken_branch_is_found_by_the_poll_that_answers(void)
{
    set_up(TASK_NOTIFIED | refs(2));
    model_thread other = start(group_waker, 0);
    run_branches(0);
    model_join(other);
    run_branches(0);
    check_idle(1);
}

static void two_branches_of_an_idle_task_are_both_found(void)
{
    set_up(refs(3));
    model_thread first = start(group_waker, 0), second = start(group_waker, 1);
    run_branches(0);
    model_join(first);
    model_join(second);
    run_branches(0);
    model_assert(polls <= 2);
    check_idle(2);
}

/* The first poll does not come to the second branch. */
static void a_branch_that_is_not_reached_is_found_by_the_next_poll(void)
{
    set_up(TASK_NOTIFIED | refs(2));
    model_thread other = start(group_waker_by_reference, 0);
    run_branches(2);
    model_join(other);
    run_branches(2);
    act(task_state_wake(&task->word, false)); /* whatever the reason */
    run_branches(0);
    check_idle(2);
}

static void a_branch_woken_over_a_yield_is_found(void)
{
    set_up(TASK_NOTIFIED | refs(2));
    model_assert(take());
    task_state_begin(&task->word, 1);
    model_thread other = start(group_waker, 0);
    poll_branches(0);
    task_state_begin(&task->word, 1);
    poll_branches(0);
    pend(TASK_BIAS);
    run_branches(0);
    model_join(other);
    run_branches(0);
    check_idle(1);
}

static void a_branch_woken_too_late_destroys_the_task_or_does_nothing(void)
{
    set_up(TASK_NOTIFIED | refs(3));
    model_thread first = start(group_waker, 0), second = start(group_waker, 1);
    model_assert(take());
    begin();
    complete(TASK_BIAS);
    model_join(first);
    model_join(second);
    model_assert(destructions == 1 && queueings == 0);
}

/* ---- the end ---- */

static void the_last_of_two_wakes_and_the_end_destroys(void)
{
    set_up(TASK_NOTIFIED | refs(3));
    model_thread first = start(waker, 0), second = start(waker, 1);
    model_assert(take());
    begin();
    complete(TASK_BIAS);
    model_join(first);
    model_join(second);
    model_assert(destructions == 1 && queueings == 0);
}

static void a_waker_made_in_the_last_poll_may_destroy(void)
{
    set_up(TASK_NOTIFIED | refs(1));
    model_assert(take());
    begin();
    model_thread other = start(waker, 0);
    complete(TASK_BIAS - 1);
    model_join(other);
    model_assert(destructions == 1 && queueings == 0);
}

static void drop_waker(void *unused)
{
    (void)unused;
    blz__plain_write(&data[0]);
    if (task_state_unref(&task->word, 1))
        destroy();
}

static void drop_handle(void *unused)
{
    (void)unused;
    blz__plain_write(&data[1]);
    if (task_state_is_last(&task->word) || task_state_unref(&task->word, 1))
        destroy();
}

static void the_last_of_waker_handle_and_end_destroys(void)
{
    set_up(TASK_NOTIFIED | refs(3));
    model_thread first = start(drop_waker, 0), second = start(drop_handle, 0);
    model_assert(take());
    begin();
    complete(TASK_BIAS);
    model_join(first);
    model_join(second);
    model_assert(destructions == 1);
}

/* ---- those who have no reference ---- */

/* A dump: the walk lock keeps the memory, nothing keeps the task. */
static void claimer(void *unused)
{
    (void)unused;
    for (int i = 0; i < 2; i++)
        if (task_state_claim(&task->word)) {
            blz__plain_read(&task->frame);
            act(task_state_unclaim(&task->word));
        }
}

/* A dump holds the task while its branch is woken. */
static void a_branch_woken_during_a_claim_is_found(void)
{
    set_up(refs(2));
    keep_memory = true;
    model_thread dump = start(claimer, 0), other = start(group_waker, 0);
    run_branches(0);
    model_join(dump);
    model_join(other);
    run_branches(0);
    check_idle(1);
}

static void canceller(void *unused)
{
    (void)unused;
    if (task_state_cancel_idle(&task->word))
        act(TASK_QUEUE);
}

/* Nobody but the worker has a reference, so it uses plain stores. */
static void a_claim_never_meets_a_poll(void)
{
    set_up(refs(1));
    keep_memory = true;
    model_thread dump = start(claimer, 0), shutdown = start(canceller, 0);
    bool cancelled = take();
    if (cancelled) {
        model_assert(begin() & TASK_CANCEL);
        complete(TASK_BIAS);
    }
    model_join(dump);
    model_join(shutdown);
    model_assert(!cancelled || (task->word == 0 && queued == 0));
    model_free(task);
}

/* The block is free, becomes a task that waits, ends, and becomes another one. */
static void a_claim_sees_the_frame_that_the_word_speaks_of(void)
{
    set_up(0);
    keep_memory = true;
    model_thread dump = start(claimer, 0);
    blz__plain_write(&task->frame);
    blz__store(&task->word, task_state_new(false, false), RELEASE); /* as spawning does */
    begin();
    pend(TASK_BIAS);
    while (!task_state_cancel_idle(&task->word))
        blz__spin_hint();
    begin();
    complete(TASK_BIAS);
    blz__plain_write(&task->frame);
    blz__store(&task->word, task_state_new(false, false), RELEASE);
    begin();
    pend(TASK_BIAS);
    model_join(dump);
    model_assert(task->word == refs(1) && queueings == 0);
    model_free(task);
}

static void closer(void *unused)
{
    (void)unused;
    blz__swap(&phase, 1u, SEQ_CST);
    canceller(NULL);
}

/* The worker looks at the phase after the task is idle; the closer at the task after the phase. */
static void a_task_that_becomes_idle_sees_the_phase_or_is_cancelled(void)
{
    set_up(TASK_NOTIFIED | refs(1));
    model_thread shutdown = start(closer, 0);
    model_assert(take());
    begin();
    pend(TASK_BIAS);
    bool told = blz__load(&phase, SEQ_CST) != 0;
    model_join(shutdown);
    model_assert(told || (task->word & TASK_CANCEL));
    model_free(task);
}

#define ALL .preemptions = MODEL_UNLIMITED, .stale_reads = MODEL_UNLIMITED

static const struct model models[] = {
    MODEL(a_wake_against_a_poll_is_answered, ALL),
    MODEL(wakes_by_reference_against_a_poll_are_answered, ALL),
    MODEL(two_wakes_of_an_idle_task_queue_it_once_and_both_are_seen, .preemptions = 4),
    MODEL(two_wakes_against_a_poll_are_both_seen, .preemptions = 4),
    MODEL(a_waker_made_in_a_poll_is_counted, ALL),
    MODEL(a_wake_against_a_yield_is_answered, ALL),
    MODEL(two_wakes_against_a_yield_are_both_seen, .preemptions = 4),
    MODEL(a_woken_branch_is_found_by_the_poll_that_answers, ALL),
    MODEL(two_branches_of_an_idle_task_are_both_found, .preemptions = 3),
    MODEL(a_branch_that_is_not_reached_is_found_by_the_next_poll, .preemptions = 3),
    MODEL(a_branch_woken_over_a_yield_is_found, ALL),
    MODEL(a_branch_woken_too_late_destroys_the_task_or_does_nothing, .preemptions = 3),
    MODEL(a_branch_woken_during_a_claim_is_found, .preemptions = 3),
    MODEL(the_last_of_two_wakes_and_the_end_destroys, .preemptions = 4),
    MODEL(a_waker_made_in_the_last_poll_may_destroy, ALL),
    MODEL(the_last_of_waker_handle_and_end_destroys, .preemptions = 4),
    MODEL(a_claim_never_meets_a_poll, .preemptions = 4),
    MODEL(a_claim_sees_the_frame_that_the_word_speaks_of, ALL),
    MODEL(a_task_that_becomes_idle_sees_the_phase_or_is_cancelled, ALL),
};

MODEL_MAIN(models)
