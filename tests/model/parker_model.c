/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parker: a worker that sleeps, on its futex or in its driver, against those that wake it. It
 * always wakes up, it sees what they did before, and one token is left over at most.
 */
#include "sched/park.h"
#include "support/fake_driver.h"

enum { MAX_WAKERS = 2 };

static parker p;
static fake_driver driver;
static uint32_t posted[MAX_WAKERS], contents[MAX_WAKERS];

static void begin(void)
{
    fake_driver_init(&driver);
    p = (parker){PARK_EMPTY, &driver.base};
    for (int i = 0; i < MAX_WAKERS; i++)
        posted[i] = contents[i] = 0;
}

/* ---- wakers ---- */

/* The order is the parker's business: `posted` alone says nothing of `contents`. */
static void post_and_unpark(void *arg)
{
    uint32_t *mine = arg;

    blz__plain_write(&contents[mine - posted]);
    contents[mine - posted] = 1;
    blz__store(mine, 1u, RELAXED);
    blz__parker_unpark(&p);
}

static model_thread start_waker(int number)
{
    return model_start_named(post_and_unpark, &posted[number], "waker");
}

static void look_at(int number)
{
    blz__plain_read(&contents[number]);
    model_assert(contents[number] == 1);
}

static bool has_come(int number)
{
    return blz__load(&posted[number], RELAXED);
}

/* ---- sleepers ---- */

static void sleep_on_futex(void)
{
    blz__parker_wait(&p, INT64_MAX);
}

static void sleep_in_driver(void)
{
    if (blz__parker_begin_driver(&p)) {
        fake_poll(&driver.base, INT64_MAX);
        blz__parker_end_driver(&p);
    }
}

/*
 * Parks until it has seen that all have come. A token may stand for several: if the worker that
 * takes it could miss what one of them posted, it would go back to sleep for ever.
 */
static void wait_for_all(int wakers, void (*sleep)(void))
{
    for (int i = 0; i < wakers; i++)
        while (!has_come(i))
            sleep();
}

static void state_must_be(uint32_t state)
{
    model_assert(blz__load(&p.state, RELAXED) == state);
}

static void nobody_must_be_asleep(void)
{
    uint32_t state = blz__load(&p.state, RELAXED);
    model_assert(state == PARK_EMPTY || state == PARK_NOTIFIED);
}

/* One park for one unpark: it neither sleeps for ever nor misses the contents. */
static void park_once(void (*sleep)(void))
{
    begin();
    model_thread waker = start_waker(0);
    sleep();
    model_assert(has_come(0));
    look_at(0);
    model_join(waker);
    state_must_be(PARK_EMPTY);
}

static void park_on_the_futex_ends_with_unpark(void)
{
    park_once(sleep_on_futex);
}

static void park_in_the_driver_ends_with_unpark(void)
{
    park_once(sleep_in_driver);
}

/* Two wakers, and as many parks as it takes. */
static void park_until_two_have_come(void (*sleep)(void))
{
    begin();
    model_thread first = start_waker(0), second = start_waker(1);
    wait_for_all(2, sleep);
    model_join(first);
    model_join(second);
    nobody_must_be_asleep();
}

static void two_unparks_end_parks_on_the_futex(void)
{
    park_until_two_have_come(sleep_on_futex);
}

static void two_unparks_end_parks_in_the_driver(void)
{
    park_until_two_have_come(sleep_in_driver);
}

/* ---- tokens ---- */

static void a_token_makes_the_next_park_return(void)
{
    begin();
    post_and_unpark(&posted[0]);
    model_thread waker = start_waker(1);
    sleep_on_futex();
    look_at(0);
    model_join(waker);
    nobody_must_be_asleep();
    blz__parker_unpark(&p);
    sleep_in_driver();
    look_at(1);
    state_must_be(PARK_EMPTY);
}

/* A worker whose deadline comes may leave a token behind, but never the state of a sleeper. */
static void a_deadline_ends_the_park(void)
{
    begin();
    model_thread waker = start_waker(0);
    blz__parker_wait(&p, model_clock_now() + 10);
    model_join(waker);
    nobody_must_be_asleep();
}

/* ---- embedded ---- */

/*
 * Between two turns the worker is parked in the driver, and its thread waits for the fd. An
 * unpark makes that readable, and the turn sees what came with it.
 */
static void unpark_between_two_turns_makes_the_fd_readable(void)
{
    begin();
    model_assert(blz__parker_begin_driver(&p));
    model_thread waker = start_waker(0);
    fake_driver_wait_readable(&driver);
    blz__parker_end_driver(&p);
    fake_poll(&driver.base, 0);
    model_assert(has_come(0));
    look_at(0);
    model_join(waker);
    state_must_be(PARK_EMPTY);
    model_assert(!driver.readable);
}

/* A turn that is made for another reason, while somebody unparks. */
static void unpark_at_the_start_of_a_turn(void)
{
    begin();
    model_assert(blz__parker_begin_driver(&p));
    model_thread waker = start_waker(0);
    blz__parker_end_driver(&p);
    fake_poll(&driver.base, 0);
    if (!has_come(0) && blz__parker_begin_driver(&p)) {
        fake_driver_wait_readable(&driver);
        blz__parker_end_driver(&p);
        fake_poll(&driver.base, 0);
    }
    while (!has_come(0))
        sleep_in_driver();
    model_join(waker);
}

static const struct model models[] = {
    {"park_on_the_futex_ends_with_unpark", park_on_the_futex_ends_with_unpark, {.preemptions = 4}},
    {"park_in_the_driver_ends_with_unpark",
     park_in_the_driver_ends_with_unpark,
     {.preemptions = 4}},
    {"two_unparks_end_parks_on_the_futex", two_unparks_end_parks_on_the_futex, {.preemptions = 4}},
    {"two_unparks_end_parks_in_the_driver",
     two_unparks_end_parks_in_the_driver,
     {.preemptions = 4}},
    {"a_token_makes_the_next_park_return", a_token_makes_the_next_park_return, {.preemptions = 4}},
    {"a_deadline_ends_the_park", a_deadline_ends_the_park, {.preemptions = 4}},
    {"unpark_between_two_turns_makes_the_fd_readable",
     unpark_between_two_turns_makes_the_fd_readable,
     {.preemptions = 4}},
    {"unpark_at_the_start_of_a_turn", unpark_at_the_start_of_a_turn, {.preemptions = 4}},
};

MODEL_MAIN(models)
