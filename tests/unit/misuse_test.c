/* SPDX-License-Identifier: Apache-2.0 */
/* Futures used in ways that cannot work: each aborts with a sentence that names the mistake. */
#include "dies.h"

#include <errno.h>

/* ---- combinators ---- */

struct twice {
    BLZ_FRAME;
    int64_t rc;
    blz_future op, other;
    blz_join_op join;
    blz_select_op select;
};

BLZ_ASYNC(twice)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_join(&self->join, blz_yield(&self->other), blz_yield(&self->op),
                                 blz_yield(&self->op)));
    BLZ_END(self->rc);
}

static void join_twice(void)
{
    RUN_ALONE(twice);
}

static void one_operation_twice_in_a_join_is_a_panic(void **state)
{
    (void)state;
    assert_dies(join_twice, "branch 2 of `join`, a `yield`, is in it twice");
}

static void select_io_twice(void)
{
    blz_select_op select = {0};
    blz_tcp conn = {0};
    blz_io io = {0};
    char byte;

    blz_ignore(
        blz_select(&select, blz_tcp_read(&io, &conn, &byte, 1), blz_tcp_write(&io, &conn, "", 1)));
}

static void one_blz_io_for_two_branches_of_a_select_is_a_panic(void **state)
{
    (void)state;
    assert_dies(select_io_twice, "branch 1 of `select`, a `");
}

static void select_twice_in_an_array(void)
{
    blz_future ops[64], *list[64];
    blz_select_op select = {0};

    for (int i = 0; i < 64; i++)
        list[i] = blz_yield(&ops[i]);
    list[63] = list[0];
    blz_ignore(blz_select_biased_array(&select, list, 64));
}

static void one_future_twice_in_a_long_array_is_a_panic(void **state)
{
    (void)state;
    assert_dies(select_twice_in_an_array, "branch 63 of `select_biased`");
}

static void join_nothing(void)
{
    blz_future op;
    blz_try_join_op join = {0};

    blz_ignore(blz_try_join(&join, blz_yield(&op), NULL));
}

static void a_branch_that_is_null_is_a_panic(void **state)
{
    (void)state;
    assert_dies(join_nothing, "branch 1 of `try_join` is NULL");
}

static void limit_nothing(void)
{
    blz_timeout limit = {0};

    blz_ignore(blz_with_timeout(&limit, BLZ_SEC, NULL));
}

static int64_t same(int64_t result, void *arg)
{
    (void)arg;
    return result;
}

static void map_nothing(void)
{
    blz_map map;

    blz_ignore(blz_map_init(&map, NULL, same, NULL));
}

static void guard_nothing(void)
{
    blz_token_guard_op guard = {0};
    blz_token *token;

    if (blz_token_new(&token) == 0)
        blz_ignore(blz_token_guard(&guard, token, NULL));
}

static void a_future_around_null_is_a_panic(void **state)
{
    (void)state;
    assert_dies(limit_nothing, "the future inside of `timeout` is NULL");
    assert_dies(map_nothing, "the future inside of `map` is NULL");
    assert_dies(guard_nothing, "the future inside of `token_guard` is NULL");
}

/* Each of the limits polls the yield, and the second does so after its end. */
struct shared_inside {
    BLZ_FRAME;
    int64_t rc;
    blz_future op;
    blz_timeout limit[2];
    blz_join_op join;
};

BLZ_ASYNC(shared_inside)
{
    BLZ_BEGIN;
    blz_ignore(blz_yield(&self->op));
    BLZ_AWAIT(self->rc,
              blz_join(&self->join, blz_with_timeout(&self->limit[0], BLZ_MSEC, &self->op),
                       blz_with_timeout(&self->limit[1], BLZ_MSEC, &self->op)));
    BLZ_END(self->rc);
}

static void join_shared_inside(void)
{
    (void)BLZ_RUN_WITH((&(blz_options){.test_clock = true, .workers = 1, .watchdog_ns = BLZ_NEVER}),
                       shared_inside);
}

static void one_operation_inside_of_two_branches_is_a_panic(void **state)
{
    (void)state;
    assert_dies(join_shared_inside, "`yield` was polled again after it was ready");
}

/* ---- the same future for two tasks ---- */

struct joiner {
    BLZ_FRAME;
    blz_handle *handle;
    int64_t rc;
    blz_handle_join_op join;
};

