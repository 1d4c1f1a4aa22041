/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams when the system refuses: copies of every kind, and everything that has a buffer, are
 * repeated with the first call of a kind failing, then the second, until none fails; the same with
 * allocations. Each time it either works all the same, by another way, or the error is the result;
 * what has arrived is a beginning of what was sent, by the copy's own count; and nothing stays
 * behind: the harness counts descriptors, memory and threads.
 */
#include "io_fixture.h"

#include "faulty.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEN = 150000 };

static char data[LEN];

static void make_data(void)
{
    for (size_t i = 0; i < LEN; i++)
        data[i] = (char)(i * 7 + (i >> 8));
}

/* ---- the far ends, which are plain threads: no call of theirs is to fail ---- */

struct far {
    int fd;
    size_t got;
    pthread_t thread;
};

static void *pour(void *arg)
{
    struct far *far = arg;
    sigset_t sigpipe;

    sigemptyset(&sigpipe);
    sigaddset(&sigpipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &sigpipe, NULL);
    for (size_t at = 0; at < LEN;) {
        ssize_t n = write(far->fd, data + at, LEN - at);
        if (n <= 0)
            return NULL;
        at += (size_t)n;
    }
    if (shutdown(far->fd, SHUT_WR) < 0) {
        close(far->fd); /* a pipe */
        far->fd = -1;
    }
    return NULL;
}

static void *drink(void *arg)
{
    struct far *far = arg;
    static __thread char buf[16384];
    ssize_t n;

    while ((n = read(far->fd, buf, sizeof buf)) > 0) {
        check(far->got + (size_t)n <= LEN);
        check(memcmp(buf, data + far->got, (size_t)n) == 0);
        far->got += (size_t)n;
    }
    return NULL;
}

/* Its stream has been closed, so that it ends. */
static void end_far(struct far *far, bool is_running)
{
    if (is_running)
        join_thread(far->thread);
    if (far->fd >= 0)
        close(far->fd);
}

/* ---- one copy ---- */

enum kind { KIND_SOCKET, KIND_PAIRED, KIND_PIPE, KIND_FILE, NR_KINDS };

struct copies {
    BLZ_FRAME;
    blz_stream from, to;
    blz_copy_op op;
    int64_t rc, closed;
};

BLZ_ASYNC(copies)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_copy(&self->op, self->from, self->to, NULL));
    check(self->rc < 0 || self->rc == LEN);
    check(self->rc < 0 || self->op.done == LEN);
    blz_stream_close(&self->from);
    blz_stream_close(&self->to);
    BLZ_END(self->rc < 0 ? self->rc : (int64_t)self->op.done);
}

static int temp_file(bool full)
{
    char path[] = "/tmp/blitz-fault-XXXXXX";
    int fd = mkstemp(path);

    check(fd >= 0);
    unlink(path);
    if (full)
        check(pwrite(fd, data, LEN, 0) == LEN);
    return fd;
}

/* A stream of a kind, and the descriptor of its far end or -1. */
static int open_end(blz_rt *rt, blz_stream *stream, enum kind kind, bool full)
{
    int fds[2];
    blz_unix local;
    blz_file file;
    blz_pipe end;

    if (kind == KIND_PIPE) {
        check(pipe(fds) == 0 && blz_pipe_from_fd(&end, fds[!full], rt) == 0);
        *stream = blz_pipe_stream(&end);
        return fds[full];
    }
    if (kind == KIND_FILE) {
        check(blz_file_from_fd(&file, temp_file(full), rt) == 0);
        *stream = blz_file_stream(&file);
        return -1;
    }
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    check(blz_unix_from_fd(&local, fds[0], rt) == 0);
    *stream = blz_unix_stream(&local);
    return fds[1];
}

struct fault {
    enum faulty call;
    int error;
};

/* From now on the nth one fails; the same for allocations. And whether it did. */
enum { ALLOCATION = NR_FAULTY };

static void begin_failing(const struct fault *fault, int n)
{
    if ((int)fault->call == ALLOCATION)
        memory_fail_at(the_memory(), n, false);
    else
        fail_call(fault->call, n, false, fault->error);
}

