/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of operations that wait for tasks and for time: see operation_kinds.h. */
#include "operation_kinds.h"

/* ---- locks and counters ---- */

struct two_mutexes {
    blz_mutex open, taken;
};

static void mutex_set_up(struct bed *b)
{
    struct two_mutexes *m = b->objects;

    blz_mutex_init(&m->open);
    blz_mutex_init(&m->taken);
    check(blz_mutex_try_lock(&m->taken) == 0);
}

static blz_future *mutex_ends(struct bed *b, void *op)
{
    struct two_mutexes *m = b->objects;

    if (blz_mutex_is_locked(&m->open))
        blz_mutex_unlock(&m->open);
    return blz_mutex_lock(op, &m->open);
}

static blz_future *mutex_waits(struct bed *b, void *op)
{
    return blz_mutex_lock(op, &((struct two_mutexes *)b->objects)->taken);
}

static blz_future *rwlock_ends(struct bed *b, void *op)
{
    return blz_rwlock_read(op, b->objects);
}

static blz_future *rwlock_waits(struct bed *b, void *op)
{
    check(blz_rwlock_try_read(b->objects) == 0);
    return blz_rwlock_write(op, b->objects);
}

struct three_semaphores {
    blz_semaphore full, empty, closed;
};

static void semaphore_set_up(struct bed *b)
{
    struct three_semaphores *s = b->objects;

    blz_semaphore_init(&s->full, 1000);
    blz_semaphore_init(&s->empty, 0);
    blz_semaphore_init(&s->closed, 0);
    blz_semaphore_close(&s->closed);
}

static blz_future *semaphore_ends(struct bed *b, void *op)
{
    return blz_semaphore_acquire(op, &((struct three_semaphores *)b->objects)->full, 1);
}

static blz_future *semaphore_fails(struct bed *b, void *op)
{
    return blz_semaphore_acquire(op, &((struct three_semaphores *)b->objects)->closed, 1);
}

static blz_future *semaphore_waits(struct bed *b, void *op)
{
    return blz_semaphore_acquire(op, &((struct three_semaphores *)b->objects)->empty, 1);
}

struct two_notifies {
    blz_notify given, none;
};

static blz_future *notify_ends(struct bed *b, void *op)
{
    struct two_notifies *n = b->objects;

    blz_notify_one(&n->given);
    return blz_notify_await(op, &n->given);
}

static blz_future *notify_waits(struct bed *b, void *op)
{
    return blz_notify_await(op, &((struct two_notifies *)b->objects)->none);
}

struct two_barriers {
    blz_barrier alone, both;
};

static void barrier_set_up(struct bed *b)
{
    struct two_barriers *barriers = b->objects;

    check(blz_barrier_init(&barriers->alone, 1) == 0);
    check(blz_barrier_init(&barriers->both, 2) == 0);
}

static blz_future *barrier_ends(struct bed *b, void *op)
{
    return blz_barrier_arrive(op, &((struct two_barriers *)b->objects)->alone);
}

static blz_future *barrier_waits(struct bed *b, void *op)
{
    return blz_barrier_arrive(op, &((struct two_barriers *)b->objects)->both);
}

struct two_onces {
    blz_once made, making;
};

static blz_future *once_ends(struct bed *b, void *op)
{
    return blz_once_get(op, &((struct two_onces *)b->objects)->made, blz_ready(&b->inner, 7));
}

static blz_future *once_fails(struct bed *b, void *op)
{
    return blz_once_get(op, &((struct two_onces *)b->objects)->making, blz_ready(&b->inner, -EIO));
}

static blz_future *once_waits(struct bed *b, void *op)
{
    return blz_once_get(op, &((struct two_onces *)b->objects)->making, blz_pending(&b->inner));
}

struct two_groups {
    blz_wait_group none, one;
};

static void group_set_up(struct bed *b)
{
    struct two_groups *groups = b->objects;

    blz_wait_group_init(&groups->none);
    blz_wait_group_init(&groups->one);
    check(blz_wait_group_add(&groups->one, 1) == 0);
}

static blz_future *group_ends(struct bed *b, void *op)
{
    return blz_wait_group_await(op, &((struct two_groups *)b->objects)->none);
}

static blz_future *group_waits(struct bed *b, void *op)
{
    return blz_wait_group_await(op, &((struct two_groups *)b->objects)->one);
}

/* ---- tokens ---- */

struct two_tokens {
    blz_token *live, *cancelled;
};

static void token_set_up(struct bed *b)
{
    struct two_tokens *t = b->objects;

    check(blz_token_new(&t->live) == 0 && blz_token_new(&t->cancelled) == 0);
    check(blz_token_cancel(t->cancelled));
}

