/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches: the latest value, what has been seen of it, waiting for a change or for a value,
 * modifying, close, handles.
 */
#include "harness.h"

#include <string.h>

struct level {
    int64_t height;
    char name[13];
};

BLZ_WATCH(levels, struct level)
BLZ_WATCH(number, int64_t)

static int64_t result_of(blz_handle *handle)
{
    assert_true(blz_handle_done(handle));
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

/* ---- values and what has been seen ---- */

static void the_latest_value_is_read(void **state)
{
    levels_sender tx;
    levels_receiver rx;
    struct level level;

    (void)state;
    assert_int_equal(levels_new(&tx, &rx, (struct level){1, "one"}), 0);
    assert_int_equal(levels_get(&rx, &level), 0); /* the first counts as seen */
    assert_true(level.height == 1);
    assert_string_equal(level.name, "one");
    assert_int_equal(levels_send(&tx, (struct level){2, "two"}), 0);
    assert_int_equal(levels_send(&tx, (struct level){3, "three"}), 0);
    assert_int_equal(levels_get(&rx, &level), 1);
    assert_true(level.height == 3);
    assert_string_equal(level.name, "three");
    assert_int_equal(levels_get(&rx, &level), 1); /* still not seen */
    assert_int_equal(levels_get_and_update(&rx, &level), 1);
    assert_int_equal(levels_get(&rx, &level), 0);
    levels_sender_drop(&tx);
    levels_receiver_drop(&rx);
}

static void what_has_been_seen_can_be_marked(void **state)
{
    number_sender tx;
    number_receiver rx, other;
    int64_t value;

    (void)state;
    assert_int_equal(number_new(&tx, &rx, 1), 0);
    assert_int_equal(blz_watch_has_changed(&rx.raw), 0);
    assert_int_equal(blz_watch_try_changed(&rx.raw), -EAGAIN);
    blz_watch_mark_changed(&rx.raw);
    assert_int_equal(blz_watch_has_changed(&rx.raw), 1);
    other = number_receiver_clone(&rx);
    assert_int_equal(number_changed_wait(&rx), 0);
    assert_int_equal(blz_watch_has_changed(&rx.raw), 0);
    assert_int_equal(blz_watch_has_changed(&other.raw), 1); /* as the first, when it was cloned */
    assert_int_equal(number_send(&tx, 2), 0);
    blz_watch_mark_unchanged(&rx.raw);
    assert_int_equal(blz_watch_try_changed(&rx.raw), -EAGAIN);
    assert_int_equal(number_get(&rx, &value), 0);
    assert_int_equal(value, 2);
    number_receiver_drop(&other);
    other = number_subscribe(&tx);
    assert_int_equal(blz_watch_has_changed(&other.raw), 0);
    number_sender_drop(&tx);
    number_receiver_drop(&rx);
    number_receiver_drop(&other);
}

static void values_of_any_size_are_whole(void **state)
{
    (void)state;
    for (size_t size = 0; size <= 17; size++) {
        blz_watch_sender tx;
        blz_watch_receiver rx;
        char in[18], out[18];
        memset(in, 1, sizeof in);
        assert_int_equal(blz_watch_new(&tx, &rx, in, size, test_memory()), 0);
        memset(in, (int)size + 2, sizeof in);
        assert_int_equal(blz_watch_send(&tx, in), 0);
        memset(out, 0, sizeof out);
        assert_int_equal(blz_watch_get(&rx, out), 1);
        assert_memory_equal(out, in, size);
        assert_int_equal(out[size], 0);
        blz_watch_sender_drop(&tx);
        blz_watch_receiver_drop(&rx);
    }
}

/* ---- modifying ---- */

struct adds {
    int64_t by;
    int calls;
    const number_sender *meanwhile; /* another sender is faster, the first time */
};

static void add(int64_t *value, void *arg)
{
    struct adds *adds = arg;

    if (adds->calls++ == 0 && adds->meanwhile)
        assert_int_equal(number_send(adds->meanwhile, 100), 0);
    *value += adds->by;
}

static bool add_if_even(int64_t *value, void *arg)
{
    bool even = *value % 2 == 0;

    *value += 1000;
    if (even)
        add(value, arg);
    return even;
}

static void a_value_is_modified_and_replaced(void **state)
{
    struct adds adds = {.by = 5};
    number_sender tx;
    number_receiver rx;
    int64_t value, old;

    (void)state;
    assert_int_equal(number_new(&tx, &rx, 1), 0);
    assert_int_equal(number_send_modify(&tx, add, &adds), 0);
    assert_int_equal(number_get_and_update(&rx, &value), 1);
    assert_int_equal(value, 6);
    assert_int_equal(number_send_if_modified(&tx, add_if_even, &adds), 1);
    assert_int_equal(number_get_and_update(&rx, &value), 1);
    assert_int_equal(value, 1011);
    assert_int_equal(number_send_if_modified(&tx, add_if_even, &adds), 0);
    assert_int_equal(number_get_and_update(&rx, &value), 0); /* nobody was told */
    assert_int_equal(value, 1011);
    assert_int_equal(number_replace(&tx, &old, 7), 0);
    assert_int_equal(old, 1011);
    blz_watch_sender_get(&tx.raw, &value);
    assert_int_equal(value, 7);
    number_sender_drop(&tx);
    number_receiver_drop(&rx);
}

static void a_value_that_is_sent_meanwhile_is_modified_in_its_place(void **state)
{
    number_sender tx;
    number_receiver rx;
    int64_t value;

    (void)state;
    assert_int_equal(number_new(&tx, &rx, 1), 0);
    struct adds adds = {.by = 5, .meanwhile = &tx};
    assert_int_equal(number_send_modify(&tx, add, &adds), 0);
    assert_int_equal(adds.calls, 2);
    number_get(&rx, &value);
    assert_int_equal(value, 105);
    number_sender_drop(&tx);
    number_receiver_drop(&rx);
}

/* ---- close and handles ---- */

static void the_last_value_is_reported_before_the_close(void **state)
{
    number_sender tx, other;
    number_receiver rx;
    int64_t value;

    (void)state;
    assert_int_equal(number_new(&tx, &rx, 1), 0);
    other = number_sender_clone(&tx);
    number_sender_drop(&tx);
    assert_false(blz_watch_is_closed(rx.raw.watch));
    assert_int_equal(blz_watch_senders(rx.raw.watch), 1);
    assert_int_equal(number_send(&other, 2), 0);
    number_sender_drop(&other);
    assert_true(blz_watch_is_closed(rx.raw.watch));
    assert_int_equal(blz_watch_has_changed(&rx.raw), 1);
    assert_int_equal(number_changed_wait(&rx), 0);
    assert_int_equal(blz_watch_has_changed(&rx.raw), -EPIPE);
    assert_int_equal(number_changed_wait(&rx), -EPIPE);
    assert_int_equal(number_get(&rx, &value), 0); /* for ever */
    assert_int_equal(value, 2);
    number_receiver_drop(&rx);
    number_receiver_drop(&rx);
    number_sender_drop(&other);
}

static void a_closed_watch_keeps_its_value(void **state)
{
    struct adds adds = {.by = 5};
    number_sender tx;
    number_receiver rx;
    int64_t value;

    (void)state;
    assert_int_equal(number_new(&tx, &rx, 1), 0);
    blz_watch_close(tx.raw.watch);
    assert_int_equal(number_send(&tx, 2), -EPIPE);
    assert_int_equal(number_replace(&tx, &value, 2), -EPIPE);
    assert_int_equal(number_send_modify(&tx, add, &adds), -EPIPE);
    number_get(&rx, &value);
    assert_int_equal(value, 1);
    number_sender_drop(&tx);
    number_receiver_drop(&rx);
}

static void without_memory_there_is_no_watch(void **state)
{
    blz_watch_sender tx;
    int64_t value = 0;

    (void)state;
    memory_fail_at(the_memory(), 1, false);
    assert_int_equal(blz_watch_new(&tx, NULL, &value, sizeof value, test_memory()), -ENOMEM);
    memory_fail_at(the_memory(), 0, false);
    assert_int_equal(blz_watch_new(&tx, NULL, &value, SIZE_MAX, NULL), -ENOMEM);
    assert_int_equal(blz_watch_new(&tx, NULL, &value, sizeof value, test_memory()), 0);
    assert_int_equal(memory_blocks(the_memory()), 1);
    blz_watch_sender_drop(&tx);
    assert_int_equal(memory_blocks(the_memory()), 0);
}

/* ---- tasks ---- */

struct follows {
    BLZ_FRAME;
    number_receiver rx;
    int64_t rc, value, sum;
    number_op op;
};

BLZ_ASYNC(follows)
{
    BLZ_BEGIN;
    for (;;) {
        BLZ_AWAIT(self->rc, number_changed(&self->op, &self->rx));
        if (self->rc < 0)
            break;
        number_get(&self->rx, &self->value);
        self->sum += self->value;
    }
    number_receiver_drop(&self->rx);
    BLZ_END(self->rc == -EPIPE ? self->sum : self->rc);
}

static void all_who_wait_see_each_change(void **state)
{
    enum { TASKS = 50 };
    blz_rt *rt = new_embedded_rt();
    blz_handle handles[TASKS];
    number_sender tx;

    (void)state;
    assert_int_equal(number_new(&tx, NULL, 0), 0);
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], follows, .rx = number_subscribe(&tx)), 0);
    turn_all(rt);
    for (int64_t i = 1; i <= 3; i++) {
        assert_int_equal(number_send(&tx, i), 0);
        assert_int_equal(turn_all(rt), TASKS);
    }
    number_send(&tx, 4); /* seen before the close */
    number_sender_drop(&tx);
    turn_all(rt);
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(result_of(&handles[i]), 10);
    free_rt(rt);
}

