/* SPDX-License-Identifier: Apache-2.0 */
/* Channels without waiting: capacity, order, closing, handles, messages that nobody receives. */
#include "channel_tasks.h"

#include "base/sanitize.h"
#include "channel/channel.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- capacity and order ---- */

/* As many as were asked for fit, not as many as the ring has slots; again and again. */
static void the_capacity_is_exact(void **state)
{
    static const size_t capacities[] = {1, 2, 3, 4, 5, 7, 8, 9, 1000};

    (void)state;
    for (size_t i = 0; i < sizeof capacities / sizeof capacities[0]; i++) {
        struct fixture f = begin(capacities[i]);
        for (int round = 0; round < 5; round++) {
            for (uint64_t n = 0; n < capacities[i]; n++) {
                assert_int_equal(blz_channel_room(f.tx.raw.channel), capacities[i] - n);
                assert_int_equal(try_send(&f, n), 0);
            }
            assert_int_equal(try_send(&f, 0), -EAGAIN);
            assert_int_equal(blz_channel_len(f.tx.raw.channel), capacities[i]);
            assert_int_equal(blz_channel_room(f.tx.raw.channel), 0);
            for (uint64_t n = 0; n < capacities[i]; n++)
                assert_int_equal(try_recv(&f), n);
            assert_int_equal(try_recv(&f), -EAGAIN);
            assert_true(blz_channel_is_empty(f.rx.raw.channel));
        }
        end(&f);
    }
}

static void one_goes_out_one_goes_in(void **state)
{
    struct fixture f = begin(3);

    (void)state;
    for (uint64_t n = 0; n < 3; n++)
        assert_int_equal(try_send(&f, n), 0);
    for (uint64_t n = 3; n < 1000; n++) {
        assert_int_equal(try_send(&f, n), -EAGAIN);
        assert_int_equal(try_recv(&f), n - 3);
        assert_int_equal(try_send(&f, n), 0);
        assert_int_equal(blz_channel_len(f.tx.raw.channel), 3);
    }
    end(&f);
}

static void messages_of_any_size(void **state)
{
    static const size_t sizes[] = {0, 1, 2, 3, 4, 5, 8, 12, 16, 24, 100, 5000};
    char in[5000], out[5000];

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int unbounded = 0; unbounded < 2; unbounded++) {
            blz_channel_options options = {.capacity = unbounded ? BLZ_UNBOUNDED : 5,
                                           .elem_size = sizes[i],
                                           .allocator = test_memory()};
            blz_sender tx;
            blz_receiver rx;
            assert_int_equal(blz_channel_new(&tx, &rx, &options), 0);
            for (int n = 0; n < 12; n++) {
                memset(in, n + 1, sizeof in);
                memset(out, 0, sizeof out);
                assert_int_equal(blz_sender_try_send(&tx, in), 0);
                assert_int_equal(blz_receiver_try_recv(&rx, out), 0);
                assert_memory_equal(in, out, sizes[i]);
                for (size_t k = sizes[i]; k < sizeof out; k++)
                    assert_int_equal(out[k], 0);
            }
            blz_sender_drop(&tx);
            blz_receiver_drop(&rx);
        }
    }
}

struct wide {
    _Alignas(64) char bytes[192];
};

BLZ_CHANNEL(wides, struct wide)

static void messages_are_aligned(void **state)
{
    blz_channel_options options = {.capacity = 3, .allocator = test_memory()};
    wides_sender tx;
    wides_receiver rx;
    blz_slot_ slot;

    (void)state;
    assert_int_equal(wides_new_with(&tx, &rx, &options), 0);
    for (int i = 0; i < 3; i++) {
        slot = blz_channel_claim_(tx.raw.channel);
        assert_int_equal((uintptr_t)slot.elem % 64, 0);
        memset(slot.elem, 0, sizeof(struct wide));
        blz_channel_publish_(tx.raw.channel, slot);
    }
    wides_sender_drop(&tx);
    wides_receiver_drop(&rx);
}

