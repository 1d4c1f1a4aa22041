/* SPDX-License-Identifier: Apache-2.0 */
/* Cancellation tokens: the tree, waiting, callbacks, tasks, and who may let go of what when. */
#include "harness.h"

#include <pthread.h>

enum { MANY = 100000 };

static blz_token *new_token(void)
{
    blz_token *token;

    assert_int_equal(blz_token_new_with(&token, test_memory()), 0);
    return token;
}

static blz_token *new_child(blz_token *parent)
{
    blz_token *token;

    assert_int_equal(blz_token_child(&token, parent), 0);
    return token;
}

static int64_t result_of(blz_handle *handle)
{
    assert_true(blz_handle_done(handle));
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

/* ---- the tree ---- */

static void cancelling_goes_down_and_not_up(void **state)
{
    blz_token *root = new_token(), *left = new_child(root), *right = new_child(root);
    blz_token *leaf = new_child(left);

    (void)state;
    assert_true(blz_token_cancel(left));
    assert_false(blz_token_cancel(left));
    assert_true(blz_token_is_cancelled(leaf));
    assert_false(blz_token_is_cancelled(right));
    assert_false(blz_token_is_cancelled(root));
    assert_true(blz_token_cancel(root));
    assert_true(blz_token_is_cancelled(right));
    assert_false(blz_token_cancel(right));
    blz_token_unref(root);
    blz_token_unref(leaf);
    blz_token_unref(left);
    blz_token_unref(right);
}

static void a_child_of_a_cancelled_token_is_cancelled(void **state)
{
    blz_token *root = new_token(), *child;

    (void)state;
    blz_token_cancel(root);
    child = new_child(root);
    assert_true(blz_token_is_cancelled(child));
    blz_token_unref(root);
    blz_token_unref(child);
}

static void without_the_one_between_the_leaf_is_still_reached(void **state)
{
    blz_token *root = new_token(), *between = new_child(root), *leaf = new_child(between);

    (void)state;
    blz_token_unref(between);
    assert_true(blz_token_cancel(root));
    assert_true(blz_token_is_cancelled(leaf));
    blz_token_unref(root);
    blz_token_unref(leaf);
}

static void letting_go_cancels_nothing(void **state)
{
    blz_token *root = new_token(), *child = new_child(root);

    (void)state;
    blz_token_unref(NULL);
    blz_token_unref(blz_token_ref(root));
    blz_token_unref(root);
    assert_false(blz_token_is_cancelled(child));
    blz_token_unref(child);
}

static void without_memory_there_is_no_token(void **state)
{
    blz_token *root = new_token(), *token;

    (void)state;
    memory_fail_at(the_memory(), 1, true);
    assert_int_equal(blz_token_new_with(&token, test_memory()), -ENOMEM);
    assert_int_equal(blz_token_child(&token, root), -ENOMEM);
    memory_fail_at(the_memory(), 0, false);
    assert_true(blz_token_cancel(root)); /* nothing half linked */
    blz_token_unref(root);
}

static void many_children_are_cancelled(void **state)
{
    blz_token *root = new_token(), **children = test_malloc(MANY * sizeof(blz_token *));

    (void)state;
    for (int i = 0; i < MANY; i++)
        children[i] = new_child(root);
    for (int i = 0; i < MANY; i += 3)
        blz_token_unref(children[i]);
    assert_true(blz_token_cancel(root));
    for (int i = 0; i < MANY; i++) {
        if (i % 3 == 0)
            continue;
        assert_true(blz_token_is_cancelled(children[i]));
        blz_token_unref(children[i]);
    }
    blz_token_unref(root);
    test_free(children);
}

/* On a thread with little stack. */
static void *cancel_a_chain(void *unused)
{
    for (int round = 0; round < 2; round++) {
        blz_token *root, *leaf, *next;
        check(blz_token_new_with(&root, test_memory()) == 0);
        leaf = blz_token_ref(root);
        for (int i = 0; i < MANY; i++) {
            check(blz_token_child(&next, leaf) == 0);
            blz_token_unref(leaf);
            leaf = next;
        }
        if (round == 0) {
            check(blz_token_cancel(root));
            check(blz_token_is_cancelled(leaf));
        }
        blz_token_unref(root);
        blz_token_unref(leaf); /* and with it the whole chain */
    }
    return unused;
}

static void a_deep_chain_needs_no_stack(void **state)
{
    pthread_attr_t attr;
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, 256 * 1024), 0);
    assert_int_equal(pthread_create(&thread, &attr, cancel_a_chain, NULL), 0);
    pthread_attr_destroy(&attr);
    join_thread(thread);
}

