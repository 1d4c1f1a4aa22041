/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of descriptors: what is set, changed and taken out between waits; deadlines; numbers that
 * are closed and reused at once; thousands of members. On every backend.
 */
#include "harness.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *const backends[] = {"io_uring", "epoll", "poll"};
enum { NR_BACKENDS = sizeof backends / sizeof *backends };

/*
 * A test is an async function that owns a set. It is run on a runtime with one worker and on one
 * with three, where it moves about.
 */
#define ON_ALL(test, fn)                                                                      \
    static void test(void **state)                                                            \
    {                                                                                         \
        (void)state;                                                                          \
        for (int i = 0; i < 2 * NR_BACKENDS; i++) {                                           \
            blz_rt *rt =                                                                      \
                new_rt(&(blz_options){.workers = i % 2 ? 1 : 3, .backend = backends[i / 2]}); \
            assert_int_equal(BLZ_BLOCK_ON(rt, fn), 0);                                        \
            free_rt(rt);                                                                      \
        }                                                                                     \
    }

static int new_event(void)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    check(fd >= 0);
    return fd;
}

static void post(int fd)
{
    check(eventfd_write(fd, 1) == 0);
}

static void clear(int fd)
{
    eventfd_t value;
    check(eventfd_read(fd, &value) == 0);
}

/* The one event there is. */
static void expect(blz_fdset *set, int fd, unsigned events, const void *cookie)
{
    blz_fdset_event event, none;

    check(blz_fdset_next(set, &event));
    check(event.fd == fd && event.events == events && event.cookie == cookie && event.error == 0);
    check(!blz_fdset_next(set, &none));
}

static void must_set(blz_fdset *set, int fd, unsigned events, void *cookie)
{
    check(blz_fdset_set(set, fd, events, cookie) == 0);
}

/* ---- waiting ---- */

struct waits {
    BLZ_FRAME;
    blz_fdset set;
    int a, b;
    int64_t rc, before;
    blz_fdset_ready_op op;
};

BLZ_ASYNC(waits)
{
    BLZ_BEGIN;
    self->a = new_event();
    self->b = new_event();
    must_set(&self->set, self->a, BLZ_FD_READ, &self->a);
    must_set(&self->set, self->b, BLZ_FD_READ, &self->b);
    must_set(&self->set, self->b, BLZ_FD_READ, &self->b); /* twice is once */
    check(blz_fdset_count(&self->set) == 2);

    /* Nothing: the deadline passes; never early. */
    self->before = blz_now();
    BLZ_AWAIT(self->rc, blz_fdset_ready(&self->op, &self->set, blz_deadline(5 * BLZ_MSEC)));
    check(self->rc == 0 && blz_now() - self->before >= 5 * BLZ_MSEC);
    BLZ_AWAIT(self->rc, blz_fdset_ready(&self->op, &self->set, 0));
    check(self->rc == 0);

    post(self->b);
    BLZ_AWAIT(self->rc, blz_fdset_ready(&self->op, &self->set, BLZ_NEVER));
    check(self->rc == 1);
    expect(&self->set, self->b, BLZ_FD_READ, &self->b);

    /* It is a level: it is reported until it is not true any more; at once, if need be. */
    BLZ_AWAIT(self->rc, blz_fdset_ready(&self->op, &self->set, 0));
    check(self->rc == 1);
    expect(&self->set, self->b, BLZ_FD_READ, &self->b);
    clear(self->b);
    BLZ_AWAIT(self->rc, blz_fdset_ready(&self->op, &self->set, 0));
    check(self->rc == 0);

    post(self->a);
    BLZ_AWAIT(self->rc, blz_fdset_ready(&self->op, &self->set, blz_deadline(BLZ_MINUTE)));
    check(self->rc == 1);
    expect(&self->set, self->a, BLZ_FD_READ, &self->a);

    BLZ_AWAIT(self->rc, blz_fdset_close(&self->op, &self->set));
    check(self->rc == 0 && blz_fdset_count(&self->set) == 0);
    close(self->a);
    close(self->b);
    BLZ_END(self->rc);
}
ON_ALL(what_is_ready_is_reported_until_it_is_not, waits)