static void what_makes_no_sense_is_refused(void **state)
{
    blz_channel_options none = {.elem_size = 8}, large = {.elem_size = 8, .capacity = SIZE_MAX / 2},
                        crooked = {.elem_size = 8, .capacity = 1, .elem_align = 3};
    blz_sender tx;
    blz_receiver rx;
    blz_permit permit;
    struct fixture f = begin(2), u = {0};

    (void)state;
    assert_int_equal(blz_channel_new(&tx, &rx, &none), -EINVAL);
    assert_int_equal(blz_channel_new(&tx, &rx, &large), -EINVAL);
    assert_int_equal(blz_channel_new(&tx, &rx, &crooked), -EINVAL);
    assert_null(tx.channel);
    assert_null(rx.channel);
    blz_sender_drop(&tx); /* empty handles */
    blz_receiver_drop(&rx);
    assert_int_equal(blz_sender_try_reserve(&f.tx.raw, &permit, 0), -EINVAL);
    assert_int_equal(blz_sender_try_reserve(&f.tx.raw, &permit, 3), -EINVAL);
    channel_new(&u, BLZ_UNBOUNDED);
    assert_int_equal(blz_sender_try_reserve(&u.tx.raw, &permit, 1), -ENOTSUP);
    blz_permit_release(&permit); /* nothing in it */
    nums_sender_drop(&u.tx);
    nums_receiver_drop(&u.rx);
    end(&f);
}

static void without_memory_there_is_no_channel(void **state)
{
    blz_channel_options options = {.capacity = 4, .allocator = test_memory()};
    nums_sender tx;
    nums_receiver rx;

    (void)state;
    for (int unbounded = 0; unbounded < 2; unbounded++) {
        options.capacity = unbounded ? BLZ_UNBOUNDED : 4;
        for (int n = 1; n <= 2; n++) {
            memory_fail_at(the_memory(), n, false);
            assert_int_equal(nums_new_with(&tx, &rx, &options), -ENOMEM);
            assert_null(tx.raw.channel);
        }
        memory_fail_at(the_memory(), 0, false);
    }
}

/* Whether less than half of it is in memory: a large page may be a part of it. */
static bool is_untouched(const char *memory, size_t len)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages, resident = 0;
    uintptr_t first = ((uintptr_t)memory + page - 1) / page * page;
    static unsigned char in_core[16384];

    pages = (len - (first - (uintptr_t)memory)) / page;
    assert_true(pages <= sizeof in_core);
    assert_int_equal(mincore((void *)first, pages * page, in_core), 0);
    for (size_t i = 0; i < pages; i++)
        resident += in_core[i] & 1;
    return resident < pages / 2;
}

static void a_large_channel_takes_memory_when_it_is_used(void **state)
{
    enum { MESSAGES = 1 << 20 };
    nums_sender tx;
    nums_receiver rx;
    size_t len;

    (void)state;
#if defined(BLZ_TSAN) || defined(BLZ_ASAN)
    skip(); /* their calloc writes to all of it */
#endif
    assert_int_equal(nums_new(&tx, &rx, MESSAGES), 0);
    len = (size_t)(tx.raw.channel->mask + 1) * tx.raw.channel->slot_size;
    assert_true(is_untouched(tx.raw.channel->slots, len));
    for (uint64_t i = 0; i < MESSAGES; i++)
        assert_int_equal(nums_try_send(&tx, i), 0);
    assert_int_equal(nums_try_send(&tx, 0), -EAGAIN);
    assert_false(is_untouched(tx.raw.channel->slots, len));
    for (uint64_t i = 0; i < MESSAGES; i++) {
        uint64_t got = MESSAGES;
        assert_int_equal(nums_try_recv(&rx, &got), 0);
        assert_int_equal(got, i);
    }
    nums_sender_drop(&tx);
    nums_receiver_drop(&rx);
}

/* ---- closing: data first, then the end ---- */

