/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Broadcast under load: several senders, receivers in tasks and on threads, some too slow for the
 * ring, some cancelled again and again. Every receiver writes down what it gets. Afterwards: each
 * message is whole; the places that a receiver got and those that it was told it missed follow one
 * another without a hole; what one sender sent comes in its order; where two receivers have the
 * same place, they have the same message there; and a message that was sent before another send
 * began has the earlier place.
 */
#include "harness.h"

#include "linear.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { SENDERS = 3, RECEIVERS = 4, WORDS = 3 };

/* Every word says the same in its own way. */
struct message {
    uint64_t words[WORDS];
};

BLZ_BROADCAST(news, struct message)

static uint64_t id_of(uint64_t sender, uint64_t i)
{
    return sender << 32 | (i + 1);
}

static struct message message_of(uint64_t id)
{
    return (struct message){{id, ~id, id * 0x9e3779b97f4a7c15u}};
}

/* When each message was being sent. */
struct moment {
    int64_t begin, end;
};

static struct moment *moments[SENDERS];

static void send_one(const news_sender *tx, uint64_t sender, uint64_t i)
{
    struct moment *moment = &moments[sender][i];

    moment->begin = linear_now();
    check(news_send(tx, message_of(id_of(sender, i))) >= 0);
    moment->end = linear_now();
}

/* ---- the record of a receiver: what was at each place of the stream ---- */

struct record {
    uint64_t *ids; /* 0: missed */
    uint64_t next, capacity;
    uint64_t missed;
    uint64_t last[SENDERS];
};

static void record_begin(struct record *r, uint64_t capacity)
{
    *r = (struct record){.ids = calloc(capacity, sizeof *r->ids), .capacity = capacity};
    check(r->ids);
}

static void record_message(struct record *r, struct message m)
{
    uint64_t id = m.words[0], sender = id >> 32;

    check(memcmp(&m, &(struct message){{id, ~id, id * 0x9e3779b97f4a7c15u}}, sizeof m) == 0);
    check(sender < SENDERS && (uint32_t)id > r->last[sender]);
    check(r->next < r->capacity);
    r->last[sender] = (uint32_t)id;
    r->ids[r->next++] = id;
}

static void record_result(struct record *r, int64_t rc, struct message m, uint64_t missed)
{
    if (rc == 0) {
        record_message(r, m);
        return;
    }
    check(rc == -EOVERFLOW && missed > 0);
    r->next += missed;
    r->missed += missed;
    check(r->next <= r->capacity);
}

/* ---- receivers ---- */

struct reads {
    BLZ_FRAME;
    news_receiver rx;
    struct record *record;
    bool restless; /* gives up at once, and comes again */
    bool lazy;     /* lets others run after each message */
    uint64_t given_up;
    struct message message;
    int64_t rc;
    blz_timeout limit;
    blz_future yield;
    news_op op;
};

BLZ_ASYNC(reads)
{
    BLZ_BEGIN;
    for (;;) {
        if (self->restless && self->given_up % 4 != 3) {
            BLZ_AWAIT(self->rc, blz_with_timeout(&self->limit, 0,
                                                 news_recv(&self->op, &self->rx, &self->message)));
            if (self->rc == -ETIMEDOUT) {
                self->given_up++;
                BLZ_AWAIT(self->rc, blz_yield(&self->yield));
                continue;
            }
        } else {
            BLZ_AWAIT(self->rc, news_recv(&self->op, &self->rx, &self->message));
            self->given_up = 0;
        }
        if (self->rc == -EPIPE)
            break;
        record_result(self->record, self->rc, self->message, news_missed(&self->rx));
        if (self->lazy)
            BLZ_AWAIT(self->rc, blz_yield(&self->yield));
    }
    news_receiver_drop(&self->rx);
    BLZ_END(0);
}

struct reader {
    news_receiver rx;
    struct record record;
};

static void *read_on_thread(void *arg)
{
    struct reader *reader = arg;
    struct message m;
    int rc;

    while ((rc = news_recv_wait(&reader->rx, &m)) != -EPIPE)
        record_result(&reader->record, rc, m, news_missed(&reader->rx));
    news_receiver_drop(&reader->rx);
    return NULL;
}

/* ---- senders ---- */

struct writer {
    news_sender tx;
    uint64_t number, count;
};

static void *send_on_thread(void *arg)
{
    struct writer *writer = arg;

    for (uint64_t i = 0; i < writer->count; i++) {
        send_one(&writer->tx, writer->number, i);
        if (i % 64 == 0)
            sched_yield();
    }
    news_sender_drop(&writer->tx);
    return NULL;
}

