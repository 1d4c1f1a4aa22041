/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers that call back: in the caller's memory and on the heap, armed by this thread, by others,
 * by their own callbacks; on a test clock first, then on real ones, where workers sleep.
 */
#include "clock_rt.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

struct bell {
    blz_timer timer;
    int rings;
    blz_rt *again; /* armed anew each time, for the same instant */
    struct event rung;
};

static void ring(void *arg)
{
    struct bell *bell = arg;

    bell->rings++;
    if (bell->again)
        check(blz_timer_start(&bell->timer, 0, bell->again) == 0);
    event_post(&bell->rung);
}

static void init_bell(struct bell *bell)
{
    *bell = (struct bell){.rung = EVENT_INIT};
    blz_timer_init(&bell->timer, ring, bell);
}

static void a_timer_calls_back_once(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    struct bell bell;

    (void)state;
    init_bell(&bell);
    assert_int_equal(blz_timer_start(&bell.timer, at_ms(10), rt), 0);
    assert_true(blz_timer_is_armed(&bell.timer));
    assert_int_equal(blz_timer_start(&bell.timer, at_ms(10), rt), -EBUSY);
    advance(rt, 10 * MS - 1);
    assert_int_equal(bell.rings, 0);
    advance(rt, 1);
    assert_int_equal(bell.rings, 1);
    assert_false(blz_timer_is_armed(&bell.timer));
    assert_false(blz_timer_cancel(&bell.timer));
    assert_false(blz_timer_reset(&bell.timer, at_ms(50)));
    advance(rt, BLZ_HOUR);
    assert_int_equal(bell.rings, 1);
    assert_int_equal(blz_timer_start(&bell.timer, 0, rt), 0);
    advance(rt, MS);
    assert_int_equal(bell.rings, 2);
    free_rt(rt);
}

static void a_timer_can_be_cancelled_and_moved(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    struct bell bell;

    (void)state;
    init_bell(&bell);
    assert_false(blz_timer_cancel(&bell.timer));
    assert_int_equal(blz_timer_start(&bell.timer, at_ms(10), rt), 0);
    assert_true(blz_timer_reset(&bell.timer, at_ms(200)));
    advance(rt, 100 * MS);
    assert_int_equal(bell.rings, 0);
    assert_true(blz_timer_reset(&bell.timer, at_ms(150)));
    advance(rt, 50 * MS);
    assert_int_equal(bell.rings, 1);
    assert_int_equal(blz_timer_start(&bell.timer, at_ms(300), rt), 0);
    assert_true(blz_timer_cancel(&bell.timer));
    assert_int_equal(blz_rt_deadline(rt), INT64_MAX);
    advance(rt, BLZ_HOUR);
    assert_int_equal(bell.rings, 1);
    free_rt(rt);
}

/* Like libuv's timers of zero: they must not keep the loop to themselves. */
static void timers_that_arm_themselves_leave_room_for_others(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    struct bell bells[100];
    blz_handle handle;

    (void)state;
    for (int i = 0; i < 100; i++) {
        init_bell(&bells[i]);
        bells[i].again = rt;
        assert_int_equal(blz_timer_start(&bells[i].timer, 0, rt), 0);
    }
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, yields, .times = 100, .value = 3), 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 3);
    for (int i = 0; i < 100; i++) {
        assert_in_range(bells[i].rings, 1, 2);
        assert_true(blz_timer_cancel(&bells[i].timer));
    }
    free_rt(rt);
}

static void free_myself(void *arg)
{
    blz_timer **timer = arg;

    blz_timer_free(*timer);
    *timer = NULL;
}

static void timers_live_on_the_heap_too(void **state)
{
    blz_rt *rt = new_clock_rt(true);
    blz_timer *timers[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        timers[i] = blz_timer_new(free_myself, &timers[i], rt);
        assert_non_null(timers[i]);
        assert_int_equal(blz_timer_start(timers[i], at_ms(10 + i * 10), rt), 0);
    }
    advance(rt, 10 * MS);
    assert_null(timers[0]);
    blz_timer_free(timers[1]); /* armed */
    free_rt(rt);
    assert_false(blz_timer_is_armed(timers[2])); /* dropped */
    blz_timer_free(timers[2]);
    blz_timer_free(NULL);
}

static void no_memory_is_no_timer(void **state)
{
    blz_rt *rt = new_clock_rt(true);

    (void)state;
    memory_fail_at(the_memory(), 1, false);
    assert_null(blz_timer_new(free_myself, NULL, rt));
    memory_fail_at(the_memory(), 0, false);
    free_rt(rt);
}

static void what_is_armed_at_the_end_is_not_called(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    struct bell bell, never;

    (void)state;
    init_bell(&bell);
    init_bell(&never);
    assert_int_equal(blz_timer_start(&bell.timer, blz_deadline(BLZ_HOUR), rt), 0);
    assert_int_equal(blz_timer_start(&never.timer, BLZ_NEVER, rt), 0);
    free_rt(rt);
    assert_int_equal(bell.rings, 0);
    assert_false(blz_timer_cancel(&bell.timer));
    assert_false(blz_timer_cancel(&never.timer));
}