static void what_was_sent_before_the_close_is_received(void **state)
{
    struct fixture f = begin(4);

    (void)state;
    assert_int_equal(try_send(&f, 1), 0);
    assert_int_equal(try_send(&f, 2), 0);
    assert_false(blz_channel_is_closed(f.rx.raw.channel));
    blz_channel_close(f.rx.raw.channel);
    blz_channel_close(f.rx.raw.channel);
    assert_true(blz_channel_is_closed(f.tx.raw.channel));
    assert_int_equal(try_send(&f, 3), -EPIPE);
    assert_int_equal(try_recv(&f), 1);
    assert_int_equal(try_recv(&f), 2);
    assert_int_equal(try_recv(&f), -EPIPE);
    end(&f);
}

/* An empty channel and one that has ended are not confused. */
static void either_side_closes_and_keeps_its_handle(void **state)
{
    (void)state;
    for (int receiver = 0; receiver < 2; receiver++) {
        nums_sender tx;
        nums_receiver rx;
        uint64_t got = 0;

        assert_int_equal(nums_new(&tx, &rx, 4), 0);
        assert_int_equal(nums_try_send(&tx, 7), 0);
        if (receiver)
            nums_receiver_close(&rx);
        else
            nums_sender_close(&tx);
        assert_int_equal(nums_try_send(&tx, 8), -EPIPE);
        assert_int_equal(nums_try_recv(&rx, &got), 0);
        assert_int_equal(got, 7);
        assert_int_equal(nums_try_recv(&rx, &got), -EPIPE);
        nums_sender_drop(&tx);
        nums_receiver_drop(&rx);
    }
}

static void the_last_sender_closes(void **state)
{
    struct fixture f = begin(4);
    nums_sender other = nums_sender_clone(&f.tx);

    (void)state;
    assert_int_equal(blz_channel_senders(f.tx.raw.channel), 2);
    assert_int_equal(nums_try_send(&other, 7), 0);
    nums_sender_drop(&f.tx);
    nums_sender_drop(&f.tx); /* empty */
    assert_int_equal(blz_channel_senders(other.raw.channel), 1);
    assert_false(blz_channel_is_closed(f.rx.raw.channel));
    nums_sender_drop(&other);
    assert_true(blz_channel_is_closed(f.rx.raw.channel));
    assert_int_equal(try_recv(&f), 7);
    assert_int_equal(try_recv(&f), -EPIPE);
    assert_int_equal(try_recv(&f), -EPIPE);
    end(&f);
}

static void the_last_receiver_closes(void **state)
{
    struct fixture f = begin(4);
    nums_receiver other = nums_receiver_clone(&f.rx);

    (void)state;
    assert_int_equal(blz_channel_receivers(f.tx.raw.channel), 2);
    nums_receiver_drop(&f.rx);
    assert_int_equal(try_send(&f, 1), 0);
    nums_receiver_drop(&other);
    assert_int_equal(try_send(&f, 2), -EPIPE);
    assert_int_equal(blz_channel_receivers(f.tx.raw.channel), 0);
    end(&f);
}

static void a_weak_sender_does_not_keep_it_open(void **state)
{
    struct fixture f = begin(4);
    blz_weak_sender weak = blz_sender_downgrade(&f.tx.raw);
    blz_weak_sender second = blz_weak_sender_clone(&weak);
    nums_sender tx;

    (void)state;
    assert_int_equal(blz_channel_weak_senders(f.tx.raw.channel), 2);
    assert_int_equal(nums_upgrade(&weak, &tx), 0);
    assert_ptr_equal(tx.raw.channel, f.tx.raw.channel);
    nums_sender_drop(&f.tx);
    assert_int_equal(nums_try_send(&tx, 5), 0); /* the upgraded one keeps it open */
    nums_sender_drop(&tx);
    assert_int_equal(nums_upgrade(&weak, &tx), -EPIPE);
    assert_null(tx.raw.channel);
    assert_int_equal(try_recv(&f), 5);
    assert_int_equal(try_recv(&f), -EPIPE);
    nums_receiver_drop(&f.rx);
    assert_int_equal(nums_upgrade(&second, &tx), -EPIPE); /* its memory is still there */
    blz_weak_sender_drop(&weak);
    blz_weak_sender_drop(&second);
    blz_weak_sender_drop(&second);
    end(&f);
}