struct sends {
    BLZ_FRAME;
    news_sender tx;
    uint64_t number, count, i;
    int64_t rc;
    blz_future yield;
};

BLZ_ASYNC(sends)
{
    BLZ_BEGIN;
    for (; self->i < self->count; self->i++) {
        send_one(&self->tx, self->number, self->i);
        if (self->i % 16 == 0)
            BLZ_AWAIT(self->rc, blz_yield(&self->yield));
    }
    news_sender_drop(&self->tx);
    BLZ_END(0);
}

/* ---- comparing ---- */

/* From the end: nothing behind a message was through before its sending began. */
static void check_order(const uint64_t *stream, uint64_t total)
{
    int64_t first_end = INT64_MAX;

    for (uint64_t place = total; place-- > 0;) {
        uint64_t id = stream[place];
        if (id == 0) /* all have missed it */
            continue;
        const struct moment *moment = &moments[id >> 32][(uint32_t)id - 1];
        check(first_end >= moment->begin);
        if (moment->end < first_end)
            first_end = moment->end;
    }
}

static void compare_records(struct record *records, uint64_t total)
{
    uint64_t *stream = calloc(total, sizeof *stream);

    check(stream);
    for (int r = 0; r < RECEIVERS; r++) {
        check(records[r].next == total); /* received or missed */
        for (uint64_t i = 0; i < total; i++) {
            uint64_t id = records[r].ids[i];
            if (id == 0)
                continue;
            check(stream[i] == 0 || stream[i] == id);
            stream[i] = id;
        }
        free(records[r].ids);
    }
    check_order(stream, total);
    free(stream);
}

static void all_get_the_same_stream_but_for_what_they_missed(unsigned workers, size_t capacity)
{
    uint64_t count = (uint64_t)scaled(60000), total = SENDERS * count;
    blz_rt *rt = new_rt(&(blz_options){.workers = workers});
    struct record records[RECEIVERS];
    struct reader reader;
    struct writer writer = {.number = 0, .count = count};
    blz_handle handles[RECEIVERS - 1], senders[SENDERS - 1];
    pthread_t threads[2];

    check(news_new(&writer.tx, &reader.rx, capacity) == 0);
    for (int i = 0; i < RECEIVERS; i++)
        record_begin(&records[i], total);
    for (int i = 0; i < SENDERS; i++)
        check((moments[i] = calloc(count, sizeof **moments)) != NULL);
    reader.record = records[RECEIVERS - 1];
    for (int i = 0; i < RECEIVERS - 1; i++)
        check(BLZ_SPAWN_ON(rt, &handles[i], reads, .rx = news_subscribe(&writer.tx),
                           .record = &records[i], .restless = i == 1, .lazy = i == 2) == 0);
    for (int i = 0; i < SENDERS - 1; i++)
        check(BLZ_SPAWN_ON(rt, &senders[i], sends, .tx = news_sender_clone(&writer.tx),
                           .number = (uint64_t)i + 1, .count = count) == 0);
    threads[0] = start_thread(read_on_thread, &reader);
    threads[1] = start_thread(send_on_thread, &writer);
    for (int i = 0; i < SENDERS - 1; i++)
        check(blz_handle_wait(&senders[i]) == 0 && senders[i].result == 0);
    for (int i = 0; i < RECEIVERS - 1; i++)
        check(blz_handle_wait(&handles[i]) == 0 && handles[i].result == 0);
    for (int i = 0; i < 2; i++)
        join_thread(threads[i]);
    records[RECEIVERS - 1] = reader.record;
    compare_records(records, total);
    for (int i = 0; i < SENDERS; i++)
        free(moments[i]);
    free_rt(rt);
}

static void two_workers_and_a_small_ring(void **state)
{
    (void)state;
    allow_seconds(120);
    all_get_the_same_stream_but_for_what_they_missed(2, 7);
}

static void four_workers_and_a_ring_of_one(void **state)
{
    (void)state;
    allow_seconds(120);
    all_get_the_same_stream_but_for_what_they_missed(4, 1);
}

static void two_workers_and_a_ring_for_all(void **state)
{
    (void)state;
    allow_seconds(120);
    all_get_the_same_stream_but_for_what_they_missed(2, 1 << 18);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(two_workers_and_a_small_ring),
        TEST(four_workers_and_a_ring_of_one),
        TEST(two_workers_and_a_ring_for_all),
    };
    return RUN_TESTS(tests);
}
