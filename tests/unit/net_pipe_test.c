/* SPDX-License-Identifier: Apache-2.0 */
/* Pipes: ours, FIFOs, and descriptors that other processes share. */
#include "net_probe.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

struct pipe {
    blz_rt *rt;
    blz_pipe in, out;
};

static struct pipe new_pipe(const char *backend)
{
    struct pipe p = {.rt = turning_rt(backend)};

    assert_int_equal(blz_pipe_new(&p.in, &p.out, p.rt), 0);
    return p;
}

static void free_pipe(struct pipe *p)
{
    blz_pipe_close(&p->in);
    blz_pipe_close(&p->out);
    free_rt(p->rt);
}

ON_EACH_BACKEND(bytes_come_in_every_form)
{
    struct pipe p = new_pipe(backend);
    blz_io in = {0}, out = {0};
    blz_handle reading;
    blz_buf lease;
    char a[4], b[8];
    blz_iovec parts[] = {{a, 2}, {b, 8}};

    START(p.rt, &reading, blz_pipe_read(&in, &p.in, b, 8));
    assert_false(blz_handle_done(&reading));
    assert_int_equal(AWAIT(p.rt, blz_pipe_write(&out, &p.out, "abc", 3)), 3);
    assert_int_equal(FINISH(p.rt, &reading), 3);
    START(p.rt, &reading, blz_pipe_readv(&in, &p.in, parts, 2));
    assert_int_equal(AWAIT(p.rt, blz_pipe_writev(&out, &p.out, (blz_iovec[]){{b, 2}, {b, 1}}, 2)),
                     3);
    assert_int_equal(FINISH(p.rt, &reading), 3);
    assert_memory_equal(a, "ab", 2);
    START(p.rt, &reading, blz_pipe_read_lease(&in, &p.in, &lease));
    assert_int_equal(AWAIT(p.rt, blz_pipe_write_all(&out, &p.out, "lease", 5)), 5);
    assert_int_equal(FINISH(p.rt, &reading), 5);
    assert_memory_equal(lease.data, "lease", 5);
    blz_buf_release(&lease);
    START(p.rt, &reading, blz_pipe_read_exact(&in, &p.in, b, 6));
    assert_int_equal(AWAIT(p.rt, blz_pipe_write_all(&out, &p.out, "six", 3)), 3);
    assert_false(blz_handle_done(&reading));
    assert_int_equal(AWAIT(p.rt, blz_pipe_write_all(&out, &p.out, "six", 3)), 3);
    assert_int_equal(FINISH(p.rt, &reading), 6);
    assert_int_equal(AWAIT(p.rt, blz_pipe_ready(&out, &p.out, BLZ_WRITABLE)), BLZ_WRITABLE);
    free_pipe(&p);
}

ON_EACH_BACKEND(the_end_comes_when_the_writer_closes_and_a_broken_pipe_is_an_error)
{
    struct pipe p = new_pipe(backend);
    blz_io io = {0}, out = {0};
    blz_handle reading;
    char buf[8];

    START(p.rt, &reading, blz_pipe_read_exact(&io, &p.in, buf, 8));
    assert_int_equal(AWAIT(p.rt, blz_pipe_write_all(&out, &p.out, "ab", 2)), 2);
    assert_int_equal(blz_pipe_close(&p.out), 0);
    assert_int_equal(FINISH(p.rt, &reading), -ENODATA);
    assert_int_equal(io.done, 2);
    assert_int_equal(AWAIT(p.rt, blz_pipe_read(&io, &p.in, buf, 8)), 0);
    blz_pipe_close(&p.in);
    assert_int_equal(blz_pipe_new(&p.in, &p.out, p.rt), 0);
    assert_int_equal(blz_pipe_close(&p.in), 0);
    /* This thread has SIGPIPE at its default: it would end the program. */
    assert_int_equal(AWAIT(p.rt, blz_pipe_write(&out, &p.out, "x", 1)), -EPIPE);
    assert_int_equal(AWAIT(p.rt, blz_pipe_write_all(&out, &p.out, "x", 1)), -EPIPE);
    assert_int_equal(AWAIT(p.rt, blz_pipe_writev(&out, &p.out, (blz_iovec[]){{buf, 1}}, 1)),
                     -EPIPE);
    sigset_t pending;
    sigpending(&pending);
    assert_false(sigismember(&pending, SIGPIPE));
    free_pipe(&p);
}