static bool end_failing(const struct fault *fault)
{
    bool failed = the_memory()->failed;

    if ((int)fault->call != ALLOCATION)
        return stop_failing(fault->call);
    memory_fail_at(the_memory(), 0, false);
    return failed;
}

/*
 * Copies, with the nth call failing: whether it did. A stream that is none of a descriptor counts
 * another one.
 */
static bool copy_once(blz_rt *rt, enum kind source, enum kind target, const struct fault *fault,
                      int n)
{
    bool failed;

    blz_stream from, to;
    blz_count hides[2];
    struct far in = {open_end(rt, &from, source, true), 0, 0};
    struct far out = {open_end(rt, &to, target, false), 0, 0};
    int64_t rc;

    if (source == KIND_PAIRED)
        from = blz_count_stream(&hides[0], from);
    if (target == KIND_PAIRED)
        to = blz_count_stream(&hides[1], to);
    if (source != KIND_FILE)
        in.thread = start_thread(pour, &in);
    if (target != KIND_FILE)
        out.thread = start_thread(drink, &out);
    begin_failing(fault, n);
    rc = BLZ_BLOCK_ON(rt, copies, .from = from, .to = to);
    failed = end_failing(fault);
    blz_stream_close(&from); /* if it has not come to that */
    blz_stream_close(&to);
    end_far(&in, source != KIND_FILE);
    end_far(&out, target != KIND_FILE);
    assert_true(rc < 0 || target == KIND_FILE || out.got == LEN);
    assert_true(failed || rc == LEN);
    return failed;
}

/* ---- calls that fail ---- */

static const struct fault faults[] = {
    {FAULTY_TRANSFER_SPLICE, EIO},
    {FAULTY_TRANSFER_SPLICE, ENOTSUP},
    {FAULTY_TRANSFER_SEND_FILE, EIO},
    {FAULTY_TRANSFER_SEND_FILE, ENOTSUP},
    {FAULTY_PIPE_NEW, EMFILE},
    {FAULTY_FILE_READ_NOW, EIO},
    {FAULTY_FILE_WRITE_NOW, ENOSPC},
    {FAULTY_FILE_READ, EIO},
    {FAULTY_FILE_WRITE, ENOSPC},
    {FAULTY_PIPE_READ, EIO},
    {FAULTY_PIPE_WRITE, EPIPE},
    {FAULTY_TRANSFER_COPY, EIO},
    {FAULTY_TRANSFER_COPY, ENOTSUP},
    {FAULTY_HANDLE_KIND, EIO},
    {FAULTY_FILE_METADATA, EIO},
    {FAULTY_FILE_SEEK, EIO},
    {FAULTY_SOCKET_RECV, EIO},
    {FAULTY_SOCKET_SEND, ENOBUFS},
    {FAULTY_SOCKET_SEND, EPIPE},
    {FAULTY_HANDLE_IS_NONBLOCKING, EIO},
    {FAULTY_HANDLE_SET_NONBLOCKING, EIO},
    {FAULTY_SOCKET_EVENTS, EIO},
    {(enum faulty)ALLOCATION, ENOMEM},
};

/* The first calls of each kind; those behind them are in the same state. */
static void fail_each(blz_rt *rt, const struct fault *fault)
{
    for (enum kind source = KIND_SOCKET; source < NR_KINDS; source++)
        for (enum kind target = KIND_SOCKET; target < NR_KINDS; target++)
            for (int n = 1; n < 8 && copy_once(rt, source, target, fault, n); n++)
                ;
}

static void each_call_and_allocation_of_a_copy_fails_once_on(blz_rt *rt)
{
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        fail_each(rt, &faults[i]);
}

static void each_call_and_allocation_of_a_copy_fails_once(void **state)
{
    (void)state;
    allow_seconds(120);
    on_every_backend_of(1, each_call_and_allocation_of_a_copy_fails_once_on);
}