static bool is_at_least(const int64_t *value, void *arg)
{
    return *value >= *(int64_t *)arg;
}

struct waits_for {
    BLZ_FRAME;
    number_receiver *rx;
    int64_t least, value, rc;
    number_op op;
};

BLZ_ASYNC(waits_for)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, number_until(&self->op, self->rx, &self->value, is_at_least, &self->least));
    BLZ_END(self->rc < 0 ? self->rc : self->value);
}

static void a_task_waits_for_a_value(void **state)
{
    blz_rt *rt = new_embedded_rt();
    number_sender tx;
    number_receiver rx;
    blz_handle handle;

    (void)state;
    assert_int_equal(number_new(&tx, &rx, 1), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits_for, .rx = &rx, .least = 3), 0);
    turn_all(rt);
    number_send(&tx, 2);
    turn_all(rt);
    assert_false(blz_handle_done(&handle));
    number_send(&tx, 5);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 5);
    assert_int_equal(blz_watch_has_changed(&rx.raw), 0); /* it has been seen */
    /* Seen or not, it is true at once. */
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits_for, .rx = &rx, .least = 3), 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 5);
    /* Not true of the last value. */
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits_for, .rx = &rx, .least = 9), 0);
    turn_all(rt);
    number_sender_drop(&tx);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -EPIPE);
    number_receiver_drop(&rx);
    free_rt(rt);
}

