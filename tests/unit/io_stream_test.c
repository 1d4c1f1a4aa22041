/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What streams, pipes and messages do to operations, on every backend: ends, resets, halves, short
 * reads behind which there is more, errors that pass.
 */
#include "io_fixture.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- tasks ---- */

/* Reads pieces of at most `piece` bytes until the end or an error: the sum of the bytes, or it. */
struct reads {
    BLZ_FRAME;
    blz__fd_ref ref;
    int kind;
    size_t piece;
    int64_t rc, sum;
    struct event *each; /* posted after each piece */
    struct io_memory memory;
};

static blz_future *piece(struct reads *self)
{
    blz_future *io = make_io(&self->memory, (enum io_kind)self->kind, &self->ref);

    if (self->kind == IO_READ)
        ((struct io *)io)->bytes.len = self->piece;
    return io;
}

BLZ_ASYNC(reads)
{
    BLZ_BEGIN;
    do {
        BLZ_AWAIT(self->rc, piece(self));
        self->sum += self->rc > 0 ? self->rc : 0;
        drop_result(&self->memory, (enum io_kind)self->kind, self->rc);
        if (self->each)
            event_post(self->each);
    } while (self->rc > 0);
    BLZ_END(self->rc < 0 ? self->rc : self->sum);
}

static int64_t result_of(blz_handle *handle)
{
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

static const int read_kinds[] = {IO_READ, IO_LEASE, IO_READV, IO_RECVMSG};
enum { NR_READ_KINDS = sizeof read_kinds / sizeof *read_kinds };

/* ---- ends ---- */

static void end_after_data(blz_rt *rt)
{
    for (int i = 0; i < 2 * NR_READ_KINDS; i++) {
        struct pair pair;
        blz_handle handle;
        size_t piece = i % 2 ? 3 : 64;
        open_pair(&pair, rt, PAIR_TCP);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, reads, .ref = pair.ours,
                                      .kind = read_kinds[i / 2], .piece = piece),
                         0);
        wait_until_idle(rt);
        assert_int_equal(send(pair.far, "hello", 5, MSG_MORE), 5); /* goes out with the FIN */
        assert_int_equal(shutdown(pair.far, SHUT_WR), 0);
        assert_int_equal(result_of(&handle), 5);
        close_pair(&pair);
    }
}

static void data_and_end_in_one_event_are_both_seen(void **state)
{
    (void)state;
    on_every_backend(end_after_data);
}

static void end_before_start(blz_rt *rt)
{
    for (int i = 0; i < NR_READ_KINDS; i++) {
        struct pair pair;
        open_pair(&pair, rt, PAIR_TCP);
        assert_int_equal(send(pair.far, "hello", 5, 0), 5);
        assert_int_equal(shutdown(pair.far, SHUT_WR), 0);
        for (int again = 0; again < 2; again++) /* the end stays */
            assert_int_equal(BLZ_BLOCK_ON(rt, reads, .ref = pair.ours, .kind = read_kinds[i],
                                          .piece = 4),
                             again ? 0 : 5);
        assert_int_equal(BLZ_BLOCK_ON(rt, does_io, .kind = IO_WRITE, .ref = pair.ours), 64);
        close_pair(&pair);
    }
}

static void an_end_that_is_there_already_is_seen_again_and_again(void **state)
{
    (void)state;
    on_every_backend(end_before_start);
}

static void end_after_pause(blz_rt *rt)
{
    for (int i = 0; i < NR_READ_KINDS; i++) {
        struct event each = EVENT_INIT;
        struct pair pair;
        blz_handle handle;
        open_pair(&pair, rt, PAIR_TCP);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, reads, .ref = pair.ours, .kind = read_kinds[i],
                                      .piece = 64, .each = &each),
                         0);
        assert_int_equal(send(pair.far, "hello", 5, 0), 5);
        event_wait(&each, 1);
        wait_until_idle(rt);
        assert_int_equal(shutdown(pair.far, SHUT_WR), 0);
        assert_int_equal(result_of(&handle), 5);
        close_pair(&pair);
    }
}

