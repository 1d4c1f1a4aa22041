/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Too much of everything, on every backend: thousands of operations, completion queues that
 * overflow, descriptors that run out, signals that interrupt every call.
 */
#include "io_fixture.h"

#include <blitz/tcp.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- thousands in flight ---- */

enum { MANY = 1500 };

static struct pair pairs[MANY];
static blz_handle handles[MANY];

static void raise_limit(void)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max < 8192 ? limit.rlim_max : 8192;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(limit.rlim_cur >= 2 * MANY + 100);
}

static int64_t result_of(blz_handle *handle)
{
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

static void open_many(blz_rt *rt, const int *kinds, int nr_kinds)
{
    for (int i = 0; i < MANY; i++) {
        open_pair(&pairs[i], rt, PAIR_UNIX);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], does_io, .kind = kinds[i % nr_kinds],
                                      .ref = pairs[i].ours),
                         0);
    }
    wait_until_idle(rt);
}

static void close_many(void)
{
    for (int i = 0; i < MANY; i++)
        close_pair(&pairs[i]);
}

static const int reading[] = {IO_READ, IO_LEASE, IO_READV, IO_POLL, IO_RECVMSG};
enum { NR_READING = sizeof reading / sizeof *reading };

static void thousands_complete(blz_rt *rt)
{
    open_many(rt, reading, NR_READING);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(write(pairs[i].far, "hello", 5), 5);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(result_of(&handles[i]), reading[i % NR_READING] == IO_POLL ? 1 : 5);
    close_many();
}

static void thousands_of_operations_complete(void **state)
{
    (void)state;
    raise_limit();
    on_every_backend(thousands_complete);
}

static void thousands_end(blz_rt *rt)
{
    open_many(rt, reading, NR_READING);
    for (int i = 0; i < MANY; i++)
        blz_handle_cancel(&handles[i]);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(result_of(&handles[i]), -ECANCELED);
    close_many();
    open_many(rt, reading, NR_READING);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(blz__fd_close(&pairs[i].ours), 0);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(result_of(&handles[i]), -EBADF);
    close_many();
}

static void thousands_of_operations_are_cancelled_and_closed(void **state)
{
    (void)state;
    raise_limit();
    on_every_backend(thousands_end);
}

/* The completions do not fit, while the worker has no time for them. */
struct busy {
    BLZ_FRAME;
    struct event *begun, *enough;
};

BLZ_ASYNC(busy)
{
    BLZ_BEGIN;
    event_post(self->begun);
    event_wait(self->enough, 1);
    BLZ_END(0);
}

static void overflow(blz_rt *rt)
{
    unsigned workers = blz_rt_workers(rt);

    for (int round = 0; round < 2; round++) {
        struct event begun = EVENT_INIT, enough = EVENT_INIT;
        blz_handle stuck[2];
        open_many(rt, reading, NR_READING);
        for (unsigned i = 0; i < workers; i++)
            assert_int_equal(BLZ_SPAWN_ON(rt, &stuck[i], busy, .begun = &begun, .enough = &enough),
                             0);
        event_wait(&begun, workers);
        for (int i = 0; i < MANY; i++) {
            assert_int_equal(write(pairs[i].far, "hello", 5), 5);
            if (round && i % 2)
                blz_handle_cancel(&handles[i]);
        }
        event_post(&enough);
        for (unsigned i = 0; i < workers; i++)
            assert_int_equal(result_of(&stuck[i]), 0);
        for (int i = 0; i < MANY; i++) {
            int64_t rc = result_of(&handles[i]);
            assert_true(rc == 1 || rc == 5 || (round && i % 2 && rc == -ECANCELED));
        }
        close_many();
        /* and it can still be woken */
        for (int i = 0; i < 50; i++) {
            wait_until_idle(rt);
            assert_int_equal(BLZ_BLOCK_ON(rt, give, .value = i), i);
        }
    }
}

static void completions_that_do_not_fit_are_not_lost(void **state)
{
    (void)state;
    raise_limit();
    on_every_backend_with(&(blz_options){.max_io_completions = 2, .watchdog_ns = BLZ_NEVER},
                          overflow);
}

