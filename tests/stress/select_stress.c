/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Combinators under fire: branches are woken by other workers and by a thread, at any moment of a
 * poll, several at once, and long after their combinator has ended. A wake that is lost is a test
 * that hangs; a branch that ends twice, or not at all, is noticed by its value.
 */
#include "harness.h"

enum { WAYS = 6, TASKS = 8 };

/* ---- all messages arrive ---- */

struct sends {
    BLZ_FRAME;
    blz_oneshot *channel;
    int64_t value, rc;
    blz_future op;
};

BLZ_ASYNC(sends)
{
    BLZ_BEGIN;
    if (self->value % 3 == 0)
        BLZ_AWAIT(self->rc, blz_yield(&self->op));
    blz_oneshot_send(self->channel, self->value);
    BLZ_END(0);
}

struct collects {
    BLZ_FRAME;
    int64_t rounds;
    int64_t rc, sum;
    blz_oneshot channels[WAYS];
    blz_oneshot_op waits[WAYS];
    int64_t values[WAYS];
    blz_join_op inner, join;
    blz_select_op select;
    blz_future never;
};

static void send_all(struct collects *self)
{
    for (int i = 0; i < WAYS; i++) {
        blz_oneshot_init(&self->channels[i]);
        check(BLZ_SPAWN(sends, .channel = &self->channels[i], .value = self->rounds + i) == 0);
    }
}

static blz_future *recv(struct collects *self, int i)
{
    return blz_oneshot_recv(&self->waits[i], &self->channels[i], &self->values[i]);
}

/* Some of them deeper than others. */
BLZ_ASYNC(collects)
{
    BLZ_BEGIN;
    for (; self->rounds > 0; self->rounds--) {
        send_all(self);
        BLZ_AWAIT(self->rc, blz_join(&self->join, recv(self, 0), recv(self, 1),
                                     blz_join(&self->inner, recv(self, 2), recv(self, 3),
                                              blz_select(&self->select, recv(self, 4),
                                                         blz_pending(&self->never))),
                                     recv(self, 5)));
        check(self->rc == 0 && self->inner.future.result == 0 && self->select.first == 0);
        for (int i = 0; i < WAYS; i++)
            check(self->values[i] == self->rounds + i);
    }
    BLZ_END(0);
}

static void messages_from_everywhere_are_joined(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    blz_handle handles[TASKS];

    (void)state;
    for (int i = 0; i < TASKS; i++)
        check(BLZ_SPAWN_ON(rt, &handles[i], collects, .rounds = scaled(8000)) == 0);
    for (int i = 0; i < TASKS; i++) {
        assert_int_equal(blz_handle_wait(&handles[i]), 0);
        assert_int_equal(handles[i].result, 0);
    }
    free_rt(rt);
}

/* ---- one is chosen, the others follow ---- */

struct chooses {
    BLZ_FRAME;
    int64_t rounds;
    int64_t rc, i;
    blz_oneshot channels[WAYS];
    blz_oneshot_op waits[WAYS];
    int64_t values[WAYS];
    blz_future *branches[WAYS];
    blz_select_op select;
};

static blz_future *select_one(struct chooses *self)
{
    for (int i = 0; i < WAYS; i++) {
        blz_oneshot_init(&self->channels[i]);
        check(BLZ_SPAWN(sends, .channel = &self->channels[i], .value = self->rounds + i) == 0);
        self->branches[i] = blz_oneshot_recv(&self->waits[i], &self->channels[i], &self->values[i]);
    }
    return blz_select_array(&self->select, self->branches, WAYS);
}

/* A receive that lost may be repeated: late wakes meet the next one. */
BLZ_ASYNC(chooses)
{
    BLZ_BEGIN;
    for (; self->rounds > 0; self->rounds--) {
        BLZ_AWAIT(self->rc, select_one(self));
        check(self->rc >= 0 && self->waits[self->rc].future.result == 0);
        for (self->i = 0; self->i < WAYS; self->i++) {
            if (self->waits[self->i].future.result == -ECANCELED)
                BLZ_AWAIT(self->rc,
                          blz_oneshot_recv(&self->waits[self->i], &self->channels[self->i],
                                           &self->values[self->i]));
            check(self->waits[self->i].future.result == 0);
            check(self->values[self->i] == self->rounds + self->i);
        }
    }
    BLZ_END(0);
}