static void an_end_that_comes_later_is_seen(void **state)
{
    (void)state;
    on_every_backend(end_after_pause);
}

static void reset(int fd)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    close(fd);
}

static void reset_while_waiting(blz_rt *rt)
{
    static const int kinds[] = {IO_READ, IO_LEASE, IO_READV, IO_RECVMSG, IO_PEEK};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct pair pair;
        blz_handle handle;
        open_pair(&pair, rt, PAIR_TCP);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, does_io, .ref = pair.ours, .kind = kinds[i]), 0);
        wait_until_idle(rt);
        reset(pair.far);
        pair.far = -1;
        assert_int_equal(result_of(&handle), -ECONNRESET);
        /* the error has been told: from now on it is the end */
        assert_int_equal(BLZ_BLOCK_ON(rt, does_io, .ref = pair.ours, .kind = kinds[i]), 0);
        assert_int_equal(BLZ_BLOCK_ON(rt, does_io, .ref = pair.ours, .kind = IO_WRITE), -EPIPE);
        close_pair(&pair);
    }
}

static void a_reset_ends_a_read(void **state)
{
    (void)state;
    on_every_backend(reset_while_waiting);
}

static int64_t write_until_reset(blz_rt *rt, int kind)
{
    struct pair pair;
    blz_handle handle;
    int64_t rc;

    open_pair(&pair, rt, PAIR_TCP);
    fill(pair.fd);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, does_io, .ref = pair.ours, .kind = kind), 0);
    wait_until_idle(rt);
    reset(pair.far);
    pair.far = -1;
    rc = result_of(&handle);
    assert_true(rc == -ECONNRESET || rc == -EPIPE || rc > 0);
    if (rc < 0)
        assert_int_equal(BLZ_BLOCK_ON(rt, does_io, .ref = pair.ours, .kind = kind), -EPIPE);
    close_pair(&pair);
    return rc;
}

static void reset_while_writing(blz_rt *rt)
{
    static const int kinds[] = {IO_WRITE, IO_WRITEV, IO_SENDMSG, IO_SENDFILE};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        while (write_until_reset(rt, kinds[i]) > 0)
            ; /* the other side made room before it was reset */
}

static void a_reset_ends_a_write_and_raises_no_signal(void **state)
{
    (void)state;
    on_every_backend(reset_while_writing);
}

static void pipe_without_reader(blz_rt *rt)
{
    static const int kinds[] = {IO_WRITE, IO_WRITEV};

    for (int i = 0; i < 4; i++) {
        struct pair pair;
        blz_handle handle;
        open_pair(&pair, rt, PAIR_PIPE_OUT);
        if (i & 1) /* it has to wait first */
            fill(pair.fd);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, does_io, .ref = pair.ours, .kind = kinds[i / 2]),
                         0);
        if (i & 1) {
            wait_until_idle(rt);
            close(pair.far);
            assert_int_equal(result_of(&handle), -EPIPE);
        } else {
            assert_int_equal(result_of(&handle), 64);
            close(pair.far);
        }
        pair.far = -1;
        assert_int_equal(BLZ_BLOCK_ON(rt, does_io, .ref = pair.ours, .kind = kinds[i / 2]), -EPIPE);
        close_pair(&pair);
    }
}

static void a_pipe_that_nobody_reads_is_an_error_and_raises_no_signal(void **state)
{
    (void)state;
    on_every_backend(pipe_without_reader);
}

/*
 * Threads of the runtime block all signals. The program's own threads do not: here one of them is
 * the worker, and is still there afterwards, with no signal left behind for it.
 */
