/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads from outside bring a runtime's last tasks to their end, and the runtime is freed before
 * these threads have returned: wakes, a wake from another runtime, spawns, closes and timers. None
 * of them may touch the runtime's memory when it is free, nor write to a descriptor that has got
 * the number of one of its drivers.
 */
#include "harness.h"

#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { DECOYS = 24, NR_VISITS = 5 };

static blz_rt *other_rt; /* the wake from a worker of another runtime */

struct round {
    blz_rt *rt;
    blz_oneshot here, there;
    blz_pipe in, out;
    blz_timer timer;
    struct event ran, fired, entered, left;
};

/* ---- what is brought to its end ---- */

struct receives {
    BLZ_FRAME;
    blz_oneshot *channel;
    blz_oneshot_op op;
    int64_t rc, value;
};

BLZ_ASYNC(receives)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_oneshot_recv(&self->op, self->channel, &self->value));
    BLZ_END(self->rc < 0 ? self->rc : self->value);
}

struct reads {
    BLZ_FRAME;
    blz_pipe pipe;
    blz_io io;
    char byte;
    int64_t rc;
};

BLZ_ASYNC(reads)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_pipe_read(&self->io, &self->pipe, &self->byte, 1));
    BLZ_END(self->rc);
}

struct posts {
    BLZ_FRAME;
    struct event *event;
};

BLZ_ASYNC(posts)
{
    BLZ_BEGIN;
    event_post(self->event);
    BLZ_END(0);
}

static void post(void *event)
{
    event_post(event);
}

/* ---- visits ---- */

static void visit_by_wake(struct round *round)
{
    check(blz_oneshot_send(&round->here, 1) == 0);
}

struct sends {
    BLZ_FRAME;
    blz_oneshot *channel;
};

BLZ_ASYNC(sends)
{
    BLZ_BEGIN;
    check(blz_oneshot_send(self->channel, 2) == 0);
    BLZ_END(0);
}

static void visit_from_another_runtime(struct round *round)
{
    check(BLZ_BLOCK_ON(other_rt, sends, .channel = &round->there) == 0);
}

static void visit_by_spawn(struct round *round)
{
    check(BLZ_SPAWN_ON(round->rt, NULL, posts, .event = &round->ran) == 0);
}

static void visit_by_close(struct round *round)
{
    check(blz_pipe_close(&round->in) == 0);
}

static void visit_by_timer(struct round *round)
{
    check(blz_timer_start(&round->timer, 0, round->rt) == 0);
}

static void (*const visits[NR_VISITS])(struct round *) = {
    visit_by_wake, visit_from_another_runtime, visit_by_spawn, visit_by_close, visit_by_timer,
};

struct visitor {
    struct round *round;
    void (*visit)(struct round *round);
};

static void *visitor_main(void *arg)
{
    const struct visitor *visitor = arg;

    event_post(&visitor->round->entered);
    event_wait(&visitor->round->entered, NR_VISITS);
    visitor->visit(visitor->round);
    event_post(&visitor->round->left);
    return NULL;
}

/* ---- a round ---- */

static void start_tasks(struct round *round, blz_handle handles[3])
{
    check(blz_pipe_new(&round->in, &round->out, round->rt) == 0);
    check(BLZ_SPAWN_ON(round->rt, &handles[0], receives, .channel = &round->here) == 0);
    check(BLZ_SPAWN_ON(round->rt, &handles[1], receives, .channel = &round->there) == 0);
    check(BLZ_SPAWN_ON(round->rt, &handles[2], reads, .pipe = round->in) == 0);
}

static void wait_for_all(struct round *round, blz_handle handles[3])
{
    static const int64_t results[3] = {1, 2, -ECANCELED};

    for (int i = 0; i < 3; i++) {
        check(blz_handle_wait(&handles[i]) == 0);
        check(handles[i].result == results[i] || handles[i].result == -EBADF);
    }
    event_wait(&round->ran, 1);
    event_wait(&round->fired, 1);
}

/* They get the numbers of the drivers that have just been closed. */
static void open_decoys(int fds[DECOYS])
{
    for (int i = 0; i < DECOYS; i++)
        check((fds[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) >= 0);
}

static void close_decoys(const int fds[DECOYS])
{
    uint64_t count;

    for (int i = 0; i < DECOYS; i++) {
        check(read(fds[i], &count, sizeof count) < 0); /* nothing was written to it */
        close(fds[i]);
    }
}

static void run_round(const char *backend)
{
    struct round round = {.rt = new_rt(&(blz_options){.backend = backend, .workers = 2}),
                          .ran = EVENT_INIT,
                          .fired = EVENT_INIT,
                          .entered = EVENT_INIT,
                          .left = EVENT_INIT};
    struct visitor visitors[NR_VISITS];
    pthread_t threads[NR_VISITS];
    blz_handle handles[3];
    int decoys[DECOYS];

    blz_oneshot_init(&round.here);
    blz_oneshot_init(&round.there);
    blz_timer_init(&round.timer, post, &round.fired);
    start_tasks(&round, handles);
    for (int i = 0; i < NR_VISITS; i++) {
        visitors[i] = (struct visitor){&round, visits[i]};
        threads[i] = start_thread(visitor_main, &visitors[i]);
    }
    wait_for_all(&round, handles);
    blz_pipe_close(&round.out);
    free_rt(round.rt);
    open_decoys(decoys);
    event_wait(&round.left, NR_VISITS);
    for (int i = 0; i < NR_VISITS; i++)
        join_thread(threads[i]);
    close_decoys(decoys);
}

static void a_runtime_is_freed_under_threads_that_wake_its_workers(void **state)
{
    static const char *const backends[] = {"io_uring", "epoll", "poll"};

    (void)state;
    allow_seconds(200);
    other_rt = new_rt(&(blz_options){.workers = 1, .watchdog_ns = BLZ_NEVER});
    for (int64_t i = 0; i < scaled(300); i++)
        run_round(backends[i % 3]);
    free_rt(other_rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_runtime_is_freed_under_threads_that_wake_its_workers),
    };

    return RUN_TESTS(tests);
}