/* ---- waiting ---- */

struct waits {
    BLZ_FRAME;
    blz_token *token;
    int64_t rc;
    blz_token_op wait;
};

BLZ_ASYNC(waits)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_token_cancelled(&self->wait, self->token));
    BLZ_END(self->rc);
}

static void all_that_wait_are_woken(void **state)
{
    blz_token *root = new_token(), *child = new_child(root);
    blz_rt *rt = new_embedded_rt();
    blz_handle handles[70], late;

    (void)state;
    for (int i = 0; i < 70; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], waits, .token = i % 2 ? root : child), 0);
    turn_all(rt);
    blz_handle_cancel(&handles[3]);
    turn_all(rt);
    assert_int_equal(result_of(&handles[3]), -ECANCELED);
    blz_token_cancel(root);
    blz_handle_cancel(&handles[4]); /* too late */
    turn_all(rt);
    for (int i = 0; i < 70; i++) {
        if (i != 3)
            assert_int_equal(result_of(&handles[i]), 0);
    }
    assert_int_equal(BLZ_SPAWN_ON(rt, &late, waits, .token = child), 0);
    turn_all(rt);
    assert_int_equal(result_of(&late), 0);
    blz_token_unref(child);
    blz_token_unref(root);
    free_rt(rt);
}

static void *cancel_from_thread(void *arg)
{
    blz_token_cancel(arg);
    blz_token_unref(arg);
    return NULL;
}

static void a_thread_blocks_until_it_is_cancelled(void **state)
{
    blz_token *root = new_token(), *child = new_child(root);
    pthread_t thread = start_thread(cancel_from_thread, root);

    (void)state;
    assert_int_equal(blz_token_wait(child), 0);
    blz_token_unref(child);
    join_thread(thread);
}

/* ---- guards ---- */

struct guarded {
    BLZ_FRAME;
    blz_token *token;
    struct gate *gate;
    int64_t rc;
    struct gate_wait wait;
    blz_token_guard_op guard;
};

BLZ_ASYNC(guarded)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc,
              blz_token_guard(&self->guard, self->token, gate_enter(&self->wait, self->gate)));
    BLZ_END(self->rc);
}

static void spawn_guarded(blz_rt *rt, blz_handle *handle, blz_token *token, struct gate *gate)
{
    assert_int_equal(BLZ_SPAWN_ON(rt, handle, guarded, .token = token, .gate = gate), 0);
    turn_all(rt);
}

static void a_guard_gives_the_result_of_what_is_inside(void **state)
{
    blz_token *token = new_token();
    struct gate gate = GATE_INIT;
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;

    (void)state;
    spawn_guarded(rt, &handle, token, &gate);
    gate_open(&gate, 7);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 7);
    spawn_guarded(rt, &handle, token, &gate); /* at once */
    assert_int_equal(result_of(&handle), 7);
    assert_true(blz_token_cancel(token)); /* nobody is in the queue any more */
    blz_token_unref(token);
    free_rt(rt);
}

static void a_guard_cancels_what_is_inside(void **state)
{
    blz_token *token = new_token();
    struct gate gate = GATE_INIT;
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;

    (void)state;
    spawn_guarded(rt, &handle, token, &gate);
    blz_token_cancel(token);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    spawn_guarded(rt, &handle, token, &gate); /* does not begin */
    assert_int_equal(result_of(&handle), -ECANCELED);
    assert_int_equal(event_count(&gate.arrived), 1);
    blz_token_unref(token);
    free_rt(rt);
}

static void what_is_inside_wins_if_both_are_ready(void **state)
{
    blz_token *token = new_token();
    struct gate gate = GATE_INIT;
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;

    (void)state;
    spawn_guarded(rt, &handle, token, &gate);
    blz_token_cancel(token);
    gate_open(&gate, 3);
    turn_all(rt);
    assert_int_equal(result_of(&handle), 3);
    blz_token_unref(token);
    free_rt(rt);
}

static void a_guard_passes_a_cancellation_on(void **state)
{
    blz_token *token = new_token();
    struct gate gate = GATE_INIT;
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;

    (void)state;
    spawn_guarded(rt, &handle, token, &gate);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    assert_true(blz_token_cancel(token));
    blz_token_unref(token);
    free_rt(rt);
}