static void token_tear_down(struct bed *b)
{
    struct two_tokens *t = b->objects;

    blz_token_unref(t->live);
    blz_token_unref(t->cancelled);
}

static blz_future *token_ends(struct bed *b, void *op)
{
    return blz_token_cancelled(op, ((struct two_tokens *)b->objects)->cancelled);
}

static blz_future *token_waits(struct bed *b, void *op)
{
    return blz_token_cancelled(op, ((struct two_tokens *)b->objects)->live);
}

static blz_future *token_guard_ends(struct bed *b, void *op)
{
    return blz_token_guard(op, ((struct two_tokens *)b->objects)->live, blz_ready(&b->inner, 7));
}

static blz_future *token_guard_fails(struct bed *b, void *op)
{
    return blz_token_guard(op, ((struct two_tokens *)b->objects)->cancelled,
                           blz_pending(&b->inner));
}

static blz_future *token_guard_waits(struct bed *b, void *op)
{
    return blz_token_guard(op, ((struct two_tokens *)b->objects)->live, blz_pending(&b->inner));
}

/* ---- channels ---- */

struct two_oneshots {
    blz_oneshot sent, empty;
};

static blz_future *oneshot_ends(struct bed *b, void *op)
{
    struct two_oneshots *o = b->objects;

    blz_oneshot_init(&o->sent);
    check(blz_oneshot_send(&o->sent, 7) == 0);
    return blz_oneshot_recv(op, &o->sent, NULL);
}

static blz_future *oneshot_fails(struct bed *b, void *op)
{
    struct two_oneshots *o = b->objects;

    blz_oneshot_init(&o->sent);
    blz_oneshot_drop(&o->sent);
    return blz_oneshot_recv(op, &o->sent, NULL);
}

static blz_future *oneshot_waits(struct bed *b, void *op)
{
    return blz_oneshot_recv(op, &((struct two_oneshots *)b->objects)->empty, NULL);
}

struct channels {
    blz_sender tx, closed_tx;
    blz_receiver rx, closed_rx;
    int message;
};

static void channel_set_up(struct bed *b)
{
    blz_channel_options options = {.capacity = 4, .elem_size = sizeof(int)};
    struct channels *c = b->objects;

    check(blz_channel_new(&c->tx, &c->rx, &options) == 0);
    check(blz_channel_new(&c->closed_tx, &c->closed_rx, &options) == 0);
    blz_channel_close(c->closed_tx.channel);
}

static void channel_tear_down(struct bed *b)
{
    struct channels *c = b->objects;

    blz_sender_drop(&c->tx);
    blz_sender_drop(&c->closed_tx);
    blz_receiver_drop(&c->rx);
    blz_receiver_drop(&c->closed_rx);
}

static blz_future *channel_ends(struct bed *b, void *op)
{
    struct channels *c = b->objects;

    check(blz_sender_try_send(&c->tx, &c->message) == 0);
    return blz_receiver_recv(op, &c->rx, &c->message);
}

static blz_future *channel_fails(struct bed *b, void *op)
{
    struct channels *c = b->objects;

    return blz_sender_send(op, &c->closed_tx, &c->message);
}

static blz_future *channel_waits(struct bed *b, void *op)
{
    struct channels *c = b->objects;

    return blz_receiver_recv(op, &c->rx, &c->message);
}

struct broadcasts {
    blz_broadcast_sender tx, closed_tx;
    blz_broadcast_receiver rx, closed_rx;
    int message;
};

static void broadcast_set_up(struct bed *b)
{
    blz_broadcast_options options = {.capacity = 4, .elem_size = sizeof(int)};
    struct broadcasts *c = b->objects;

    check(blz_broadcast_new(&c->tx, &c->rx, &options) == 0);
    check(blz_broadcast_new(&c->closed_tx, &c->closed_rx, &options) == 0);
    blz_broadcast_close(c->closed_tx.channel);
}

static void broadcast_tear_down(struct bed *b)
{
    struct broadcasts *c = b->objects;

    blz_broadcast_sender_drop(&c->tx);
    blz_broadcast_sender_drop(&c->closed_tx);
    blz_broadcast_receiver_drop(&c->rx);
    blz_broadcast_receiver_drop(&c->closed_rx);
}

static blz_future *broadcast_ends(struct bed *b, void *op)
{
    struct broadcasts *c = b->objects;

    check(blz_broadcast_send(&c->tx, &c->message) == 1);
    return blz_broadcast_recv(op, &c->rx, &c->message);
}

static blz_future *broadcast_fails(struct bed *b, void *op)
{
    struct broadcasts *c = b->objects;

    return blz_broadcast_recv(op, &c->closed_rx, &c->message);
}

static blz_future *broadcast_waits(struct bed *b, void *op)
{
    struct broadcasts *c = b->objects;

    return blz_broadcast_recv(op, &c->rx, &c->message);
}

