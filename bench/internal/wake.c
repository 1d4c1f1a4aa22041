/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to wake a thread that sleeps in its io_uring: by an eventfd that the ring polls,
 * and by a message from the waker's own ring. Two threads, a ring each; one operation is there and
 * back.
 */
#include "bench.h"

#ifdef BLZ_HAVE_URING
#include <liburing.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct side {
    struct io_uring ring;
    int eventfd;
    struct side *other;
    uint64_t rounds;
    bool by_message;
    pthread_barrier_t *ready;
};

enum { TAG_SENT = 1, TAG_WOKEN = 2 };

static void set_up(struct side *side)
{
    struct io_uring_params params = {.flags =
                                         IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN};
    struct io_uring_sqe *sqe;

    bench_check(io_uring_queue_init_params(64, &side->ring, &params), "io_uring");
    side->eventfd = eventfd(0, EFD_CLOEXEC);
    sqe = io_uring_get_sqe(&side->ring);
    io_uring_prep_poll_multishot(sqe, side->eventfd, POLLIN);
    sqe->user_data = TAG_WOKEN;
    io_uring_submit(&side->ring);
}

static void wake_other(struct side *side)
{
    if (side->by_message) {
        struct io_uring_sqe *sqe = io_uring_get_sqe(&side->ring);
        io_uring_prep_msg_ring(sqe, side->other->ring.ring_fd, 0, TAG_WOKEN, 0);
        sqe->user_data = TAG_SENT;
        sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
        io_uring_submit(&side->ring);
    } else {
        bench_check(write(side->other->eventfd, &(uint64_t){1}, 8) == 8 ? 0 : -1, "eventfd");
    }
}

static void wait_for_wake(struct side *side)
{
    struct io_uring_cqe *cqe;
    bool woken = false;

    while (!woken) {
        bench_check(io_uring_wait_cqe(&side->ring, &cqe), "wait");
        woken = cqe->user_data == TAG_WOKEN;
        io_uring_cqe_seen(&side->ring, cqe);
    }
}

static void *answer(void *arg)
{
    struct side *side = arg;

    set_up(side);
    pthread_barrier_wait(side->ready);
    for (uint64_t i = 0; i < side->rounds; i++) {
        wait_for_wake(side);
        wake_other(side);
    }
    return NULL;
}

static void ping_pong(struct run *run, bool by_message)
{
    pthread_barrier_t ready;
    struct side sides[2] = {{.other = &sides[1], .by_message = by_message, .rounds = run->n},
                            {.other = &sides[0], .by_message = by_message, .rounds = run->n}};
    pthread_t thread;

    pthread_barrier_init(&ready, NULL, 2);
    sides[0].ready = sides[1].ready = &ready;
    set_up(&sides[0]);
    bench_check(-pthread_create(&thread, NULL, answer, &sides[1]), "thread");
    pthread_barrier_wait(&ready);
    bench_start(run);
    for (uint64_t i = 0; i < run->n; i++) {
        wake_other(&sides[0]);
        wait_for_wake(&sides[0]);
    }
    bench_stop(run);
    pthread_join(thread, NULL);
    for (int i = 0; i < 2; i++) {
        io_uring_queue_exit(&sides[i].ring);
        close(sides[i].eventfd);
    }
    pthread_barrier_destroy(&ready);
}

static void wake_eventfd(struct run *run)
{
    ping_pong(run, false);
}

static void wake_msg_ring(struct run *run)
{
    ping_pong(run, true);
}

const struct bench wake_benches[] = {
    {"wake_eventfd", 20000, wake_eventfd, false},
    {"wake_msg_ring", 20000, wake_msg_ring, false},
    {0},
};
#else
const struct bench wake_benches[] = {{0}};
#endif
