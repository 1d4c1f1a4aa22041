/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Broadcast channels: all receivers get all messages, in order; those who lag are told by how much;
 * close, cancel, handles; messages that own something are copied one at a time and destroyed once.
 */
#include "harness.h"

#include <string.h>

struct pair {
    uint64_t a;
    uint32_t b;
};

BLZ_BROADCAST(pairs, struct pair)
BLZ_BROADCAST(numbers, uint64_t)

static void new_numbers(numbers_sender *tx, numbers_receiver *rx, size_t capacity)
{
    blz_broadcast_options options = {.capacity = capacity, .allocator = test_memory()};

    assert_int_equal(numbers_new_with(tx, rx, &options), 0);
}

static void send_range(const numbers_sender *tx, uint64_t from, uint64_t to, int64_t receivers)
{
    for (uint64_t i = from; i < to; i++)
        assert_int_equal(numbers_send(tx, i), receivers);
}

static void expect_range(numbers_receiver *rx, uint64_t from, uint64_t to)
{
    uint64_t value;

    for (uint64_t i = from; i < to; i++) {
        assert_int_equal(numbers_try_recv(rx, &value), 0);
        assert_int_equal(value, i);
    }
}

/* ---- messages ---- */

static void every_receiver_gets_every_message_since_it_subscribed(void **state)
{
    numbers_sender tx;
    numbers_receiver early, late;
    uint64_t value;

    (void)state;
    new_numbers(&tx, &early, 8);
    send_range(&tx, 0, 3, 1);
    late = numbers_subscribe(&tx);
    send_range(&tx, 3, 5, 2);
    assert_int_equal(blz_broadcast_len(&early.raw), 5);
    assert_int_equal(blz_broadcast_len(&late.raw), 2);
    expect_range(&early, 0, 5);
    expect_range(&late, 3, 5);
    assert_int_equal(numbers_try_recv(&early, &value), -EAGAIN);
    assert_int_equal(numbers_try_recv(&late, &value), -EAGAIN);
    numbers_sender_drop(&tx);
    numbers_receiver_drop(&early);
    numbers_receiver_drop(&late);
}

static void values_of_any_size_arrive_whole(void **state)
{
    pairs_sender tx;
    pairs_receiver rx;
    struct pair pair;

    (void)state;
    assert_int_equal(pairs_new(&tx, &rx, 3), 0);
    for (uint32_t i = 0; i < 10; i++) {
        assert_int_equal(pairs_send(&tx, (struct pair){UINT64_MAX - i, i}), 1);
        assert_int_equal(pairs_try_recv(&rx, &pair), 0);
        assert_true(pair.a == UINT64_MAX - i && pair.b == i);
    }
    pairs_sender_drop(&tx);
    pairs_receiver_drop(&rx);
}

static void odd_sizes_touch_nothing_beyond(void **state)
{
    (void)state;
    for (size_t size = 0; size <= 17; size++) {
        blz_broadcast_options options = {.capacity = 2,
                                         .elem_size = size,
                                         .allocator = test_memory()};
        blz_broadcast_sender tx;
        blz_broadcast_receiver rx;
        char in[18], out[18];
        assert_int_equal(blz_broadcast_new(&tx, &rx, &options), 0);
        memset(in, (int)size + 1, sizeof in);
        memset(out, 0, sizeof out);
        assert_int_equal(blz_broadcast_send(&tx, in), 1);
        assert_int_equal(blz_broadcast_try_recv(&rx, out), 0);
        assert_memory_equal(out, in, size);
        assert_int_equal(out[size], 0);
        blz_broadcast_sender_drop(&tx);
        blz_broadcast_receiver_drop(&rx);
    }
}