static void a_weak_sender_is_not_upgraded_after_the_close(void **state)
{
    struct fixture f = begin(4);
    blz_weak_sender weak = blz_sender_downgrade(&f.tx.raw);
    nums_sender tx;

    (void)state;
    blz_channel_close(f.rx.raw.channel);
    assert_int_equal(nums_upgrade(&weak, &tx), -EPIPE);
    blz_weak_sender_drop(&weak);
    end(&f);
}

/* ---- messages that nobody receives ---- */

static uint64_t destroyed[16];
static int nr_destroyed;

static void note_destroyed(void *elem, void *arg)
{
    assert_ptr_equal(arg, &nr_destroyed);
    memcpy(&destroyed[nr_destroyed++], elem, sizeof(uint64_t));
}

static void new_with_destroy(nums_sender *tx, nums_receiver *rx, size_t capacity)
{
    blz_channel_options options = {.capacity = capacity,
                                   .destroy = note_destroyed,
                                   .destroy_arg = &nr_destroyed,
                                   .allocator = test_memory()};

    nr_destroyed = 0;
    assert_int_equal(nums_new_with(tx, rx, &options), 0);
}

static void the_last_receiver_destroys_what_is_left(void **state)
{
    nums_sender tx;
    nums_receiver rx;
    uint64_t value;

    (void)state;
    for (int unbounded = 0; unbounded < 2; unbounded++) {
        new_with_destroy(&tx, &rx, unbounded ? BLZ_UNBOUNDED : 3);
        for (uint64_t i = 0; i < 3; i++)
            assert_int_equal(nums_try_send(&tx, i), 0);
        assert_int_equal(nums_try_recv(&rx, &value), 0);
        nums_receiver_drop(&rx);
        assert_int_equal(nr_destroyed, 2);
        assert_int_equal(destroyed[0], 1);
        assert_int_equal(destroyed[1], 2);
        assert_int_equal(nums_try_send(&tx, 4), -EPIPE);
        assert_int_equal(nr_destroyed, 2); /* that one stayed with its sender */
        nums_sender_drop(&tx);
        assert_int_equal(nr_destroyed, 2);
    }
}

static void without_receivers_a_permit_still_works(void **state)
{
    nums_sender tx;
    nums_receiver rx;
    blz_permit permit;

    (void)state;
    new_with_destroy(&tx, &rx, 3);
    assert_int_equal(blz_sender_try_reserve(&tx.raw, &permit, 2), 0);
    nums_receiver_drop(&rx);
    nums_permit_send(&permit, 9);
    assert_int_equal(nr_destroyed, 1);
    assert_int_equal(destroyed[0], 9);
    blz_permit_release(&permit);
    nums_sender_drop(&tx);
    assert_int_equal(nr_destroyed, 1);
}

/* The last handle is in a message of the channel itself. */
static void drop_sender(void *elem, void *arg)
{
    (void)arg;
    blz_sender_drop(elem);
}

static void a_channel_may_contain_its_own_sender(void **state)
{
    (void)state;
    for (int unbounded = 0; unbounded < 2; unbounded++) {
        blz_channel_options options = {.capacity = unbounded ? BLZ_UNBOUNDED : 2,
                                       .elem_size = sizeof(blz_sender),
                                       .destroy = drop_sender,
                                       .allocator = test_memory()};
        blz_sender tx;
        blz_receiver rx;
        assert_int_equal(blz_channel_new(&tx, &rx, &options), 0);
        assert_int_equal(blz_sender_try_send(&tx, &tx), 0);
        blz_receiver_drop(&rx); /* destroys the message, and with it the last sender */
    }
}

/* ---- many at once ---- */

