/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The console's Unix socket when the system says no, and when something else happens at its path
 * between two of its calls.
 */
#include "harness.h"

#include "faulty.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- a path in a folder of its own ---- */

static char folder[64], address[128], lock_path[128];
static const char *path; /* in the address */
static blz_rt *rt;

static void begin_at_path(void)
{
    snprintf(folder, sizeof folder, "/tmp/blitz-console-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(address, sizeof address, "unix:%s/socket", folder);
    path = address + strlen("unix:");
    snprintf(lock_path, sizeof lock_path, "%s.lock", path);
    rt = new_rt(&(blz_options){.workers = 1});
}

/* Nothing is left of it. */
static void end_at_path(void)
{
    free_rt(rt);
    assert_int_equal(rmdir(folder), 0);
}

static int open_console(blz_console **console)
{
    return blz_console_new(console, rt, &(blz_console_options){.address = address});
}

static struct sockaddr_un address_of_path(void)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};

    snprintf(sa.sun_path, sizeof sa.sun_path, "%s", path);
    return sa;
}

/* A socket's file that a program has left behind. */
static void leave_a_socket(void)
{
    struct sockaddr_un sa = address_of_path();
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof sa), 0);
    close(fd);
}

static bool can_connect(void)
{
    struct sockaddr_un sa = address_of_path();
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool connected = connect(fd, (struct sockaddr *)&sa, sizeof sa) == 0;

    close(fd);
    return connected;
}

/* ---- what others see in between ---- */

static mode_t mode_when_it_listens;

static void note_the_mode(void)
{
    struct stat st;

    check(lstat(path, &st) == 0);
    mode_when_it_listens = st.st_mode & 0777;
}

static void the_socket_is_its_owners_before_anybody_can_connect(void **state)
{
    mode_t before = umask(0);
    blz_console *console;
    struct stat st;

    (void)state;
    begin_at_path();
    before_call[KERNEL_LISTEN] = note_the_mode;
    assert_int_equal(open_console(&console), 0);
    umask(before);
    assert_int_equal(mode_when_it_listens, 0600);
    assert_int_equal(lstat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(blz_console_free(console), 0);
    end_at_path();
}

static int second_rc;
static blz_console *second;

static void start_a_second_one(void)
{
    second_rc = open_console(&second);
}

static void of_two_that_find_an_old_socket_one_starts(void **state)
{
    blz_console *console;

    (void)state;
    begin_at_path();
    leave_a_socket();
    before_call[KERNEL_UNLINK] = start_a_second_one; /* the first is about to remove it */
    assert_int_equal(open_console(&console), 0);
    assert_int_equal(second_rc, -EADDRINUSE);
    assert_true(can_connect());
    assert_int_equal(blz_console_free(console), 0);
    end_at_path();
}

static int old_lock;

/* The program that has the lock goes; before that it removes the lock's file. */
static void unlock_the_other(void)
{
    check(unlink(lock_path) == 0);
    close(old_lock);
    before_call[KERNEL_UNLINK] = start_a_second_one;
}

static void a_lock_whose_file_has_been_removed_is_not_enough(void **state)
{
    blz_console *console;

    (void)state;
    begin_at_path();
    old_lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(old_lock >= 0);
    assert_int_equal(flock(old_lock, LOCK_EX), 0);
    assert_int_equal(open_console(&console), -EADDRINUSE);
    leave_a_socket();
    before_call[KERNEL_FLOCK] = unlock_the_other; /* after the console has opened the file */
    assert_int_equal(open_console(&console), 0);
    assert_int_equal(second_rc, -EADDRINUSE); /* the lock was taken again, of the new file */
    assert_int_equal(blz_console_free(console), 0);
    end_at_path();
}

static void a_socket_of_another_is_not_removed_at_the_end(void **state)
{
    blz_console *console;

    (void)state;
    begin_at_path();
    assert_int_equal(open_console(&console), 0);
    assert_int_equal(unlink(path), 0);
    leave_a_socket();
    assert_int_equal(blz_console_free(console), 0);
    assert_int_equal(unlink(path), 0);
    end_at_path();
}

/* ---- calls that fail ---- */

static void it_fails_cleanly_when_a_call_does(void **state)
{
    static const struct {
        enum faulty call;
        int error;
    } calls[] = {{FAULTY_SOCKET_OPEN, EMFILE},
                 {KERNEL_FCHMOD, EPERM},
                 {KERNEL_BIND, EACCES},
                 {KERNEL_LISTEN, ENOMEM},
                 {KERNEL_FLOCK, ENOLCK}};

    (void)state;
    begin_at_path();
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        blz_console *console;

        fail_call(calls[i].call, 1, false, calls[i].error);
        assert_int_equal(open_console(&console), -calls[i].error);
        assert_true(stop_failing(calls[i].call));
        assert_int_equal(access(path, F_OK), -1);
        (void)unlink(lock_path); /* a lock that could not be taken may be another's */
        assert_int_equal(open_console(&console), 0);
        assert_int_equal(blz_console_free(console), 0);
    }
    end_at_path();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_socket_is_its_owners_before_anybody_can_connect),
        TEST(of_two_that_find_an_old_socket_one_starts),
        TEST(a_lock_whose_file_has_been_removed_is_not_enough),
        TEST(a_socket_of_another_is_not_removed_at_the_end),
        TEST(it_fails_cleanly_when_a_call_does),
    };
    return RUN_TESTS(tests);
}
