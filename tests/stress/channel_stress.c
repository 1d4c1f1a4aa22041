/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels under stress: tasks on several workers and threads of their own send and receive in
 * every way there is, with operations that are cancelled at random. Every message carries its own
 * number; it must arrive once, and the history of all calls must be possible for a queue. A lost
 * wake-up hangs.
 */
#include "harness.h"
#include "linear.h"

BLZ_CHANNEL(nums, uint64_t)

enum { MAX_ACTORS = 4, BATCH = 5 };

struct scene {
    nums_sender tx;
    nums_receiver rx;
    bool bounded;
    uint64_t messages; /* of each producer */
    struct linear_log logs[4 * MAX_ACTORS];
};

/* ---- tasks that send ---- */

struct producer {
    BLZ_FRAME;
    struct scene *scene;
    struct linear_log *log;
    nums_sender tx;
    uint64_t first, i, seed;
    uint32_t way;
    int64_t begin, rc;
    blz_permit permit;
    nums_op op;
    blz_channel_op reserve;
    blz_future pause;
    blz_branches race;
};

/* One attempt without waiting: 0, or it must be done again. */
static int64_t send_now(struct producer *p)
{
    blz_permit permit;

    if (!p->scene->bounded || random_below(&p->seed, 2))
        return nums_try_send(&p->tx, p->first + p->i);
    if (blz_sender_try_reserve(&p->tx.raw, &permit, 1) < 0)
        return -EAGAIN;
    nums_permit_send(&permit, p->first + p->i);
    return 0;
}

/* It has gone, or it is tried again. */
static void note_sent(struct producer *p)
{
    if (p->rc == 0)
        linear_note(p->log, LINEAR_PUT, p->first + p->i++, p->begin);
    else
        check(p->rc == -ECANCELED || p->rc == -EAGAIN);
}

BLZ_ASYNC(producer)
{
    BLZ_BEGIN;
    while (self->i < self->scene->messages) {
        self->way = random_below(&self->seed, self->scene->bounded ? 5 : 4);
        self->begin = linear_now();
        if (self->way < 2) {
            BLZ_AWAIT(self->rc, nums_send(&self->op, &self->tx, self->first + self->i));
        } else if (self->way == 2) { /* perhaps cancelled, perhaps too late */
            BLZ_AWAIT(self->rc,
                      blz_race(&self->race, nums_send(&self->op, &self->tx, self->first + self->i),
                               blz_yield(&self->pause)));
            self->rc = self->op.op.future.result;
        } else if (self->way == 3) {
            self->rc = send_now(self);
        } else {
            BLZ_AWAIT(self->rc,
                      blz_sender_reserve(&self->reserve, &self->tx.raw, &self->permit, 1));
            check(self->rc == 0 && self->permit.count == 1);
            nums_permit_send(&self->permit, self->first + self->i);
        }
        note_sent(self);
        if (self->rc == -EAGAIN)
            BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    }
    nums_sender_drop(&self->tx);
    BLZ_END((int64_t)self->i);
}

/* ---- tasks that receive ---- */

struct consumer {
    BLZ_FRAME;
    struct scene *scene;
    struct linear_log *log;
    nums_receiver rx;
    uint64_t seed, values[BATCH];
    uint32_t way;
    int64_t begin, rc, received;
    nums_op op;
    blz_future pause;
    blz_branches race;
};

static void note_values(struct consumer *c, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        linear_note(c->log, LINEAR_TAKE, c->values[i], c->begin);
    c->received += count > 0 ? count : 0;
}

BLZ_ASYNC(consumer)
{
    BLZ_BEGIN;
    do {
        self->way = random_below(&self->seed, 5);
        self->begin = linear_now();
        if (self->way < 2) {
            BLZ_AWAIT(self->rc, nums_recv(&self->op, &self->rx, &self->values[0]));
            self->rc += self->rc == 0;
        } else if (self->way == 2) {
            BLZ_AWAIT(self->rc,
                      blz_race(&self->race, nums_recv(&self->op, &self->rx, &self->values[0]),
                               blz_yield(&self->pause)));
            self->rc = self->op.op.future.result;
            self->rc += self->rc == 0;
        } else if (self->way == 3) {
            self->rc = nums_try_recv_many(&self->rx, self->values, BATCH);
        } else {
            BLZ_AWAIT(self->rc, nums_recv_many(&self->op, &self->rx, self->values, BATCH));
        }
        note_values(self, self->rc);
        if (self->rc == -EAGAIN)
            BLZ_AWAIT(self->rc, blz_yield(&self->pause));
    } while (self->rc != -EPIPE);
    nums_receiver_drop(&self->rx);
    BLZ_END(self->received);
}

/* ---- threads ---- */

struct thread_actor {
    struct scene *scene;
    struct linear_log *log;
    uint64_t first;
    nums_sender tx;
    nums_receiver rx;
    int64_t received;
};