/* ---- changing one's mind ---- */

struct changes {
    BLZ_FRAME;
    blz_fdset set;
    int fds[2];
    int64_t rc;
    blz_fdset_ready_op op;
};

BLZ_ASYNC(changes)
{
    BLZ_BEGIN;
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, self->fds) == 0);

    /* Out, as while connecting; in and out; in. */
    must_set(&self->set, self->fds[0], BLZ_FD_WRITE, NULL);
    BLZ_AWAIT(self->rc, blz_fdset_ready(&self->op, &self->set, BLZ_NEVER));
    expect(&self->set, self->fds[0], BLZ_FD_WRITE, NULL);
    must_set(&self->set, self->fds[0], BLZ_FD_WRITE | BLZ_FD_READ, self);
    check(write(self->fds[1], "x", 1) == 1);
    BLZ_AWAIT(self->rc, blz_fdset_ready(&self->op, &self->set, 0));
    check(self->rc == 1);
    expect(&self->set, self->fds[0], BLZ_FD_WRITE | BLZ_FD_READ, self);
    must_set(&self->set, self->fds[0], BLZ_FD_READ, self);
    BLZ_AWAIT(self->rc, blz_fdset_ready(&self->op, &self->set, 0));
    check(self->rc == 1);
    expect(&self->set, self->fds[0], BLZ_FD_READ, self);

    /* At rest nothing is reported, nor what was found before. */
    must_set(&self->set, self->fds[0], 0, self);
    BLZ_AWAIT(self->rc, blz_fdset_ready(&self->op, &self->set, blz_deadline(BLZ_MSEC)));
    check(self->rc == 0);
    must_set(&self->set, self->fds[0], BLZ_FD_READ, self);
    BLZ_AWAIT(self->rc, blz_fdset_ready(&self->op, &self->set, 0));
    check(self->rc == 1);
    must_set(&self->set, self->fds[0], 0, self);
    check(!blz_fdset_next(&self->set, &(blz_fdset_event){0}));
    must_set(&self->set, self->fds[0], BLZ_FD_WRITE, self);
    must_set(&self->set, self->fds[0], BLZ_FD_READ, self); /* the last counts */
    BLZ_AWAIT(self->rc, blz_fdset_ready(&self->op, &self->set, 0));
    expect(&self->set, self->fds[0], BLZ_FD_READ, self);

    /* The other side ends: reported with whatever is waited for. */
    must_set(&self->set, self->fds[0], BLZ_FD_WRITE, self);
    close(self->fds[1]);
    BLZ_AWAIT(self->rc, blz_fdset_ready(&self->op, &self->set, BLZ_NEVER));
    blz_fdset_event event;
    check(self->rc == 1 && blz_fdset_next(&self->set, &event));
    check((event.events & BLZ_FD_HUP) && !(event.events & BLZ_FD_READ));
    BLZ_AWAIT(self->rc, blz_fdset_close(&self->op, &self->set));
    close(self->fds[0]);
    BLZ_END(self->rc);
}
ON_ALL(what_was_set_last_counts_from_the_next_wait_on, changes)

static void mistakes_are_refused(void **state)
{
    blz_fdset set;

    (void)state;
    memset(&set, 0, sizeof set);
    assert_int_equal(blz_fdset_set(&set, -1, BLZ_FD_READ, NULL), -EINVAL);
    assert_int_equal(blz_fdset_set(&set, 0, BLZ_FD_PRI, NULL), -EINVAL);
    assert_int_equal(blz_fdset_set(&set, 0, BLZ_FD_READ, NULL), -ENXIO);
    assert_int_equal(blz_fdset_remove(&set, 0), -ENOENT);
    assert_int_equal(blz_fdset_remove(&set, -1), -ENOENT);
    assert_false(blz_fdset_next(&set, &(blz_fdset_event){0}));
}

struct bad {
    BLZ_FRAME;
    blz_fdset set;
    int fd;
    int64_t rc;
    blz_fdset_ready_op op;
};

