/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking at a runtime whose tasks come, wait, are woken, are cancelled and go: nobody is lost,
 * nothing is read after it is gone, and a runtime that ends while it is looked at just ends. And
 * programs that start consoles at the same path at the same time.
 */
#include "harness.h"

#include "observe/observe.h"

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
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

/* ---- programs that start at the same path ---- */

enum { STARTERS = 6 };

struct starter {
    pid_t pid;
    int to, from;
};

/* A program that starts a console when it is told to, says whether it did, and ends it when told
 * again. */
static int starter_main(const char *address)
{
    blz_rt *rt;
    blz_console *console = NULL;
    char byte, won;

    alarm(CHILD_SECONDS);
    check(blz_rt_new(&rt, &(blz_options){.workers = 1}) == 0);
    check(read(STDIN_FILENO, &byte, 1) == 1);
    won = blz_console_new(&console, rt, &(blz_console_options){.address = address}) == 0;
    check(write(STDOUT_FILENO, &won, 1) == 1);
    check(read(STDIN_FILENO, &byte, 1) == 1);
    if (won)
        check(blz_console_free(console) == 0);
    return blz_rt_free(rt);
}

static struct starter new_starter(char *address)
{
    char self[4096] = {0}, *emulator = getenv("EMULATOR");
    char *argv[] = {emulator, self, address, NULL}, **command = emulator ? argv : argv + 1;
    struct starter starter;
    int in[2], out[2];
    posix_spawn_file_actions_t actions;

    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    assert_int_equal(posix_spawnp(&starter.pid, command[0], &actions, NULL, command, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    starter.to = in[1];
    starter.from = out[0];
    return starter;
}

static void tell_all(const struct starter *starters)
{
    for (int i = 0; i < STARTERS; i++)
        assert_int_equal(write(starters[i].to, "x", 1), 1);
}

static void end_starter(const struct starter *starter)
{
    int status = -1;

    assert_int_equal(waitpid(starter->pid, &status, 0), starter->pid);
    assert_int_equal(status, 0);
    close(starter->to);
    close(starter->from);
}

static void leave_a_socket(const struct sockaddr_un *sa)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (const struct sockaddr *)sa, sizeof *sa), 0);
    close(fd);
}

static bool can_connect(const struct sockaddr_un *sa)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool connected = connect(fd, (const struct sockaddr *)sa, sizeof *sa) == 0;

    close(fd);
    return connected;
}

static void of_programs_that_start_at_one_path_one_wins(void **state)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    struct starter starters[STARTERS];
    char address[128];
    int rounds = (int)scaled(10);

    (void)state;
    snprintf(sa.sun_path, sizeof sa.sun_path, "/tmp/blitz-console-race-%d", (int)getpid());
    snprintf(address, sizeof address, "unix:%s", sa.sun_path);
    for (int round = 0; round < rounds; round++) {
        int winners = 0;
        char won = 0;

        leave_a_socket(&sa);
        for (int i = 0; i < STARTERS; i++)
            starters[i] = new_starter(address);
        tell_all(starters);
        for (int i = 0; i < STARTERS; i++) {
            assert_int_equal(read(starters[i].from, &won, 1), 1);
            winners += won;
        }
        assert_int_equal(winners, 1);
        assert_true(can_connect(&sa));
        tell_all(starters);
        for (int i = 0; i < STARTERS; i++)
            end_starter(&starters[i]);
        assert_int_equal(access(sa.sun_path, F_OK), -1);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(tasks_do_not_notice_that_they_are_looked_at),
        TEST(a_runtime_may_end_while_it_is_shown),
        TEST(of_programs_that_start_at_one_path_one_wins),
    };

    if (argc > 1)
        return starter_main(argv[1]);
    return RUN_TESTS(tests);
}