static void without_receivers_a_message_goes_nowhere(void **state)
{
    numbers_sender tx;
    numbers_receiver rx;
    uint64_t value;

    (void)state;
    new_numbers(&tx, NULL, 4);
    assert_int_equal(numbers_send(&tx, 1), 0);
    rx = numbers_subscribe(&tx);
    assert_int_equal(numbers_try_recv(&rx, &value), -EAGAIN);
    assert_int_equal(numbers_send(&tx, 2), 1);
    expect_range(&rx, 2, 3);
    numbers_receiver_drop(&rx);
    assert_int_equal(numbers_send(&tx, 3), 0);
    numbers_sender_drop(&tx);
}

/* ---- lag ---- */

static void a_receiver_that_lags_is_told_by_how_much(void **state)
{
    numbers_sender tx;
    numbers_receiver rx;
    uint64_t value;

    (void)state;
    new_numbers(&tx, &rx, 4);
    send_range(&tx, 0, 4, 1);
    expect_range(&rx, 0, 1); /* four would have been too few to lose any */
    send_range(&tx, 4, 10, 1);
    assert_int_equal(blz_broadcast_len(&rx.raw), 4);
    assert_int_equal(numbers_try_recv(&rx, &value), -EOVERFLOW);
    assert_int_equal(numbers_missed(&rx), 5); /* 1 to 5 */
    expect_range(&rx, 6, 10);
    assert_int_equal(numbers_try_recv(&rx, &value), -EAGAIN);
    assert_int_equal(numbers_missed(&rx), 5);
    numbers_sender_drop(&tx);
    numbers_receiver_drop(&rx);
}

static void the_capacity_is_exact(void **state)
{
    (void)state;
    for (size_t capacity = 1; capacity <= 9; capacity++) {
        numbers_sender tx;
        numbers_receiver rx;
        uint64_t value;
        new_numbers(&tx, &rx, capacity);
        assert_int_equal(blz_broadcast_capacity(tx.raw.channel), capacity);
        send_range(&tx, 0, capacity, 1);
        expect_range(&rx, 0, capacity);
        send_range(&tx, 0, capacity + 1, 1);
        assert_int_equal(numbers_try_recv(&rx, &value), -EOVERFLOW);
        assert_int_equal(numbers_missed(&rx), 1);
        expect_range(&rx, 1, capacity + 1);
        numbers_sender_drop(&tx);
        numbers_receiver_drop(&rx);
    }
}

static void lag_comes_before_the_close(void **state)
{
    numbers_sender tx;
    numbers_receiver rx;
    uint64_t value;

    (void)state;
    new_numbers(&tx, &rx, 2);
    send_range(&tx, 0, 3, 1);
    numbers_sender_drop(&tx);
    assert_int_equal(numbers_try_recv(&rx, &value), -EOVERFLOW);
    expect_range(&rx, 1, 3);
    assert_int_equal(numbers_try_recv(&rx, &value), -EPIPE);
    numbers_receiver_drop(&rx);
}

/* ---- close and handles ---- */

static void the_last_sender_closes_after_its_messages(void **state)
{
    numbers_sender tx, other;
    numbers_receiver rx;
    uint64_t value;

    (void)state;
    new_numbers(&tx, &rx, 4);
    other = numbers_sender_clone(&tx);
    assert_int_equal(blz_broadcast_senders(tx.raw.channel), 2);
    numbers_sender_drop(&tx);
    numbers_sender_drop(&tx); /* empty: fine */
    assert_false(blz_broadcast_is_closed(rx.raw.channel));
    send_range(&other, 0, 2, 1);
    numbers_sender_drop(&other);
    assert_true(blz_broadcast_is_closed(rx.raw.channel));
    expect_range(&rx, 0, 2);
    assert_int_equal(numbers_try_recv(&rx, &value), -EPIPE);
    assert_int_equal(numbers_recv_wait(&rx, &value), -EPIPE);
    numbers_receiver_drop(&rx);
    numbers_receiver_drop(&rx);
}

