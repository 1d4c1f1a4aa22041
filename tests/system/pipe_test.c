/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: system/pipe.h. */
#include "conform.h"

#include "system/handle.h"
#include "system/pipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void make_pipe(bool nonblocking, blz_sysfd fds[2])
{
    assert_int_equal(blz__pipe_new(nonblocking, fds), 0);
}

static void close_pipe(const blz_sysfd fds[2])
{
    blz__handle_close(fds[0]);
    blz__handle_close(fds[1]);
}

/* The lock that goes along with a descriptor in blocking mode. */
static blz__lock *lock_for(bool nonblocking)
{
    static blz__lock lock;
    return nonblocking ? NULL : &lock;
}

static int64_t read_some(blz_sysfd fd, void *buf, size_t len, blz__lock *lock)
{
    return blz__pipe_read(fd, &(blz_iovec){buf, len}, 1, lock);
}

static void fill_pipe(blz_sysfd fd, blz__lock *lock)
{
    static const char bytes[4096];
    int64_t n;

    while ((n = blz__pipe_write(fd, bytes, sizeof bytes, lock)) > 0)
        ;
    assert_int_equal(n, -EAGAIN);
}

/* ---- making ---- */

static void neither_end_is_inherited_and_both_are_in_the_mode(void **state)
{
    blz_sysfd fds[2];

    (void)state;
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        make_pipe(nonblocking, fds);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(blz__handle_is_inherited(fds[i]), 0);
            assert_int_equal(blz__handle_is_nonblocking(fds[i]), nonblocking);
            assert_int_equal(blz__handle_kind(fds[i]), BLZ__HANDLE_PIPE);
        }
        close_pipe(fds);
    }
}

static void what_is_written_to_the_second_is_read_from_the_first(void **state)
{
    blz_sysfd fds[2];
    char buf[8];

    (void)state;
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        make_pipe(nonblocking, fds);
        assert_int_equal(blz__pipe_write(fds[1], "hello", 5, lock_for(nonblocking)), 5);
        assert_int_equal(read_some(fds[0], buf, sizeof buf, lock_for(nonblocking)), 5);
        assert_memory_equal(buf, "hello", 5);
        assert_true(blz__pipe_write(fds[0], "x", 1, lock_for(nonblocking)) == -EBADF);
        close_pipe(fds);
    }
}

/* ---- reading and writing ---- */

static void reading_nothing_is_not_now_in_either_mode(void **state)
{
    blz_sysfd fds[2];
    char byte = 'x';

    (void)state;
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        make_pipe(nonblocking, fds);
        assert_int_equal(read_some(fds[0], &byte, 1, lock_for(nonblocking)), -EAGAIN);
        assert_int_equal(byte, 'x');
        close_pipe(fds);
    }
}

static void writing_without_room_is_not_now_in_either_mode(void **state)
{
    blz_sysfd fds[2];

    (void)state;
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        make_pipe(nonblocking, fds);
        fill_pipe(fds[1], lock_for(nonblocking));
        assert_int_equal(blz__pipe_write(fds[1], "x", 1, lock_for(nonblocking)), -EAGAIN);
        close_pipe(fds);
    }
}

static void a_call_leaves_the_mode_as_it_was(void **state)
{
    blz_sysfd fds[2];
    char byte;

    (void)state;
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        make_pipe(nonblocking, fds);
        assert_int_equal(blz__pipe_write(fds[1], "x", 1, lock_for(false)), 1);
        assert_int_equal(read_some(fds[0], &byte, 1, lock_for(false)), 1);
        for (int i = 0; i < 2; i++)
            assert_int_equal(blz__handle_is_nonblocking(fds[i]), nonblocking);
        close_pipe(fds);
    }
}

static void without_writers_it_has_ended_after_the_data(void **state)
{
    blz_sysfd fds[2];
    char buf[8];

    (void)state;
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        make_pipe(nonblocking, fds);
        assert_int_equal(blz__pipe_write(fds[1], "last", 4, lock_for(nonblocking)), 4);
        blz__handle_close(fds[1]);
        assert_int_equal(read_some(fds[0], buf, sizeof buf, lock_for(nonblocking)), 4);
        assert_int_equal(read_some(fds[0], buf, sizeof buf, lock_for(nonblocking)), 0);
        blz__handle_close(fds[0]);
    }
}

