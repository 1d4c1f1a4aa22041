/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the explorer itself: small programs whose possible outcomes are known from the memory
 * model, and small mistakes that it must find.
 *
 * Both directions are checked. An outcome that must be impossible is asserted away and the model
 * must hold; one that must be possible is asserted away too, and the model must fail with those
 * words (`expect`).
 */
#include "base/atomic.h"
#include "system/fence.h"

#include <string.h>

static uint32_t x, y, z;
static uint32_t r1, r2, r3, r4;

static void reset(void)
{
    x = y = z = 0;
    r1 = r2 = r3 = r4 = 99;
}

static void run_two(void (*first)(void *), void (*second)(void *))
{
    model_thread a = model_start(first, NULL), b = model_start(second, NULL);
    model_join(a);
    model_join(b);
}

static void run_four(void (*first)(void *), void (*second)(void *), void (*third)(void *),
                     void (*fourth)(void *))
{
    model_thread a = model_start(first, NULL), b = model_start(second, NULL);
    model_thread c = model_start(third, NULL), d = model_start(fourth, NULL);
    model_join(a);
    model_join(b);
    model_join(c);
    model_join(d);
}

/* A thread function of one or more statements. */
#define THREAD(name, ...)          \
    static void name(void *unused) \
    {                              \
        (void)unused;              \
        __VA_ARGS__;               \
    }

#define fence(order) model_fence(MODEL_SITE(MODEL_OP_FENCE, __ATOMIC_##order, __ATOMIC_##order, ""))

/* ---- Store buffering ---- */

THREAD(sb_relaxed_a, blz__store(&x, 1, RELAXED); r1 = blz__load(&y, RELAXED))
THREAD(sb_relaxed_b, blz__store(&y, 1, RELAXED); r2 = blz__load(&x, RELAXED))
THREAD(sb_rel_acq_a, blz__store(&x, 1, RELEASE); r1 = blz__load(&y, ACQUIRE))
THREAD(sb_rel_acq_b, blz__store(&y, 1, RELEASE); r2 = blz__load(&x, ACQUIRE))
THREAD(sb_seq_cst_a, blz__store(&x, 1, SEQ_CST); r1 = blz__load(&y, SEQ_CST))
THREAD(sb_seq_cst_b, blz__store(&y, 1, SEQ_CST); r2 = blz__load(&x, SEQ_CST))
THREAD(sb_fence_a, blz__store(&x, 1, RELAXED); blz__fence_seq_cst(); r1 = blz__load(&y, RELAXED))
THREAD(sb_fence_b, blz__store(&y, 1, RELAXED); blz__fence_seq_cst(); r2 = blz__load(&x, RELAXED))
THREAD(sb_heavy_b, blz__store(&y, 1, RELAXED); blz__fence_heavy(); r2 = blz__load(&x, RELAXED))
THREAD(sb_swap_a, (void)blz__swap(&x, 1, SEQ_CST); r1 = blz__load(&y, SEQ_CST))
THREAD(sb_swap_b, (void)blz__swap(&y, 1, SEQ_CST); r2 = blz__load(&x, SEQ_CST))

static void store_buffering(void (*a)(void *), void (*b)(void *))
{
    reset();
    run_two(a, b);
    model_assert(r1 != 0 || r2 != 0);
}

static void sb_relaxed(void)
{
    store_buffering(sb_relaxed_a, sb_relaxed_b);
}

static void sb_rel_acq(void)
{
    store_buffering(sb_rel_acq_a, sb_rel_acq_b);
}

static void sb_seq_cst(void)
{
    store_buffering(sb_seq_cst_a, sb_seq_cst_b);
}

static void sb_fences(void)
{
    store_buffering(sb_fence_a, sb_fence_b);
}

static void sb_asymmetric_fences(void)
{
    store_buffering(sb_relaxed_a, sb_heavy_b);
}

static void sb_one_fence(void)
{
    store_buffering(sb_fence_a, sb_relaxed_b);
}

static void sb_swaps(void)
{
    store_buffering(sb_swap_a, sb_swap_b);
}

/* A seq_cst fence on one side and seq_cst accesses on the other do order (C++20). */
static void sb_fence_and_seq_cst(void)
{
    store_buffering(sb_fence_a, sb_seq_cst_b);
}

