/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking at a runtime whose tasks come, wait, are woken, are cancelled and go: nobody is lost,
 * nothing is read after it is gone, and a runtime that ends while it is looked at just ends.
 */
#include "harness.h"

#include "observe/observe.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- tasks that come and go ---- */

static blz_mutex mutex;
static blz_notify notify;
static atomic_llong left;

struct guest {
    BLZ_FRAME;
    int64_t rc;
    union {
        blz_mutex_op lock;
        blz_future yield;
        blz_notify_op wait;
    };
    blz_timeout limit;
};

BLZ_ASYNC(guest)
{
    BLZ_BEGIN;
    (void)blz_task_set_name("guest");
    BLZ_AWAIT(self->rc, blz_mutex_lock(&self->lock, &mutex));
    if (self->rc == 0) {
        BLZ_AWAIT(self->rc, blz_yield(&self->yield));
        blz_mutex_unlock(&mutex);
    }
    BLZ_AWAIT(self->rc,
              blz_with_timeout(&self->limit, BLZ_MSEC, blz_notify_await(&self->wait, &notify)));
    blz_notify_one(&notify);
    atomic_fetch_sub(&left, 1);
    BLZ_END(0);
}

struct host {
    BLZ_FRAME;
    int64_t count, rc;
    blz_future yield;
};

BLZ_ASYNC(host)
{
    BLZ_BEGIN;
    for (; self->count > 0; self->count--) {
        self->rc = BLZ_SPAWN(guest);
        check(self->rc == 0 || self->rc == -ESHUTDOWN);
        if (self->rc < 0)
            atomic_fetch_sub(&left, 1);
        if (self->count % 64 == 0)
            BLZ_AWAIT(self->rc, blz_yield(&self->yield));
    }
    BLZ_END(0);
}

/* ---- those who look ---- */

static atomic_bool enough;

static void *look(void *arg)
{
    static _Thread_local struct observed_task tasks[32];
    blz_rt *rt = arg;
    uint64_t count = 0;

    while (!enough) {
        observe_walk walk;
        bool more = true;

        blz__observe_begin(&walk, rt);
        for (int steps = 0; more && (count % 7 != 3 || steps < 3); steps++) {
            size_t n = blz__observe_step(&walk, tasks, 32, &more);
            for (size_t i = 0; i < n; i++) {
                check(strcmp(tasks[i].name, "guest") == 0 || strcmp(tasks[i].name, "host") == 0);
                check(tasks[i].state != OBSERVE_WAITING || tasks[i].nr_frames > 0);
            }
        }
        blz__observe_end(&walk); /* some of them half way */
        count++;
    }
    return NULL;
}

static void tasks_do_not_notice_that_they_are_looked_at(void **state)
{
    int64_t count = scaled(4000);
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    pthread_t threads[2];

    (void)state;
    blz_mutex_init(&mutex);
    blz_notify_init(&notify);
    left = count;
    enough = false;
    for (int i = 0; i < 2; i++)
        threads[i] = start_thread(look, rt);
    assert_int_equal(BLZ_BLOCK_ON(rt, host, .count = count), 0);
    while (left > 0)
        sched_yield();
    enough = true;
    for (int i = 0; i < 2; i++)
        join_thread(threads[i]);
    free_rt(rt);
}

/* ---- a console, and runtimes that end ---- */

static void *ask(void *arg)
{
    static const char request[] = "GET /api/warnings?fresh=1 HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const blz_addr *addr = arg;
    uint32_t len;
    const struct sockaddr *sa = blz_addr_sockaddr(addr, &len);
    char answer[4096];

    while (!enough) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        check(fd >= 0);
        if (connect(fd, sa, len) == 0 && send(fd, request, sizeof request - 1, MSG_NOSIGNAL) > 0)
            (void)!recv(fd, answer, sizeof answer, 0);
        close(fd);
    }
    return NULL;
}

static void a_runtime_may_end_while_it_is_shown(void **state)
{
    int rounds = (int)scaled(12);

    (void)state;
    for (int i = 0; i < rounds; i++) {
        blz_rt *rt = new_rt(&(blz_options){.workers = 2});
        blz_console *console;
        pthread_t thread;
        blz_addr addr;

        blz_mutex_init(&mutex);
        blz_notify_init(&notify);
        left = 300;
        enough = false;
        assert_int_equal(blz_console_new(&console, rt,
                                         &(blz_console_options){.address = "127.0.0.1:0",
                                                                .until_rt_ends = i % 2 == 0}),
                         0);
        blz_console_addr(console, &addr);
        thread = start_thread(ask, &addr);
        assert_int_equal(BLZ_BLOCK_ON(rt, host, .count = 300), 0);
        free_rt(rt); /* cancels the guests, with a look at them under way or not */
        if (i % 2)
            assert_int_equal(blz_console_free(console), 0);
        enough = true;
        join_thread(thread);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tasks_do_not_notice_that_they_are_looked_at),
        TEST(a_runtime_may_end_while_it_is_shown),
    };
    return RUN_TESTS(tests);
}
