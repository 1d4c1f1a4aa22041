/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cancellation tokens: whoever waits hears of it, and sees what was done before; a child that
 * comes, or goes, while its parent is cancelled; callbacks are called once, and never after they
 * have been unregistered; two that cancel at once; a guard that ends while it is being told.
 */
#include <blitz/token.h>

#include "support/hand_polled.h"

#include <string.h>

static blz_token *root, *child;
static uint32_t data;    /* plain: written before the cancellation */
static uint32_t cancels; /* atomic: how many cancelled something */
static uint32_t *calls;  /* plain, on the heap: how often the callback was called */
static blz_token_callback *callback;

static void begin(bool with_child)
{
    model_assert(blz_token_new(&root) == 0);
    child = NULL;
    if (with_child)
        model_assert(blz_token_child(&child, root) == 0);
    data = cancels = 0;
    model_forget(&cancels, sizeof cancels);
}

static void cancel_root(void *unused)
{
    (void)unused;
    blz__plain_write(&data);
    data = 7;
    if (blz_token_cancel(root))
        blz__fetch_add(&cancels, 1u, RELAXED);
}

/* With a reference of its own, which is the last in some executions. */
static void cancel_root_and_unref(void *unused)
{
    cancel_root(unused);
    blz_token_unref(root);
}

static void read_data(void)
{
    blz__plain_read(&data);
    model_assert(data == 7);
}

static int64_t await_cancelled(blz_token *token)
{
    blz_token_op op = {0};
    hand_polled hand;
    int64_t result;

    hand_begin(&hand);
    result = hand_await(&hand, blz_token_cancelled(&op, token));
    hand_end(&hand);
    return result;
}

/* ---- waiting ---- */

static void who_waits_hears_of_it(void)
{
    begin(false);
    blz_token_ref(root);
    model_thread thread = model_start_named(cancel_root_and_unref, NULL, "cancels");
    model_assert(await_cancelled(root) == 0);
    read_data();
    blz_token_unref(root);
    model_join(thread);
}

static void who_looks_sees_what_was_done_before(void)
{
    begin(true);
    model_thread thread = model_start_named(cancel_root, NULL, "cancels");
    while (!blz_token_is_cancelled(child))
        blz__spin_hint();
    read_data();
    model_join(thread);
    blz_token_unref(child);
    blz_token_unref(root);
}

static void a_cancelled_wait_lets_go(void)
{
    blz_token_op op = {0};
    hand_polled hand;

    begin(false);
    hand_begin(&hand);
    model_thread thread = model_start_named(cancel_root, NULL, "cancels");
    blz_future *wait = blz_token_cancelled(&op, root);
    if (blz_is_pending(wait->ops->poll(wait, &hand.cx))) {
        wait->ops->cancel(wait, &hand.cx);
        hand_await(&hand, wait);
    }
    model_assert(wait->result == 0 || wait->result == -ECANCELED);
    hand_end(&hand);
    model_join(thread);
    blz_token_unref(root);
}

/* ---- children ---- */

static void a_child_that_comes_hears_of_it(void)
{
    begin(false);
    model_thread thread = model_start_named(cancel_root, NULL, "cancels");
    model_assert(blz_token_child(&child, root) == 0);
    model_assert(await_cancelled(child) == 0);
    read_data();
    blz_token_unref(child);
    model_join(thread);
    blz_token_unref(root);
}

static void a_child_may_go_meanwhile(void)
{
    begin(true);
    model_thread thread = model_start_named(cancel_root_and_unref, NULL, "cancels");
    blz_token_unref(child);
    model_join(thread);
}

static void drop_child(void *unused)
{
    (void)unused;
    blz_token_unref(child);
}

static void the_last_child_frees_its_parents(void)
{
    blz_token *leaf;

    begin(true);
    model_assert(blz_token_child(&leaf, child) == 0);
    blz_token_unref(root);
    model_thread thread = model_start_named(drop_child, NULL, "drops");
    blz_token_unref(leaf);
    model_join(thread);
}

static void cancel_child(void *unused)
{
    (void)unused;
    if (blz_token_cancel(child))
        blz__fetch_add(&cancels, 1u, RELAXED);
}

/* ---- callbacks ---- */

static void count_call(void *arg)
{
    uint32_t *count = arg;

    blz__plain_write(count);
    ++*count;
}

static void begin_callback(bool with_child)
{
    begin(with_child);
    calls = model_alloc(sizeof *calls, _Alignof(uint32_t));
    *calls = 0;
    callback = model_alloc(sizeof *callback, _Alignof(blz_token_callback));
}

/* Unregisters, and frees at once what the callback uses, and the callback. */
static bool unregister_and_free(uint32_t *count)
{
    bool unregistered = blz_token_unregister(callback);

    blz__plain_write(calls);
    *count = *calls;
    model_free(calls);
    model_free(callback);
    return unregistered;
}

static void unregister_against_cancel(void)
{
    uint32_t count;

    begin_callback(false);
    model_assert(blz_token_register(callback, root, count_call, calls) == 0);
    model_thread thread = model_start_named(cancel_root, NULL, "cancels");
    bool unregistered = unregister_and_free(&count);
    model_assert(count == !unregistered);
    model_join(thread);
    blz_token_unref(root);
}

