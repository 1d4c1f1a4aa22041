/* SPDX-License-Identifier: Apache-2.0 */
/* Wait groups: counting, any number of waits, reuse, cancelling, threads, mistakes. */
#include "harness.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int64_t result_of(blz_handle *handle)
{
    assert_true(blz_handle_done(handle));
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

struct waits {
    BLZ_FRAME;
    blz_wait_group *group;
    int64_t rc;
    blz_wait_group_op wait;
};

BLZ_ASYNC(waits)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_wait_group_await(&self->wait, self->group));
    BLZ_END(self->rc);
}

static void nothing_to_do_is_done_at_once(void **state)
{
    blz_wait_group group = BLZ_WAIT_GROUP_INIT;
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;

    (void)state;
    assert_int_equal(blz_wait_group_try_await(&group), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits, .group = &group), 0);
    assert_int_equal(turn_all(rt), 1);
    assert_int_equal(result_of(&handle), 0);
    free_rt(rt);
}

static void the_last_done_wakes_all_that_wait(void **state)
{
    blz_wait_group group;
    blz_rt *rt = new_embedded_rt();
    blz_handle handles[40];

    (void)state;
    blz_wait_group_init(&group);
    assert_int_equal(blz_wait_group_add(&group, 2), 0);
    assert_int_equal(blz_wait_group_add(&group, 1), 0);
    for (int i = 0; i < 40; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], waits, .group = &group), 0);
    turn_all(rt);
    for (uint32_t left = 2; left > 0; left--) {
        blz_wait_group_done(&group);
        assert_int_equal(turn_all(rt), 0);
        assert_int_equal(blz_wait_group_count(&group), left);
        assert_int_equal(blz_wait_group_try_await(&group), -EAGAIN);
    }
    blz_wait_group_done(&group);
    assert_int_equal(turn_all(rt), 40);
    for (int i = 0; i < 40; i++)
        assert_int_equal(result_of(&handles[i]), 0);
    free_rt(rt);
}

static void what_is_added_afterwards_concerns_the_next_wait(void **state)
{
    blz_wait_group group = BLZ_WAIT_GROUP_INIT;
    blz_rt *rt = new_embedded_rt();
    blz_handle first, second;

    (void)state;
    assert_int_equal(blz_wait_group_add(&group, 1), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &first, waits, .group = &group), 0);
    turn_all(rt);
    blz_wait_group_done(&group);
    assert_int_equal(blz_wait_group_add(&group, 1), 0); /* before the first has run */
    assert_int_equal(BLZ_SPAWN_ON(rt, &second, waits, .group = &group), 0);
    turn_all(rt);
    assert_int_equal(result_of(&first), 0);
    assert_false(blz_handle_done(&second));
    blz_wait_group_done(&group);
    turn_all(rt);
    assert_int_equal(result_of(&second), 0);
    free_rt(rt);
}

static void a_cancelled_wait_leaves_the_count_alone(void **state)
{
    blz_wait_group group = BLZ_WAIT_GROUP_INIT;
    blz_rt *rt = new_embedded_rt();
    blz_handle handles[3];

    (void)state;
    assert_int_equal(blz_wait_group_add(&group, 1), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], waits, .group = &group), 0);
    turn_all(rt);
    blz_handle_cancel(&handles[1]);
    turn_all(rt);
    assert_int_equal(result_of(&handles[1]), -ECANCELED);
    assert_int_equal(blz_wait_group_count(&group), 1);
    blz_wait_group_done(&group);
    blz_handle_cancel(&handles[2]); /* too late */
    turn_all(rt);
    assert_int_equal(result_of(&handles[0]), 0);
    assert_int_equal(result_of(&handles[2]), 0);
    free_rt(rt);
}

static void the_only_wait_may_be_cancelled(void **state)
{
    blz_wait_group group = BLZ_WAIT_GROUP_INIT;
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;

    (void)state;
    assert_int_equal(blz_wait_group_add(&group, 1), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits, .group = &group), 0);
    turn_all(rt);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    blz_wait_group_done(&group);
    assert_int_equal(blz_wait_group_try_await(&group), 0);
    free_rt(rt);
}

static void more_than_fit_are_refused(void **state)
{
    blz_wait_group group = BLZ_WAIT_GROUP_INIT;

    (void)state;
    assert_int_equal(blz_wait_group_add(&group, BLZ_WAIT_GROUP_MAX), 0);
    assert_int_equal(blz_wait_group_add(&group, 1), -EOVERFLOW);
    assert_int_equal(blz_wait_group_add(&group, UINT32_MAX), -EOVERFLOW);
    assert_int_equal(blz_wait_group_add(&group, 0), 0);
    assert_int_equal(blz_wait_group_count(&group), BLZ_WAIT_GROUP_MAX);
}

static void more_done_than_added_aborts(void **state)
{
    blz_wait_group group = BLZ_WAIT_GROUP_INIT;
    pid_t child = fork();
    int status;

    (void)state;
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        if (!freopen("/dev/null", "w", stderr))
            _exit(1);
        blz_wait_group_done(&group);
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

/* ---- threads ---- */

enum { ROUNDS = 200, THREADS = 3 };

struct crew {
    blz_wait_group *group; /* of this round: on the heap, and freed by who waits */
    struct event start;    /* posted THREADS times a round */
    struct event gone;
    int work[THREADS];
};

struct hand {
    struct crew *crew;
    int me;
};

static void *work(void *arg)
{
    struct hand *hand = arg;
    struct crew *crew = hand->crew;

    for (int round = 1; round <= ROUNDS; round++) {
        event_wait(&crew->start, round);
        crew->work[hand->me] = round;
        blz_wait_group_done(crew->group);
        event_post(&crew->gone);
    }
    return NULL;
}

static void a_thread_waits_and_frees_the_group(void **state)
{
    struct crew crew = {.start = EVENT_INIT, .gone = EVENT_INIT};
    struct hand hands[THREADS];
    pthread_t threads[THREADS];

    (void)state;
    for (int i = 0; i < THREADS; i++) {
        hands[i] = (struct hand){&crew, i};
        threads[i] = start_thread(work, &hands[i]);
    }
    for (int round = 1; round <= ROUNDS; round++) {
        crew.group = test_malloc(sizeof *crew.group);
        blz_wait_group_init(crew.group);
        assert_int_equal(blz_wait_group_add(crew.group, THREADS), 0);
        event_post(&crew.start);
        assert_int_equal(blz_wait_group_wait(crew.group), 0);
        test_free(crew.group);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(crew.work[i], round);
        event_wait(&crew.gone, (int64_t)THREADS * round);
    }
    for (int i = 0; i < THREADS; i++)
        join_thread(threads[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_to_do_is_done_at_once),
        TEST(the_last_done_wakes_all_that_wait),
        TEST(what_is_added_afterwards_concerns_the_next_wait),
        TEST(a_cancelled_wait_leaves_the_count_alone),
        TEST(the_only_wait_may_be_cancelled),
        TEST(more_than_fit_are_refused),
        TEST(more_done_than_added_aborts),
        TEST(a_thread_waits_and_frees_the_group),
    };
    return RUN_TESTS(tests);
}
