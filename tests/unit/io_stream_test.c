/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What streams, pipes and messages do to operations, on every backend: ends, resets, halves,
 * pieces, lengths of nothing and of everything, and short reads behind which there is more.
 */
#include "io_fixture.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
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
        ((struct io *)io)->len = self->piece;
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

/* One read or write of a given length, or all of it. */
struct moves {
    BLZ_FRAME;
    blz__fd_ref ref;
    int kind;
    bool all;
    char *buf;
    size_t len;
    uint64_t *done;
    int64_t rc;
    blz_io io;
};

static blz_future *move(struct moves *self)
{
    static const blz_future_ops ops = {.name = "move",
                                       .poll = blz__io_poll,
                                       .cancel = blz__io_cancel};
    blz_future *io =
        blz__io_init(&self->io, &ops, (enum io_kind)self->kind, &self->ref, self->buf, self->len);

    if (self->all)
        ((struct io *)io)->flags |= IO_ALL;
    return io;
}

BLZ_ASYNC(moves)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, move(self));
    if (self->done)
        *self->done = self->io.done;
    BLZ_END(self->rc);
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
    options.watchdog_ns = -1;
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

/* ---- pieces ---- */

enum { LARGE = 300000 };

static char large[LARGE], arrived[LARGE];

static void make_large(void)
{
    uint64_t seed = 7;

    for (size_t i = 0; i < LARGE; i++)
        large[i] = (char)random_below(&seed, 256);
    memset(arrived, 0, sizeof arrived);
}

static void all_in_pieces(blz_rt *rt)
{
    static const enum pair_kind kinds[] = {PAIR_TCP, PAIR_UNIX, PAIR_PIPE_OUT};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct pair pair;
        blz_handle handle;
        size_t got = 0;
        make_large();
        open_pair(&pair, rt, kinds[i]);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, moves, .ref = pair.ours, .kind = IO_WRITE,
                                      .all = true, .buf = large, .len = LARGE),
                         0);
        while (got < LARGE) {
            struct pollfd p = {.fd = pair.far, .events = POLLIN};
            assert_int_equal(poll(&p, 1, -1), 1);
            ssize_t n = read(pair.far, arrived + got, got % 2 ? 777 : 4000);
            assert_true(n > 0);
            got += (size_t)n;
        }
        assert_int_equal(result_of(&handle), LARGE);
        assert_memory_equal(large, arrived, LARGE);
        close_pair(&pair);
    }
}

static void write_all_writes_in_as_many_pieces_as_it_takes(void **state)
{
    (void)state;
    on_every_backend(all_in_pieces);
}

static void exact_from_pieces(blz_rt *rt)
{
    static const enum pair_kind kinds[] = {PAIR_TCP, PAIR_UNIX, PAIR_PIPE_IN};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct pair pair;
        blz_handle handle;
        make_large();
        open_pair(&pair, rt, kinds[i]);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, moves, .ref = pair.ours, .kind = IO_READ,
                                      .all = true, .buf = arrived, .len = LARGE),
                         0);
        for (size_t put = 0; put < LARGE;) {
            struct pollfd p = {.fd = pair.far, .events = POLLOUT};
            size_t len = LARGE - put < 1777 ? LARGE - put : 1777;
            assert_int_equal(poll(&p, 1, -1), 1);
            ssize_t n = write(pair.far, large + put, len);
            assert_true(n > 0);
            put += (size_t)n;
        }
        assert_int_equal(result_of(&handle), LARGE);
        assert_memory_equal(large, arrived, LARGE);
        close_pair(&pair);
    }
}

static void read_exact_reads_in_as_many_pieces_as_it_takes(void **state)
{
    (void)state;
    on_every_backend(exact_from_pieces);
}

static void exact_ends_early(blz_rt *rt)
{
    struct pair pair;
    blz_handle handle;
    uint64_t done = 0;

    open_pair(&pair, rt, PAIR_TCP);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, moves, .ref = pair.ours, .kind = IO_READ,
                                  .all = true, .buf = arrived, .len = 100, .done = &done),
                     0);
    assert_int_equal(write(pair.far, "hello", 5), 5);
    assert_int_equal(shutdown(pair.far, SHUT_WR), 0);
    assert_int_equal(result_of(&handle), -ENODATA);
    assert_int_equal(done, 5);
    close_pair(&pair);
}

static void read_exact_says_how_much_there_was_before_the_end(void **state)
{
    (void)state;
    on_every_backend(exact_ends_early);
}

static void progress_of_a_write(blz_rt *rt)
{
    struct pair pair;
    blz_handle handle;
    uint64_t done = 0;

    make_large();
    open_pair(&pair, rt, PAIR_UNIX);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, moves, .ref = pair.ours, .kind = IO_WRITE,
                                  .all = true, .buf = large, .len = LARGE, .done = &done),
                     0);
    wait_until_idle(rt);
    blz_handle_cancel(&handle);
    assert_int_equal(result_of(&handle), -ECANCELED);
    assert_true(done > 0 && done < LARGE);
    assert_int_equal(drain(pair.far), done);
    close_pair(&pair);
}

static void a_cancelled_write_all_says_how_far_it_came(void **state)
{
    (void)state;
    on_every_backend(progress_of_a_write);
}

