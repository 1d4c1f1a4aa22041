/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring is refused, to each worker in turn. All drivers of a runtime are of one kind: who has not
 * asked for io_uring gets epoll, on every worker; who has is told why there is none. Either way the
 * rings that were made are closed.
 */
#include "io_fixture.h"

#include "faulty.h"
#include "talk.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORKERS = 3, TRIED = 1 /* a ring that is only tried */ };

static bool has_ring(void)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1, .backend = "io_uring"});
    bool has = strcmp(blz_rt_backend(rt), "io_uring") == 0;

    free_rt(rt);
    return has;
}

/* The nth one, and all after it. Who waits for memory does not wait long. */
static void refuse_rings(int n, int error)
{
    fail_call(KERNEL_IO_URING_QUEUE_INIT_PARAMS, n, true, error);
    fail_call(KERNEL_POLL, 1, true, EINTR);
}

static void stop_refusing(void)
{
    assert_true(stop_failing(KERNEL_IO_URING_QUEUE_INIT_PARAMS));
    stop_failing(KERNEL_POLL);
}

static const int refusals[] = {ENOMEM, EPERM, EACCES, ENOSYS, EINVAL};
enum { NR_REFUSALS = sizeof refusals / sizeof *refusals };

static void a_ring_that_is_refused_to_one_worker_makes_all_use_epoll(void **state)
{
    (void)state;
    for (int i = 0; i < NR_REFUSALS && has_ring(); i++) {
        for (int n = 1; n <= TRIED + WORKERS; n++) {
            blz_rt *rt = new_rt(&(blz_options){.workers = WORKERS, .watchdog_ns = BLZ_NEVER});
            refuse_rings(n, refusals[i]);
            assert_string_equal(blz_rt_backend(rt), "epoll");
            assert_non_null(strstr(blz_rt_backend_reason(rt), "io_uring was refused"));
            stop_refusing();
            assert_int_equal(talk_everywhere(rt), 0);
            assert_string_equal(blz_rt_backend(rt), "epoll");
            free_rt(rt);
        }
    }
}

static void who_asks_for_rings_is_told_that_one_is_refused(void **state)
{
    const blz_options options = {.workers = WORKERS,
                                 .backend = "io_uring",
                                 .watchdog_ns = BLZ_NEVER};

    (void)state;
    for (int i = 0; i < NR_REFUSALS && has_ring(); i++) {
        for (int n = 1; n <= TRIED + WORKERS; n++) {
            blz_rt *rt = new_rt(&options);
            refuse_rings(n, refusals[i]);
            assert_string_equal(blz_rt_backend(rt), "none");
            assert_non_null(strstr(blz_rt_backend_reason(rt), "asked for by options.backend"));
            assert_int_equal(talk_everywhere(rt), -refusals[i]);
            stop_refusing();
            assert_int_equal(talk_everywhere(rt), 0);
            assert_string_equal(blz_rt_backend(rt), "io_uring");
            free_rt(rt);
        }
    }
}

/* That says nothing about the backend, and may be otherwise the next time. */
static void a_lack_of_descriptors_is_told_and_changes_nothing(void **state)
{
    (void)state;
    for (int n = 1; n <= TRIED + WORKERS && has_ring(); n++) {
        blz_rt *rt = new_rt(&(blz_options){.workers = WORKERS, .watchdog_ns = BLZ_NEVER});
        fail_call(KERNEL_IO_URING_QUEUE_INIT_PARAMS, n, true, EMFILE);
        assert_int_equal(talk_everywhere(rt), -EMFILE);
        assert_true(stop_failing(KERNEL_IO_URING_QUEUE_INIT_PARAMS));
        assert_int_equal(talk_everywhere(rt), 0);
        assert_string_equal(blz_rt_backend(rt), "io_uring");
        free_rt(rt);
    }
}

/* Rings of others than root may be refused for a moment by what else goes on, and tried again. */
static void workers_that_begin_at_once_make_each_ring_once(void **state)
{
    (void)state;
    for (int round = 0; round < 20 && geteuid() == 0 && has_ring(); round++) {
        blz_rt *rt = new_rt(&(blz_options){.workers = WORKERS, .watchdog_ns = BLZ_NEVER});
        fail_call(KERNEL_IO_URING_QUEUE_INIT_PARAMS, TRIED + WORKERS + 1, true, ENFILE);
        assert_int_equal(talk_everywhere(rt), 0);
        assert_string_equal(blz_rt_backend(rt), "io_uring");
        assert_false(stop_failing(KERNEL_IO_URING_QUEUE_INIT_PARAMS));
        free_rt(rt);
    }
}

/* As when only its name is asked for. */
static void rings_that_nobody_needs_are_closed(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        blz_rt *rt = new_rt(&(
            blz_options){.workers = WORKERS, .watchdog_ns = BLZ_NEVER, .allocator = test_memory()});
        assert_string_not_equal(blz_rt_backend(rt), "none");
        free_rt(rt);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_ring_that_is_refused_to_one_worker_makes_all_use_epoll),
        TEST(who_asks_for_rings_is_told_that_one_is_refused),
        TEST(a_lack_of_descriptors_is_told_and_changes_nothing),
        TEST(workers_that_begin_at_once_make_each_ring_once),
        TEST(rings_that_nobody_needs_are_closed),
    };
    unsetenv("BLZ_BACKEND"); /* the library chooses */
    return RUN_TESTS(tests);
}