ON_EACH_BACKEND(a_reader_that_goes_while_a_writer_waits_is_a_broken_pipe)
{
    struct pipe p = new_pipe(backend);
    static char data[1 << 20];
    blz_io out = {0};
    blz_handle writing;

    START(p.rt, &writing, blz_pipe_write_all(&out, &p.out, data, sizeof data));
    assert_false(blz_handle_done(&writing));
    assert_int_equal(blz_pipe_close(&p.in), 0);
    assert_int_equal(FINISH(p.rt, &writing), -EPIPE);
    assert_true(out.done > 0 && out.done < sizeof data);
    free_pipe(&p);
}

static void *drain(void *arg)
{
    int fd = *(int *)arg;
    char buf[5000];
    uint64_t sum = 0;
    ssize_t n;

    while ((n = read(fd, buf, sizeof buf)) > 0)
        for (ssize_t i = 0; i < n; i++)
            sum = sum * 31 + (unsigned char)buf[i];
    return (void *)(uintptr_t)sum;
}

/* More than fits, to a reader that blocks in a thread of its own. */
ON_EACH_BACKEND(a_large_write_goes_through_whole)
{
    enum { LARGE = 1 << 20 };
    blz_rt *rt = turning_rt(backend);
    static unsigned char data[LARGE];
    blz_io io = {0};
    blz_pipe out;
    uint64_t sum = 0;
    int fds[2];
    void *got;

    for (size_t i = 0; i < LARGE; i++) {
        data[i] = (unsigned char)(i * 7 >> 4);
        sum = sum * 31 + data[i];
    }
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(blz_pipe_from_fd(&out, fds[1], rt), 0);
    pthread_t reader = start_thread(drain, &fds[0]);
    assert_int_equal(AWAIT(rt, blz_pipe_write_all(&io, &out, data, LARGE)), LARGE);
    assert_int_equal(blz_pipe_close(&out), 0);
    pthread_join(reader, &got);
    assert_true((uint64_t)(uintptr_t)got == sum);
    close(fds[0]);
    free_rt(rt);
}

/* The mode is shared with other processes: it stays what it is. */
ON_EACH_BACKEND(descriptors_from_elsewhere_work_in_both_modes_and_keep_theirs)
{
    static const int modes[] = {0, O_NONBLOCK};

    for (int i = 0; i < 2; i++) {
        blz_rt *rt = turning_rt(backend);
        static char data[100000];
        blz_io io = {0}, second = {0};
        blz_handle reading, writing;
        blz_pipe in, out;
        char buf[8];
        int fds[2];

        assert_int_equal(pipe2(fds, O_CLOEXEC | modes[i]), 0);
        assert_int_equal(blz_pipe_from_fd(&in, fds[0], rt), 0);
        assert_int_equal(blz_pipe_from_fd(&out, fds[1], rt), 0);
        START(rt, &reading, blz_pipe_read(&io, &in, buf, 8));
        assert_false(blz_handle_done(&reading));
        assert_int_equal(AWAIT(rt, blz_pipe_write(&second, &out, "abc", 3)), 3);
        assert_int_equal(FINISH(rt, &reading), 3);
        START(rt, &writing, blz_pipe_write_all(&second, &out, data, sizeof data));
        assert_false(blz_handle_done(&writing)); /* it is full, and the worker does not block */
        assert_int_equal(CANCEL(rt, &writing), -ECANCELED);
        assert_true(second.done > 0 && second.done < sizeof data);
        assert_int_equal(fcntl(fds[0], F_GETFL) & O_NONBLOCK, modes[i]);
        assert_int_equal(fcntl(fds[1], F_GETFL) & O_NONBLOCK, modes[i]);
        assert_int_equal(blz_pipe_into_fd(&in), fds[0]);
        close(fds[0]);
        blz_pipe_close(&out);
        free_rt(rt);
    }
}