/* The data is there before the read starts, so it is known to have been taken. */
static void progress_of_a_read(blz_rt *rt)
{
    struct pair pair;
    blz_handle handle;
    uint64_t done = 0;

    open_pair(&pair, rt, PAIR_UNIX);
    assert_int_equal(write(pair.far, "hello", 5), 5);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, moves, .ref = pair.ours, .kind = IO_READ,
                                  .all = true, .buf = arrived, .len = 100, .done = &done),
                     0);
    wait_until_idle(rt);
    blz_handle_cancel(&handle);
    assert_int_equal(result_of(&handle), -ECANCELED);
    assert_int_equal(done, 5);
    assert_memory_equal(arrived, "hello", 5);
    close_pair(&pair);
}

static void a_cancelled_read_exact_says_how_far_it_came(void **state)
{
    (void)state;
    on_every_backend(progress_of_a_read);
}

static void closed_half_way(blz_rt *rt)
{
    struct pair pair;
    blz_handle handle;
    uint64_t done = 0;

    make_large();
    open_pair(&pair, rt, PAIR_UNIX);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, moves, .ref = pair.ours, .kind = IO_WRITE,
                                  .all = true, .buf = large, .len = LARGE, .done = &done),
                     0);
    wait_until_idle(rt);
    assert_int_equal(blz__fd_close(&pair.ours, NULL), 0);
    assert_int_equal(result_of(&handle), -ECANCELED);
    assert_int_equal(drain(pair.far), done);
    close_pair(&pair);
}

static void a_write_all_whose_descriptor_is_closed_ends(void **state)
{
    (void)state;
    on_every_backend(closed_half_way);
}

/* A worker must not be stuck in a write to a pipe that is larger than the room in it. */
static void large_vector_to_a_pipe(blz_rt *rt)
{
    struct pair pair;
    blz_handle handle;
    blz_iovec iov[2] = {{large, 100000}, {large + 100000, 200000}};
    int64_t first;

    make_large();
    open_pair(&pair, rt, PAIR_PIPE_OUT);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, moves, .ref = pair.ours, .kind = IO_WRITEV,
                                  .buf = (char *)iov, .len = 2),
                     0);
    first = result_of(&handle);
    assert_true(first > 0 && first < LARGE);
    assert_int_equal(drain(pair.far), first);
    close_pair(&pair);
}

static void a_vector_that_a_pipe_has_no_room_for_is_written_in_part(void **state)
{
    (void)state;
    on_every_backend(large_vector_to_a_pipe);
}

/* ---- lengths ---- */

static void nothing_at_all(blz_rt *rt)
{
    static const int kinds[] = {IO_READ, IO_WRITE, IO_READV, IO_WRITEV, IO_PEEK};
    struct pair pair;

    open_pair(&pair, rt, PAIR_TCP);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (int all = 0; all < 2; all++) /* nothing is there, and nothing need be */
            assert_int_equal(BLZ_BLOCK_ON(rt, moves, .ref = pair.ours, .kind = kinds[i],
                                          .all = all && i < 2, .buf = arrived, .len = 0),
                             0);
    close_pair(&pair);
}

static void a_length_of_zero_is_done_at_once(void **state)
{
    (void)state;
    on_every_backend(nothing_at_all);
}

static void more_than_four_gigabytes(blz_rt *rt)
{
    size_t len = ((size_t)4 << 30) + 4096;
    char *room =
        mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    static const enum pair_kind kinds[] = {PAIR_TCP, PAIR_UNIX, PAIR_PIPE_IN};

    assert_true(room != MAP_FAILED);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct pair pair;
        blz_handle handle;
        open_pair(&pair, rt, kinds[i]);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, moves, .ref = pair.ours, .kind = IO_READ,
                                      .buf = room, .len = len),
                         0);
        assert_int_equal(write(pair.far, "hello", 5), 5);
        assert_int_equal(result_of(&handle), 5);
        assert_memory_equal(room, "hello", 5);
        if (kinds[i] != PAIR_PIPE_IN) {
            int64_t n = BLZ_BLOCK_ON(rt, moves, .ref = pair.ours, .kind = IO_WRITE, .buf = room,
                                     .len = len);
            assert_true(n > 0 && n <= 1 << 30);
        }
        close_pair(&pair);
    }
    munmap(room, len);
}

static void lengths_above_four_gigabytes_are_moved_in_part(void **state)
{
    (void)state;
    on_every_backend(more_than_four_gigabytes);
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
        assert_int_equal(blz__fd_close(&ours, NULL), 0);
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
    assert_int_equal(blz__fd_close(&ours, NULL), 0);
    assert_int_equal(result_of(&handle), -ECANCELED);
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
    assert_int_equal(blz__fd_close(&ours, NULL), 0);
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
        TEST(write_all_writes_in_as_many_pieces_as_it_takes),
        TEST(read_exact_reads_in_as_many_pieces_as_it_takes),
        TEST(read_exact_says_how_much_there_was_before_the_end),
        TEST(a_cancelled_write_all_says_how_far_it_came),
        TEST(a_cancelled_read_exact_says_how_far_it_came),
        TEST(a_write_all_whose_descriptor_is_closed_ends),
        TEST(a_vector_that_a_pipe_has_no_room_for_is_written_in_part),
        TEST(a_length_of_zero_is_done_at_once),
        TEST(lengths_above_four_gigabytes_are_moved_in_part),
        TEST(a_message_shorter_than_the_buffer_need_not_be_the_last),
        TEST(a_read_that_stops_at_passed_descriptors_goes_on),
        TEST(a_read_that_stops_at_urgent_data_goes_on),
        TEST(an_error_that_passes_is_told_once),
        TEST(a_pipe_goes_on_after_its_end),
    };
    signal(SIGPIPE, SIG_DFL); /* it may have been ignored when we were started */
    return RUN_TESTS(tests);
}
