/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: system/stdio.h. The descriptors to open come from the C library. */
#include "conform.h"

#include "system/handle.h"
#include "system/stdio.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static int open_file(void)
{
    char name[] = "/tmp/blitz-stdio-XXXXXX";
    int fd = mkostemp(name, O_CLOEXEC);

    assert_true(fd >= 0);
    unlink(name);
    return fd;
}

/* Opens it, and closes both. Gives the kind. */
static int kind_of(int fd)
{
    blz_sysfd own;
    int kind = blz__stdio_open(&own, fd);

    assert_true(fd >= 0 && kind >= 0);
    assert_int_not_equal(own, fd);
    assert_int_equal(blz__handle_is_inherited(own), 0);
    blz__handle_close(own);
    close(fd);
    return kind;
}

static void what_answers_at_once_is_a_file(void **state)
{
    static const char *const paths[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/urandom"};

    (void)state;
    assert_int_equal(kind_of(open_file()), BLZ__STDIO_FILE);
    assert_int_equal(kind_of(open("/", O_RDONLY)), BLZ__STDIO_FILE);
    for (int i = 0; i < 4; i++)
        assert_int_equal(kind_of(open(paths[i], O_RDWR | O_CLOEXEC)), BLZ__STDIO_FILE);
}

static void pipes_and_sockets_are_waited_for(void **state)
{
    int fds[2];

    (void)state;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(kind_of(fds[0]), BLZ__STDIO_PIPE);
    assert_int_equal(kind_of(fds[1]), BLZ__STDIO_PIPE);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    assert_int_equal(kind_of(fds[0]), BLZ__STDIO_PIPE);
    assert_int_equal(kind_of(fds[1]), BLZ__STDIO_PIPE);
}

static void the_position_of_a_file_stays_shared(void **state)
{
    int fd = open_file();
    blz_sysfd own;

    (void)state;
    assert_int_equal(blz__stdio_open(&own, fd), BLZ__STDIO_FILE);
    assert_int_equal(write(own, "abc", 3), 3);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 3);
    blz__handle_close(own);
    close(fd);
}

static void a_duplicate_is_in_the_mode_that_it_was_in(void **state)
{
    int fds[2];
    blz_sysfd own;

    (void)state;
    assert_int_equal(pipe(fds), 0);
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        assert_int_equal(blz__handle_set_nonblocking(fds[0], nonblocking), 0);
        assert_int_equal(blz__stdio_open(&own, fds[0]), BLZ__STDIO_PIPE);
        assert_int_equal(blz__handle_is_nonblocking(own), nonblocking);
        assert_int_equal(blz__handle_is_nonblocking(fds[0]), nonblocking);
        blz__handle_close(own);
    }
    close(fds[0]);
    close(fds[1]);
}

/* A terminal, and its other side. */
static int open_terminal(int *master, int mode)
{
    int fd;

    *master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (*master < 0 || grantpt(*master) < 0 || unlockpt(*master) < 0) {
        print_message("skipped: there are no terminals here\n");
        skip();
    }
    fd = open(ptsname(*master), mode | O_NOCTTY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void a_terminal_has_a_mode_of_our_own(void **state)
{
    int master, fd = open_terminal(&master, O_RDWR);
    blz_sysfd own;

    (void)state;
    assert_int_equal(blz__stdio_open(&own, fd), BLZ__STDIO_PIPE);
    assert_int_equal(blz__handle_is_nonblocking(own), 1);
    assert_int_equal(blz__handle_is_nonblocking(fd), 0);
    assert_int_equal(blz__handle_set_nonblocking(own, false), 0);
    assert_int_equal(blz__handle_set_nonblocking(fd, true), 0);
    assert_int_equal(blz__handle_is_nonblocking(own), 0);
    blz__handle_close(own);
    close(fd);
    close(master);
}

static void a_terminal_that_is_opened_anew_is_the_same_terminal(void **state)
{
    int master, fd = open_terminal(&master, O_RDWR);
    struct stat one, other;
    blz_sysfd own;
    char byte;

    (void)state;
    assert_int_equal(blz__stdio_open(&own, fd), BLZ__STDIO_PIPE);
    assert_int_equal(blz__handle_is_inherited(own), 0);
    assert_true(fstat(fd, &one) == 0 && fstat(own, &other) == 0 && one.st_rdev == other.st_rdev);
    assert_int_equal(write(own, "x", 1), 1);
    assert_int_equal(read(master, &byte, 1), 1);
    assert_int_equal(byte, 'x');
    blz__handle_close(own);
    close(fd);
    close(master);
}

static void a_terminal_is_opened_for_what_it_was_open_for(void **state)
{
    int master, fd = open_terminal(&master, O_RDONLY);
    blz_sysfd own;

    (void)state;
    assert_int_equal(blz__stdio_open(&own, fd), BLZ__STDIO_PIPE);
    assert_int_equal(fcntl(own, F_GETFL) & O_ACCMODE, O_RDONLY);
    blz__handle_close(own);
    close(fd);
    close(master);
}

static void the_other_side_of_a_terminal_is_not_opened_anew(void **state)
{
    int master, fd = open_terminal(&master, O_RDWR);
    blz_sysfd own;
    char byte;

    (void)state;
    assert_int_equal(blz__stdio_open(&own, master), BLZ__STDIO_PIPE);
    assert_int_equal(blz__handle_is_nonblocking(own), 0);
    assert_int_equal(write(fd, "x", 1), 1);
    assert_int_equal(read(own, &byte, 1), 1); /* what this terminal says, and not a new one */
    blz__handle_close(own);
    close(fd);
    close(master);
}

static void a_descriptor_that_is_not_open_is_none(void **state)
{
    int fd = open_file();
    blz_sysfd own = 7;

    (void)state;
    close(fd);
    assert_int_equal(blz__stdio_open(&own, fd), -EBADF);
    assert_int_equal(own, BLZ_NO_SYSFD);
}

static int open_with_low_numbers_free(int fd)
{
    blz_sysfd own;

    for (int i = 0; i < 3; i++)
        close(i);
    return blz__stdio_open(&own, fd) >= 0 && own > 2 ? 0 : 1;
}

static void the_number_is_above_those_of_the_standard_streams(void **state)
{
    int master, fds[2] = {open_file(), open_terminal(&master, O_RDWR)}, status;

    (void)state;
    for (int i = 0; i < 2; i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(open_with_low_numbers_free(fds[i]));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        close(fds[i]);
    }
    close(master);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_answers_at_once_is_a_file),
        TEST(pipes_and_sockets_are_waited_for),
        TEST(the_position_of_a_file_stays_shared),
        TEST(a_duplicate_is_in_the_mode_that_it_was_in),
        TEST(a_terminal_has_a_mode_of_our_own),
        TEST(a_terminal_that_is_opened_anew_is_the_same_terminal),
        TEST(a_terminal_is_opened_for_what_it_was_open_for),
        TEST(the_other_side_of_a_terminal_is_not_opened_anew),
        TEST(a_descriptor_that_is_not_open_is_none),
        TEST(the_number_is_above_those_of_the_standard_streams),
    };
    return RUN_TESTS(tests);
}