struct watches {
    blz_watch_sender tx, closed_tx;
    blz_watch_receiver rx, closed_rx;
    int value;
};

static void watch_set_up(struct bed *b)
{
    struct watches *w = b->objects;

    check(blz_watch_new(&w->tx, &w->rx, &w->value, sizeof w->value, NULL) == 0);
    check(blz_watch_new(&w->closed_tx, &w->closed_rx, &w->value, sizeof w->value, NULL) == 0);
    blz_watch_close(w->closed_tx.watch);
}

static void watch_tear_down(struct bed *b)
{
    struct watches *w = b->objects;

    blz_watch_sender_drop(&w->tx);
    blz_watch_sender_drop(&w->closed_tx);
    blz_watch_receiver_drop(&w->rx);
    blz_watch_receiver_drop(&w->closed_rx);
}

static blz_future *watch_ends(struct bed *b, void *op)
{
    struct watches *w = b->objects;

    check(blz_watch_send(&w->tx, &w->value) == 0);
    return blz_watch_changed(op, &w->rx);
}

static blz_future *watch_fails(struct bed *b, void *op)
{
    return blz_watch_changed(op, &((struct watches *)b->objects)->closed_rx);
}

static blz_future *watch_waits(struct bed *b, void *op)
{
    return blz_watch_changed(op, &((struct watches *)b->objects)->rx);
}

/* ---- combinators ---- */

static blz_future **branch(struct bed *b, blz_future *future)
{
    b->branches[0] = future;
    return b->branches;
}

static blz_future *select_ends(struct bed *b, void *op)
{
    return blz_select_array(op, branch(b, blz_ready(&b->inner, 7)), 1);
}

static blz_future *select_fails(struct bed *b, void *op)
{
    return blz_select_array(op, b->branches, 0);
}

static blz_future *select_waits(struct bed *b, void *op)
{
    return blz_select_array(op, branch(b, blz_pending(&b->inner)), 1);
}

static blz_future *race_ends(struct bed *b, void *op)
{
    return blz_race_array(op, branch(b, blz_ready(&b->inner, 7)), 1);
}

static blz_future *race_fails(struct bed *b, void *op)
{
    return blz_race_array(op, b->branches, 0);
}

static blz_future *race_waits(struct bed *b, void *op)
{
    return blz_race_array(op, branch(b, blz_pending(&b->inner)), 1);
}

static blz_future *join_ends(struct bed *b, void *op)
{
    return blz_join_array(op, branch(b, blz_ready(&b->inner, 7)), 1);
}

static blz_future *join_waits(struct bed *b, void *op)
{
    return blz_join_array(op, branch(b, blz_pending(&b->inner)), 1);
}

static blz_future *try_join_ends(struct bed *b, void *op)
{
    return blz_try_join_array(op, branch(b, blz_ready(&b->inner, 7)), 1);
}

static blz_future *try_join_fails(struct bed *b, void *op)
{
    return blz_try_join_array(op, branch(b, blz_ready(&b->inner, -EIO)), 1);
}

static blz_future *try_join_waits(struct bed *b, void *op)
{
    return blz_try_join_array(op, branch(b, blz_pending(&b->inner)), 1);
}

/* ---- time ---- */

static blz_future *sleep_ends(struct bed *b, void *op)
{
    (void)b;
    return blz_sleep(op, 0);
}

static blz_future *sleep_waits(struct bed *b, void *op)
{
    (void)b;
    return blz_sleep_until(op, blz_deadline(BLZ_DAY));
}

static blz_future *timeout_ends(struct bed *b, void *op)
{
    return blz_with_timeout(op, BLZ_DAY, blz_ready(&b->inner, 7));
}

static blz_future *timeout_fails(struct bed *b, void *op)
{
    return blz_with_timeout(op, 0, blz_pending(&b->inner));
}

static blz_future *timeout_waits(struct bed *b, void *op)
{
    return blz_with_deadline(op, blz_deadline(BLZ_DAY), blz_pending(&b->inner));
}

/* ---- tasks ---- */

struct tasks {
    blz_handle ended, stays;
    blz_scope none, one;
};

static void join_set_up(struct bed *b)
{
    struct tasks *t = b->objects;

    START(b->rt, &t->stays, blz_pending(&b->inner));
}

static void join_tear_down(struct bed *b)
{
    (void)CANCEL(b->rt, &((struct tasks *)b->objects)->stays);
}

static blz_future *handle_join_ends(struct bed *b, void *op)
{
    static blz_future now;
    struct tasks *t = b->objects;

    START(b->rt, &t->ended, blz_ready(&now, 7));
    return blz_handle_join(op, &t->ended);
}

static blz_future *handle_join_waits(struct bed *b, void *op)
{
    return blz_handle_join(op, &((struct tasks *)b->objects)->stays);
}