/* ---- more entries than the process may have descriptors ---- */

static void more_waits_than_descriptors(blz_rt *rt)
{
    enum { LISTENS = 200 };
    struct rlimit limit, low;
    struct pair pair;
    struct sockaddr_in sa;
    socklen_t len = sizeof sa;

    open_pair(&pair, rt, PAIR_LISTENER);
    assert_int_equal(getsockname(pair.fd, (struct sockaddr *)&sa, &len), 0);
    for (int i = 0; i < LISTENS; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], does_io, .kind = IO_ACCEPT,
                                      .ref = pair.ours),
                         0);
    wait_until_idle(rt);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = limit;
    low.rlim_cur = 100; /* what is above stays open */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    for (int i = 0; i < LISTENS; i++) {
        int client;
        do /* until accepted ones have been closed */
            client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        while (client < 0 && errno == EMFILE);
        check(client >= 0 && connect(client, (struct sockaddr *)&sa, len) == 0);
        close(client);
    }
    for (int i = 0; i < LISTENS; i++)
        check(blz_handle_wait(&handles[i]) == 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    for (int i = 0; i < LISTENS; i++)
        assert_true(handles[i].result >= 0 || handles[i].result == -EMFILE);
    close_pair(&pair);
}

static void more_operations_wait_than_there_may_be_descriptors(void **state)
{
    (void)state;
    on_every_backend(more_waits_than_descriptors);
}

/* ---- no descriptors ---- */

static struct rlimit usual;

static void allow_no_more_descriptors(void)
{
    struct rlimit limit;
    int next = dup(0);

    assert_true(next >= 0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    limit = usual;
    limit.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void allow_descriptors(void)
{
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
}

static void accept_without_descriptors(blz_rt *rt)
{
    struct pair pair;
    struct sockaddr_in sa;
    socklen_t len = sizeof sa;
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int64_t rc;

    open_pair(&pair, rt, PAIR_LISTENER);
    assert_int_equal(getsockname(pair.fd, (struct sockaddr *)&sa, &len), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&sa, len), 0);
    assert_int_equal(BLZ_BLOCK_ON(rt, does_io, .kind = IO_POLL, .ref = pair.ours), 1);
    allow_no_more_descriptors();
    rc = BLZ_BLOCK_ON(rt, does_io, .kind = IO_ACCEPT, .ref = pair.ours);
    allow_descriptors();
    assert_int_equal(rc, -EMFILE);
    assert_true(BLZ_BLOCK_ON(rt, does_io, .kind = IO_ACCEPT, .ref = pair.ours) >= 0);
    close(client);
    close_pair(&pair);
}

static void an_accept_without_descriptors_fails_and_works_again(void **state)
{
    (void)state;
    on_every_backend(accept_without_descriptors);
}

struct connects {
    BLZ_FRAME;
    const blz_addr *addr;
    int64_t rc;
    blz_tcp conn;
    blz_io io;
};

BLZ_ASYNC(connects)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_tcp_connect_with(&self->io, &self->conn, self->addr, NULL));
    if (self->rc == 0)
        check(blz_tcp_close(&self->conn) == 0);
    BLZ_END(self->rc);
}

static int64_t connect_once(blz_rt *rt, const blz_addr *addr)
{
    return BLZ_BLOCK_ON(rt, connects, .addr = addr);
}

static void connect_without_descriptors(blz_rt *rt)
{
    struct sockaddr_in sa;
    int listener = tcp_listener(&sa, 16);
    blz_addr addr;
    int64_t rc;

    assert_int_equal(blz_addr_from_sockaddr(&addr, (struct sockaddr *)&sa, sizeof sa), 0);
    assert_int_equal(BLZ_BLOCK_ON(rt, give, .value = 1), 1); /* the threads are there */
    allow_no_more_descriptors();
    rc = connect_once(rt, &addr);
    allow_descriptors();
    assert_int_equal(rc, -EMFILE);
    assert_int_equal(connect_once(rt, &addr), 0);
    close(listener);
}

/* Also where the worker's own ring or epoll set cannot be had. */
static void a_connection_without_descriptors_fails_and_works_again(void **state)
{
    (void)state;
    on_every_backend(connect_without_descriptors);
}