static void sb_fence_and_rel_acq(void)
{
    store_buffering(sb_fence_a, sb_rel_acq_b);
}

/* ---- Message passing ---- */

THREAD(mp_relaxed_writer, blz__store(&x, 1, RELAXED); blz__store(&y, 1, RELAXED))
THREAD(mp_release_writer, blz__store(&x, 1, RELAXED); blz__store(&y, 1, RELEASE))
THREAD(mp_fence_writer, blz__store(&x, 1, RELAXED); fence(RELEASE); blz__store(&y, 1, RELAXED))
THREAD(mp_late_fence_writer, blz__store(&x, 1, RELAXED); blz__store(&y, 1, RELAXED); fence(RELEASE))
THREAD(mp_relaxed_reader, r1 = blz__load(&y, RELAXED); r2 = blz__load(&x, RELAXED))
THREAD(mp_acquire_reader, r1 = blz__load(&y, ACQUIRE); r2 = blz__load(&x, RELAXED))
THREAD(mp_fence_reader, r1 = blz__load(&y, RELAXED); fence(ACQUIRE); r2 = blz__load(&x, RELAXED))
THREAD(mp_seq_cst_reader, r1 = blz__load(&y, SEQ_CST); r2 = blz__load(&x, SEQ_CST))

static void message_passing(void (*writer)(void *), void (*reader)(void *))
{
    reset();
    run_two(writer, reader);
    model_assert(r1 == 0 || r2 == 1);
}

#define MESSAGE_PASSING(name, writer, reader) \
    static void name(void)                    \
    {                                         \
        message_passing(writer, reader);      \
    }

MESSAGE_PASSING(mp_relaxed, mp_relaxed_writer, mp_relaxed_reader)
MESSAGE_PASSING(mp_release_acquire, mp_release_writer, mp_acquire_reader)
MESSAGE_PASSING(mp_release_relaxed, mp_release_writer, mp_relaxed_reader)
MESSAGE_PASSING(mp_relaxed_acquire, mp_relaxed_writer, mp_acquire_reader)
MESSAGE_PASSING(mp_fence_fence, mp_fence_writer, mp_fence_reader)
MESSAGE_PASSING(mp_fence_acquire, mp_fence_writer, mp_acquire_reader)
MESSAGE_PASSING(mp_release_fence, mp_release_writer, mp_fence_reader)
MESSAGE_PASSING(mp_fence_too_late, mp_late_fence_writer, mp_fence_reader)
MESSAGE_PASSING(mp_relaxed_seq_cst_reader, mp_relaxed_writer, mp_seq_cst_reader)

/* A message that was received is seen when it was sent at all: the good outcome exists. */
static void mp_is_received(void)
{
    reset();
    run_two(mp_release_writer, mp_acquire_reader);
    model_assert(r1 != 1);
}

/* ---- Coherence ---- */

THREAD(co_writer, blz__store(&x, 1, RELAXED); blz__store(&x, 2, RELAXED))
THREAD(co_reader, r1 = blz__load(&x, RELAXED); r2 = blz__load(&x, RELAXED))

static void coherence_of_reads(void)
{
    reset();
    run_two(co_writer, co_reader);
    model_assert(r1 <= r2);
}

static void old_values_can_be_read(void)
{
    reset();
    run_two(co_writer, co_reader);
    model_assert(!(r1 == 0 && r2 == 1));
}

THREAD(own_store, blz__store(&x, 7, RELAXED); r1 = blz__load(&x, RELAXED))
THREAD(no_store, r2 = blz__load(&x, RELAXED))

static void own_stores_are_seen(void)
{
    reset();
    run_two(own_store, no_store);
    model_assert(r1 == 7);
}

/* What a thread read, and then passed on, the receiver cannot miss. */
THREAD(corr_reader, r1 = blz__load(&x, RELAXED); blz__store(&y, 1, RELEASE))
THREAD(corr_receiver, r2 = blz__load(&y, ACQUIRE); r3 = blz__load(&x, RELAXED))
THREAD(corr_writer, blz__store(&x, 1, RELAXED))
THREAD(nothing, (void)0)