BLZ_ASYNC(bad)
{
    BLZ_BEGIN;
    self->fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 500); /* a number that nobody else gets */
    must_set(&self->set, self->fd, BLZ_FD_READ, self);
    close(self->fd); /* behind our back */
    BLZ_AWAIT(self->rc, blz_fdset_ready(&self->op, &self->set, BLZ_NEVER));
    blz_fdset_event event;
    check(self->rc == 1 && blz_fdset_next(&self->set, &event));
    check(event.events == BLZ_FD_ERR && event.error == -EBADF && event.cookie == self);
    check(blz_fdset_remove(&self->set, self->fd) == 0);
    check(blz_fdset_remove(&self->set, self->fd) == -ENOENT);
    BLZ_AWAIT(self->rc, blz_fdset_close(&self->op, &self->set));
    BLZ_END(self->rc);
}
ON_ALL(a_closed_descriptor_is_reported_as_an_error, bad)

/* ---- taking out ---- */

struct removes {
    BLZ_FRAME;
    blz_fdset set;
    int fds[3], number, i;
    int64_t rc;
    blz_fdset_ready_op op;
};

BLZ_ASYNC(removes)
{
    BLZ_BEGIN;
    for (self->i = 0; self->i < 3; self->i++) {
        self->fds[self->i] = new_event();
        must_set(&self->set, self->fds[self->i], BLZ_FD_READ, NULL);
        post(self->fds[self->i]);
    }
    BLZ_AWAIT(self->rc, blz_fdset_ready(&self->op, &self->set, blz_deadline(BLZ_MINUTE)));
    check(self->rc == 1);
    blz_fdset_event event;
    check(blz_fdset_next(&self->set, &event));
    /* What one event leads to: another one's descriptor goes. It is not reported. */
    for (self->i = 0; self->i < 3; self->i++)
        if (self->fds[self->i] != event.fd)
            check(blz_fdset_remove(&self->set, self->fds[self->i]) == 0);
    check(!blz_fdset_next(&self->set, &event));
    check(blz_fdset_count(&self->set) == 1);
    BLZ_AWAIT(self->rc, blz_fdset_close(&self->op, &self->set));
    for (self->i = 0; self->i < 3; self->i++)
        close(self->fds[self->i]);

    /* Armed, taken out, closed, and its number set again, fifty times without a wait between. */
    self->number = new_event();
    for (self->i = 0; self->i < 50; self->i++) {
        must_set(&self->set, self->number, BLZ_FD_READ, NULL);
        BLZ_AWAIT(self->rc, blz_fdset_ready(&self->op, &self->set, 0));
        check(self->rc == 0);
        check(blz_fdset_remove(&self->set, self->number) == 0);
        close(self->number);
        check(new_event() == self->number);
        must_set(&self->set, self->number, BLZ_FD_READ, self);
        if (self->i % 2) {
            check(blz_fdset_remove(&self->set, self->number) == 0);
            must_set(&self->set, self->number, BLZ_FD_READ, self);
        }
        post(self->number);
        BLZ_AWAIT(self->rc, blz_fdset_ready(&self->op, &self->set, BLZ_NEVER));
        check(self->rc == 1);
        expect(&self->set, self->number, BLZ_FD_READ, self);
        clear(self->number);
    }
    BLZ_AWAIT(self->rc, blz_fdset_close(&self->op, &self->set));
    close(self->number);
    BLZ_END(self->rc);
}
ON_ALL(what_is_taken_out_is_not_reported_and_its_number_may_be_reused_at_once, removes)

/* Closing takes effect at once, where the wait was begun on the same worker. */
struct lets_go {
    BLZ_FRAME;
    blz_fdset set;
    int fds[2];
    int64_t rc;
    blz_fdset_ready_op op;
};

BLZ_ASYNC(lets_go)
{
    char byte;

    BLZ_BEGIN;
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, self->fds) == 0);
    must_set(&self->set, self->fds[0], BLZ_FD_READ, NULL);
    BLZ_AWAIT(self->rc, blz_fdset_ready(&self->op, &self->set, 0));
    check(blz_fdset_remove(&self->set, self->fds[0]) == 0);
    close(self->fds[0]);
    check(recv(self->fds[1], &byte, 1, MSG_DONTWAIT) == 0);
    BLZ_AWAIT(self->rc, blz_fdset_close(&self->op, &self->set));
    close(self->fds[1]);
    BLZ_END(self->rc);
}

