/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors that others share: terminals, pipes, sockets, files, devices. Nobody's mode changes,
 * and no wait outlives its runtime.
 */
#include "net_probe.h"

#include "io_fixture.h"

#include <stdlib.h>
#include <termios.h>

enum kind { TERMINAL, PIPE_IN, PIPE_OUT, SOCKET, NR_WAITING };

/* `ours` is what standard input or output would be, `far` the other side. */
struct shared {
    int ours, far;
};

static void open_terminal(struct shared *s)
{
    struct termios raw;

    s->far = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(s->far >= 0 && grantpt(s->far) == 0 && unlockpt(s->far) == 0);
    s->ours = open(ptsname(s->far), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(s->ours >= 0 && tcgetattr(s->ours, &raw) == 0);
    cfmakeraw(&raw);
    assert_int_equal(tcsetattr(s->ours, TCSANOW, &raw), 0);
}

static void open_shared(struct shared *s, enum kind kind)
{
    int fds[2];

    switch (kind) {
    case TERMINAL:
        open_terminal(s);
        return;
    case SOCKET:
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        break;
    default:
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        break;
    }
    *s = kind == PIPE_OUT ? (struct shared){fds[1], fds[0]} : (struct shared){fds[0], fds[1]};
}

static void close_shared(struct shared *s)
{
    close(s->ours);
    close(s->far);
}

static bool is_blocking(int fd)
{
    return !(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

ON_EACH_BACKEND(input_is_awaited_and_nobody_sees_another_mode)
{
    for (enum kind kind = TERMINAL; kind < NR_WAITING; kind++) {
        blz_rt *rt = turning_rt(backend);
        struct shared s;
        blz_stream in;
        blz_io io = {0};
        blz_handle reading;
        char buf[16];

        if (kind == PIPE_OUT) {
            free_rt(rt);
            continue;
        }
        open_shared(&s, kind);
        assert_int_equal(blz_stdio_open(&in, s.ours, rt), 0);
        assert_true(is_blocking(s.ours));
        START(rt, &reading, blz_stream_read(&io, &in, buf, sizeof buf));
        assert_false(blz_handle_done(&reading));
        assert_true(is_blocking(s.ours));
        assert_int_equal(CANCEL(rt, &reading), -ECANCELED);
        START(rt, &reading, blz_stream_read(&io, &in, buf, sizeof buf));
        put(s.far, "hello", 5);
        assert_int_equal(FINISH(rt, &reading), 5);
        assert_memory_equal(buf, "hello", 5);
        assert_true(is_blocking(s.ours));
        assert_int_equal(blz_stream_close(&in), 0);
        assert_true(fcntl(s.ours, F_GETFD) >= 0); /* is still the owner's */
        close_shared(&s);
        free_rt(rt);
    }
}

/* Output that does not fit: waits, goes on when there is room, and is never in another mode. */
ON_EACH_BACKEND(output_is_awaited_and_nobody_sees_another_mode)
{
    enum { BIG = 1 << 20 };
    static char data[BIG], got[BIG];

    for (enum kind kind = TERMINAL; kind < NR_WAITING; kind++) {
        blz_rt *rt = turning_rt(backend);
        struct shared s;
        blz_stream out;
        blz_stream_op op = {0};
        blz_handle writing;
        size_t len = 0;

        if (kind == PIPE_IN) {
            free_rt(rt);
            continue;
        }
        open_shared(&s, kind);
        assert_int_equal(blz_stdio_open(&out, s.ours, rt), 0);
        for (size_t i = 0; i < BIG; i++)
            data[i] = (char)('a' + i % 23);
        START(rt, &writing, blz_stream_write_all(&op, &out, data, BIG));
        assert_false(blz_handle_done(&writing));
        assert_true(is_blocking(s.ours));
        set_nonblocking(s.far);
        while (len < BIG) {
            ssize_t n = read(s.far, got + len, BIG - len);
            assert_true(n > 0 || errno == EAGAIN);
            len += n > 0 ? (size_t)n : 0;
            if (n < 0)
                assert_true(blz_rt_turn(rt) >= 0);
            assert_true(is_blocking(s.ours));
        }
        assert_int_equal(FINISH(rt, &writing), BIG);
        assert_int_equal(memcmp(got, data, BIG), 0);
        assert_int_equal(blz_stream_close(&out), 0);
        close_shared(&s);
        free_rt(rt);
    }
}

/* ---- runtimes that end ---- */

struct waits_for_input {
    BLZ_FRAME;
    int fd;
    struct event *waiting;
    blz_stream in;
    blz_io io;
    char buf[16];
    int64_t rc;
};

BLZ_ASYNC(waits_for_input)
{
    BLZ_BEGIN;
    check(blz_stdio_open(&self->in, self->fd, NULL) == 0);
    event_post(self->waiting);
    do
        BLZ_AWAIT(self->rc, blz_stream_read(&self->io, &self->in, self->buf, sizeof self->buf));
    while (self->rc > 0);
    blz_stream_close(&self->in);
    BLZ_END(self->rc);
}

/* The harness counts threads and descriptors, and its time limit is the test's. */
ON_EACH_BACKEND(a_runtime_ends_while_a_task_waits_for_input)
{
    for (enum kind kind = TERMINAL; kind < NR_WAITING; kind++) {
        struct event waiting = EVENT_INIT;
        struct shared s;
        blz_rt *rt;

        if (kind == PIPE_OUT)
            continue;
        rt = new_rt(&(blz_options){.backend = backend, .workers = 2});
        open_shared(&s, kind);
        assert_int_equal(BLZ_SPAWN_ON(rt, NULL, waits_for_input, .fd = s.ours, .waiting = &waiting),
                         0);
        event_wait(&waiting, 1);
        free_rt(rt);
        assert_true(is_blocking(s.ours));
        close_shared(&s);
    }
}

/* ---- what is never waited for ---- */

ON_EACH_BACKEND(a_file_is_read_from_where_it_is)
{
    blz_rt *rt = turning_rt(backend);
    char path[] = "/tmp/blitz-stdio-XXXXXX", buf[16];
    int fd = mkstemp(path);
    blz_stream in;
    blz_stream_op op = {0};

    assert_true(fd >= 0);
    unlink(path);
    put(fd, "0123456789", 10);
    assert_int_equal(lseek(fd, 4, SEEK_SET), 4);
    assert_int_equal(blz_stdio_open(&in, fd, rt), 0);
    assert_int_equal(AWAIT(rt, blz_stream_read_exact(&op, &in, buf, 3)), 3);
    assert_memory_equal(buf, "456", 3);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 7); /* it is one position, for all who have the file */
    assert_int_equal(AWAIT(rt, blz_stream_read(&op.io, &in, buf, 16)), 3);
    assert_int_equal(AWAIT(rt, blz_stream_read(&op.io, &in, buf, 16)), 0);
    assert_int_equal(AWAIT(rt, blz_stream_write_all(&op, &in, "end", 3)), 3);
    assert_int_equal(blz_stream_close(&in), 0);
    assert_int_equal(lseek(fd, 0, SEEK_END), 13);
    close(fd);
    free_rt(rt);
}

ON_EACH_BACKEND(devices_that_are_no_terminals_work)
{
    blz_rt *rt = turning_rt(backend);
    blz_stream_op op = {0};
    blz_stream s;
    char buf[4] = "abcd";
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    assert_int_equal(blz_stdio_open(&s, fd, rt), 0);
    assert_int_equal(AWAIT(rt, blz_stream_read(&op.io, &s, buf, 4)), 0);
    assert_int_equal(AWAIT(rt, blz_stream_write_all(&op, &s, buf, 4)), 4);
    assert_int_equal(blz_stream_close(&s), 0);
    close(fd);
    fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    assert_int_equal(blz_stdio_open(&s, fd, rt), 0);
    assert_int_equal(AWAIT(rt, blz_stream_read_exact(&op, &s, buf, 4)), 4);
    assert_memory_equal(buf, "\0\0\0\0", 4);
    assert_int_equal(blz_stream_close(&s), 0);
    close(fd);
    free_rt(rt);
}

/* ---- what cannot be had ---- */

static void a_closed_descriptor_is_an_error(void **state)
{
    blz_rt *rt = new_embedded_rt();
    int fd = dup(0);
    blz_stream s;

    (void)state;
    close(fd);
    assert_int_equal(blz_stdio_open(&s, fd, rt), -EBADF);
    assert_int_equal(blz_stdio_open(&s, -1, rt), -EBADF);
    assert_null(s.ops);
    free_rt(rt);
}

static void without_a_runtime_there_is_no_stream(void **state)
{
    blz_stream s;
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), fds[2];

    (void)state;
    assert_int_equal(blz_stdio_open(&s, fd, NULL), -ENXIO);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(blz_stdio_open(&s, fds[0], NULL), -ENXIO);
    close(fd);
    close(fds[0]);
    close(fds[1]);
}

struct uses_all_three {
    BLZ_FRAME;
    blz_stream s[3];
};

BLZ_ASYNC(uses_all_three)
{
    BLZ_BEGIN;
    check(blz_stdin(&self->s[0]) == 0 && blz_stdout(&self->s[1]) == 0 &&
          blz_stderr(&self->s[2]) == 0);
    for (int i = 0; i < 3; i++)
        check(blz_stream_close(&self->s[i]) == 0 && fcntl(i, F_GETFD) >= 0);
    BLZ_END(0);
}

static void standard_descriptors_have_their_names(void **state)
{
    blz_rt *rt;

    (void)state;
    for (int i = 0; i < 3; i++)
        if (fcntl(i, F_GETFD) < 0)
            skip(); /* whoever runs the tests has closed it */
    rt = new_rt(&(blz_options){.workers = 1});
    assert_int_equal(BLZ_BLOCK_ON(rt, uses_all_three), 0);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(input_is_awaited_and_nobody_sees_another_mode),
        TEST(output_is_awaited_and_nobody_sees_another_mode),
        TEST(a_runtime_ends_while_a_task_waits_for_input),
        TEST(a_file_is_read_from_where_it_is),
        TEST(devices_that_are_no_terminals_work),
        TEST(a_closed_descriptor_is_an_error),
        TEST(without_a_runtime_there_is_no_stream),
        TEST(standard_descriptors_have_their_names),
    };
    return RUN_TESTS(tests);
}