static void coherence_through_others(void)
{
    reset();
    run_four(corr_writer, corr_reader, corr_receiver, nothing);
    model_assert(!(r1 == 1 && r2 == 1 && r3 == 0));
}

static void joined_threads_are_seen(void)
{
    reset();
    model_join(model_start(corr_writer, NULL));
    model_assert(blz__load(&x, RELAXED) == 1);
}

THREAD(read_x, r1 = blz__load(&x, RELAXED))

static void started_threads_see_what_was(void)
{
    reset();
    blz__store(&x, 1, RELAXED);
    model_join(model_start(read_x, NULL));
    model_assert(r1 == 1);
}

/* ---- Independent reads of independent writes ---- */

THREAD(iriw_write_x, blz__store(&x, 1, RELEASE))
THREAD(iriw_write_y, blz__store(&y, 1, RELEASE))
THREAD(iriw_read_xy, r1 = blz__load(&x, ACQUIRE); r2 = blz__load(&y, ACQUIRE))
THREAD(iriw_read_yx, r3 = blz__load(&y, ACQUIRE); r4 = blz__load(&x, ACQUIRE))
THREAD(iriw_sc_write_x, blz__store(&x, 1, SEQ_CST))
THREAD(iriw_sc_write_y, blz__store(&y, 1, SEQ_CST))
THREAD(iriw_sc_read_xy, r1 = blz__load(&x, SEQ_CST); r2 = blz__load(&y, SEQ_CST))
THREAD(iriw_sc_read_yx, r3 = blz__load(&y, SEQ_CST); r4 = blz__load(&x, SEQ_CST))
THREAD(iriw_fence_read_xy, r1 = blz__load(&x, RELAXED); blz__fence_seq_cst();
       r2 = blz__load(&y, RELAXED))
THREAD(iriw_fence_read_yx, r3 = blz__load(&y, RELAXED); blz__fence_seq_cst();
       r4 = blz__load(&x, RELAXED))

#define the_readers_disagree (r1 == 1 && r2 == 0 && r3 == 1 && r4 == 0)

static void iriw_acquire(void)
{
    reset();
    run_four(iriw_write_x, iriw_write_y, iriw_read_xy, iriw_read_yx);
    model_assert(!the_readers_disagree);
}

static void iriw_seq_cst(void)
{
    reset();
    run_four(iriw_sc_write_x, iriw_sc_write_y, iriw_sc_read_xy, iriw_sc_read_yx);
    model_assert(!the_readers_disagree);
}

static void iriw_fences(void)
{
    reset();
    run_four(iriw_write_x, iriw_write_y, iriw_fence_read_xy, iriw_fence_read_yx);
    model_assert(!the_readers_disagree);
}

/* ---- Release sequences ---- */

THREAD(rs_head, blz__store(&x, 1, RELAXED); blz__store(&y, 1, RELEASE))
THREAD(rs_rmw, uint32_t one = 1; blz__cas(&y, &one, 2, RELAXED, RELAXED))
THREAD(rs_store, if (blz__load(&y, RELAXED) == 1) blz__store(&y, 2, RELAXED))
THREAD(rs_reader, r1 = blz__load(&y, ACQUIRE); r2 = blz__load(&x, RELAXED))

static void release_sequence_through_rmw(void)
{
    reset();
    run_four(rs_head, rs_rmw, rs_reader, nothing);
    model_assert(r1 != 2 || r2 == 1);
}

static void a_store_ends_the_release_sequence(void)
{
    reset();
    run_four(rs_head, rs_store, rs_reader, nothing);
    model_assert(r1 != 2 || r2 == 1);
}

/* ---- Read-modify-write ---- */

THREAD(add_twice, blz__fetch_add(&x, 1, RELAXED); blz__fetch_add(&x, 1, RELAXED))
THREAD(add_by_hand, blz__store(&x, blz__load(&x, RELAXED) + 1, RELAXED))

static void increment_by_cas(void *unused)
{
    uint32_t old = blz__load(&x, RELAXED);

    (void)unused;
    while (!blz__cas_weak(&x, &old, old + 1, RELAXED, RELAXED))
        ;
}