/* It has been woken for a value that is not the one, and does not know it yet. */
static void a_wait_for_a_value_is_cancelled_when_it_was_woken_for_another(void **state)
{
    blz_rt *rt = new_embedded_rt();
    number_sender tx;
    number_receiver rx;
    blz_handle handle;

    (void)state;
    assert_int_equal(number_new(&tx, &rx, 1), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits_for, .rx = &rx, .least = 9), 0);
    turn_all(rt);
    number_send(&tx, 2);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    /* But the right one counts. */
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits_for, .rx = &rx, .least = 9), 0);
    turn_all(rt);
    number_send(&tx, 9);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 9);
    number_sender_drop(&tx);
    number_receiver_drop(&rx);
    free_rt(rt);
}

static void a_cancelled_wait_has_seen_nothing(void **state)
{
    blz_rt *rt = new_embedded_rt();
    number_sender tx;
    blz_handle handle;

    (void)state;
    assert_int_equal(number_new(&tx, NULL, 1), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, follows, .rx = number_subscribe(&tx)), 0);
    turn_all(rt);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    number_send(&tx, 2); /* nobody is in the queue */
    number_sender_drop(&tx);
    free_rt(rt);
}

struct waits_for_nobody {
    BLZ_FRAME;
    number_sender *tx;
    int64_t rc;
    number_op op;
};

