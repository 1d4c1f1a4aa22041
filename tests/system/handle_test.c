/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: system/handle.h. The descriptors to ask come from the C library. */
#include "conform.h"

#include "system/handle.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static int open_file(void)
{
    char name[] = "/tmp/blitz-handle-XXXXXX";
    int fd = mkstemp(name);

    assert_true(fd >= 0);
    unlink(name);
    return fd;
}

static void a_closed_descriptor_is_none(void **state)
{
    int fd = open_file();

    (void)state;
    blz__handle_close(fd);
    assert_int_equal(blz__handle_kind(fd), -EBADF);
    assert_int_equal(blz__handle_is_nonblocking(fd), -EBADF);
    assert_int_equal(blz__handle_set_nonblocking(fd, true), -EBADF);
    assert_int_equal(blz__handle_duplicate(fd), -EBADF);
    assert_int_equal(blz__handle_is_inherited(fd), -EBADF);
    assert_int_equal(blz__handle_set_inherited(fd, true), -EBADF);
}

static void closing_none_is_harmless(void **state)
{
    (void)state;
    blz__handle_close(BLZ_NO_SYSFD);
}

static void check_kind(int fd, enum blz__handle_kind kind)
{
    assert_true(fd >= 0);
    assert_int_equal(blz__handle_kind(fd), kind);
    blz__handle_close(fd);
}

static void each_descriptor_has_its_kind(void **state)
{
    int pipes[2], sockets[2], terminal;

    (void)state;
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    check_kind(open_file(), BLZ__HANDLE_FILE);
    check_kind(open("/", O_RDONLY), BLZ__HANDLE_DIRECTORY);
    check_kind(open("/dev/null", O_RDWR), BLZ__HANDLE_DEVICE);
    for (int i = 0; i < 2; i++) {
        check_kind(pipes[i], BLZ__HANDLE_PIPE);
        check_kind(sockets[i], BLZ__HANDLE_SOCKET);
    }
    terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal >= 0)
        check_kind(terminal, BLZ__HANDLE_TERMINAL);
}

static void the_mode_is_what_was_set_last(void **state)
{
    int fds[2], rc;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    for (int round = 0; round < 2; round++)
        for (int on = 1; on >= 0; on--) {
            assert_int_equal(blz__handle_set_nonblocking(fds[0], on), 0);
            rc = blz__handle_is_nonblocking(fds[0]);
            if (rc != -ENOTSUP)
                assert_int_equal(rc, on);
        }
    blz__handle_close(fds[0]);
    blz__handle_close(fds[1]);
}

static void a_read_of_a_nonblocking_descriptor_does_not_wait(void **state)
{
    int fds[2];
    char byte;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    assert_int_equal(blz__handle_set_nonblocking(fds[0], true), 0);
    assert_int_equal(recv(fds[0], &byte, 1, 0), -1);
    assert_int_equal(errno, EAGAIN);
    blz__handle_close(fds[0]);
    blz__handle_close(fds[1]);
}

static void the_mode_belongs_to_the_open_file_not_to_the_descriptor(void **state)
{
    int fds[2];
    int64_t copy;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    copy = blz__handle_duplicate(fds[0]);
    assert_true(copy >= 0);
    assert_int_equal(blz__handle_set_nonblocking(fds[0], true), 0);
    assert_int_equal(blz__handle_is_nonblocking((blz_sysfd)copy), 1);
    blz__handle_close(fds[0]);
    blz__handle_close(fds[1]);
    blz__handle_close((blz_sysfd)copy);
}

static void a_duplicate_outlives_what_it_was_made_from(void **state)
{
    int fd = open_file();
    int64_t copy = blz__handle_duplicate(fd);

    (void)state;
    assert_true(copy >= 0 && copy != fd);
    blz__handle_close(fd);
    assert_int_equal(blz__handle_kind((blz_sysfd)copy), BLZ__HANDLE_FILE);
    blz__handle_close((blz_sysfd)copy);
}

static void a_duplicate_is_not_inherited(void **state)
{
    int fd = open_file();
    int64_t copy;

    (void)state;
    assert_int_equal(blz__handle_set_inherited(fd, true), 0);
    copy = blz__handle_duplicate(fd);
    assert_true(copy >= 0);
    assert_int_equal(blz__handle_is_inherited((blz_sysfd)copy), 0);
    blz__handle_close(fd);
    blz__handle_close((blz_sysfd)copy);
}

static void inheritance_is_what_was_set_last(void **state)
{
    int fd = open_file();

    (void)state;
    for (int on = 1; on >= 0; on--) {
        assert_int_equal(blz__handle_set_inherited(fd, on), 0);
        assert_int_equal(blz__handle_is_inherited(fd), on);
    }
    blz__handle_close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_closed_descriptor_is_none),
        TEST(closing_none_is_harmless),
        TEST(each_descriptor_has_its_kind),
        TEST(the_mode_is_what_was_set_last),
        TEST(a_read_of_a_nonblocking_descriptor_does_not_wait),
        TEST(the_mode_belongs_to_the_open_file_not_to_the_descriptor),
        TEST(a_duplicate_outlives_what_it_was_made_from),
        TEST(a_duplicate_is_not_inherited),
        TEST(inheritance_is_what_was_set_last),
    };

    return RUN_TESTS(tests);
}