static void fetch_add_counts_exactly(void)
{
    reset();
    run_two(add_twice, add_twice);
    model_assert(blz__load(&x, RELAXED) == 4);
}

static void load_and_store_lose_counts(void)
{
    reset();
    run_two(add_by_hand, add_by_hand);
    model_assert(blz__load(&x, RELAXED) == 2);
}

static void cas_loops_count_exactly(void)
{
    reset();
    run_four(increment_by_cas, increment_by_cas, increment_by_cas, nothing);
    model_assert(blz__load(&x, RELAXED) == 3);
}

static void cas_once(void *unused)
{
    uint32_t zero = 0;

    (void)unused;
    r1 = blz__cas_weak(&x, &zero, 1, RELAXED, RELAXED);
}

static void weak_cas_can_fail(void)
{
    reset();
    run_two(cas_once, nothing);
    model_assert(r1 == 1);
}

static void strong_cas_once(void *unused)
{
    uint32_t zero = 0;

    (void)unused;
    r1 = blz__cas(&x, &zero, 1, RELAXED, RELAXED);
}

static void strong_cas_cannot_fail(void)
{
    reset();
    run_two(strong_cas_once, nothing);
    model_assert(r1 == 1);
}

/* A CAS that fails is a load: it may find an old value, and its order counts. */
THREAD(failing_cas_relaxed, uint32_t two = 2;
       if (!blz__cas(&y, &two, 3, SEQ_CST, RELAXED) && two == 1) r2 = blz__load(&x, RELAXED))
THREAD(failing_cas_acquire, uint32_t two = 2;
       if (!blz__cas(&y, &two, 3, RELAXED, ACQUIRE) && two == 1) r2 = blz__load(&x, RELAXED))

static void failing_cas_synchronises(void)
{
    reset();
    run_two(rs_head, failing_cas_acquire);
    model_assert(r2 != 0);
}

/* Store buffering, with a CAS that fails as the load of one side. */
THREAD(sb_cas_relaxed, uint32_t two = 2; blz__store(&x, 1, SEQ_CST);
       blz__cas(&y, &two, 3, SEQ_CST, RELAXED); r1 = two)
THREAD(sb_cas_seq_cst, uint32_t two = 2; blz__store(&x, 1, SEQ_CST);
       blz__cas(&y, &two, 3, SEQ_CST, SEQ_CST); r1 = two)

static void failing_cas_can_be_stale(void)
{
    store_buffering(sb_cas_relaxed, sb_seq_cst_b);
}

static void failing_cas_can_be_seq_cst(void)
{
    store_buffering(sb_cas_seq_cst, sb_seq_cst_b);
}

static void failing_cas_relaxed_does_not(void)
{
    reset();
    run_two(rs_head, failing_cas_relaxed);
    model_assert(r2 != 0);
}

static void narrow_and_signed_values(void)
{
    int8_t byte = -3;
    int16_t half = -300;
    int64_t wide = INT64_MIN;
    bool flag = false;
    const char *pointer = "text";

    model_assert(blz__load(&byte, RELAXED) == -3);
    model_assert(blz__fetch_add(&byte, -126, RELAXED) == -3 && byte == 127);
    model_assert(blz__fetch_sub(&half, 1, RELAXED) == -300 && half == -301);
    blz__store(&wide, -1, RELAXED);
    model_assert(blz__load(&wide, RELAXED) == -1);
    model_assert(!blz__swap(&flag, true, RELAXED) && flag);
    model_assert(strcmp(blz__load(&pointer, RELAXED), "text") == 0);
    model_assert(blz__fetch_or(&half, 0xF00, RELAXED) == -301);
    model_assert(blz__fetch_and(&half, 0xF, RELAXED) == -45 && half == 3);
}