static void a_closed_channel_takes_no_messages(void **state)
{
    numbers_sender tx;
    numbers_receiver rx, other;
    uint64_t value;

    (void)state;
    new_numbers(&tx, &rx, 4);
    send_range(&tx, 0, 1, 1);
    blz_broadcast_close(tx.raw.channel);
    blz_broadcast_close(tx.raw.channel);
    assert_int_equal(numbers_send(&tx, 1), -EPIPE);
    other = numbers_resubscribe(&rx);
    assert_int_equal(blz_broadcast_receivers(tx.raw.channel), 2);
    assert_int_equal(numbers_try_recv(&other, &value), -EPIPE);
    expect_range(&rx, 0, 1);
    assert_int_equal(numbers_try_recv(&rx, &value), -EPIPE);
    numbers_sender_drop(&tx);
    numbers_receiver_drop(&rx);
    numbers_receiver_drop(&other);
}

static void a_weak_sender_keeps_nothing_open(void **state)
{
    blz_broadcast_weak_sender weak;
    blz_broadcast_sender sender;
    numbers_sender tx;
    numbers_receiver rx;

    (void)state;
    new_numbers(&tx, &rx, 4);
    weak = blz_broadcast_sender_downgrade(&tx.raw);
    assert_int_equal(blz_broadcast_weak_sender_upgrade(&weak, &sender), 0);
    numbers_sender_drop(&tx);
    assert_false(blz_broadcast_is_closed(rx.raw.channel));
    blz_broadcast_sender_drop(&sender);
    assert_true(blz_broadcast_is_closed(rx.raw.channel));
    assert_int_equal(blz_broadcast_weak_sender_upgrade(&weak, &sender), -EPIPE);
    assert_null(sender.channel);
    numbers_receiver_drop(&rx);
    assert_int_equal(memory_blocks(the_memory()), 2); /* the weak one still has it */
    blz_broadcast_weak_sender_drop(&weak);
    blz_broadcast_weak_sender_drop(&weak);
    assert_int_equal(memory_blocks(the_memory()), 0);
}

static int no_copy(void *to, const void *from, void *arg)
{
    (void)arg;
    (void)to;
    (void)from;
    return -EIO;
}

static void no_destroy(void *elem, void *arg)
{
    (void)arg;
    (void)elem;
}

static void options_that_cannot_be_met_are_refused(void **state)
{
    const blz_broadcast_options wrong[] = {
        {.capacity = 0, .elem_size = 8},
        {.capacity = BLZ_BROADCAST_CAPACITY_MAX + 1, .elem_size = 8},
        {.capacity = 1, .elem_size = 8, .destroy = no_destroy},
        {.capacity = 1, .elem_size = BLZ_BROADCAST_COPY_MAX + 1, .copy = no_copy},
    };
    blz_broadcast_options huge = {.capacity = 3, .elem_size = SIZE_MAX / 4};
    blz_broadcast_options fine = {.capacity = 3, .elem_size = 8, .allocator = test_memory()};
    blz_broadcast_sender tx;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(blz_broadcast_new(&tx, NULL, &wrong[i]), -EINVAL);
    assert_int_equal(blz_broadcast_new(&tx, NULL, &huge), -ENOMEM);
    huge.elem_size = SIZE_MAX;
    assert_int_equal(blz_broadcast_new(&tx, NULL, &huge), -ENOMEM);
    memory_fail_at(the_memory(), 1, false);
    assert_int_equal(blz_broadcast_new(&tx, NULL, &fine), -ENOMEM);
    memory_fail_at(the_memory(), 0, false);
}

/* ---- tasks ---- */

struct sums {
    BLZ_FRAME;
    numbers_receiver rx;
    uint64_t value;
    int64_t sum, rc;
    numbers_op op;
};

BLZ_ASYNC(sums)
{
    BLZ_BEGIN;
    for (;;) {
        BLZ_AWAIT(self->rc, numbers_recv(&self->op, &self->rx, &self->value));
        if (self->rc < 0)
            break;
        self->sum += (int64_t)self->value;
    }
    numbers_receiver_drop(&self->rx);
    BLZ_END(self->rc == -EPIPE ? self->sum : self->rc);
}

