/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that waits for a future, against those that wake it: it sees what they did before, it
 * does not sleep through a wake, and its stack is not touched once it has left.
 */
#include "support/hand_polled.h"

/* A future that is ready when `gate` is open; its waker is handed to whoever comes first. */
struct door {
    blz_future future;
    blz_waker waker;
    uint32_t has_waker, open, content;
};

static struct door *door;

static blz_poll door_poll(blz_future *future, blz_cx *cx)
{
    struct door *d = (struct door *)future;

    if (!d->waker.ops) {
        blz__plain_write(&d->waker);
        d->waker = blz_cx_waker(cx);
        blz__store(&d->has_waker, 1u, RELEASE);
    }
    if (!blz__load(&d->open, RELAXED)) /* what orders the content is the wake alone */
        return BLZ_PENDING;
    return blz_future_done(future, 7);
}

static void begin(void)
{
    static const blz_future_ops ops = {.name = "door", .poll = door_poll};

    door = model_alloc(sizeof *door, _Alignof(struct door));
    *door = (struct door){.future = {.ops = &ops}};
}

static blz_waker take_waker(void)
{
    while (!blz__load(&door->has_waker, ACQUIRE))
        blz__spin_hint();
    blz__plain_read(&door->waker);
    return door->waker;
}

static void open_and_wake(void *unused)
{
    blz_waker waker = take_waker();

    (void)unused;
    blz__plain_write(&door->content);
    door->content = 1;
    blz__store(&door->open, 1u, RELAXED);
    blz_waker_wake(&waker);
}

static void open_and_wake_by_ref(void *unused)
{
    blz_waker waker = take_waker();

    (void)unused;
    blz__store(&door->open, 1u, RELAXED);
    blz_waker_wake_by_ref(&waker);
    blz_waker_drop(&waker);
}

/* Wakes for nothing; the one that opens follows. */
static void wake_twice(void *unused)
{
    blz_waker waker = take_waker(), second = blz_waker_clone(&waker);

    (void)unused;
    blz_waker_wake(&second);
    blz__store(&door->open, 1u, RELAXED);
    blz_waker_wake(&waker);
}

static void wait_against(void (*other)(void *))
{
    begin();
    model_thread waker = model_start_named(other, NULL, "waker");
    model_assert(blz_wait(&door->future) == 7);
    if (other == open_and_wake) {
        blz__plain_read(&door->content); /* though `open` alone does not order it */
        model_assert(door->content == 1);
    }
    model_free(door); /* as if it were on the stack: nobody may touch it now */
    model_join(waker);
}

static void a_wake_is_not_slept_through(void)
{
    wait_against(open_and_wake);
}

static void a_wake_by_reference_is_enough(void)
{
    wait_against(open_and_wake_by_ref);
}

static void a_wake_for_nothing_does_no_harm(void)
{
    wait_against(wake_twice);
}

static const struct model models[] = {
    {"a_wake_is_not_slept_through", a_wake_is_not_slept_through, {.preemptions = 4}},
    {"a_wake_by_reference_is_enough", a_wake_by_reference_is_enough, {.preemptions = 4}},
    {"a_wake_for_nothing_does_no_harm", a_wake_for_nothing_does_no_harm, {.preemptions = 3}},
};

MODEL_MAIN(models)