static void a_copy_goes_on_without_pipes_and_without_the_kernel_s_help_on(blz_rt *rt)
{
    static const enum faulty calls[] = {FAULTY_PIPE_NEW, FAULTY_TRANSFER_SPLICE,
                                        FAULTY_TRANSFER_SEND_FILE, FAULTY_TRANSFER_COPY};

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        blz_stream from, to;
        struct far in = {open_end(rt, &from, KIND_SOCKET, true), 0, 0};
        struct far out = {open_end(rt, &to, KIND_SOCKET, false), 0, 0};
        fail_call(calls[i], 1, true, calls[i] == FAULTY_PIPE_NEW ? EMFILE : ENOTSUP);
        in.thread = start_thread(pour, &in);
        out.thread = start_thread(drink, &out);
        assert_int_equal(BLZ_BLOCK_ON(rt, copies, .from = from, .to = to), LEN);
        end_far(&in, true);
        end_far(&out, true);
        assert_int_equal(out.got, LEN);
        assert_int_equal(open_end(rt, &from, KIND_FILE, true), -1);
        assert_int_equal(open_end(rt, &to, KIND_FILE, false), -1);
        assert_int_equal(BLZ_BLOCK_ON(rt, copies, .from = from, .to = to), LEN);
        stop_failing(calls[i]);
    }
}

static void a_copy_goes_on_without_pipes_and_without_the_kernel_s_help(void **state)
{
    (void)state;
    on_every_backend_of(1, a_copy_goes_on_without_pipes_and_without_the_kernel_s_help_on);
}

/* ---- memory ---- */

static void a_pipe_in_memory_needs_memory_and_a_slot(void **state)
{
    enum { MANY = 64 };
    blz_stream a, b, ends[MANY][2];
    int n = 0, rc;

    (void)state;
    memory_fail_at(the_memory(), 1, false);
    assert_int_equal(blz_stream_pair(&a, &b, 0, test_memory()), -ENOMEM);
    memory_fail_at(the_memory(), 0, false);
    assert_int_equal(blz_stream_pair(&a, &b, SIZE_MAX / 2, test_memory()), -ENOMEM);
    assert_null(a.ops);
    assert_null(b.ops);
    fail_call(FAULTY_MEMORY_ALLOC_ZEROED, 1, true, ENOMEM);
    do /* those that earlier tests have left are used first */
        rc = blz_stream_pair(&ends[n][0], &ends[n][1], 0, test_memory());
    while (rc == 0 && ++n < MANY);
    assert_int_equal(rc, -ENOMEM);
    assert_null(ends[n][0].ops);
    assert_true(stop_failing(FAULTY_MEMORY_ALLOC_ZEROED));
    while (n-- > 0) {
        assert_int_equal(blz_stream_close(&ends[n][0]), 0);
        assert_int_equal(blz_stream_close(&ends[n][1]), 0);
    }
}

/* ---- standard streams ---- */

static void each_call_of_a_standard_stream_fails_once_on(blz_rt *rt)
{
    int fds[2], file = temp_file(true);
    blz_stream stream;

    check(pipe(fds) == 0);
    fail_call(FAULTY_HANDLE_KIND, 1, false, EIO);
    assert_int_equal(blz_stdio_open(&stream, fds[0], rt), -EIO);
    assert_true(stop_failing(FAULTY_HANDLE_KIND));
    for (int i = 0; i < 2; i++)
        for (int n = 1, failed = 1; failed; n++) {
            fail_call(FAULTY_HANDLE_KIND, n, false, EIO);
            if (blz_stdio_open(&stream, i ? file : fds[0], rt) == 0)
                blz_stream_close(&stream);
            failed = stop_failing(FAULTY_HANDLE_KIND);
        }
    close(fds[0]);
    close(fds[1]);
    close(file);
}

static void each_call_of_a_standard_stream_fails_once(void **state)
{
    (void)state;
    on_every_backend_of(1, each_call_of_a_standard_stream_fails_once_on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_call_and_allocation_of_a_copy_fails_once),
        TEST(a_copy_goes_on_without_pipes_and_without_the_kernel_s_help),
        TEST(a_pipe_in_memory_needs_memory_and_a_slot),
        TEST(each_call_of_a_standard_stream_fails_once),
    };
    make_data();
    return RUN_TESTS(tests);
}
