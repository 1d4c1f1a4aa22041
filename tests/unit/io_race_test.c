/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that are cancelled or closed at the very moment at which they complete, by the thread
 * of the test or by another worker; numbers of descriptors that are used again at once. A cancelled
 * read has taken nothing: what was sent is read by the next one, in order.
 */
#include "io_fixture.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- threads that do something at a moment that is hard to tell ---- */

struct helper {
    pthread_t thread;
    struct event go, done;
    int64_t rounds;
    void (*act)(int64_t round, void *arg);
    void *arg;
};

static void *help(void *arg)
{
    struct helper *h = arg;
    uint64_t seed = 11;

    for (int64_t round = 1; round <= h->rounds; round++) {
        event_wait(&h->go, round);
        for (uint32_t pause = random_below(&seed, 300); pause > 0; pause--)
            __asm__ volatile("" ::: "memory");
        h->act(round, h->arg);
        event_post(&h->done);
    }
    return NULL;
}

static void start_helper(struct helper *h, int64_t rounds, void (*act)(int64_t round, void *arg),
                         void *arg)
{
    *h = (struct helper){.go = EVENT_INIT, .done = EVENT_INIT, rounds, act, arg};
    h->thread = start_thread(help, h);
}

static void spin(uint64_t *seed, uint32_t most)
{
    for (uint32_t pause = random_below(seed, most); pause > 0; pause--)
        __asm__ volatile("" ::: "memory");
}

/* ---- cancel against completion ---- */

enum { ROUNDS = 150 };

static void send_number(int64_t round, void *arg)
{
    const struct pair *pair = arg;
    char text[9];

    snprintf(text, sizeof text, "%08d", (int)round);
    check(write(pair->far, text, 8) == 8);
}

/* Reads one number: the number, or an error. */
struct reads_number {
    BLZ_FRAME;
    int kind;
    blz__fd_ref ref;
    int64_t rc;
    char text[9];
    struct io_memory memory;
};

static int64_t number_in(const char *data, int64_t len)
{
    char text[9] = "";

    check(len == 8);
    memcpy(text, data, 8);
    return strtoll(text, NULL, 10);
}

static blz_future *eight_bytes(struct reads_number *self)
{
    blz_future *io = make_io(&self->memory, (enum io_kind)self->kind, &self->ref);

    if (self->kind == IO_READ)
        ((struct io *)io)->bytes.len = 8;
    self->memory.iov[0].len = 8;
    self->memory.iov[1].len = 0;
    return io;
}

BLZ_ASYNC(reads_number)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, eight_bytes(self));
    if (self->rc >= 0)
        self->rc = number_in(self->kind == IO_LEASE ? self->memory.lease.data : self->memory.buf,
                             self->rc);
    drop_result(&self->memory, (enum io_kind)self->kind, -1);
    BLZ_END(self->rc);
}

static int64_t read_number(blz_rt *rt, int kind, const struct pair *pair)
{
    return BLZ_BLOCK_ON(rt, reads_number, .kind = kind, .ref = pair->ours);
}

static void race_reads(blz_rt *rt)
{
    static const int kinds[] = {IO_READ, IO_LEASE, IO_READV, IO_RECVMSG};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct helper sender;
        struct pair pair;
        uint64_t seed = 5;
        int64_t rounds = scaled(ROUNDS);
        open_pair(&pair, rt, i % 2 ? PAIR_TCP : PAIR_UNIX);
        start_helper(&sender, rounds, send_number, &pair);
        for (int64_t round = 1; round <= rounds; round++) {
            blz_handle handle;
            check(BLZ_SPAWN_ON(rt, &handle, reads_number, .kind = kinds[i], .ref = pair.ours) == 0);
            if (round % 3 == 0)
                wait_until_idle(rt);
            event_post(&sender.go);
            spin(&seed, 3000);
            blz_handle_cancel(&handle);
            check(blz_handle_wait(&handle) == 0);
            event_wait(&sender.done, round);
            if (handle.result == -ECANCELED)
                handle.result = read_number(rt, kinds[i], &pair);
            assert_int_equal(handle.result, round);
        }
        join_thread(sender.thread);
        close_pair(&pair);
    }
}

static void a_read_that_is_cancelled_when_data_comes_loses_nothing(void **state)
{
    (void)state;
    on_every_backend(race_reads);
}

static void drain_far(int64_t round, void *arg)
{
    (void)round;
    drain(((const struct pair *)arg)->far);
}