static void on_the_programs_thread(const blz_options *given)
{
    static const int kinds[] = {IO_WRITE, IO_WRITEV, IO_SENDMSG, IO_SENDFILE};
    blz_options options = *given;
    blz_handle handle;
    sigset_t pending;
    blz_rt *rt;

    options.workers = 1;
    options.embedded = true;
    options.watchdog_ns = BLZ_NEVER;
    options.allocator = test_memory();
    assert_int_equal(blz_rt_new(&rt, &options), 0);
    for (size_t i = 0; i < 2 * sizeof kinds / sizeof *kinds; i++) {
        int kind = kinds[i / 2];
        struct pair pair;
        if (i % 2 && (kind == IO_SENDMSG))
            continue; /* not for pipes */
        open_pair(&pair, rt, i % 2 ? PAIR_PIPE_OUT : PAIR_UNIX);
        close(pair.far);
        pair.far = -1;
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, does_io, .ref = pair.ours, .kind = kind), 0);
        while (!blz_handle_done(&handle))
            assert_true(blz_rt_turn(rt) >= 0);
        assert_int_equal(result_of(&handle), -EPIPE);
        close_pair(&pair);
    }
    assert_int_equal(blz_rt_free(rt), 0);
    assert_int_equal(sigpending(&pending), 0);
    assert_false(sigismember(&pending, SIGPIPE));
}

static void a_write_on_the_programs_own_thread_raises_no_signal(void **state)
{
    (void)state;
    for (int i = 0; i < nr_io_configs; i++) {
        blz_rt *rt = io_configs[i].options.workers == 1 ? io_rt(&io_configs[i]) : NULL;
        if (!rt)
            continue;
        free_rt(rt);
        on_the_programs_thread(&io_configs[i].options);
    }
}

/* ---- short reads behind which there is more ---- */

static void many_messages(blz_rt *rt)
{
    enum { MESSAGES = 20 };

    for (int i = 0; i < NR_READ_KINDS; i++) {
        struct event each = EVENT_INIT;
        int fds[2];
        blz__fd_ref ours;
        blz_handle handle;
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
        ours = adopt_fd(rt, fds[0], FD_SOCKET);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, reads, .ref = ours, .kind = read_kinds[i],
                                      .piece = 64, .each = &each),
                         0);
        wait_until_idle(rt);
        for (int n = 0; n < MESSAGES; n++)
            assert_int_equal(send(fds[1], "hello", 5, 0), 5);
        event_wait(&each, MESSAGES);
        close(fds[1]);
        assert_int_equal(result_of(&handle), 5 * MESSAGES);
        assert_int_equal(blz__fd_close(&ours), 0);
    }
}

static void a_message_shorter_than_the_buffer_need_not_be_the_last(void **state)
{
    (void)state;
    on_every_backend(many_messages);
}

/* A read of a Unix stream stops where descriptors were sent along. */
static void send_with_descriptor(int fd)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.header = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    char text[] = "hello";
    struct iovec iov = {text, 5};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = &control,
                         .msg_controllen = sizeof control};

    control.header.cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    assert_int_equal(sendmsg(fd, &msg, 0), 5);
}

static void stream_with_descriptors(blz_rt *rt)
{
    for (int i = 0; i < NR_READ_KINDS; i++) {
        struct event each = EVENT_INIT;
        struct pair pair;
        blz_handle handle;
        open_pair(&pair, rt, PAIR_UNIX);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, reads, .ref = pair.ours, .kind = read_kinds[i],
                                      .piece = 64, .each = &each),
                         0);
        wait_until_idle(rt);
        for (int n = 0; n < 10; n++)
            send_with_descriptor(pair.far);
        event_wait(&each, 10);
        assert_int_equal(shutdown(pair.far, SHUT_WR), 0);
        assert_int_equal(result_of(&handle), 50);
        close_pair(&pair);
    }
}

static void a_read_that_stops_at_passed_descriptors_goes_on(void **state)
{
    (void)state;
    on_every_backend(stream_with_descriptors);
}

/* A read of TCP stops at the urgent mark. */
static void stream_with_mark(blz_rt *rt)
{
    for (int i = 0; i < 2; i++) { /* lease and read: what may think that it took all */
        struct pair pair;
        blz_handle handle;
        open_pair(&pair, rt, PAIR_TCP);
        for (int late = 0; late < 2; late++) {
            if (late) {
                assert_int_equal(BLZ_SPAWN_ON(rt, &handle, reads, .ref = pair.ours,
                                              .kind = read_kinds[i], .piece = 64),
                                 0);
                wait_until_idle(rt);
            }
            assert_int_equal(send(pair.far, "before", 6, MSG_MORE), 6);
            assert_int_equal(send(pair.far, "!", 1, MSG_OOB), 1);
            assert_int_equal(send(pair.far, "behind", 6, 0), 6);
        }
        assert_int_equal(shutdown(pair.far, SHUT_WR), 0);
        int64_t sum = result_of(&handle);
        assert_true(sum == 24 || sum == 25); /* an urgent byte that is overtaken is inline */
        close_pair(&pair);
    }
}