static int64_t result_of(blz_handle *handle)
{
    assert_true(blz_handle_done(handle));
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

static void all_who_wait_are_woken(void **state)
{
    enum { TASKS = 50 }; /* more than one batch of wakes */
    blz_rt *rt = new_embedded_rt();
    blz_handle handles[TASKS];
    numbers_sender tx;

    (void)state;
    new_numbers(&tx, NULL, 4);
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], sums, .rx = numbers_subscribe(&tx)), 0);
    turn_all(rt);
    for (uint64_t i = 1; i <= 3; i++) {
        assert_int_equal(numbers_send(&tx, i), TASKS);
        assert_int_equal(turn_all(rt), TASKS);
    }
    numbers_sender_drop(&tx); /* and all learn of the close */
    turn_all(rt);
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(result_of(&handles[i]), 6);
    free_rt(rt);
}

struct receives_once {
    BLZ_FRAME;
    numbers_receiver *rx;
    uint64_t value;
    int64_t rc;
    numbers_op op;
};

BLZ_ASYNC(receives_once)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, numbers_recv(&self->op, self->rx, &self->value));
    BLZ_END(self->rc < 0 ? self->rc : (int64_t)self->value);
}

static void a_cancelled_receive_loses_nothing(void **state)
{
    blz_rt *rt = new_embedded_rt();
    numbers_sender tx;
    numbers_receiver rx;
    blz_handle handle;

    (void)state;
    new_numbers(&tx, &rx, 4);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, receives_once, .rx = &rx), 0);
    turn_all(rt);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    send_range(&tx, 7, 9, 1);
    expect_range(&rx, 7, 9);
    numbers_sender_drop(&tx);
    numbers_receiver_drop(&rx);
    free_rt(rt);
}

static void a_message_that_came_first_wins_over_the_cancellation(void **state)
{
    blz_rt *rt = new_embedded_rt();
    numbers_sender tx;
    numbers_receiver rx;
    blz_handle handle;

    (void)state;
    new_numbers(&tx, &rx, 4);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, receives_once, .rx = &rx), 0);
    turn_all(rt);
    send_range(&tx, 7, 8, 1);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 7);
    numbers_sender_drop(&tx);
    numbers_receiver_drop(&rx);
    free_rt(rt);
}

/* A receiver that always finds something still lets others run. */
struct reads_on {
    BLZ_FRAME;
    numbers_receiver *rx;
    const int *other;
    uint64_t i, value;
    int64_t rc;
    numbers_op op;
};

BLZ_ASYNC(reads_on)
{
    BLZ_BEGIN;
    for (; self->i < 1000; self->i++) {
        BLZ_AWAIT(self->rc, numbers_recv(&self->op, self->rx, &self->value));
        check(self->rc == 0 && self->value == self->i);
        if (*self->other)
            break;
    }
    BLZ_END((int64_t)self->i);
}

struct runs {
    BLZ_FRAME;
    int *flag;
};

BLZ_ASYNC(runs)
{
    BLZ_BEGIN;
    *self->flag = 1;
    BLZ_END(0);
}

static void receiving_spends_the_budget(void **state)
{
    blz_rt *rt = new_embedded_rt();
    numbers_sender tx;
    numbers_receiver rx;
    blz_handle handle;
    int ran = 0;

    (void)state;
    new_numbers(&tx, &rx, 1000);
    send_range(&tx, 0, 1000, 1);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, reads_on, .rx = &rx, .other = &ran), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, runs, .flag = &ran), 0);
    turn_all(rt);
    assert_in_range(result_of(&handle), 1, 200);
    numbers_sender_drop(&tx);
    numbers_receiver_drop(&rx);
    free_rt(rt);
}

/* ---- messages that own something ---- */

struct shelf {
    int copied, destroyed;
    int fail;
};

/* Counts its copies; two at a time would be seen, by the sanitizer and by the count. */
struct book {
    int *count;
    uint64_t number;
};