/* What was reported as written has been, and nothing else. */
static void race_writes(blz_rt *rt)
{
    static const int kinds[] = {IO_WRITE, IO_WRITEV, IO_SENDMSG, IO_SENDFILE};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct helper drainer;
        struct pair pair;
        uint64_t seed = 5;
        int64_t rounds = scaled(ROUNDS / 2);
        open_pair(&pair, rt, PAIR_UNIX);
        start_helper(&drainer, rounds, drain_far, &pair);
        for (int64_t round = 1; round <= rounds; round++) {
            blz_handle handle;
            fill(pair.fd);
            check(BLZ_SPAWN_ON(rt, &handle, does_io, .kind = kinds[i], .ref = pair.ours) == 0);
            event_post(&drainer.go);
            spin(&seed, 3000);
            blz_handle_cancel(&handle);
            check(blz_handle_wait(&handle) == 0);
            event_wait(&drainer.done, round);
            check(handle.result == 64 || handle.result == -ECANCELED);
            drain(pair.far);
            fill(pair.fd);
            drain(pair.far);
        }
        join_thread(drainer.thread);
        close_pair(&pair);
    }
}

static void a_write_that_is_cancelled_when_there_is_room_ends_either_way(void **state)
{
    (void)state;
    on_every_backend(race_writes);
}

struct clients {
    struct sockaddr_in sa;
    int fds[ROUNDS];
};

static void connect_one(int64_t round, void *arg)
{
    struct clients *clients = arg;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    check(fd >= 0 && connect(fd, (struct sockaddr *)&clients->sa, sizeof clients->sa) == 0);
    clients->fds[round - 1] = fd;
}

static void race_accepts(blz_rt *rt)
{
    struct clients clients;
    socklen_t len = sizeof clients.sa;
    struct helper connector;
    struct pair pair;
    uint64_t seed = 5;
    int64_t rounds = scaled(ROUNDS);

    open_pair(&pair, rt, PAIR_LISTENER);
    check(getsockname(pair.fd, (struct sockaddr *)&clients.sa, &len) == 0);
    start_helper(&connector, rounds, connect_one, &clients);
    for (int64_t round = 1; round <= rounds; round++) {
        blz_handle handle;
        check(BLZ_SPAWN_ON(rt, &handle, does_io, .kind = IO_ACCEPT, .ref = pair.ours) == 0);
        event_post(&connector.go);
        spin(&seed, 20000);
        blz_handle_cancel(&handle);
        check(blz_handle_wait(&handle) == 0);
        event_wait(&connector.done, round);
        if (handle.result == -ECANCELED) /* then the connection is still there */
            handle.result = BLZ_BLOCK_ON(rt, does_io, .kind = IO_ACCEPT, .ref = pair.ours);
        assert_true(handle.result >= 0);
        close(clients.fds[round - 1]);
    }
    join_thread(connector.thread);
    close_pair(&pair);
}

static void an_accept_that_is_cancelled_when_somebody_connects_loses_nobody(void **state)
{
    (void)state;
    on_every_backend(race_accepts);
}

/* ---- limits that are up when data comes ---- */

struct limited {
    BLZ_FRAME;
    blz__fd_ref ref;
    int64_t rc;
    blz_timeout limit;
    struct io_memory memory;
};

BLZ_ASYNC(limited)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_with_timeout(&self->limit, BLZ_MSEC,
                                         make_io(&self->memory, IO_READ, &self->ref)));
    BLZ_END(self->rc);
}

static void race_timeouts(blz_rt *rt)
{
    struct pair pair;

    open_pair(&pair, rt, PAIR_TCP);
    for (int64_t round = 0; round < scaled(60); round++) {
        blz_handle handle;
        check(BLZ_SPAWN_ON(rt, &handle, limited, .ref = pair.ours) == 0);
        usleep(900); /* no event tells when a millisecond is nearly over; either outcome is right */
        check(write(pair.far, "x", 1) == 1);
        check(blz_handle_wait(&handle) == 0);
        if (handle.result == -ETIMEDOUT)
            handle.result = BLZ_BLOCK_ON(rt, does_io, .kind = IO_READ, .ref = pair.ours);
        assert_int_equal(handle.result, 1);
    }
    close_pair(&pair);
}

static void a_limit_that_is_up_when_data_comes_loses_nothing(void **state)
{
    (void)state;
    on_every_backend(race_timeouts);
}

/* ---- from another worker ---- */

struct blocks {
    BLZ_FRAME;
    struct event *blocking, *enough;
};

BLZ_ASYNC(blocks)
{
    BLZ_BEGIN;
    event_post(self->blocking);
    event_wait(self->enough, 1);
    BLZ_END(0);
}

struct starts_then_blocks {
    BLZ_FRAME;
    struct event *blocking, *enough;
    blz_handle *blocker, *handle;
    int kind;
    blz__fd_ref ref;
};