/* ---- signals ---- */

static int interruptions; /* atomic */

static void on_signal(int number)
{
    (void)number;
    __atomic_fetch_add(&interruptions, 1, __ATOMIC_RELAXED);
}

/* Threads of the runtime block all signals; these do not. */
static void let_signals_in(unsigned worker, void *arg)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    check(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
    __atomic_store_n(&((pthread_t *)arg)[worker], pthread_self(), __ATOMIC_RELEASE);
}

static pthread_t worker_threads[2];
static int storm_over; /* atomic */

static void *storm(void *arg)
{
    unsigned workers = *(unsigned *)arg;

    while (!__atomic_load_n(&storm_over, __ATOMIC_ACQUIRE))
        for (unsigned i = 0; i < workers; i++)
            if (worker_threads[i]) {
                pthread_kill(worker_threads[i], SIGUSR1);
                sched_yield();
            }
    return NULL;
}

struct echoes {
    BLZ_FRAME;
    blz__fd_ref ref;
    int left;
    int64_t rc;
    struct io_memory memory;
};

/* Reads 64 bytes and writes them back, whatever it takes. */
BLZ_ASYNC(echoes)
{
    BLZ_BEGIN;
    while (self->left > 0) {
        BLZ_AWAIT(self->rc,
                  make_io(&self->memory, self->left % 2 ? IO_READ : IO_READV, &self->ref));
        check(self->rc == 64);
        BLZ_AWAIT(self->rc,
                  make_io(&self->memory, self->left % 2 ? IO_WRITE : IO_SENDMSG, &self->ref));
        check(self->rc == 64);
        self->left--;
    }
    BLZ_END(0);
}

static void echo_in_storm(blz_rt *rt)
{
    enum { TIMES = 50 };
    unsigned workers = blz_rt_workers(rt);
    struct pair pair;
    blz_handle handle;
    pthread_t thread;
    char buf[64] = "x";

    /* All of them have told who they are. */
    for (unsigned i = 0; i < workers; i++)
        while (!__atomic_load_n(&worker_threads[i], __ATOMIC_ACQUIRE))
            assert_int_equal(BLZ_BLOCK_ON(rt, give), 0);
    open_pair(&pair, rt, PAIR_UNIX);
    __atomic_store_n(&storm_over, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&interruptions, 0, __ATOMIC_RELAXED);
    thread = start_thread(storm, &workers);
    assert_int_equal(fcntl(pair.far, F_SETFL, 0), 0);
    do {
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, echoes, .ref = pair.ours, .left = TIMES), 0);
        for (int i = 0; i < TIMES; i++) {
            assert_int_equal(write(pair.far, buf, 64), 64);
            assert_int_equal(read_fully(pair.far, buf, 64), 64);
        }
        assert_int_equal(result_of(&handle), 0);
    } while (__atomic_load_n(&interruptions, __ATOMIC_RELAXED) < 100);
    __atomic_store_n(&storm_over, 1, __ATOMIC_RELEASE);
    join_thread(thread);
    close_pair(&pair);
    worker_threads[0] = worker_threads[1] = 0;
}

static void interrupted_calls_are_not_noticed(void **state)
{
    struct sigaction act = {.sa_handler = on_signal}; /* without SA_RESTART */

    (void)state;
    assert_int_equal(sigaction(SIGUSR1, &act, NULL), 0);
    on_every_backend_with(&(blz_options){.watchdog_ns = BLZ_NEVER,
                                         .on_thread_start = let_signals_in,
                                         .hook_arg = worker_threads},
                          echo_in_storm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(thousands_of_operations_complete),
        TEST(thousands_of_operations_are_cancelled_and_closed),
        TEST(completions_that_do_not_fit_are_not_lost),
        TEST(more_operations_wait_than_there_may_be_descriptors),
        TEST(an_accept_without_descriptors_fails_and_works_again),
        TEST(a_connection_without_descriptors_fails_and_works_again),
        TEST(interrupted_calls_are_not_noticed),
    };
    return RUN_TESTS(tests);
}
