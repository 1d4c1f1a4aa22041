/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the file system functions must not do: make a thread wait for ever, hand rights to another
 * user, remove what is still being written.
 */
#include "net_probe.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { NOBODY = 65534 };

static char dir[64], a[96], b[96];

static blz_rt *begin(const char *backend)
{
    strcpy(dir, "/tmp/blitz-safety-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(a, sizeof a, "%s/a", dir);
    snprintf(b, sizeof b, "%s/b", dir);
    return turning_rt(backend);
}

static void end(blz_rt *rt)
{
    blz_fs_op op = {0};

    assert_int_equal(AWAIT(rt, blz_fs_remove_dir_all(&op, dir)), 0);
    free_rt(rt);
}

static void make_file(const char *path, mode_t mode, uid_t uid, gid_t gid)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    check(fd >= 0 && write(fd, "text", 4) == 4);
    check(fchown(fd, uid, gid) == 0 && fchmod(fd, mode) == 0);
    close(fd);
}

static mode_t mode_of(const char *path)
{
    struct stat st;

    check(stat(path, &st) == 0);
    return st.st_mode & 07777;
}

static bool is_not_root(void)
{
    if (geteuid() != 0)
        print_message("skipped: only root can give files away\n");
    return geteuid() != 0;
}

/* ---- what is no file ---- */

static void expect_refusals(blz_rt *rt)
{
    blz_fs_op op = {0};
    blz_bytes bytes;

    assert_int_equal(AWAIT(rt, blz_fs_read(&op, a, &bytes, 100)), -EINVAL);
    assert_null(bytes.data);
    assert_int_equal(AWAIT(rt, blz_fs_write(&op, a, "x", 1)), -EINVAL);
    assert_int_equal(AWAIT(rt, blz_fs_append(&op, a, "x", 1)), -EINVAL);
    assert_int_equal(AWAIT(rt, blz_fs_copy(&op, a, dir)), -EINVAL);
    assert_int_equal(AWAIT(rt, blz_fs_copy(&op, b, a)), -EINVAL);
}

ON_EACH_BACKEND(a_fifo_is_refused_at_once)
{
    blz_rt *rt = begin(backend);
    int other_side;

    make_file(b, 0600, geteuid(), getegid());
    assert_int_equal(mkfifo(a, 0600), 0);
    expect_refusals(rt);
    other_side = open(a, O_RDWR | O_CLOEXEC); /* now it could be opened */
    assert_true(other_side >= 0);
    expect_refusals(rt);
    close(other_side);
    end(rt);
}

ON_EACH_BACKEND(a_socket_is_refused_at_once)
{
    blz_rt *rt = begin(backend);
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    make_file(b, 0600, geteuid(), getegid());
    snprintf(sa.sun_path, sizeof sa.sun_path, "%s", a);
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof sa), 0);
    expect_refusals(rt);
    close(fd);
    end(rt);
}

/* ---- rights ---- */

ON_EACH_BACKEND(an_atomic_write_makes_no_program_run_as_another_user)
{
    blz_rt *rt;
    blz_fs_op op = {0};

    if (is_not_root())
        skip();
    rt = begin(backend);
    make_file(a, 06755, NOBODY, NOBODY);
    assert_int_equal(AWAIT(rt, blz_fs_write_atomic(&op, a, "new", 3)), 0);
    assert_int_equal(mode_of(a), 0755);
    make_file(b, 06755, geteuid(), NOBODY);
    assert_int_equal(AWAIT(rt, blz_fs_write_atomic(&op, b, "new", 3)), 0);
    assert_int_equal(mode_of(b), 04755);
    end(rt);
}

ON_EACH_BACKEND(an_atomic_write_keeps_the_rights_of_a_file_of_the_same_owner)
{
    blz_rt *rt = begin(backend);
    blz_fs_op op = {0};

    make_file(a, 06755, geteuid(), getegid());
    assert_int_equal(AWAIT(rt, blz_fs_write_atomic(&op, a, "new", 3)), 0);
    assert_int_equal(mode_of(a), 06755);
    end(rt);
}