static void *thread_producer(void *arg)
{
    struct thread_actor *a = arg;

    for (uint64_t i = 0; i < a->scene->messages; i++) {
        int64_t begin = linear_now(), rc;
        nums_op op = {0};
        do {
            begin = linear_now();
            rc = i % 3 ? nums_send_wait(&a->tx, a->first + i)
                       : blz_wait_until(nums_send(&op, &a->tx, a->first + i), begin);
        } while (rc == -ETIMEDOUT);
        check(rc == 0);
        linear_note(a->log, LINEAR_PUT, a->first + i, begin);
    }
    nums_sender_drop(&a->tx);
    return NULL;
}

static void *thread_consumer(void *arg)
{
    struct thread_actor *a = arg;
    uint64_t value;
    int64_t rc = 0;
    nums_op op = {0};

    while (rc != -EPIPE) {
        int64_t begin = linear_now();
        rc = a->received % 3 ? nums_recv_wait(&a->rx, &value)
                             : blz_wait_until(nums_recv(&op, &a->rx, &value), begin);
        if (rc == 0)
            linear_note(a->log, LINEAR_TAKE, value, begin);
        a->received += rc == 0;
        check(rc == 0 || rc == -EPIPE || rc == -ETIMEDOUT);
    }
    nums_receiver_drop(&a->rx);
    return NULL;
}

/* ---- a scene ---- */

struct cast {
    unsigned workers, producers, consumers, threads;
    size_t capacity;
    int64_t messages;
};

static void begin_scene(struct scene *scene, const struct cast *cast)
{
    blz_channel_options options = {.capacity = cast->capacity, .allocator = test_memory()};

    *scene = (struct scene){.bounded = cast->capacity != BLZ_UNBOUNDED,
                            .messages = (uint64_t)scaled(cast->messages)};
    assert_int_equal(nums_new_with(&scene->tx, &scene->rx, &options), 0);
}

static void end_scene(struct scene *scene, unsigned producers, int64_t received)
{
    const char *wrong;

    assert_int_equal(received, producers * scene->messages);
    for (size_t i = 1; i < sizeof scene->logs / sizeof scene->logs[0]; i++)
        linear_join(&scene->logs[0], &scene->logs[i]);
    assert_int_equal(scene->logs[0].count, 2 * producers * scene->messages);
    wrong = linear_check_queue(scene->logs[0].events, scene->logs[0].count);
    if (wrong)
        fail_msg("%s", wrong);
    linear_free(&scene->logs[0]);
}

static void start_tasks(struct scene *scene, const struct cast *cast, blz_rt *rt,
                        blz_handle *handles)
{
    for (unsigned i = 0; i < cast->producers; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], producer, .scene = scene,
                                      .log = &scene->logs[i], .seed = i + 1,
                                      .first = (uint64_t)(i + 1) << 32,
                                      .tx = nums_sender_clone(&scene->tx)),
                         0);
    for (unsigned i = 0; i < cast->consumers; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[MAX_ACTORS + i], consumer, .scene = scene,
                                      .log = &scene->logs[MAX_ACTORS + i], .seed = i + 100,
                                      .rx = nums_receiver_clone(&scene->rx)),
                         0);
}

static void start_threads(struct scene *scene, const struct cast *cast, struct thread_actor *actors,
                          pthread_t *threads)
{
    for (unsigned i = 0; i < cast->threads; i++) {
        actors[2 * i] = (struct thread_actor){.scene = scene,
                                              .log = &scene->logs[2 * MAX_ACTORS + 2 * i],
                                              .first = (uint64_t)(i + 100) << 32,
                                              .tx = nums_sender_clone(&scene->tx)};
        actors[2 * i + 1] = (struct thread_actor){.scene = scene,
                                                  .log = &scene->logs[2 * MAX_ACTORS + 2 * i + 1],
                                                  .rx = nums_receiver_clone(&scene->rx)};
        threads[2 * i] = start_thread(thread_producer, &actors[2 * i]);
        threads[2 * i + 1] = start_thread(thread_consumer, &actors[2 * i + 1]);
    }
}

static void play(struct cast cast)
{
    struct scene scene;
    struct thread_actor actors[2 * MAX_ACTORS];
    pthread_t threads[2 * MAX_ACTORS];
    blz_handle handles[2 * MAX_ACTORS];
    blz_rt *rt = new_rt(&(blz_options){.workers = cast.workers});
    int64_t received = 0;

    begin_scene(&scene, &cast);
    start_tasks(&scene, &cast, rt, handles);
    start_threads(&scene, &cast, actors, threads);
    nums_sender_drop(&scene.tx);
    nums_receiver_drop(&scene.rx);
    for (unsigned i = 0; i < cast.producers; i++)
        assert_int_equal(blz_handle_wait(&handles[i]), 0);
    for (unsigned i = 0; i < cast.consumers; i++) {
        assert_int_equal(blz_handle_wait(&handles[MAX_ACTORS + i]), 0);
        received += handles[MAX_ACTORS + i].result;
    }
    for (unsigned i = 0; i < 2 * cast.threads; i++) {
        join_thread(threads[i]);
        received += i % 2 ? actors[i].received : 0;
    }
    free_rt(rt);
    end_scene(&scene, cast.producers + cast.threads, received);
}