/* Starts the operation on this very worker, and then keeps the worker busy. */
BLZ_ASYNC(starts_then_blocks)
{
    BLZ_BEGIN;
    check(BLZ_SPAWN_JOIN(self->blocker, blocks, .blocking = self->blocking,
                         .enough = self->enough) == 0);
    check(BLZ_SPAWN_JOIN(self->handle, does_io, .kind = self->kind, .ref = self->ref) == 0);
    BLZ_END(0);
}

static const int remote_kinds[] = {IO_READ, IO_LEASE, IO_READV, IO_PEEK, IO_RECVMSG, IO_POLL};
enum { NR_REMOTE_KINDS = sizeof remote_kinds / sizeof *remote_kinds };

static void remote(blz_rt *rt, bool close_it, bool data)
{
    for (int i = 0; i < NR_REMOTE_KINDS; i++) {
        struct event blocking = EVENT_INIT, enough = EVENT_INIT;
        struct pair pair;
        blz_handle handle, blocker;
        open_pair(&pair, rt, PAIR_TCP);
        assert_int_equal(BLZ_BLOCK_ON(rt, starts_then_blocks, .blocking = &blocking,
                                      .enough = &enough, .blocker = &blocker, .handle = &handle,
                                      .kind = remote_kinds[i], .ref = pair.ours),
                         0);
        event_wait(&blocking, 1);
        if (data)
            check(write(pair.far, "hello", 5) == 5);
        if (close_it)
            assert_int_equal(blz__fd_close(&pair.ours), 0);
        else
            blz_handle_cancel(&handle);
        event_post(&enough);
        assert_int_equal(blz_handle_wait(&blocker), 0);
        assert_int_equal(blz_handle_wait(&handle), 0);
        if (handle.result != -EBADF) /* it had not started: the other task was taken first */
            assert_true(handle.result == -ECANCELED || (data && handle.result > 0));
        close_pair(&pair);
    }
}

static void remote_cancel(blz_rt *rt)
{
    remote(rt, false, false);
    remote(rt, false, true);
}

static void an_operation_is_cancelled_from_another_worker(void **state)
{
    (void)state;
    on_every_backend_of(2, remote_cancel);
}

static void remote_close(blz_rt *rt)
{
    remote(rt, true, false);
    remote(rt, true, true);
}

static void a_descriptor_is_closed_while_its_home_is_busy(void **state)
{
    (void)state;
    on_every_backend_of(2, remote_close);
}

/* ---- closing against everything ---- */

static void close_ours(int64_t round, void *arg)
{
    struct pair *pair = arg;

    (void)round;
    check(blz__fd_close(&(blz__fd_ref){pair->ours.entry, pair->ours.generation}) == 0);
}

static void race_closes(blz_rt *rt)
{
    struct pair pair;
    struct helper closer;
    uint64_t seed = 9;
    int64_t rounds = scaled(ROUNDS);

    start_helper(&closer, rounds, close_ours, &pair);
    for (int64_t round = 1; round <= rounds; round++) {
        blz_handle reader, writer;
        open_pair(&pair, rt, PAIR_UNIX);
        if (round % 2)
            fill(pair.fd);
        check(BLZ_SPAWN_ON(rt, &reader, does_io, .kind = remote_kinds[round % NR_REMOTE_KINDS],
                           .ref = pair.ours) == 0);
        check(BLZ_SPAWN_ON(rt, &writer, does_io, .kind = IO_WRITE, .ref = pair.ours) == 0);
        event_post(&closer.go);
        spin(&seed, 2000);
        if (round % 3 == 0)
            (void)!send(pair.far, "hello", 5, MSG_NOSIGNAL); /* may be too late */
        if (round % 5 == 0)
            blz_handle_cancel(&reader);
        check(blz_handle_wait(&reader) == 0 && blz_handle_wait(&writer) == 0);
        check(reader.result == -ECANCELED || reader.result == -EBADF || reader.result > 0);
        check(writer.result == -ECANCELED || writer.result == -EBADF || writer.result == 64);
        event_wait(&closer.done, round);
        assert_int_equal(write(pair.fd, "", 0), -1); /* closed by whoever came last */
        close(pair.far);
    }
    join_thread(closer.thread);
}

static void a_descriptor_is_closed_at_any_moment(void **state)
{
    (void)state;
    on_every_backend(race_closes);
}

/* ---- numbers that are used again ---- */

/* Whatever was known of the old one, the new one with its number has its own data and its end. */
static void reuse_number(blz_rt *rt)
{
    int number = -1, same = 0;

    for (int64_t round = 0; round < scaled(200); round++) {
        struct pair pair;
        blz_handle handle;
        open_pair(&pair, rt, PAIR_UNIX);
        same += pair.fd == number; /* the lowest that is free */
        number = pair.fd;
        check(BLZ_SPAWN_ON(rt, &handle, reads_number, .kind = IO_READ, .ref = pair.ours) == 0);
        if (round % 4 == 0)
            wait_until_idle(rt);
        if (round % 2) {
            send_number(round, &pair); /* an event is on its way when it is closed */
            blz__fd_close(&pair.ours);
            check(blz_handle_wait(&handle) == 0);
            check(handle.result == round || handle.result == -ECANCELED || handle.result == -EBADF);
        } else {
            send_number(round, &pair);
            check(blz_handle_wait(&handle) == 0);
            assert_int_equal(handle.result, round);
        }
        close_pair(&pair);
    }
    assert_true(same >= scaled(200) / 2);
}