static void a_read_that_stops_at_urgent_data_goes_on(void **state)
{
    (void)state;
    on_every_backend(stream_with_mark);
}

/* ---- errors that pass ---- */

/* A datagram that nobody took: the next call says so, and then all is well again. */
static void refused_datagram(blz_rt *rt)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof sa;
    int far = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    blz__fd_ref ours = adopt_fd(rt, fd, FD_SOCKET);
    blz_handle handle;

    assert_int_equal(bind(far, (struct sockaddr *)&sa, len), 0);
    assert_int_equal(getsockname(far, (struct sockaddr *)&sa, &len), 0);
    close(far);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, len), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, does_io, .ref = ours, .kind = IO_READ), 0);
        wait_until_idle(rt);
        assert_int_equal(BLZ_BLOCK_ON(rt, does_io, .ref = ours, .kind = IO_WRITE), 64);
        assert_int_equal(result_of(&handle), -ECONNREFUSED);
    }
    /* The worker is not stuck with a read that finds nothing. */
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, does_io, .ref = ours, .kind = IO_READ), 0);
    assert_int_equal(BLZ_BLOCK_ON(rt, give, .value = 3), 3);
    wait_until_idle(rt);
    assert_int_equal(blz__fd_close(&ours), 0);
    assert_int_equal(result_of(&handle), -EBADF);
}

static void an_error_that_passes_is_told_once(void **state)
{
    (void)state;
    on_every_backend(refused_datagram);
}

/* The end of a named pipe is not final: somebody may open it for writing again. */
static void pipe_that_comes_back(blz_rt *rt)
{
    char path[] = "/tmp/blitz-fifo-XXXXXX", name[64];
    blz_handle handle;
    blz__fd_ref ours;
    int far;

    assert_non_null(mkdtemp(path));
    snprintf(name, sizeof name, "%s/pipe", path);
    assert_int_equal(mkfifo(name, 0600), 0);
    int fd = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    ours = adopt_fd(rt, fd, 0);
    for (int i = 0; i < 3; i++) {
        far = open(name, O_WRONLY | O_CLOEXEC);
        assert_true(far >= 0);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, does_io, .ref = ours, .kind = IO_READ), 0);
        wait_until_idle(rt);
        assert_false(blz_handle_done(&handle));
        assert_int_equal(write(far, "hello", 5), 5);
        assert_int_equal(result_of(&handle), 5);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, does_io, .ref = ours, .kind = IO_READ), 0);
        wait_until_idle(rt);
        close(far);
        assert_int_equal(result_of(&handle), 0);
    }
    assert_int_equal(blz__fd_close(&ours), 0);
    unlink(name);
    rmdir(path);
}

static void a_pipe_goes_on_after_its_end(void **state)
{
    (void)state;
    on_every_backend(pipe_that_comes_back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(data_and_end_in_one_event_are_both_seen),
        TEST(an_end_that_is_there_already_is_seen_again_and_again),
        TEST(an_end_that_comes_later_is_seen),
        TEST(a_reset_ends_a_read),
        TEST(a_reset_ends_a_write_and_raises_no_signal),
        TEST(a_pipe_that_nobody_reads_is_an_error_and_raises_no_signal),
        TEST(a_write_on_the_programs_own_thread_raises_no_signal),
        TEST(a_message_shorter_than_the_buffer_need_not_be_the_last),
        TEST(a_read_that_stops_at_passed_descriptors_goes_on),
        TEST(a_read_that_stops_at_urgent_data_goes_on),
        TEST(an_error_that_passes_is_told_once),
        TEST(a_pipe_goes_on_after_its_end),
    };
    signal(SIGPIPE, SIG_DFL); /* it may have been ignored when we were started */
    return RUN_TESTS(tests);
}