static void losers_lose_nothing(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    blz_handle handles[TASKS];

    (void)state;
    for (int i = 0; i < TASKS; i++)
        check(BLZ_SPAWN_ON(rt, &handles[i], chooses, .rounds = scaled(8000)) == 0);
    for (int i = 0; i < TASKS; i++) {
        assert_int_equal(blz_handle_wait(&handles[i]), 0);
        assert_int_equal(handles[i].result, 0);
    }
    free_rt(rt);
}

/* ---- a thread that wakes whatever it can ---- */

struct bell {
    blz_future future;
    uint32_t *rung; /* atomic: how often, of all rings */
    uint32_t wanted;
};

/* A waker for the thread, and how often the task wants to hear of it. */
static struct {
    pthread_mutex_t lock;
    blz_waker wakers[WAYS];
    uint32_t rung[WAYS];
    bool over;
} tower;

static blz_poll bell_poll(blz_future *future, blz_cx *cx)
{
    struct bell *self = (struct bell *)future;
    size_t which = (size_t)(self->rung - tower.rung);
    blz_waker waker = blz_cx_waker(cx);

    pthread_mutex_lock(&tower.lock);
    bool ready = *self->rung >= self->wanted;
    if (!ready && !tower.wakers[which].ops) {
        tower.wakers[which] = waker;
        waker = (blz_waker){NULL, NULL};
    }
    pthread_mutex_unlock(&tower.lock);
    blz_waker_drop(&waker);
    return ready ? blz_future_done(future, 0) : BLZ_PENDING;
}

static const blz_future_ops bell_ops = {.name = "bell", .poll = bell_poll};

static void *ring(void *unused)
{
    bool over = false;
    uint64_t seed = 3;

    (void)unused;
    while (!over) {
        uint32_t which = random_below(&seed, WAYS);
        blz_waker waker;

        pthread_mutex_lock(&tower.lock);
        waker = tower.wakers[which];
        tower.wakers[which] = (blz_waker){NULL, NULL};
        tower.rung[which] += waker.ops != NULL;
        over = tower.over;
        pthread_mutex_unlock(&tower.lock);
        blz_waker_wake(&waker);
    }
    return NULL;
}

struct hears {
    BLZ_FRAME;
    int64_t rounds;
    int64_t rc;
    struct bell bells[WAYS];
    blz_join_op inner, join;
};

static blz_future *hear(struct hears *self, int i, uint32_t times)
{
    pthread_mutex_lock(&tower.lock);
    self->bells[i] = (struct bell){.future.ops = &bell_ops,
                                   .rung = &tower.rung[i],
                                   .wanted = tower.rung[i] + times};
    pthread_mutex_unlock(&tower.lock);
    return &self->bells[i].future;
}

BLZ_ASYNC(hears)
{
    BLZ_BEGIN;
    for (; self->rounds > 0; self->rounds--) {
        BLZ_AWAIT(self->rc, blz_join(&self->join, hear(self, 0, 1), hear(self, 1, 2),
                                     blz_join(&self->inner, hear(self, 2, 1), hear(self, 3, 2)),
                                     hear(self, 4, 1), hear(self, 5, 3)));
        check(self->rc == 0);
    }
    BLZ_END(0);
}

static void a_thread_wakes_branches_at_any_time(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    pthread_t ringer;

    (void)state;
    pthread_mutex_init(&tower.lock, NULL);
    ringer = start_thread(ring, NULL);
    assert_int_equal(BLZ_BLOCK_ON(rt, hears, .rounds = scaled(8000)), 0);
    pthread_mutex_lock(&tower.lock);
    tower.over = true;
    pthread_mutex_unlock(&tower.lock);
    join_thread(ringer);
    for (int i = 0; i < WAYS; i++)
        blz_waker_drop(&tower.wakers[i]);
    pthread_mutex_destroy(&tower.lock);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(messages_from_everywhere_are_joined),
        TEST(losers_lose_nothing),
        TEST(a_thread_wakes_branches_at_any_time),
    };
    return RUN_TESTS(tests);
}