struct guards_a_scope {
    BLZ_FRAME;
    blz_token *token;
    struct gate *gate;
    int64_t rc;
    blz_scope scope;
    blz_scope_op join;
    blz_token_guard_op guard;
};

BLZ_ASYNC(guards_a_scope)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    for (int i = 0; i < 5; i++)
        check(BLZ_SCOPE_SPAWN(&self->scope, enters, .gate = self->gate) == 0);
    BLZ_AWAIT(self->rc, blz_token_guard(&self->guard, self->token,
                                        blz_scope_join(&self->join, &self->scope)));
    BLZ_END(self->rc);
}

static void a_guard_around_a_join_cancels_the_scope(void **state)
{
    blz_token *token = new_token();
    struct gate gate = GATE_INIT;
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, guards_a_scope, .token = token, .gate = &gate), 0);
    turn_all(rt);
    assert_int_equal(event_count(&gate.arrived), 5);
    blz_token_cancel(token);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    blz_token_unref(token);
    free_rt(rt);
}

struct guards_a_box {
    BLZ_FRAME;
    blz_token *token;
    int64_t rc;
    blz_box box;
    blz_token_guard_op guard;
};

BLZ_ASYNC(guards_a_box)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_token_guard(&self->guard, self->token,
                                        BLZ_BOX(&self->box, waits, .token = self->token)));
    BLZ_END(self->rc);
}

static void a_box_that_does_not_start_is_given_back(void **state)
{
    blz_token *token = new_token();
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;

    (void)state;
    blz_token_cancel(token);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, guards_a_box, .token = token), 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    blz_token_unref(token);
    free_rt(rt);
}

/* ---- callbacks ---- */

struct log {
    int count;
    int order[8];
};

struct entry {
    struct log *log;
    int number;
    blz_token_callback callback;
    blz_token_callback *other; /* unregistered by the call, if there is one */
    blz_token *drop, *cancel;
    bool unregistered;
};

static void note(void *arg)
{
    struct entry *entry = arg;

    entry->log->order[entry->log->count++] = entry->number;
    if (entry->other)
        entry->unregistered = blz_token_unregister(entry->other);
    if (entry->cancel)
        blz_token_cancel(entry->cancel);
    blz_token_unref(entry->drop);
}

static void callbacks_are_called_once_and_in_order(void **state)
{
    blz_token *root = new_token(), *child = new_child(root);
    struct log log = {0};
    struct entry entries[4] = {{&log, 1, .other = NULL},
                               {&log, 2, .other = NULL},
                               {&log, 3, .other = NULL},
                               {&log, 4, .other = NULL}};

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(blz_token_register(&entries[i].callback, i == 2 ? child : root, note,
                                            &entries[i]),
                         0);
    assert_true(blz_token_unregister(&entries[1].callback));
    assert_false(blz_token_unregister(&entries[1].callback)); /* again: nothing */
    blz_token_cancel(root);
    blz_token_cancel(root);
    assert_int_equal(log.count, 3);
    assert_int_equal(log.order[0], 1);
    assert_int_equal(log.order[1], 4);
    assert_int_equal(log.order[2], 3);
    for (int i = 0; i < 4; i++)
        assert_false(blz_token_unregister(&entries[i].callback));
    blz_token_unref(child);
    blz_token_unref(root);
}

static void on_a_cancelled_token_the_callback_is_called_at_once(void **state)
{
    blz_token *token = new_token();
    struct log log = {0};
    struct entry entry = {&log, 1, .other = NULL};

    (void)state;
    blz_token_cancel(token);
    assert_int_equal(blz_token_register(&entry.callback, token, note, &entry), 1);
    assert_int_equal(log.count, 1);
    assert_false(blz_token_unregister(&entry.callback)); /* not needed, does no harm */
    blz_token_unref(token);
}

static void a_callback_finds_all_below_cancelled_and_may_do_anything(void **state)
{
    blz_token *root = new_token(), *child = new_child(root), *another = new_token();
    struct log log = {0};
    struct entry first = {&log, 1, .other = NULL}, second = {&log, 2, .other = NULL};
    struct entry third = {&log, 3, .other = NULL};

    (void)state;
    first.other = &first.callback; /* itself */
    first.cancel = another;
    second.other = &third.callback; /* another one, which is not called then */
    second.drop = root;             /* the reference of who cancels */
    assert_int_equal(blz_token_register(&first.callback, root, note, &first), 0);
    assert_int_equal(blz_token_register(&second.callback, root, note, &second), 0);
    assert_int_equal(blz_token_register(&third.callback, child, note, &third), 0);
    assert_true(blz_token_cancel(root));
    assert_int_equal(log.count, 2);
    assert_false(first.unregistered);
    assert_true(second.unregistered);
    assert_true(blz_token_is_cancelled(another));
    assert_false(blz_token_unregister(&second.callback));
    blz_token_unref(child);
    blz_token_unref(another);
}