static void what_is_taken_out_can_be_closed_to_effect(void **state)
{
    (void)state;
    for (int i = 0; i < NR_BACKENDS; i++) {
        blz_rt *rt = new_rt(&(blz_options){.workers = 1, .backend = backends[i]});
        assert_int_equal(BLZ_BLOCK_ON(rt, lets_go), 0);
        free_rt(rt);
    }
}

/* ---- cancellation ---- */

struct cancelled {
    BLZ_FRAME;
    blz_fdset set;
    int fd;
    struct event *waits;
    int64_t rc, closed;
    blz_fdset_ready_op op;
};

BLZ_ASYNC(cancelled)
{
    BLZ_BEGIN;
    must_set(&self->set, self->fd, BLZ_FD_READ, NULL);
    BLZ_AWAIT(self->rc, blz_fdset_ready(&self->op, &self->set, 0));
    check(self->rc == 0);
    event_post(self->waits);
    BLZ_AWAIT(self->rc, blz_fdset_ready(&self->op, &self->set, blz_deadline(BLZ_HOUR)));
    BLZ_AWAIT(self->closed, blz_fdset_close(&self->op, &self->set)); /* not refused */
    check(self->closed == 0 && blz_fdset_count(&self->set) == 0);
    BLZ_END(self->rc);
}

static void a_wait_can_be_cancelled_and_the_set_closed_then(void **state)
{
    (void)state;
    for (int i = 0; i < 20 * NR_BACKENDS; i++) {
        blz_rt *rt = new_rt(&(blz_options){.workers = 2, .backend = backends[i % NR_BACKENDS]});
        struct event waits = EVENT_INIT;
        blz_handle task;
        int fd = new_event();

        assert_int_equal(BLZ_SPAWN_ON(rt, &task, cancelled, .fd = fd, .waits = &waits), 0);
        event_wait(&waits, 1);
        blz_handle_cancel(&task);
        assert_int_equal(blz_handle_wait(&task), 0);
        assert_int_equal(task.result, -ECANCELED);
        free_rt(rt);
        close(fd);
    }
}

/* Nothing is lost by a limit that passes: what was found is reported by the next wait. */
struct limited {
    BLZ_FRAME;
    blz_fdset set;
    int fd, i;
    int64_t rc;
    blz_fdset_ready_op op;
    blz_timeout limit;
};

BLZ_ASYNC(limited)
{
    BLZ_BEGIN;
    self->fd = new_event();
    must_set(&self->set, self->fd, BLZ_FD_READ, NULL);
    for (self->i = 0; self->i < 20; self->i++) {
        BLZ_AWAIT(self->rc, blz_with_timeout(&self->limit, BLZ_MSEC,
                                             blz_fdset_ready(&self->op, &self->set, BLZ_NEVER)));
        check(self->rc == -ETIMEDOUT);
        post(self->fd);
        BLZ_AWAIT(self->rc, blz_with_timeout(&self->limit, -1,
                                             blz_fdset_ready(&self->op, &self->set, BLZ_NEVER)));
        check(self->rc == -ETIMEDOUT || self->rc == 1);
        BLZ_AWAIT(self->rc, blz_fdset_ready(&self->op, &self->set, BLZ_NEVER));
        check(self->rc == 1);
        expect(&self->set, self->fd, BLZ_FD_READ, NULL);
        clear(self->fd);
    }
    BLZ_AWAIT(self->rc, blz_fdset_close(&self->op, &self->set));
    close(self->fd);
    BLZ_END(self->rc);
}
ON_ALL(nothing_is_lost_by_a_limit_that_passes, limited)

/* ---- memory ---- */

struct poor {
    BLZ_FRAME;
    blz_fdset set;
    int fds[20], i, failures;
    bool done;
    int64_t rc;
    blz_fdset_ready_op op;
};