static void without_readers_writing_is_a_broken_pipe_without_a_signal(void **state)
{
    blz_iovec piece = {(char[]){'x'}, 1};
    blz_sysfd fds[2];

    (void)state;
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        make_pipe(nonblocking, fds);
        blz__handle_close(fds[0]);
        assert_int_equal(blz__pipe_write(fds[1], "x", 1, lock_for(nonblocking)), -EPIPE);
        assert_int_equal(blz__pipe_writev(fds[1], &piece, 1, lock_for(nonblocking)), -EPIPE);
        blz__handle_close(fds[1]);
    }
}

static void pieces_are_written_and_read_in_order(void **state)
{
    char a[2], b[4];
    blz_iovec out[2] = {{(char[]){'1', '2', '3'}, 3}, {(char[]){'4', '5', '6'}, 3}};
    blz_iovec in[2] = {{a, 2}, {b, 4}};
    blz_sysfd fds[2];

    (void)state;
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        make_pipe(nonblocking, fds);
        assert_int_equal(blz__pipe_writev(fds[1], out, 2, lock_for(nonblocking)), 6);
        assert_int_equal(blz__pipe_read(fds[0], in, 2, lock_for(nonblocking)), 6);
        assert_memory_equal(a, "12", 2);
        assert_memory_equal(b, "3456", 4);
        close_pipe(fds);
    }
}

static void a_small_write_happens_whole_or_not_at_all(void **state)
{
    static char bytes[512], buf[4096];
    blz_sysfd fds[2];
    int64_t n, left = 0;

    (void)state;
    make_pipe(true, fds);
    while ((n = blz__pipe_write(fds[1], bytes, sizeof bytes, NULL)) > 0)
        assert_int_equal(n, sizeof bytes);
    assert_int_equal(n, -EAGAIN);
    while ((n = read_some(fds[0], buf, sizeof buf, NULL)) > 0)
        left += n;
    assert_int_equal(left % (int64_t)sizeof bytes, 0);
    close_pipe(fds);
}

static void a_large_write_is_cut_where_the_room_ends(void **state)
{
    static char bytes[1 << 22];
    blz_sysfd fds[2];
    int64_t n;

    (void)state;
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        make_pipe(nonblocking, fds);
        n = blz__pipe_write(fds[1], bytes, sizeof bytes, lock_for(nonblocking));
        assert_true(n > 0 && n < (int64_t)sizeof bytes);
        close_pipe(fds);
    }
}

/* The master of a pseudo terminal: it has no flag, so that its mode is changed for the call. */
static void a_device_in_blocking_mode_is_not_waited_for(void **state)
{
    int fd = posix_openpt(2); /* O_RDWR */
    blz__lock lock = {0};
    char byte;

    (void)state;
    if (fd < 0)
        skip();
    assert_int_equal(grantpt(fd) | unlockpt(fd), 0);
    assert_int_equal(blz__handle_set_nonblocking(fd, false), 0);
    assert_true(read_some(fd, &byte, 1, &lock) < 0);
    assert_int_equal(blz__handle_is_nonblocking(fd), 0);
    assert_int_equal(lock.word, 0);
    blz__handle_close(fd);
}

/* ---- FIFOs ---- */

struct fifo {
    char folder[32], path[48];
};

static struct fifo fifo_make(void)
{
    struct fifo fifo = {.folder = "/tmp/blitz-fifo-XXXXXX"};

    assert_non_null(mkdtemp(fifo.folder));
    snprintf(fifo.path, sizeof fifo.path, "%s/f", fifo.folder);
    assert_int_equal(mkfifo(fifo.path, 0600), 0);
    return fifo;
}

static void fifo_remove(const struct fifo *fifo)
{
    assert_int_equal(unlink(fifo->path), 0);
    assert_int_equal(rmdir(fifo->folder), 0);
}

static void a_fifo_is_opened_without_waiting_for_the_other_side(void **state)
{
    struct fifo fifo = fifo_make();
    int64_t in = blz__pipe_open(fifo.path, BLZ__PIPE_READ), out;

    (void)state;
    assert_true(in >= 0);
    out = blz__pipe_open(fifo.path, BLZ__PIPE_WRITE);
    assert_true(out >= 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(blz__handle_is_nonblocking((blz_sysfd)(i ? in : out)), 1);
        assert_int_equal(blz__handle_is_inherited((blz_sysfd)(i ? in : out)), 0);
    }
    close_pipe((blz_sysfd[]){(blz_sysfd)in, (blz_sysfd)out});
    fifo_remove(&fifo);
}