BLZ_ASYNC(joiner)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_handle_join_keep(&self->join, self->handle));
    BLZ_END(self->rc);
}

static void two_joiners(void)
{
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;

    if (BLZ_SPAWN_ON(rt, &handle, sleeps) == 0 &&
        BLZ_SPAWN_ON(rt, NULL, joiner, .handle = &handle) == 0 &&
        BLZ_SPAWN_ON(rt, NULL, joiner, .handle = &handle) == 0)
        turn_all(rt);
}

static void two_tasks_that_join_one_handle_are_a_panic(void **state)
{
    (void)state;
    assert_dies(two_joiners, "the end of `sleeps` is awaited twice");
}

/* ---- what has not been made ---- */

struct empty_scope {
    BLZ_FRAME;
    int64_t rc;
    blz_scope scope;
    blz_scope_op wait;
};

BLZ_ASYNC(empty_scope)
{
    BLZ_BEGIN;
    self->rc = BLZ_SCOPE_SPAWN(&self->scope, give);
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
    BLZ_END(self->rc);
}

static void spawn_into_nothing(void)
{
    RUN_ALONE(empty_scope);
}

static void a_scope_that_was_not_made_is_a_panic(void **state)
{
    (void)state;
    assert_dies(spawn_into_nothing, "`give` was spawned into a scope without blz_scope_init");
}

BLZ_CHANNEL(jobs, int)
BLZ_WATCH(config, int)
BLZ_BROADCAST(prices, int)

static void send_on_nothing(void)
{
    jobs_sender tx = {{NULL}};

    (void)jobs_send_wait(&tx, 1);
}

static void try_to_send_on_nothing(void)
{
    blz_sender tx = {NULL};
    int job = 1;

    blz_ignore(blz_sender_try_send(&tx, &job));
}

static void receive_from_a_dropped_handle(void)
{
    jobs_sender tx;
    jobs_receiver rx;
    int job;

    if (jobs_new(&tx, &rx, 1) < 0)
        return;
    jobs_receiver_drop(&rx);
    blz_ignore(jobs_try_recv(&rx, &job));
}

static void a_channel_that_was_not_made_is_a_panic(void **state)
{
    (void)state;
    assert_dies(send_on_nothing, "a handle of a channel is all zero");
    assert_dies(try_to_send_on_nothing, "a handle of a channel is all zero");
    assert_dies(receive_from_a_dropped_handle, "a handle of a channel is all zero");
}

static void set_nothing(void)
{
    config_sender tx = {{NULL}};

    (void)config_send(&tx, 1);
}

static void await_nothing(void)
{
    blz_watch_receiver rx = {NULL, 0};
    blz_watch_op op = {0};

    (void)blz_wait(blz_watch_changed(&op, &rx));
}

static void a_watch_channel_that_was_not_made_is_a_panic(void **state)
{
    (void)state;
    assert_dies(set_nothing, "a handle of a watch channel is all zero");
    assert_dies(await_nothing, "a handle of a watch channel is all zero");
}

static void announce_nothing(void)
{
    prices_sender tx = {{NULL}};

    (void)prices_send(&tx, 1);
}

static void hear_nothing(void)
{
    blz_broadcast_receiver rx = {0};
    blz_broadcast_op op = {0};
    int price;

    (void)blz_wait(blz_broadcast_recv(&op, &rx, &price));
}

static void a_broadcast_channel_that_was_not_made_is_a_panic(void **state)
{
    (void)state;
    assert_dies(announce_nothing, "a handle of a broadcast channel is all zero");
    assert_dies(hear_nothing, "a handle of a broadcast channel is all zero");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_operation_twice_in_a_join_is_a_panic),
        TEST(one_blz_io_for_two_branches_of_a_select_is_a_panic),
        TEST(one_future_twice_in_a_long_array_is_a_panic),
        TEST(a_branch_that_is_null_is_a_panic),
        TEST(a_future_around_null_is_a_panic),
        TEST(one_operation_inside_of_two_branches_is_a_panic),
        TEST(two_tasks_that_join_one_handle_are_a_panic),
        TEST(a_scope_that_was_not_made_is_a_panic),
        TEST(a_channel_that_was_not_made_is_a_panic),
        TEST(a_watch_channel_that_was_not_made_is_a_panic),
        TEST(a_broadcast_channel_that_was_not_made_is_a_panic),
    };

    return RUN_TESTS(tests);
}