static int copy_book(void *to, const void *from, void *arg)
{
    struct shelf *shelf = arg;
    const struct book *book = from;

    if (shelf->fail) {
        shelf->fail--;
        return -ENOMEM;
    }
    (*book->count)++; /* not safe for threads, and need not be */
    __atomic_fetch_add(&shelf->copied, 1, __ATOMIC_RELAXED);
    *(struct book *)to = *book;
    return 0;
}

static void destroy_book(void *elem, void *arg)
{
    struct shelf *shelf = arg;
    struct book *book = elem;

    (*book->count)--;
    __atomic_fetch_add(&shelf->destroyed, 1, __ATOMIC_RELAXED);
}

static void new_books(blz_broadcast_sender *tx, blz_broadcast_receiver *rx, struct shelf *shelf,
                      size_t capacity)
{
    blz_broadcast_options options = {.capacity = capacity,
                                     .elem_size = sizeof(struct book),
                                     .copy = copy_book,
                                     .destroy = destroy_book,
                                     .arg = shelf,
                                     .allocator = test_memory()};

    assert_int_equal(blz_broadcast_new(tx, rx, &options), 0);
}

static void a_message_that_is_overwritten_is_destroyed_at_once(void **state)
{
    struct shelf shelf = {0};
    blz_broadcast_sender tx;
    blz_broadcast_receiver rx;
    int counts[8];
    struct book book;

    (void)state;
    new_books(&tx, &rx, &shelf, 3);
    for (uint64_t i = 0; i < 8; i++) {
        counts[i] = 1;
        assert_int_equal(blz_broadcast_send(&tx, &(struct book){&counts[i], i}), 1);
        assert_int_equal(shelf.destroyed, i < 3 ? 0 : (int)i - 2);
    }
    for (int i = 0; i < 5; i++)
        assert_int_equal(counts[i], 0);
    assert_int_equal(blz_broadcast_try_recv(&rx, &book), -EOVERFLOW);
    assert_int_equal(blz_broadcast_missed(&rx), 5);
    assert_int_equal(blz_broadcast_try_recv(&rx, &book), 0);
    assert_true(book.number == 5 && counts[5] == 2);
    blz_broadcast_sender_drop(&tx);
    blz_broadcast_receiver_drop(&rx); /* and the rest, with the channel */
    assert_int_equal(shelf.destroyed, 8);
    assert_true(counts[5] == 1 && counts[6] == 0 && counts[7] == 0);
}

static void a_message_that_nobody_can_get_is_destroyed_or_stays_with_the_sender(void **state)
{
    struct shelf shelf = {0};
    blz_broadcast_sender tx;
    int count = 1;

    (void)state;
    new_books(&tx, NULL, &shelf, 3);
    assert_int_equal(blz_broadcast_send(&tx, &(struct book){&count, 0}), 0);
    assert_int_equal(count, 0);
    blz_broadcast_close(tx.channel);
    count = 1;
    assert_int_equal(blz_broadcast_send(&tx, &(struct book){&count, 0}), -EPIPE);
    assert_int_equal(count, 1);
    blz_broadcast_sender_drop(&tx);
}

static void a_copy_that_fails_can_be_tried_again(void **state)
{
    struct shelf shelf = {0};
    blz_broadcast_sender tx;
    blz_broadcast_receiver rx;
    int count = 1;
    struct book book;

    (void)state;
    new_books(&tx, &rx, &shelf, 1);
    assert_int_equal(blz_broadcast_send(&tx, &(struct book){&count, 4}), 1);
    shelf.fail = 2;
    assert_int_equal(blz_broadcast_try_recv(&rx, &book), -ENOMEM);
    assert_int_equal(blz_broadcast_recv_wait(&rx, &book), -ENOMEM);
    assert_int_equal(blz_broadcast_recv_wait(&rx, &book), 0);
    assert_true(book.number == 4 && count == 2);
    blz_broadcast_sender_drop(&tx);
    blz_broadcast_receiver_drop(&rx);
    assert_int_equal(count, 1);
}