static void a_writer_of_a_fifo_needs_a_reader(void **state)
{
    struct fifo fifo = fifo_make();
    int64_t both;

    (void)state;
    assert_int_equal(blz__pipe_open(fifo.path, BLZ__PIPE_WRITE), -ENXIO);
    both = blz__pipe_open(fifo.path, BLZ__PIPE_BOTH);
    assert_true(both >= 0);
    blz__handle_close((blz_sysfd)both);
    fifo_remove(&fifo);
}

static void what_is_no_fifo_is_refused(void **state)
{
    (void)state;
    assert_int_equal(blz__pipe_open("/dev/null", BLZ__PIPE_READ), -EINVAL);
    assert_int_equal(blz__pipe_open("/dev/null", 0), -EINVAL);
    assert_int_equal(blz__pipe_open("/dev/null", 4), -EINVAL);
    assert_int_equal(blz__pipe_open("/no/such/file", BLZ__PIPE_READ), -ENOENT);
}

/* ---- sizes ---- */

static void the_capacity_is_how_many_bytes_fit(void **state)
{
    static const char bytes[4096];
    blz_sysfd fds[2];
    int64_t capacity, n, sum = 0;

    (void)state;
    make_pipe(true, fds);
    capacity = blz__pipe_capacity(fds[1]);
    while (capacity >= 0 && (n = blz__pipe_write(fds[1], bytes, sizeof bytes, NULL)) > 0)
        sum += n;
    close_pipe(fds);
    skip_if_not_supported(capacity);
    assert_int_equal(sum, capacity);
}

static void the_capacity_is_rounded_up(void **state)
{
    blz_sysfd fds[2];
    int64_t got, capacity;

    (void)state;
    make_pipe(true, fds);
    got = blz__pipe_set_capacity(fds[1], 20000);
    capacity = blz__pipe_capacity(fds[0]);
    close_pipe(fds);
    skip_if_not_supported(got);
    assert_true(got >= 20000);
    assert_int_equal(capacity, got);
}

static void a_capacity_that_cannot_be_is_refused(void **state)
{
    blz_sysfd fds[2];
    int64_t huge, less;

    (void)state;
    make_pipe(true, fds);
    fill_pipe(fds[1], NULL);
    huge = blz__pipe_set_capacity(fds[1], (size_t)INT32_MAX + 1);
    less = blz__pipe_set_capacity(fds[1], 4096);
    close_pipe(fds);
    skip_if_not_supported(huge);
    assert_int_equal(huge, -EINVAL);
    assert_int_equal(less, -EBUSY);
}

static void what_is_no_pipe_has_no_capacity(void **state)
{
    FILE *file = tmpfile();
    int64_t capacity;

    (void)state;
    assert_non_null(file);
    capacity = blz__pipe_capacity(fileno(file));
    fclose(file);
    skip_if_not_supported(capacity);
    assert_int_equal(capacity, -EBADF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(neither_end_is_inherited_and_both_are_in_the_mode),
        TEST(what_is_written_to_the_second_is_read_from_the_first),
        TEST(reading_nothing_is_not_now_in_either_mode),
        TEST(writing_without_room_is_not_now_in_either_mode),
        TEST(a_call_leaves_the_mode_as_it_was),
        TEST(without_writers_it_has_ended_after_the_data),
        TEST(without_readers_writing_is_a_broken_pipe_without_a_signal),
        TEST(pieces_are_written_and_read_in_order),
        TEST(a_small_write_happens_whole_or_not_at_all),
        TEST(a_large_write_is_cut_where_the_room_ends),
        TEST(a_device_in_blocking_mode_is_not_waited_for),
        TEST(a_fifo_is_opened_without_waiting_for_the_other_side),
        TEST(a_writer_of_a_fifo_needs_a_reader),
        TEST(what_is_no_fifo_is_refused),
        TEST(the_capacity_is_how_many_bytes_fit),
        TEST(the_capacity_is_rounded_up),
        TEST(a_capacity_that_cannot_be_is_refused),
        TEST(what_is_no_pipe_has_no_capacity),
    };

    return RUN_TESTS(tests);
}
