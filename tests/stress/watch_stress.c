/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches under load: senders on threads and in tasks, readers that only read, that wait for
 * changes, that wait for a value, that give up all the time. Nobody sees a mixture of two values or
 * goes back to an older one; everybody sees the last one; modifications by several senders add up.
 * And small histories are searched for an order in which each read gives what was written last.
 */
#include "harness.h"

#include "linear.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS = 9, SENDERS = 3 };

/* Long enough to be torn: every word is the same. */
struct value {
    uint64_t words[WORDS];
};

BLZ_WATCH(state, struct value)

static void check_whole(const struct value *v)
{
    for (int i = 1; i < WORDS; i++)
        check(v->words[i] == v->words[0]);
}

static void count_one(struct value *v, void *arg)
{
    (void)arg;
    check_whole(v);
    for (int i = 0; i < WORDS; i++)
        v->words[i]++;
}

/* ---- readers ---- */

struct reader {
    state_receiver rx;
    uint64_t last, end;
    bool polls; /* does nothing but read */
};

static void see(uint64_t *last, const struct value *v)
{
    check_whole(v);
    check(v->words[0] >= *last);
    *last = v->words[0];
}

static void *read_on_thread(void *arg)
{
    struct reader *reader = arg;
    struct value v;
    int rc = 0;

    while (rc != -EPIPE) {
        rc = reader->polls ? blz_watch_has_changed(&reader->rx.raw)
                           : state_changed_wait(&reader->rx);
        if (reader->polls || rc == 0) {
            state_get_and_update(&reader->rx, &v);
            see(&reader->last, &v);
        }
    }
    check(reader->last == reader->end);
    state_receiver_drop(&reader->rx);
    return NULL;
}

struct follows {
    BLZ_FRAME;
    state_receiver rx;
    uint64_t last, end, given_up;
    bool restless;
    struct value value;
    int64_t rc;
    blz_timeout limit;
    blz_future yield;
    state_op op;
};

BLZ_ASYNC(follows)
{
    BLZ_BEGIN;
    for (;;) {
        if (self->restless && self->given_up++ % 4 != 3) {
            BLZ_AWAIT(self->rc,
                      blz_with_timeout(&self->limit, 0, state_changed(&self->op, &self->rx)));
            if (self->rc == -ETIMEDOUT) {
                BLZ_AWAIT(self->rc, blz_yield(&self->yield));
                continue;
            }
        } else {
            BLZ_AWAIT(self->rc, state_changed(&self->op, &self->rx));
        }
        if (self->rc == -EPIPE)
            break;
        check(self->rc == 0);
        state_get(&self->rx, &self->value);
        see(&self->last, &self->value);
    }
    check(self->last == self->end);
    state_receiver_drop(&self->rx);
    BLZ_END(0);
}

static bool is_at(const struct value *v, void *arg)
{
    check_whole(v);
    return v->words[0] >= *(uint64_t *)arg;
}

struct waits_for {
    BLZ_FRAME;
    state_receiver rx;
    uint64_t wanted, end;
    struct value value;
    int64_t rc;
    state_op op;
};

BLZ_ASYNC(waits_for)
{
    BLZ_BEGIN;
    while (self->wanted < self->end) {
        self->wanted += (self->end - self->wanted + 1) / 2;
        BLZ_AWAIT(self->rc, state_until(&self->op, &self->rx, &self->value, is_at, &self->wanted));
        check(self->rc == 0 && self->value.words[0] >= self->wanted);
        self->wanted = self->value.words[0];
    }
    state_receiver_drop(&self->rx);
    BLZ_END(0);
}

/* ---- senders: each counts up ---- */

struct counts {
    BLZ_FRAME;
    state_sender tx;
    uint64_t left;
    int64_t rc;
    blz_future yield;
};

BLZ_ASYNC(counts)
{
    BLZ_BEGIN;
    for (; self->left > 0; self->left--) {
        check(state_send_modify(&self->tx, count_one, NULL) == 0);
        if (self->left % 8 == 0)
            BLZ_AWAIT(self->rc, blz_yield(&self->yield));
    }
    state_sender_drop(&self->tx);
    BLZ_END(0);
}

struct counter {
    state_sender tx;
    uint64_t left;
};

static void *count_on_thread(void *arg)
{
    struct counter *counter = arg;

    for (; counter->left > 0; counter->left--)
        check(state_send_modify(&counter->tx, count_one, NULL) == 0);
    state_sender_drop(&counter->tx);
    return NULL;
}