/* Every allocation fails once: setting says so and may be repeated. */
BLZ_ASYNC(poor)
{
    BLZ_BEGIN;
    for (self->i = 0; self->i < 20; self->i++) {
        self->fds[self->i] = new_event();
        memory_fail_at(the_memory(), 1, false);
        int rc = blz_fdset_set(&self->set, self->fds[self->i], BLZ_FD_READ, NULL);
        memory_fail_at(the_memory(), 0, false);
        check(rc == -ENOMEM && blz_fdset_count(&self->set) == (size_t)self->i);
        must_set(&self->set, self->fds[self->i], BLZ_FD_READ, NULL);
    }
    for (self->failures = 1; !self->done; self->failures++) {
        memory_fail_at(the_memory(), self->failures, false);
        BLZ_AWAIT(self->rc, blz_fdset_ready(&self->op, &self->set, 0));
        memory_fail_at(the_memory(), 0, false);
        check(self->rc == 0 || self->rc == -ENOMEM);
        self->done = self->rc == 0;
    }
    post(self->fds[19]);
    BLZ_AWAIT(self->rc, blz_fdset_ready(&self->op, &self->set, BLZ_NEVER));
    check(self->rc == 1);
    expect(&self->set, self->fds[19], BLZ_FD_READ, NULL);
    BLZ_AWAIT(self->rc, blz_fdset_close(&self->op, &self->set));
    for (self->i = 0; self->i < 20; self->i++)
        close(self->fds[self->i]);
    BLZ_END(self->rc);
}

static void sets_survive_a_lack_of_memory(void **state)
{
    (void)state;
    for (int i = 0; i < NR_BACKENDS; i++) {
        blz_rt *rt = new_rt(&(blz_options){.workers = 1, .backend = backends[i]});
        assert_int_equal(BLZ_BLOCK_ON(rt, poor), 0);
        free_rt(rt);
    }
}

/* ---- many, and churn ---- */

enum { NR_MANY = 4000 };

/* Room for many descriptors; gives what there is room for. */
static int make_room(int wanted)
{
    struct rlimit limit;

    check(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    check(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    return limit.rlim_cur > (rlim_t)wanted + 200 ? wanted : (int)limit.rlim_cur - 200;
}

struct many {
    BLZ_FRAME;
    blz_fdset set;
    int *fds;
    int count, i, found, round;
    int64_t rc;
    blz_fdset_ready_op op;
};

BLZ_ASYNC(many)
{
    BLZ_BEGIN;
    for (self->i = 0; self->i < self->count; self->i++) {
        self->fds[self->i] = new_event();
        must_set(&self->set, self->fds[self->i], BLZ_FD_READ, &self->fds[self->i]);
    }
    check(blz_fdset_count(&self->set) == (size_t)self->count);
    for (self->round = 1; self->round <= 3; self->round++) {
        BLZ_AWAIT(self->rc, blz_fdset_ready(&self->op, &self->set, 0));
        check(self->rc == 0);
        for (self->i = 0; self->i < self->count; self->i += self->round)
            post(self->fds[self->i]);
        self->found = 0;
        while (self->found < (self->count + self->round - 1) / self->round) {
            BLZ_AWAIT(self->rc, blz_fdset_ready(&self->op, &self->set, BLZ_NEVER));
            check(self->rc == 1);
            blz_fdset_event event;
            while (blz_fdset_next(&self->set, &event)) {
                check(*(int *)event.cookie == event.fd && event.events == BLZ_FD_READ);
                clear(event.fd);
                self->found++;
            }
        }
    }
    BLZ_AWAIT(self->rc, blz_fdset_close(&self->op, &self->set));
    for (self->i = 0; self->i < self->count; self->i++)
        close(self->fds[self->i]);
    BLZ_END(self->rc);
}

static void thousands_of_descriptors_are_no_trouble(void **state)
{
    int count = make_room(NR_MANY), *fds = calloc((size_t)count, sizeof *fds);

    (void)state;
    allow_seconds(120);
    for (int i = 0; i < NR_BACKENDS; i++) {
        blz_rt *rt = new_rt(&(blz_options){.workers = 2, .backend = backends[i]});
        assert_int_equal(BLZ_BLOCK_ON(rt, many, .fds = fds, .count = count), 0);
        free_rt(rt);
    }
    free(fds);
}

enum { NR_CHURN = 40 };

/* As a library that opens and closes connections all the time, from inside of any call. */
struct churn {
    BLZ_FRAME;
    blz_fdset set;
    int fds[NR_CHURN][2];
    int i, left;
    uint64_t seed;
    int64_t rc;
    blz_fdset_ready_op op;
};

static void churn_open(struct churn *self, int i)
{
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, self->fds[i]) == 0);
    must_set(&self->set, self->fds[i][0], BLZ_FD_READ, self->fds[i]);
    if (random_below(&self->seed, 2))
        must_set(&self->set, self->fds[i][1], BLZ_FD_READ | BLZ_FD_WRITE, self->fds[i]);
    if (random_below(&self->seed, 2))
        check(write(self->fds[i][1], "x", 1) == 1);
}

