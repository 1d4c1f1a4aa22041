/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests themselves stand on (support/harness.h), as far as it depends on the kernel. */
#include "harness.h"

#include <sys/syscall.h>
#include <unistd.h>

enum { FLAGS_FIELD = 2, SQPOLL = 2 }; /* of struct io_uring_params, which old headers lack */

/* A ring that a thread of the kernel looks after. It ends some time after the ring is closed. */
static int ring_with_a_thread(void)
{
    uint32_t params[30] = {0};

    params[FLAGS_FIELD] = SQPOLL;
    return (int)syscall(SYS_io_uring_setup, 1, params);
}

static void threads_that_the_kernel_starts_for_a_ring_are_not_counted(void **state)
{
    int before = nr_threads(), ring = ring_with_a_thread();

    (void)state;
    if (ring < 0)
        skip(); /* not permitted here */
    assert_int_equal(nr_threads(), before);
    close(ring);
    assert_int_equal(nr_threads(), before);
}

static void *wait_for_event(void *arg)
{
    event_wait(arg, 1);
    return NULL;
}

static void threads_of_the_program_are_counted(void **state)
{
    struct event end = EVENT_INIT;
    int before = nr_threads();
    pthread_t thread = start_thread(wait_for_event, &end);

    (void)state;
    assert_int_equal(nr_threads(), before + 1);
    event_post(&end);
    join_thread(thread);
    assert_true(wait_for_threads(before));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(threads_that_the_kernel_starts_for_a_ring_are_not_counted),
        TEST(threads_of_the_program_are_counted),
    };
    return RUN_TESTS(tests);
}