ON_EACH_BACKEND(busy_cancelled_and_closed)
{
    struct pipe p = new_pipe(backend);
    blz_io io = {0}, second = {0};
    blz_handle reading;
    blz_pipe copy = p.in;
    char buf[8];

    START(p.rt, &reading, blz_pipe_read(&io, &p.in, buf, 8));
    assert_int_equal(AWAIT(p.rt, blz_pipe_read(&second, &p.in, buf, 8)), -EBUSY);
    assert_int_equal(blz_pipe_into_fd(&p.in), -EBUSY);
    assert_int_equal(CANCEL(p.rt, &reading), -ECANCELED);
    START(p.rt, &reading, blz_pipe_read(&io, &p.in, buf, 8));
    assert_int_equal(blz_pipe_close(&p.in), 0);
    assert_int_equal(FINISH(p.rt, &reading), -EBADF);
    assert_int_equal(AWAIT(p.rt, blz_pipe_read(&io, &copy, buf, 8)), -EBADF);
    assert_int_equal(blz_pipe_close(&copy), -EBADF);
    assert_int_equal(blz_pipe_capacity(&copy), -EBADF);
    assert_int_equal(AWAIT(p.rt, blz_pipe_read(&io, &p.out, buf, 8)), -EBADF); /* the wrong end */
    free_pipe(&p);
}

/* ---- FIFOs ---- */

ON_EACH_BACKEND(a_fifo_has_a_life_after_its_last_writer)
{
    blz_rt *rt = turning_rt(backend);
    char dir[] = "/tmp/blitz-fifo-XXXXXX", path[64];
    blz_pipe in, out;
    blz_io io = {0}, second = {0};
    blz_handle reading;
    char buf[8];

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/fifo", dir);
    assert_int_equal(blz_pipe_open(&in, path, BLZ_PIPE_READ, rt), -ENOENT);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(blz_pipe_open(&out, path, BLZ_PIPE_WRITE, rt), -ENXIO);
    assert_int_equal(blz_pipe_open(&in, path, BLZ_PIPE_READ, rt), 0);
    assert_int_equal(AWAIT(rt, blz_pipe_read(&io, &in, buf, 8)), 0); /* no writer yet */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(blz_pipe_open(&out, path, BLZ_PIPE_WRITE, rt), 0);
        START(rt, &reading, blz_pipe_read(&io, &in, buf, 8));
        assert_false(blz_handle_done(&reading));
        assert_int_equal(AWAIT(rt, blz_pipe_write_all(&second, &out, "again", 5)), 5);
        assert_int_equal(FINISH(rt, &reading), 5);
        START(rt, &reading, blz_pipe_read(&io, &in, buf, 8));
        assert_false(blz_handle_done(&reading));
        assert_int_equal(blz_pipe_close(&out), 0);
        assert_int_equal(FINISH(rt, &reading), 0);
    }
    blz_pipe_close(&in);
    assert_int_equal(blz_pipe_open(&in, path, BLZ_PIPE_BOTH, rt), 0);
    START(rt, &reading, blz_pipe_read(&io, &in, buf, 8));
    assert_int_equal(blz_pipe_open(&out, path, BLZ_PIPE_WRITE, rt), 0);
    assert_int_equal(blz_pipe_close(&out), 0);
    assert_int_equal(CANCEL(rt, &reading), -ECANCELED); /* there is no end */
    blz_pipe_close(&in);
    assert_int_equal(blz_pipe_open(&in, dir, BLZ_PIPE_READ, rt), -EINVAL);
    assert_int_equal(blz_pipe_open(&in, path, 0, rt), -EINVAL);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
    free_rt(rt);
}