static void scope_set_up(struct bed *b)
{
    struct tasks *t = b->objects;

    blz_scope_init(&t->none, 0);
    blz_scope_init(&t->one, 0);
    check(BLZ_SPAWN_WITH((&(blz_spawn_args){.rt = b->rt, .scope = &t->one}), awaits,
                         .op = blz_pending(&b->inner)) == 0);
}

static void scope_tear_down(struct bed *b)
{
    struct tasks *t = b->objects;
    blz_scope_op op = {0};

    blz_scope_cancel(&t->one);
    (void)AWAIT(b->rt, blz_scope_join(&op, &t->one));
}

static blz_future *scope_ends(struct bed *b, void *op)
{
    return blz_scope_join(op, &((struct tasks *)b->objects)->none);
}

static blz_future *scope_waits(struct bed *b, void *op)
{
    struct tasks *t = b->objects;

    return blz_scope_next(op, &t->one, &t->ended);
}

static const struct kind kinds[] = {
    OPERATION(blz_mutex_op, .room = sizeof(struct two_mutexes), .set_up = mutex_set_up,
              .ends = mutex_ends, .waits = mutex_waits),
    OPERATION(blz_rwlock_op, .room = sizeof(blz_rwlock), .ends = rwlock_ends,
              .waits = rwlock_waits),
    OPERATION(blz_semaphore_op, .room = sizeof(struct three_semaphores), .set_up = semaphore_set_up,
              .ends = semaphore_ends, .fails = semaphore_fails, .waits = semaphore_waits),
    OPERATION(blz_notify_op, .room = sizeof(struct two_notifies), .ends = notify_ends,
              .waits = notify_waits),
    OPERATION(blz_barrier_op, .room = sizeof(struct two_barriers), .set_up = barrier_set_up,
              .ends = barrier_ends, .waits = barrier_waits),
    OPERATION(blz_once_op, .room = sizeof(struct two_onces), .ends = once_ends, .fails = once_fails,
              .waits = once_waits),
    OPERATION(blz_wait_group_op, .room = sizeof(struct two_groups), .set_up = group_set_up,
              .ends = group_ends, .waits = group_waits),
    OPERATION(blz_token_op, .room = sizeof(struct two_tokens), .set_up = token_set_up,
              .tear_down = token_tear_down, .ends = token_ends, .waits = token_waits),
    OPERATION(blz_token_guard_op, .room = sizeof(struct two_tokens), .set_up = token_set_up,
              .tear_down = token_tear_down, .ends = token_guard_ends, .fails = token_guard_fails,
              .waits = token_guard_waits),
    OPERATION(blz_oneshot_op, .room = sizeof(struct two_oneshots), .ends = oneshot_ends,
              .fails = oneshot_fails, .waits = oneshot_waits),
    OPERATION(blz_channel_op, .room = sizeof(struct channels), .set_up = channel_set_up,
              .tear_down = channel_tear_down, .ends = channel_ends, .fails = channel_fails,
              .waits = channel_waits),
    OPERATION(blz_broadcast_op, .room = sizeof(struct broadcasts), .set_up = broadcast_set_up,
              .tear_down = broadcast_tear_down, .ends = broadcast_ends, .fails = broadcast_fails,
              .waits = broadcast_waits),
    OPERATION(blz_watch_op, .room = sizeof(struct watches), .set_up = watch_set_up,
              .tear_down = watch_tear_down, .ends = watch_ends, .fails = watch_fails,
              .waits = watch_waits),
    OPERATION(blz_select_op, .ends = select_ends, .fails = select_fails, .waits = select_waits),
    OPERATION(blz_race_op, .ends = race_ends, .fails = race_fails, .waits = race_waits),
    OPERATION(blz_join_op, .ends = join_ends, .waits = join_waits),
    OPERATION(blz_try_join_op, .ends = try_join_ends, .fails = try_join_fails,
              .waits = try_join_waits),
    OPERATION(blz_sleep_op, .ends = sleep_ends, .waits = sleep_waits),
    OPERATION(blz_timeout, .ends = timeout_ends, .fails = timeout_fails, .waits = timeout_waits),
    OPERATION(blz_handle_join_op, .room = sizeof(struct tasks), .set_up = join_set_up,
              .tear_down = join_tear_down, .ends = handle_join_ends, .waits = handle_join_waits),
    OPERATION(blz_scope_op, .room = sizeof(struct tasks), .set_up = scope_set_up,
              .tear_down = scope_tear_down, .ends = scope_ends, .waits = scope_waits),
};

static void each_operation_follows_the_rule(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        try_kind(&kinds[i], "poll");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_operation_follows_the_rule),
    };
    return RUN_TESTS(tests);
}
