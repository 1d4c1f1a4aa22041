/* SPDX-License-Identifier: Apache-2.0 */
/* Unbounded channels: segments are made, used again and given back; the rest is as elsewhere. */
#include "channel_tasks.h"

enum { SEGMENT = 32 };

/* At each boundary: the channel is empty when it is, and only then. */
static void lengths_are_right_at_every_position(void **state)
{
    struct fixture f = begin(BLZ_UNBOUNDED);

    (void)state;
    assert_int_equal(blz_channel_capacity(f.tx.raw.channel), BLZ_UNBOUNDED);
    assert_int_equal(blz_channel_room(f.tx.raw.channel), BLZ_UNBOUNDED);
    for (uint64_t i = 0; i < 5 * SEGMENT; i++) {
        assert_true(blz_channel_is_empty(f.tx.raw.channel));
        assert_int_equal(try_recv(&f), -EAGAIN);
        assert_int_equal(try_send(&f, i), 0);
        assert_int_equal(blz_channel_len(f.tx.raw.channel), 1);
        assert_int_equal(try_recv(&f), i);
    }
    end(&f);
}

static void bursts_of_any_length_come_out_in_order(void **state)
{
    struct fixture f = begin(BLZ_UNBOUNDED);

    (void)state;
    for (uint64_t burst = 1; burst < 5 * SEGMENT; burst += 7) {
        for (uint64_t i = 0; i < burst; i++)
            assert_int_equal(try_send(&f, i), 0);
        assert_int_equal(blz_channel_len(f.tx.raw.channel), burst);
        for (uint64_t i = 0; i < burst; i++)
            assert_int_equal(try_recv(&f), i);
        assert_int_equal(try_recv(&f), -EAGAIN);
    }
    end(&f);
}

/* Memory after a burst is what it was before, but for one segment that is kept. */
static void a_burst_is_given_back(void **state)
{
    struct fixture f = begin(BLZ_UNBOUNDED);
    int64_t blocks = memory_blocks(the_memory()), bytes = memory_bytes(the_memory());
    int64_t segment;

    (void)state;
    for (uint64_t i = 0; i < 100 * SEGMENT; i++)
        assert_int_equal(try_send(&f, i), 0);
    assert_true(memory_blocks(the_memory()) >= blocks + 99);
    segment = (memory_bytes(the_memory()) - bytes) / (memory_blocks(the_memory()) - blocks);
    for (uint64_t i = 0; i < 100 * SEGMENT; i++)
        assert_int_equal(try_recv(&f), i);
    assert_true(memory_blocks(the_memory()) <= blocks + 1);
    assert_true(memory_bytes(the_memory()) <= bytes + segment);
    end(&f);
}

/* A steady stream needs no new memory. */
static void segments_are_used_again(void **state)
{
    struct fixture f = begin(BLZ_UNBOUNDED);
    int64_t calls;

    (void)state;
    for (uint64_t i = 0; i < 2 * SEGMENT; i++) {
        assert_int_equal(try_send(&f, i), 0);
        assert_int_equal(try_recv(&f), i);
    }
    calls = the_memory()->calls;
    for (uint64_t i = 0; i < 100 * SEGMENT; i++) {
        assert_int_equal(try_send(&f, i), 0);
        assert_int_equal(try_recv(&f), i);
    }
    assert_int_equal(the_memory()->calls, calls);
    end(&f);
}

/* Without memory a send fails, and nothing else happens to the channel. */
static void a_send_without_memory_fails(void **state)
{
    struct fixture f = begin(BLZ_UNBOUNDED);
    uint64_t sent = 0;
    int task;

    (void)state;
    memory_fail_at(the_memory(), 1, true);
    while (try_send(&f, sent) == 0)
        sent++;
    assert_true(sent < SEGMENT);
    assert_int_equal(try_send(&f, sent), -ENOMEM);
    memory_fail_at(the_memory(), 0, false);
    task = start_send(&f, sent); /* as a future: it does not wait for memory either */
    assert_int_equal(result_of(&f, task), 0);
    for (uint64_t i = 0; i <= sent; i++)
        assert_int_equal(try_recv(&f), i);
    assert_int_equal(try_recv(&f), -EAGAIN);
    end(&f);
}

static void a_receiver_waits_and_is_woken(void **state)
{
    struct fixture f = begin(BLZ_UNBOUNDED);
    int a = start_recv(&f), b = start_recv(&f);

    (void)state;
    assert_false(is_done(&f, a));
    assert_int_equal(result_of(&f, start_send(&f, 1)), 0);
    assert_int_equal(result_of(&f, a), 1);
    blz_channel_close(f.tx.raw.channel);
    assert_int_equal(result_of(&f, b), -EPIPE);
    assert_int_equal(try_send(&f, 2), -EPIPE);
    end(&f);
}

static void a_cancelled_receive_takes_nothing(void **state)
{
    struct fixture f = begin(BLZ_UNBOUNDED);
    int a = start_recv(&f), b = start_recv(&f);

    (void)state;
    assert_int_equal(cancelled(&f, a), -ECANCELED);
    assert_int_equal(try_send(&f, 4), 0);
    blz_handle_cancel(&f.tasks[b]);
    assert_int_equal(result_of(&f, b), 4);
    end(&f);
}

static void data_comes_before_the_end(void **state)
{
    struct fixture f = begin(BLZ_UNBOUNDED);
    uint64_t values[3 * SEGMENT];

    (void)state;
    for (uint64_t i = 0; i < 3 * SEGMENT - 5; i++)
        assert_int_equal(try_send(&f, i), 0);
    nums_sender_drop(&f.tx);
    assert_int_equal(nums_try_recv_many(&f.rx, values, 3 * SEGMENT), 3 * SEGMENT - 5);
    assert_int_equal(values[3 * SEGMENT - 6], 3 * SEGMENT - 6);
    assert_int_equal(try_recv(&f), -EPIPE);
    end(&f);
}

static void segments_in_use_are_freed_with_the_channel(void **state)
{
    struct fixture f = begin(BLZ_UNBOUNDED);

    (void)state;
    for (uint64_t i = 0; i < 10 * SEGMENT; i++)
        assert_int_equal(try_send(&f, i), 0);
    assert_int_equal(try_recv(&f), 0);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lengths_are_right_at_every_position),
        TEST(bursts_of_any_length_come_out_in_order),
        TEST(a_burst_is_given_back),
        TEST(segments_are_used_again),
        TEST(a_send_without_memory_fails),
        TEST(a_receiver_waits_and_is_woken),
        TEST(a_cancelled_receive_takes_nothing),
        TEST(data_comes_before_the_end),
        TEST(segments_in_use_are_freed_with_the_channel),
    };
    return RUN_TESTS(tests);
}