ON_EACH_BACKEND(a_copy_makes_no_program_run_as_another_user)
{
    blz_rt *rt;
    blz_fs_op op = {0};

    if (is_not_root())
        skip();
    rt = begin(backend);
    make_file(a, 06755, NOBODY, NOBODY);
    assert_int_equal(AWAIT(rt, blz_fs_copy(&op, a, b)), 4);
    assert_int_equal(mode_of(b), 0755);
    check(chown(a, geteuid(), NOBODY) == 0 && chmod(a, 06711) == 0);
    assert_int_equal(AWAIT(rt, blz_fs_copy(&op, a, b)), 4); /* over one that is there */
    assert_int_equal(mode_of(b), 04711);
    end(rt);
}

/* Without root, a write clears these bits. */
static int copy_as_nobody(void)
{
    blz_rt *rt;
    blz_fs_op op = {0};

    check(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
    check(prctl(PR_SET_DUMPABLE, 1) == 0); /* as sanitizers need it */
    rt = begin("epoll");
    make_file(a, 06755, NOBODY, NOBODY);
    check(AWAIT(rt, blz_fs_copy(&op, a, b)) == 4);
    check(mode_of(b) == 06755);
    end(rt);
    return 0;
}

static void a_copy_has_the_rights_of_a_file_of_the_same_owner(void **state)
{
    (void)state;
    if (is_not_root())
        skip();
    in_own_process("copy_as_nobody");
}

/* ---- what a killed process leaves ---- */

ON_EACH_BACKEND(what_killed_writers_left_is_removed_and_nothing_else)
{
    static const char *const names[] = {".blitz-0123456789abcdef", ".blitz-fedcba9876543210",
                                        ".blitz-0123456789abcde",  ".blitz-0123456789abcdefg",
                                        ".blitz-0123456789abcdeg", "blitz-0123456789abcdef"};
    enum { NR = sizeof names / sizeof *names };
    blz_rt *rt = begin(backend);
    char path[NR][128], link[128];
    blz_fs_op op = {0};
    int fd;

    for (int i = 0; i < NR; i++) {
        snprintf(path[i], sizeof path[i], "%s/%s", dir, names[i]);
        make_file(path[i], 0600, geteuid(), getegid());
    }
    snprintf(link, sizeof link, "%s/.blitz-1111111111111111", dir);
    assert_int_equal(symlink(path[NR - 1], link), 0);
    fd = open(path[1], O_WRONLY | O_CLOEXEC); /* its writer lives */
    assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
    assert_int_equal(AWAIT(rt, blz_fs_remove_unfinished(&op, dir)), 1);
    assert_int_equal(access(path[0], F_OK), -1);
    for (int i = 1; i < NR; i++)
        assert_int_equal(access(path[i], F_OK), 0);
    close(fd);
    assert_int_equal(AWAIT(rt, blz_fs_remove_unfinished(&op, dir)), 1);
    assert_int_equal(access(path[1], F_OK), -1);
    assert_int_equal(AWAIT(rt, blz_fs_remove_unfinished(&op, a)), -ENOENT);
    end(rt);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(a_fifo_is_refused_at_once),
        TEST(a_socket_is_refused_at_once),
        TEST(an_atomic_write_makes_no_program_run_as_another_user),
        TEST(an_atomic_write_keeps_the_rights_of_a_file_of_the_same_owner),
        TEST(a_copy_makes_no_program_run_as_another_user),
        TEST(a_copy_has_the_rights_of_a_file_of_the_same_owner),
        TEST(what_killed_writers_left_is_removed_and_nothing_else),
    };
    if (argc > 1 && strcmp(argv[1], "copy_as_nobody") == 0)
        return copy_as_nobody();
    return RUN_TESTS(tests);
}