static int not_now(void *to, const void *from, void *arg)
{
    (void)arg;
    (void)to;
    (void)from;
    return -EAGAIN;
}

/* It is not mistaken for "nothing has been sent", for which one would wait. */
static void a_copy_may_fail_with_any_error(void **state)
{
    blz_broadcast_options options = {.capacity = 1,
                                     .elem_size = sizeof(int),
                                     .copy = not_now,
                                     .allocator = test_memory()};
    blz_broadcast_sender tx;
    blz_broadcast_receiver rx;
    int value = 1;

    (void)state;
    assert_int_equal(blz_broadcast_new(&tx, &rx, &options), 0);
    assert_int_equal(blz_broadcast_send(&tx, &value), 1);
    assert_int_equal(blz_broadcast_recv_wait(&rx, &value), -EAGAIN);
    blz_broadcast_sender_drop(&tx);
    blz_broadcast_receiver_drop(&rx);
}

/* ---- threads ---- */

enum { BOOKS = 2000 };

static void *read_books(void *arg)
{
    blz_broadcast_receiver *rx = arg;
    struct book book;
    int64_t received = 0;
    int rc;

    while ((rc = blz_broadcast_recv_wait(rx, &book)) != -EPIPE) {
        check(rc == 0 || rc == -EOVERFLOW);
        received += rc == 0 ? 1 : (int64_t)blz_broadcast_missed(rx);
    }
    check(received == BOOKS);
    return NULL;
}

/* Copies are counted by two threads, without an atomic: the lock of the message orders them. */
static void copies_of_one_message_are_made_one_at_a_time(void **state)
{
    static int counts[BOOKS];
    struct shelf shelf = {0};
    blz_broadcast_sender tx;
    blz_broadcast_receiver receivers[2];
    pthread_t threads[2];
    int64_t sum = 0;

    (void)state;
    new_books(&tx, &receivers[0], &shelf, BOOKS / 2);
    receivers[1] = blz_broadcast_subscribe(&tx);
    for (int i = 0; i < 2; i++)
        threads[i] = start_thread(read_books, &receivers[i]);
    for (uint64_t i = 0; i < BOOKS; i++) {
        counts[i] = 1;
        assert_int_equal(blz_broadcast_send(&tx, &(struct book){&counts[i], i}), 2);
    }
    blz_broadcast_sender_drop(&tx);
    for (int i = 0; i < 2; i++) {
        join_thread(threads[i]);
        blz_broadcast_receiver_drop(&receivers[i]);
    }
    for (int i = 0; i < BOOKS; i++)
        sum += counts[i];
    assert_int_equal(sum, shelf.copied); /* each message: 1 + copies - 1 */
    assert_int_equal(shelf.destroyed, BOOKS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_receiver_gets_every_message_since_it_subscribed),
        TEST(values_of_any_size_arrive_whole),
        TEST(odd_sizes_touch_nothing_beyond),
        TEST(without_receivers_a_message_goes_nowhere),
        TEST(a_receiver_that_lags_is_told_by_how_much),
        TEST(the_capacity_is_exact),
        TEST(lag_comes_before_the_close),
        TEST(the_last_sender_closes_after_its_messages),
        TEST(a_closed_channel_takes_no_messages),
        TEST(a_weak_sender_keeps_nothing_open),
        TEST(options_that_cannot_be_met_are_refused),
        TEST(all_who_wait_are_woken),
        TEST(a_cancelled_receive_loses_nothing),
        TEST(a_message_that_came_first_wins_over_the_cancellation),
        TEST(receiving_spends_the_budget),
        TEST(a_message_that_is_overwritten_is_destroyed_at_once),
        TEST(a_message_that_nobody_can_get_is_destroyed_or_stays_with_the_sender),
        TEST(a_copy_that_fails_can_be_tried_again),
        TEST(a_copy_may_fail_with_any_error),
        TEST(copies_of_one_message_are_made_one_at_a_time),
    };
    return RUN_TESTS(tests);
}