static void nobody_sees_a_mixture_or_goes_back(unsigned workers)
{
    uint64_t count = (uint64_t)scaled(100000), end = SENDERS * count;
    blz_rt *rt = new_rt(&(blz_options){.workers = workers});
    struct counter counter = {.left = count};
    struct reader readers[2] = {{.end = end, .polls = true}, {.end = end}};
    blz_handle handles[5];
    pthread_t threads[3];

    check(state_new(&counter.tx, &readers[0].rx, (struct value){{0}}) == 0);
    readers[1].rx = state_receiver_clone(&readers[0].rx);
    for (int i = 0; i < 2; i++)
        check(BLZ_SPAWN_ON(rt, &handles[i], follows, .rx = state_subscribe(&counter.tx), .end = end,
                           .restless = i == 1) == 0);
    check(BLZ_SPAWN_ON(rt, &handles[2], waits_for, .rx = state_subscribe(&counter.tx),
                       .end = end) == 0);
    for (int i = 3; i < 5; i++)
        check(BLZ_SPAWN_ON(rt, &handles[i], counts, .tx = state_sender_clone(&counter.tx),
                           .left = count) == 0);
    for (int i = 0; i < 2; i++)
        threads[i] = start_thread(read_on_thread, &readers[i]);
    threads[2] = start_thread(count_on_thread, &counter);
    for (int i = 0; i < 5; i++)
        check(blz_handle_wait(&handles[i]) == 0 && handles[i].result == 0);
    for (int i = 0; i < 3; i++)
        join_thread(threads[i]);
    free_rt(rt);
}

static void two_workers(void **unused)
{
    (void)unused;
    allow_seconds(120);
    nobody_sees_a_mixture_or_goes_back(2);
}

static void four_workers(void **unused)
{
    (void)unused;
    allow_seconds(120);
    nobody_sees_a_mixture_or_goes_back(4);
}

/* ---- a register: is there an order? ---- */

enum { THREADS = 4, STEPS = 12, READ = LINEAR_OWN };

struct actor {
    state_sender *tx;
    state_receiver rx;
    uint64_t number;
    struct event *go;
    struct linear_log log;
};

static struct value value_of(uint64_t number)
{
    struct value v;

    for (int i = 0; i < WORDS; i++)
        v.words[i] = number;
    return v;
}

/* Two threads send as often as they read, two only read. */
static void *act(void *arg)
{
    struct actor *actor = arg;

    event_wait(actor->go, 1);
    for (uint64_t i = 0; i < STEPS; i++) {
        int64_t begin = linear_now();
        struct value v = value_of(actor->number << 32 | (i + 1));
        bool sends = actor->number < 2 && i % 2 == 0;
        if (sends)
            check(state_send(actor->tx, v) == 0);
        else
            state_get(&actor->rx, &v);
        check_whole(&v);
        linear_note(&actor->log, sends ? LINEAR_PUT : READ, v.words[0], begin);
    }
    return NULL;
}

static bool apply(void *state, const struct linear_event *event)
{
    uint64_t *now = state;

    if (event->op == READ)
        return *now == event->value;
    *now = event->value;
    return true;
}

static void one_history(void)
{
    static const struct linear_object cell = {sizeof(uint64_t), apply};
    struct event go = EVENT_INIT;
    struct actor actors[THREADS];
    struct linear_log all = {0};
    pthread_t threads[THREADS];
    state_sender tx;

    check(state_new(&tx, &actors[0].rx, value_of(0)) == 0);
    for (uint64_t i = 0; i < THREADS; i++) {
        state_receiver rx = i ? state_subscribe(&tx) : actors[0].rx;
        actors[i] = (struct actor){.tx = &tx, .rx = rx, .number = i, .go = &go};
        threads[i] = start_thread(act, &actors[i]);
    }
    event_post(&go);
    for (int i = 0; i < THREADS; i++) {
        join_thread(threads[i]);
        linear_join(&all, &actors[i].log);
        state_receiver_drop(&actors[i].rx);
    }
    check(linear_search(&cell, all.events, all.count));
    linear_free(&all);
    state_sender_drop(&tx);
}

static void each_read_gives_what_was_sent_last(void **unused)
{
    (void)unused;
    allow_seconds(120);
    for (int64_t i = 0; i < scaled(300); i++)
        one_history();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(two_workers),
        TEST(four_workers),
        TEST(each_read_gives_what_was_sent_last),
    };
    return RUN_TESTS(tests);
}