static void a_timer_needs_a_runtime(void **state)
{
    struct bell bell;
    blz_rt *rt;

    (void)state;
    init_bell(&bell);
    assert_int_equal(blz_timer_start(&bell.timer, 0, NULL), -ENXIO);
    rt = new_rt(&(blz_options){.workers = 1});
    assert_int_equal(BLZ_BLOCK_ON(rt, give, .value = 1), 1);
    assert_int_equal(blz_rt_shutdown(rt, BLZ_NEVER), 0);
    assert_int_equal(blz_timer_start(&bell.timer, 0, rt), -ESHUTDOWN);
    free_rt(rt);
}

/* ---- sleeping workers ---- */

static void a_timer_is_the_first_that_a_runtime_hears_of(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    struct bell bell;

    (void)state;
    init_bell(&bell);
    assert_int_equal(blz_timer_start(&bell.timer, blz_deadline(MS), rt), 0);
    event_wait(&bell.rung, 1);
    free_rt(rt);
    assert_int_equal(bell.rings, 1);
}

/* Each timer is due before what the worker sleeps for. */
static void an_earlier_timer_wakes_a_sleeping_worker(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    struct bell late, bell;

    (void)state;
    init_bell(&late);
    init_bell(&bell);
    assert_int_equal(blz_timer_start(&late.timer, blz_deadline(BLZ_HOUR), rt), 0);
    for (int i = 1; i <= 200; i++) {
        assert_int_equal(blz_timer_start(&bell.timer, blz_deadline(i % 3 * MS), rt), 0);
        event_wait(&bell.rung, i);
    }
    assert_true(blz_timer_reset(&late.timer, blz_deadline(MS)));
    event_wait(&late.rung, 1);
    free_rt(rt);
}

static bool is_readable(int fd, int timeout_ms)
{
    return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, timeout_ms) == 1;
}

static void an_embedded_runtime_tells_when_it_wants_a_turn(void **state)
{
    blz_rt *rt = new_embedded_rt();
    int64_t sooner = blz_deadline(BLZ_HOUR), soon;
    struct bell late, bell;

    (void)state;
    init_bell(&late);
    init_bell(&bell);
    turn_all(rt);
    assert_int_equal(blz_rt_deadline(rt), INT64_MAX);
    assert_int_equal(blz_timer_start(&late.timer, blz_deadline(BLZ_DAY), rt), 0);
    assert_true(is_readable(blz_rt_fd(rt), PATIENCE_MS)); /* it slept without end until now */
    turn_all(rt);
    assert_false(is_readable(blz_rt_fd(rt), 0));
    assert_int_equal(blz_timer_start(&bell.timer, sooner, rt), 0);
    assert_true(is_readable(blz_rt_fd(rt), PATIENCE_MS));
    turn_all(rt);
    assert_in_range(blz_rt_deadline(rt), sooner, sooner + MS);
    soon = blz_deadline(5 * MS);
    assert_true(blz_timer_reset(&bell.timer, soon));
    while (!bell.rings) {
        is_readable(blz_rt_fd(rt), (int)(blz_deadline_left(blz_rt_deadline(rt)) / MS) + 1);
        turn_all(rt);
    }
    assert_true(blz_now() >= soon);
    assert_true(blz_timer_cancel(&late.timer));
    free_rt(rt);
}

/* ---- after a fork ---- */

static int use_timers(blz_rt *rt, struct bell *armed, struct bell *idle)
{
    if (blz_timer_start(&idle->timer, 0, rt) != -EOWNERDEAD)
        return 1;
    if (blz_timer_cancel(&armed->timer))
        return 2;
    if (blz_timer_reset(&armed->timer, 0))
        return 3;
    return 0;
}

static void a_forked_child_has_no_timers(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    struct bell armed, idle;
    int status = -1;
    pid_t pid;

    (void)state;
    init_bell(&armed);
    init_bell(&idle);
    assert_int_equal(blz_timer_start(&armed.timer, blz_deadline(BLZ_HOUR), rt), 0);
    pid = fork();
    if (pid == 0) {
        alarm(CHILD_SECONDS);
        _exit(use_timers(rt, &armed, &idle));
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(blz_timer_cancel(&armed.timer));
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_timer_calls_back_once),
        TEST(a_timer_can_be_cancelled_and_moved),
        TEST(timers_that_arm_themselves_leave_room_for_others),
        TEST(timers_live_on_the_heap_too),
        TEST(no_memory_is_no_timer),
        TEST(what_is_armed_at_the_end_is_not_called),
        TEST(a_timer_needs_a_runtime),
        TEST(a_timer_is_the_first_that_a_runtime_hears_of),
        TEST(an_earlier_timer_wakes_a_sleeping_worker),
        TEST(an_embedded_runtime_tells_when_it_wants_a_turn),
        TEST(a_forked_child_has_no_timers),
    };
    return RUN_TESTS(tests);
}