BLZ_ASYNC(waits_for_nobody)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_watch_closed(&self->op.op, &self->tx->raw));
    BLZ_END(self->rc);
}

static void a_sender_learns_that_the_last_receiver_has_gone(void **state)
{
    blz_rt *rt = new_embedded_rt();
    number_sender tx;
    number_receiver rx, other;
    blz_handle handles[2];

    (void)state;
    assert_int_equal(number_new(&tx, &rx, 1), 0);
    other = number_subscribe(&tx);
    for (int i = 0; i < 2; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], waits_for_nobody, .tx = &tx), 0);
    turn_all(rt);
    blz_handle_cancel(&handles[1]);
    turn_all(rt);
    assert_int_equal(result_of(&handles[1]), -ECANCELED);
    number_receiver_drop(&rx);
    turn_all(rt);
    assert_false(blz_handle_done(&handles[0]));
    number_receiver_drop(&other);
    turn_all(rt);
    assert_int_equal(result_of(&handles[0]), 0);
    assert_int_equal(blz_watch_receivers(tx.raw.watch), 0);
    assert_int_equal(blz_watch_closed_wait(&tx.raw), 0);
    number_sender_drop(&tx);
    free_rt(rt);
}

/* ---- threads ---- */

static void *sends(void *arg)
{
    number_sender *tx = arg;

    for (int64_t i = 1; i <= 1000; i++)
        check(number_send(tx, i) == 0);
    number_sender_drop(tx);
    return NULL;
}

static bool is_the_last(const void *value, void *arg)
{
    (void)arg;
    return *(const int64_t *)value == 1000;
}

static void a_thread_waits_for_changes_and_for_a_value(void **state)
{
    number_sender tx;
    number_receiver rx, other;
    int64_t value, last = 0;
    pthread_t thread;
    int rc;

    (void)state;
    assert_int_equal(number_new(&tx, &rx, 0), 0);
    other = number_subscribe(&tx);
    thread = start_thread(sends, &tx);
    while ((rc = number_changed_wait(&rx)) == 0) {
        number_get(&rx, &value);
        assert_true(value >= last);
        last = value;
    }
    assert_int_equal(rc, -EPIPE);
    assert_int_equal(last, 1000);
    assert_int_equal(blz_watch_until_wait(&other.raw, &value, is_the_last, NULL), 0);
    join_thread(thread);
    number_receiver_drop(&rx);
    number_receiver_drop(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_latest_value_is_read),
        TEST(what_has_been_seen_can_be_marked),
        TEST(values_of_any_size_are_whole),
        TEST(a_value_is_modified_and_replaced),
        TEST(a_value_that_is_sent_meanwhile_is_modified_in_its_place),
        TEST(the_last_value_is_reported_before_the_close),
        TEST(a_closed_watch_keeps_its_value),
        TEST(without_memory_there_is_no_watch),
        TEST(all_who_wait_see_each_change),
        TEST(a_task_waits_for_a_value),
        TEST(a_wait_for_a_value_is_cancelled_when_it_was_woken_for_another),
        TEST(a_cancelled_wait_has_seen_nothing),
        TEST(a_sender_learns_that_the_last_receiver_has_gone),
        TEST(a_thread_waits_for_changes_and_for_a_value),
    };
    return RUN_TESTS(tests);
}