static void a_number_that_is_used_again_gets_its_own_data(void **state)
{
    (void)state;
    on_every_backend(reuse_number);
}

static void stale_handles(blz_rt *rt)
{
    static const int kinds[] = {IO_READ, IO_WRITE,   IO_READV,   IO_WRITEV, IO_PEEK,    IO_LEASE,
                                IO_POLL, IO_RECVMSG, IO_SENDMSG, IO_ACCEPT, IO_SENDFILE};
    struct pair old, young;

    open_pair(&old, rt, PAIR_UNIX);
    blz__fd_ref copy = old.ours;
    assert_int_equal(BLZ_BLOCK_ON(rt, does_io, .kind = IO_WRITE, .ref = copy), 64);
    close_pair(&old);
    open_pair(&young, rt, PAIR_UNIX); /* likely in the same entry, with the same number */
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        assert_int_equal(BLZ_BLOCK_ON(rt, does_io, .kind = kinds[i], .ref = copy), -EBADF);
    assert_int_equal(blz__fd_acquire(&copy), -EBADF);
    assert_int_equal(blz__fd_close(&copy), -EBADF);
    assert_int_equal(drain(young.far), 0);
    assert_int_equal(BLZ_BLOCK_ON(rt, does_io, .kind = IO_WRITE, .ref = young.ours), 64);
    assert_int_equal(BLZ_BLOCK_ON(rt, does_io, .kind = IO_READ, .ref = (blz__fd_ref){NULL, 0}),
                     -EBADF);
    close_pair(&young);
}

static void a_stale_handle_is_noticed_by_every_operation(void **state)
{
    (void)state;
    on_every_backend(stale_handles);
}

/* ---- misuse ---- */

struct reuses {
    BLZ_FRAME;
    blz__fd_ref ref;
    struct io_memory memory;
};

BLZ_ASYNC(reuses)
{
    BLZ_BEGIN;
    blz_future *io = make_io(&self->memory, IO_READ, &self->ref);
    check(blz_is_pending(io->ops->poll(io, cx)));
    make_io(&self->memory, IO_READ, &self->ref); /* aborts */
    BLZ_END(0);
}

static int misuse(const struct io_config *config, int out)
{
    blz_options options = config->options;
    struct pair pair;
    blz_rt *rt;

    alarm(CHILD_SECONDS);
    options.embedded = true; /* a child of a program with threads makes none of its own */
    options.workers = 1;
    options.watchdog_ns = BLZ_NEVER;
    if (dup2(out, STDERR_FILENO) < 0 || blz_rt_new(&rt, &options) < 0)
        return 1;
    open_pair(&pair, rt, PAIR_UNIX);
    if (BLZ_SPAWN_ON(rt, NULL, reuses, .ref = pair.ours) < 0)
        return 2;
    blz_rt_turn(rt);
    return 3;
}

static void an_operation_in_flight_is_not_started_again(void **state)
{
    (void)state;
    for (int i = 0; i < nr_io_configs; i += 2) {
        char said[4096] = "";
        int out[2], status = 0;
        if (strcmp(io_configs[i].options.backend, "io_uring") == 0 && !uring_works())
            continue;
        assert_int_equal(pipe(out), 0);
        pid_t pid = fork();
        if (pid == 0)
            _exit(misuse(&io_configs[i], out[1]));
        close(out[1]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(read(out[0], said, sizeof said - 1) > 0);
        close(out[0]);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        assert_non_null(strstr(said, "still in flight"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_read_that_is_cancelled_when_data_comes_loses_nothing),
        TEST(a_write_that_is_cancelled_when_there_is_room_ends_either_way),
        TEST(an_accept_that_is_cancelled_when_somebody_connects_loses_nobody),
        TEST(a_limit_that_is_up_when_data_comes_loses_nothing),
        TEST(an_operation_is_cancelled_from_another_worker),
        TEST(a_descriptor_is_closed_while_its_home_is_busy),
        TEST(a_descriptor_is_closed_at_any_moment),
        TEST(a_number_that_is_used_again_gets_its_own_data),
        TEST(a_stale_handle_is_noticed_by_every_operation),
        TEST(an_operation_in_flight_is_not_started_again),
    };
    return RUN_TESTS(tests);
}