static const struct model models[] = {
    {"sb_relaxed", sb_relaxed, {.expect = "r1 != 0 || r2 != 0"}},
    {"sb_rel_acq", sb_rel_acq, {.expect = "r1 != 0 || r2 != 0"}},
    {"sb_one_fence", sb_one_fence, {.expect = "r1 != 0 || r2 != 0"}},
    {"sb_fence_and_rel_acq", sb_fence_and_rel_acq, {.expect = "r1 != 0 || r2 != 0"}},
    {"sb_seq_cst", sb_seq_cst, {.preemptions = MODEL_UNLIMITED}},
    {"sb_fences", sb_fences, {.preemptions = MODEL_UNLIMITED}},
    {"sb_asymmetric_fences", sb_asymmetric_fences, {.preemptions = MODEL_UNLIMITED}},
    {"sb_swaps", sb_swaps, {.preemptions = MODEL_UNLIMITED}},
    {"sb_fence_and_seq_cst", sb_fence_and_seq_cst, {.preemptions = MODEL_UNLIMITED}},

    {"mp_relaxed", mp_relaxed, {.expect = "r1 == 0 || r2 == 1"}},
    {"mp_release_relaxed", mp_release_relaxed, {.expect = "r1 == 0 || r2 == 1"}},
    {"mp_relaxed_acquire", mp_relaxed_acquire, {.expect = "r1 == 0 || r2 == 1"}},
    {"mp_fence_too_late", mp_fence_too_late, {.expect = "r1 == 0 || r2 == 1"}},
    {"mp_relaxed_seq_cst_reader", mp_relaxed_seq_cst_reader, {.expect = "r1 == 0 || r2 == 1"}},
    {"mp_release_acquire", mp_release_acquire, {.preemptions = MODEL_UNLIMITED}},
    {"mp_fence_fence", mp_fence_fence, {.preemptions = MODEL_UNLIMITED}},
    {"mp_fence_acquire", mp_fence_acquire, {.preemptions = MODEL_UNLIMITED}},
    {"mp_release_fence", mp_release_fence, {.preemptions = MODEL_UNLIMITED}},
    {"mp_is_received", mp_is_received, {.expect = "r1 != 1"}},

    {"coherence_of_reads", coherence_of_reads, {.preemptions = MODEL_UNLIMITED}},
    {"old_values_can_be_read", old_values_can_be_read, {.expect = "r1 == 0 && r2 == 1"}},
    {"own_stores_are_seen", own_stores_are_seen, {.preemptions = MODEL_UNLIMITED}},
    {"coherence_through_others", coherence_through_others, {.preemptions = MODEL_UNLIMITED}},
    {"started_threads_see_what_was",
     started_threads_see_what_was,
     {.preemptions = MODEL_UNLIMITED}},
    {"joined_threads_are_seen", joined_threads_are_seen, {.preemptions = MODEL_UNLIMITED}},

    {"iriw_acquire", iriw_acquire, {.expect = "the_readers_disagree"}},
    {"iriw_seq_cst", iriw_seq_cst, {.preemptions = MODEL_UNLIMITED}},
    {"iriw_fences", iriw_fences, {.preemptions = MODEL_UNLIMITED}},

    {"release_sequence_through_rmw",
     release_sequence_through_rmw,
     {.preemptions = MODEL_UNLIMITED}},
    {"a_store_ends_the_release_sequence",
     a_store_ends_the_release_sequence,
     {.expect = "r1 != 2 || r2 == 1"}},

    {"fetch_add_counts_exactly", fetch_add_counts_exactly, {.preemptions = MODEL_UNLIMITED}},
    {"load_and_store_lose_counts", load_and_store_lose_counts, {.expect = "== 2"}},
    {"cas_loops_count_exactly", cas_loops_count_exactly, {.preemptions = 3}},
    {"weak_cas_can_fail", weak_cas_can_fail, {.expect = "r1 == 1"}},
    {"strong_cas_cannot_fail", strong_cas_cannot_fail, {.preemptions = MODEL_UNLIMITED}},
    {"failing_cas_synchronises", failing_cas_synchronises, {.preemptions = MODEL_UNLIMITED}},
    {"failing_cas_relaxed_does_not", failing_cas_relaxed_does_not, {.expect = "r2 != 0"}},
    {"failing_cas_can_be_stale", failing_cas_can_be_stale, {.expect = "r1 != 0 || r2 != 0"}},
    {"failing_cas_can_be_seq_cst", failing_cas_can_be_seq_cst, {.preemptions = MODEL_UNLIMITED}},
    {"narrow_and_signed_values", narrow_and_signed_values, {0}},
};
MODEL_MAIN(models)