static void register_against_cancel(void)
{
    uint32_t count;

    begin_callback(false);
    model_thread thread = model_start_named(cancel_root, NULL, "cancels");
    int rc = blz_token_register(callback, root, count_call, calls);
    if (rc == 1)
        model_assert(*calls == 1);
    model_join(thread);
    model_assert(!unregister_and_free(&count) && count == 1);
    blz_token_unref(root);
}

/* Called by the other thread, it takes itself away, and its memory. */
static void unregister_from_inside(void *unused)
{
    uint32_t count;

    (void)unused;
    model_assert(!unregister_and_free(&count));
}

static void a_callback_may_unregister_itself(void)
{
    begin_callback(false);
    model_assert(blz_token_register(callback, root, unregister_from_inside, NULL) == 0);
    model_thread thread = model_start_named(cancel_root_and_unref, NULL, "cancels");
    model_join(thread);
}

/* The parent and the child are cancelled at once: the callback of the child is called once. */
static void two_cancel_at_once(void)
{
    uint32_t count;

    begin_callback(true);
    model_assert(blz_token_register(callback, child, count_call, calls) == 0);
    model_thread thread = model_start_named(cancel_root, NULL, "parent");
    cancel_child(NULL);
    model_assert(blz_token_is_cancelled(child));
    model_join(thread);
    model_assert(cancels >= 1 && cancels <= 2);
    model_assert(!unregister_and_free(&count) && count == 1);
    blz_token_unref(child);
    blz_token_unref(root);
}

static void one_of_two_cancels_it(void)
{
    begin(true);
    model_thread thread = model_start_named(cancel_child, NULL, "second");
    cancel_child(NULL);
    model_join(thread);
    model_assert(cancels == 1);
    blz_token_unref(child);
    blz_token_unref(root);
}

/* ---- guards ---- */

/* Ready with 5 when it is polled a second time. */
struct second_poll {
    blz_future future;
    bool polled;
};

static blz_poll second_poll_poll(blz_future *future, blz_cx *cx)
{
    struct second_poll *second = (struct second_poll *)future;

    if (second->polled)
        return blz_future_done(future, 5);
    second->polled = true;
    return blz_cx_yield(cx);
}

static const blz_future_ops second_poll_ops = {.name = "second_poll", .poll = second_poll_poll};

static void a_guard_ends_with_its_token(void)
{
    blz_token_guard_op op = {0};
    blz_future pending;
    hand_polled hand;

    begin(true);
    hand_begin(&hand);
    model_thread thread = model_start_named(cancel_root, NULL, "cancels");
    model_assert(hand_await(&hand, blz_token_guard(&op, child, blz_pending(&pending))) ==
                 -ECANCELED);
    hand_end(&hand);
    model_join(thread);
    blz_token_unref(child);
    blz_token_unref(root);
}

/* What is inside is ready while the token is cancelled: the guard leaves the queue in time. */
static void a_guard_ends_while_it_is_told(void)
{
    blz_token_guard_op *op =
        memset(model_alloc(sizeof *op, _Alignof(blz_token_guard_op)), 0, sizeof *op);
    struct second_poll inner = {.future = {.ops = &second_poll_ops}};
    hand_polled hand;

    begin(false);
    hand_begin(&hand);
    model_thread thread = model_start_named(cancel_root, NULL, "cancels");
    int64_t result = hand_await(&hand, blz_token_guard(op, root, &inner.future));
    model_assert(result == 5 || (result == -ECANCELED && !inner.polled));
    model_free(op);
    hand_end(&hand);
    model_join(thread);
    blz_token_unref(root);
}

static const struct model models[] = {
    {"who_waits_hears_of_it", who_waits_hears_of_it, {.preemptions = 2}},
    {"who_looks_sees_what_was_done_before",
     who_looks_sees_what_was_done_before,
     {.preemptions = 2}},
    {"a_cancelled_wait_lets_go", a_cancelled_wait_lets_go, {.preemptions = 3}},
    {"a_child_that_comes_hears_of_it",
     a_child_that_comes_hears_of_it,
     {.preemptions = 2, .stale_reads = 1}},
    {"a_child_may_go_meanwhile", a_child_may_go_meanwhile, {.preemptions = 3}},
    {"the_last_child_frees_its_parents", the_last_child_frees_its_parents, {.preemptions = 3}},
    {"unregister_against_cancel", unregister_against_cancel, {.preemptions = 3}},
    {"register_against_cancel", register_against_cancel, {.preemptions = 3}},
    {"a_callback_may_unregister_itself", a_callback_may_unregister_itself, {.preemptions = 2}},
    {"two_cancel_at_once", two_cancel_at_once, {.preemptions = 2}},
    {"one_of_two_cancels_it", one_of_two_cancels_it, {.preemptions = 3}},
    {"a_guard_ends_with_its_token",
     a_guard_ends_with_its_token,
     {.preemptions = 2, .stale_reads = 1}},
    {"a_guard_ends_while_it_is_told", a_guard_ends_while_it_is_told, {.preemptions = 2}},
};

MODEL_MAIN(models)