static void several_are_received_at_once(void **state)
{
    struct fixture f = begin(8);
    uint64_t values[8];

    (void)state;
    for (uint64_t i = 0; i < 5; i++)
        assert_int_equal(try_send(&f, i), 0);
    assert_int_equal(nums_try_recv_many(&f.rx, values, 0), 0);
    assert_int_equal(nums_try_recv_many(&f.rx, values, 3), 3);
    assert_int_equal(values[2], 2);
    assert_int_equal(nums_try_recv_many(&f.rx, values, 8), 2);
    assert_int_equal(values[0], 3);
    assert_int_equal(values[1], 4);
    assert_int_equal(nums_try_recv_many(&f.rx, values, 8), -EAGAIN);
    blz_channel_close(f.rx.raw.channel);
    assert_int_equal(nums_try_recv_many(&f.rx, values, 8), -EPIPE);
    end(&f);
}

/* ---- permits ---- */

static void permits_are_room_that_others_cannot_take(void **state)
{
    struct fixture f = begin(3);
    blz_permit permit, other;

    (void)state;
    assert_int_equal(blz_sender_try_reserve(&f.tx.raw, &permit, 2), 0);
    assert_int_equal(permit.count, 2);
    assert_int_equal(blz_channel_room(f.tx.raw.channel), 1);
    assert_int_equal(blz_channel_len(f.tx.raw.channel), 0);
    assert_int_equal(try_send(&f, 1), 0);
    assert_int_equal(try_send(&f, 2), -EAGAIN);
    assert_int_equal(blz_sender_try_reserve(&f.tx.raw, &other, 1), -EAGAIN);
    assert_int_equal(other.count, 0);
    assert_int_equal(try_recv(&f), 1); /* a permit is no message: it holds nobody up */
    assert_int_equal(try_recv(&f), -EAGAIN);
    nums_permit_send(&permit, 3);
    assert_int_equal(permit.count, 1);
    assert_int_equal(try_recv(&f), 3);
    blz_permit_release(&permit);
    assert_int_equal(permit.count, 0);
    assert_int_equal(blz_channel_room(f.tx.raw.channel), 3);
    end(&f);
}

static void permits_go_round_the_ring(void **state)
{
    struct fixture f = begin(3);
    blz_permit permit;

    (void)state;
    for (uint64_t i = 0; i < 100; i++) {
        assert_int_equal(blz_sender_try_reserve(&f.tx.raw, &permit, 1 + i % 3), 0);
        for (uint64_t k = 0; k <= i % 3; k++)
            blz_permit_send(&permit, &i);
        for (uint64_t k = 0; k <= i % 3; k++)
            assert_int_equal(try_recv(&f), i);
        assert_int_equal(try_recv(&f), -EAGAIN);
    }
    end(&f);
}

/* The end comes after what permits may still bring. */
static void a_closed_channel_waits_for_permits(void **state)
{
    struct fixture f = begin(2);
    blz_permit permit;

    (void)state;
    assert_int_equal(blz_sender_try_reserve(&f.tx.raw, &permit, 2), 0);
    blz_channel_close(f.rx.raw.channel);
    assert_int_equal(try_recv(&f), -EAGAIN);
    nums_permit_send(&permit, 8);
    assert_int_equal(try_recv(&f), 8);
    assert_int_equal(try_recv(&f), -EAGAIN);
    blz_permit_release(&permit);
    assert_int_equal(try_recv(&f), -EPIPE);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_capacity_is_exact),
        TEST(one_goes_out_one_goes_in),
        TEST(messages_of_any_size),
        TEST(messages_are_aligned),
        TEST(what_makes_no_sense_is_refused),
        TEST(without_memory_there_is_no_channel),
        TEST(a_large_channel_takes_memory_when_it_is_used),
        TEST(what_was_sent_before_the_close_is_received),
        TEST(either_side_closes_and_keeps_its_handle),
        TEST(the_last_sender_closes),
        TEST(the_last_receiver_closes),
        TEST(a_weak_sender_does_not_keep_it_open),
        TEST(a_weak_sender_is_not_upgraded_after_the_close),
        TEST(the_last_receiver_destroys_what_is_left),
        TEST(without_receivers_a_permit_still_works),
        TEST(a_channel_may_contain_its_own_sender),
        TEST(several_are_received_at_once),
        TEST(permits_are_room_that_others_cannot_take),
        TEST(permits_go_round_the_ring),
        TEST(a_closed_channel_waits_for_permits),
    };
    return RUN_TESTS(tests);
}