static void churn_close(struct churn *self, int i)
{
    check(blz_fdset_remove(&self->set, self->fds[i][0]) == 0);
    blz_fdset_remove(&self->set, self->fds[i][1]);
    close(self->fds[i][0]);
    close(self->fds[i][1]);
}

static void churn_event(struct churn *self, const blz_fdset_event *event)
{
    int *pair = event->cookie, i = (int)random_below(&self->seed, NR_CHURN);
    char byte;

    /* The cookie is of the pair that has this number now. */
    check(event->fd == pair[0] || event->fd == pair[1]);
    check(event->events && !(event->events & (BLZ_FD_ERR | BLZ_FD_HUP)));
    if (event->fd == pair[0])
        check(read(pair[0], &byte, 1) == 1);
    else
        must_set(&self->set, pair[1], random_below(&self->seed, 4) ? 0 : BLZ_FD_READ, pair);
    churn_close(self, i);
    churn_open(self, i);
    self->left--;
}

BLZ_ASYNC(churn)
{
    BLZ_BEGIN;
    for (self->i = 0; self->i < NR_CHURN; self->i++)
        churn_open(self, self->i);
    while (self->left > 0) {
        BLZ_AWAIT(self->rc, blz_fdset_ready(&self->op, &self->set, blz_deadline(BLZ_MSEC)));
        check(self->rc >= 0);
        blz_fdset_event event;
        while (blz_fdset_next(&self->set, &event))
            churn_event(self, &event);
        self->i = (int)random_below(&self->seed, NR_CHURN);
        churn_close(self, self->i);
        churn_open(self, self->i);
    }
    BLZ_AWAIT(self->rc, blz_fdset_close(&self->op, &self->set));
    for (self->i = 0; self->i < NR_CHURN; self->i++) {
        close(self->fds[self->i][0]);
        close(self->fds[self->i][1]);
    }
    BLZ_END(self->rc);
}

static void descriptors_come_and_go_while_they_are_waited_for(void **state)
{
    (void)state;
    allow_seconds(120);
    for (int i = 0; i < NR_BACKENDS; i++) {
        blz_rt *rt = new_rt(&(blz_options){.workers = 3, .backend = backends[i]});
        blz_handle tasks[4];

        /* Several at a time: they move between workers, and take numbers from each other. */
        for (int j = 0; j < 4; j++)
            assert_int_equal(BLZ_SPAWN_ON(rt, &tasks[j], churn, .seed = (uint64_t)j,
                                          .left = (int)scaled(5000)),
                             0);
        for (int j = 0; j < 4; j++) {
            assert_int_equal(blz_handle_wait(&tasks[j]), 0);
            assert_int_equal(tasks[j].result, 0);
        }
        free_rt(rt);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_ready_is_reported_until_it_is_not),
        TEST(what_was_set_last_counts_from_the_next_wait_on),
        TEST(mistakes_are_refused),
        TEST(a_closed_descriptor_is_reported_as_an_error),
        TEST(what_is_taken_out_is_not_reported_and_its_number_may_be_reused_at_once),
        TEST(what_is_taken_out_can_be_closed_to_effect),
        TEST(a_wait_can_be_cancelled_and_the_set_closed_then),
        TEST(nothing_is_lost_by_a_limit_that_passes),
        TEST(sets_survive_a_lack_of_memory),
        TEST(thousands_of_descriptors_are_no_trouble),
        TEST(descriptors_come_and_go_while_they_are_waited_for),
    };
    return RUN_TESTS(tests);
}