static void tasks_share_one_slot(void **state)
{
    (void)state;
    allow_seconds(60);
    play((struct cast){2, 2, 2, 0, 1, 15000});
    play((struct cast){4, 4, 4, 0, 1, 5000});
}

static void tasks_share_a_few_slots(void **state)
{
    (void)state;
    allow_seconds(60);
    play((struct cast){2, 4, 1, 0, 3, 10000});
    play((struct cast){4, 1, 4, 0, 3, 20000});
    play((struct cast){4, 4, 4, 0, 64, 10000});
}

static void tasks_share_an_unbounded_channel(void **state)
{
    (void)state;
    allow_seconds(60);
    play((struct cast){2, 1, 1, 0, BLZ_UNBOUNDED, 40000});
    play((struct cast){4, 4, 4, 0, BLZ_UNBOUNDED, 10000});
}

static void tasks_and_threads_share_a_channel(void **state)
{
    (void)state;
    allow_seconds(60);
    play((struct cast){2, 2, 2, 1, 2, 3000});
    play((struct cast){2, 1, 1, 2, BLZ_UNBOUNDED, 3000});
}

/* ---- the end comes at any moment ---- */

static int64_t nr_sent, nr_received, nr_destroyed;

static void count_destroyed(void *elem, void *arg)
{
    (void)arg, (void)elem;
    __atomic_fetch_add(&nr_destroyed, 1, __ATOMIC_RELAXED);
}

struct short_life {
    BLZ_FRAME;
    nums_sender tx;
    nums_receiver rx;
    uint64_t left, value;
    int64_t rc;
    nums_op op;
};

BLZ_ASYNC(short_life)
{
    BLZ_BEGIN;
    for (self->rc = 0; self->left > 0 && self->rc == 0; self->left--) {
        if (self->tx.raw.channel)
            BLZ_AWAIT(self->rc, nums_send(&self->op, &self->tx, self->left));
        else
            BLZ_AWAIT(self->rc, nums_recv(&self->op, &self->rx, &self->value));
        if (self->rc == 0)
            __atomic_fetch_add(self->tx.raw.channel ? &nr_sent : &nr_received, 1, __ATOMIC_RELAXED);
    }
    nums_sender_drop(&self->tx);
    nums_receiver_drop(&self->rx);
    BLZ_END(self->rc);
}

/* Handles are dropped on all sides while messages are under way; some tasks are cancelled. */
static void live_shortly(blz_rt *rt, size_t capacity, uint64_t *seed)
{
    blz_channel_options options = {.capacity = capacity,
                                   .destroy = count_destroyed,
                                   .allocator = test_memory()};
    blz_handle handles[4];
    nums_sender tx;
    nums_receiver rx;

    assert_int_equal(nums_new_with(&tx, &rx, &options), 0);
    for (int i = 0; i < 4; i++) {
        struct short_life life = {.left = 1 + random_below(seed, 20)};
        if (i % 2)
            life.tx = nums_sender_clone(&tx);
        else
            life.rx = nums_receiver_clone(&rx);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], short_life, .left = life.left, .tx = life.tx,
                                      .rx = life.rx),
                         0);
    }
    if (random_below(seed, 4) == 0)
        blz_handle_cancel(&handles[random_below(seed, 4)]);
    if (random_below(seed, 4) == 0)
        blz_channel_close(tx.raw.channel);
    nums_receiver_drop(&rx);
    nums_sender_drop(&tx);
    for (int i = 0; i < 4; i++)
        assert_int_equal(blz_handle_wait(&handles[i]), 0);
}

static void channels_end_at_any_moment(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 4});
    uint64_t seed = 7;

    (void)state;
    allow_seconds(60);
    nr_sent = nr_received = nr_destroyed = 0;
    for (int64_t i = 0; i < scaled(3000); i++)
        live_shortly(rt, i % 3 ? 1 + random_below(&seed, 4) : BLZ_UNBOUNDED, &seed);
    free_rt(rt);
    assert_true(nr_sent > 0);
    assert_int_equal(nr_sent, nr_received + nr_destroyed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tasks_share_one_slot),
        TEST(tasks_share_a_few_slots),
        TEST(tasks_share_an_unbounded_channel),
        TEST(tasks_and_threads_share_a_channel),
        TEST(channels_end_at_any_moment),
    };
    return RUN_TESTS(tests);
}