/* ---- what can be taken over ---- */

/* An epoll set takes no such device. */
ON_EACH_BACKEND(a_device_that_is_always_ready_is_read_and_written)
{
    blz_rt *rt = turning_rt(backend);
    int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
    char buf[4] = "abcd";
    blz_iovec piece = {buf, 3};
    blz_pipe zero;
    blz_io io = {0};

    assert_int_equal(blz_pipe_from_fd(&zero, fd, rt), 0);
    assert_int_equal(AWAIT(rt, blz_pipe_read(&io, &zero, buf, 4)), 4);
    assert_memory_equal(buf, "\0\0\0\0", 4);
    assert_int_equal(AWAIT(rt, blz_pipe_ready(&io, &zero, BLZ_READABLE)), BLZ_READABLE);
    assert_int_equal(AWAIT(rt, blz_pipe_write_all(&io, &zero, "abcd", 4)), 4);
    assert_int_equal(AWAIT(rt, blz_pipe_writev(&io, &zero, &piece, 1)), 3);
    assert_int_equal(AWAIT(rt, blz_pipe_read_exact(&io, &zero, buf, 4)), 4);
    assert_int_equal(blz_pipe_close(&zero), 0);
    free_rt(rt);
}

ON_EACH_BACKEND(a_terminal_is_read_line_by_line)
{
    blz_rt *rt = turning_rt(backend);
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;
    blz_io io = {0};
    blz_handle reading;
    blz_pipe tty;
    char buf[64];

    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(slave >= 0);
    assert_int_equal(blz_pipe_from_fd(&tty, slave, rt), 0);
    START(rt, &reading, blz_pipe_read(&io, &tty, buf, 64));
    assert_false(blz_handle_done(&reading));
    put(master, "one\ntwo\n", 8);
    assert_int_equal(FINISH(rt, &reading), 4); /* a line at a time: a short read is not the end */
    assert_memory_equal(buf, "one\n", 4);
    assert_int_equal(AWAIT(rt, blz_pipe_read(&io, &tty, buf, 64)), 4);
    assert_memory_equal(buf, "two\n", 4);
    assert_int_equal(AWAIT(rt, blz_pipe_write_all(&io, &tty, "out\n", 4)), 4);
    blz_pipe_close(&tty);
    close(master);
    free_rt(rt);
}

static void files_are_refused_and_capacities_set(void **state)
{
    struct pipe p = new_pipe("poll");
    FILE *file = tmpfile();
    blz_pipe none;

    (void)state;
    assert_int_equal(blz_pipe_from_fd(&none, fileno(file), p.rt), -EINVAL);
    assert_int_equal(blz_pipe_from_fd(&none, -1, p.rt), -EBADF);
    assert_int_equal(blz_pipe_from_fd(&none, 0, NULL), -ENXIO);
    fclose(file);
    assert_true(blz_pipe_capacity(&p.in) >= 4096);
    assert_true(blz_pipe_set_capacity(&p.out, 100000) >= 100000);
    assert_true(blz_pipe_capacity(&p.in) >= 100000);
    assert_int_equal(blz_pipe_set_capacity(&p.out, SIZE_MAX), -EINVAL);
    free_pipe(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bytes_come_in_every_form),
        TEST(the_end_comes_when_the_writer_closes_and_a_broken_pipe_is_an_error),
        TEST(a_reader_that_goes_while_a_writer_waits_is_a_broken_pipe),
        TEST(a_large_write_goes_through_whole),
        TEST(descriptors_from_elsewhere_work_in_both_modes_and_keep_theirs),
        TEST(busy_cancelled_and_closed),
        TEST(a_fifo_has_a_life_after_its_last_writer),
        TEST(a_device_that_is_always_ready_is_read_and_written),
        TEST(a_terminal_is_read_line_by_line),
        TEST(files_are_refused_and_capacities_set),
    };
    return RUN_TESTS(tests);
}