static void a_registered_callback_keeps_its_token(void **state)
{
    blz_token *token = new_token();
    struct log log = {0};
    struct entry entry = {&log, 1, .other = NULL};

    (void)state;
    assert_int_equal(blz_token_register(&entry.callback, token, note, &entry), 0);
    blz_token_unref(token);
    assert_true(blz_token_unregister(&entry.callback));
    assert_int_equal(log.count, 0);
}

struct slow {
    struct event running, go_on;
    bool ended;
};

static void call_slowly(void *arg)
{
    struct slow *slow = arg;

    event_post(&slow->running);
    event_wait(&slow->go_on, 1);
    __atomic_store_n(&slow->ended, true, __ATOMIC_RELAXED);
}

static void *let_go_on(void *arg)
{
    event_post(arg);
    return NULL;
}

/* The end of the call is ordered by unregistering alone. */
static void unregister_waits_for_a_running_callback(void **state)
{
    blz_token *token = new_token();
    struct slow slow = {.running = EVENT_INIT, .go_on = EVENT_INIT};
    blz_token_callback callback;
    pthread_t cancels, helper;

    (void)state;
    assert_int_equal(blz_token_register(&callback, token, call_slowly, &slow), 0);
    cancels = start_thread(cancel_from_thread, blz_token_ref(token));
    event_wait(&slow.running, 1);
    helper = start_thread(let_go_on, &slow.go_on);
    assert_false(blz_token_unregister(&callback));
    assert_true(__atomic_load_n(&slow.ended, __ATOMIC_RELAXED));
    join_thread(cancels);
    join_thread(helper);
    blz_token_unref(token);
}

/* ---- tasks ---- */

static void a_bound_task_is_cancelled(void **state)
{
    blz_token *token = new_token();
    blz_token_callback bindings[3];
    blz_rt *rt = new_embedded_rt();
    blz_handle handles[3];

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], sleeps), 0);
    turn_all(rt);
    assert_int_equal(blz_token_bind(&bindings[0], token, handles[0].task), 0);
    assert_int_equal(blz_token_bind(&bindings[1], token, handles[1].task), 0);
    assert_true(blz_token_unbind(&bindings[1]));
    blz_token_cancel(token);
    assert_int_equal(blz_token_bind(&bindings[2], token, handles[2].task), 1); /* at once */
    turn_all(rt);
    assert_int_equal(result_of(&handles[0]), -ECANCELED);
    assert_int_equal(result_of(&handles[2]), -ECANCELED);
    assert_false(blz_handle_done(&handles[1]));
    assert_false(blz_token_unbind(&bindings[0]));
    assert_false(blz_token_unbind(&bindings[2]));
    blz_handle_cancel(&handles[1]);
    turn_all(rt);
    assert_int_equal(result_of(&handles[1]), -ECANCELED);
    blz_token_unref(token);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(cancelling_goes_down_and_not_up),
        TEST(a_child_of_a_cancelled_token_is_cancelled),
        TEST(without_the_one_between_the_leaf_is_still_reached),
        TEST(letting_go_cancels_nothing),
        TEST(without_memory_there_is_no_token),
        TEST(many_children_are_cancelled),
        TEST(a_deep_chain_needs_no_stack),
        TEST(all_that_wait_are_woken),
        TEST(a_thread_blocks_until_it_is_cancelled),
        TEST(a_guard_gives_the_result_of_what_is_inside),
        TEST(a_guard_cancels_what_is_inside),
        TEST(what_is_inside_wins_if_both_are_ready),
        TEST(a_guard_passes_a_cancellation_on),
        TEST(a_guard_around_a_join_cancels_the_scope),
        TEST(a_box_that_does_not_start_is_given_back),
        TEST(callbacks_are_called_once_and_in_order),
        TEST(on_a_cancelled_token_the_callback_is_called_at_once),
        TEST(a_callback_finds_all_below_cancelled_and_may_do_anything),
        TEST(a_registered_callback_keeps_its_token),
        TEST(unregister_waits_for_a_running_callback),
        TEST(a_bound_task_is_cancelled),
    };
    return RUN_TESTS(tests);
}
