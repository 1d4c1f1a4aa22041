/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Atomic writes that are cut short, and removals that others meddle with.
 *
 * An atomic write runs in a process of its own, which is ended before its first system call, then
 * before its second, until it completes. What is left is the old file or the new one. The calls
 * made so far are checked against what a power cut could do: whatever was not synced may be lost,
 * and a rename may reach the disk before everything else.
 */
#include "harness.h"

#include "faulty.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64], file[96], trail[96];

/* ---- in the process that is cut short ---- */

struct replaces {
    BLZ_FRAME;
    int64_t rc;
    blz_fs_op op;
};

BLZ_ASYNC(replaces)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_fs_write_atomic(&self->op, file, "new text", 8));
    BLZ_END(self->rc);
}

/* One letter for each call of the write, in their order. */
static char calls[256];
static int nr_calls, end_at;

static char letter_of(enum faulty call)
{
    switch (call) {
    case FAULTY_FILE_OPEN:
        return 'o';
    case FAULTY_FILE_WRITE:
        return 'w';
    case FAULTY_FILE_SET_MODE:
        return 'm';
    case FAULTY_FILE_SYNC:
        return fcntl(fd_of_call, F_GETFL) & O_DIRECTORY ? 'd' : 's';
    case FAULTY_PATH_RENAME:
        return 'r';
    case FAULTY_FILE_METADATA:
    case FAULTY_PATH_METADATA:
    case FAULTY_PATH_EXISTS:
    case FAULTY_FILE_OPEN_NOW:
    case FAULTY_FILE_LOCK:
    case FAULTY_PATH_REMOVE:
    case FAULTY_FILE_CLOSE:
        return '.';
    default:
        return 0; /* the runtime's */
    }
}

static _Noreturn void end_process(void)
{
    int fd;

    before_every_call = NULL;
    fd = open(trail, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    check(fd >= 0 && write(fd, calls, sizeof calls) == sizeof calls);
    _exit(0);
}

static void note_call(enum faulty call)
{
    char letter = letter_of(call);

    if (letter && nr_calls == end_at)
        end_process();
    if (letter)
        calls[nr_calls++] = letter;
}

static void set_paths(void)
{
    snprintf(file, sizeof file, "%s/file", dir);
    snprintf(trail, sizeof trail, "%s.calls", dir);
}

/* `how`: "cut NUMBER DIRECTORY". */
static int write_until_cut(const char *how)
{
    blz_rt *rt = new_rt(&(blz_options){.backend = "epoll", .workers = 1});

    check(sscanf(how, "cut %d %63s", &end_at, dir) == 2);
    set_paths();
    before_every_call = note_call;
    check(BLZ_BLOCK_ON(rt, replaces) == 0);
    calls[nr_calls] = 'E';
    end_process();
}

/* ---- here ---- */

static void begin(void)
{
    strcpy(dir, "/tmp/blitz-crash-XXXXXX");
    assert_non_null(mkdtemp(dir));
    set_paths();
}

static void end(void)
{
    assert_int_equal(unlink(trail), 0);
    assert_int_equal(rmdir(dir), 0);
}

static int64_t read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int64_t n;

    memset(text, 0, size);
    if (fd < 0)
        return -1;
    n = read_fully(fd, text, size - 1);
    close(fd);
    return n;
}

static void write_old(const char *text)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

/* Of the calls so far: no rename before all of the new file, its permissions too, is synced. */
static bool survives_a_power_cut(const char *so_far)
{
    const char *rename = strchr(so_far, 'r'), *sync = NULL;

    if (!rename)
        return true; /* the old file is untouched */
    for (const char *at = so_far; at < rename; at++) {
        if (*at == 's')
            sync = at;
        else if (*at == 'w' || *at == 'm')
            sync = NULL;
    }
    return sync != NULL;
}

/* And when the write has been reported, the rename is on the disk for good. */
static bool is_durable(const char *so_far)
{
    const char *rename = strchr(so_far, 'r');

    return rename && strchr(rename, 'd') && strchr(rename, 'E');
}

struct tidies {
    BLZ_FRAME;
    int64_t rc;
    blz_fs_op op;
};

BLZ_ASYNC(tidies)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_fs_remove_unfinished(&self->op, dir));
    BLZ_END(self->rc);
}

/* Cuts it short before each call in turn; `old` NULL: there is no file before. */
static void cut_before_each_call(const char *old)
{
    blz_rt *rt = new_rt(&(blz_options){.backend = "epoll", .workers = 1});
    char text[32], so_far[sizeof calls + 1] = "", how[128];
    int64_t left = 0;

    allow_seconds(240); /* it starts many processes */
    for (int n = 0; !strchr(so_far, 'E'); n++) {
        begin();
        if (old)
            write_old(old);
        snprintf(how, sizeof how, "cut %d %s", n, dir);
        in_own_process(how);
        assert_int_equal(read_text(trail, so_far, sizeof so_far), sizeof calls);
        assert_true(survives_a_power_cut(so_far));
        if (read_text(file, text, sizeof text) < 0)
            assert_true(!old && !strchr(so_far, 'r'));
        else
            assert_string_equal(text, strchr(so_far, 'r') ? "new text" : old);
        left += BLZ_BLOCK_ON(rt, tidies);
        assert_true(unlink(file) == 0 || !old);
        end();
    }
    assert_true(is_durable(so_far));
    assert_true(left > 0); /* some were cut while the new file was beside the old one */
    free_rt(rt);
}

static void an_atomic_write_that_is_cut_short_leaves_the_old_file_or_the_new_one(void **state)
{
    (void)state;
    cut_before_each_call("old");
}

static void a_first_atomic_write_that_is_cut_short_leaves_nothing_or_the_new_file(void **state)
{
    (void)state;
    cut_before_each_call(NULL);
}

/* ---- a removal that others meddle with ---- */

struct removes {
    BLZ_FRAME;
    const char *path;
    int64_t rc;
    blz_fs_op op;
};

BLZ_ASYNC(removes)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_fs_remove_dir_all(&self->op, self->path));
    BLZ_END(self->rc);
}

static int swap_at;
static char tree[96], inside[96], swapped[96], precious[96];

/* What was a directory inside the tree becomes a link out of it. */
static void swap_directory_and_link(enum faulty call)
{
    if (call != FAULTY_FILE_OPEN && call != FAULTY_PATH_REMOVE && call != FAULTY_PATH_REMOVE_DIR &&
        call != FAULTY_DIR_FETCH)
        return;
    if (swap_at-- == 0)
        (void)renameat2(AT_FDCWD, inside, AT_FDCWD, swapped, RENAME_EXCHANGE); /* if it is there */
}

static void make_tree(void)
{
    char path[128];

    begin();
    snprintf(tree, sizeof tree, "%s/tree", dir);
    snprintf(inside, sizeof inside, "%s/tree/inside", dir);
    snprintf(swapped, sizeof swapped, "%s/swapped", dir);
    snprintf(precious, sizeof precious, "%s/outside", dir);
    assert_int_equal(mkdir(precious, 0700), 0);
    assert_int_equal(symlink("../outside", swapped), 0);
    snprintf(precious, sizeof precious, "%s/outside/precious", dir);
    assert_true(mkdir(precious, 0700) == 0 && mkdir(tree, 0700) == 0 && mkdir(inside, 0700) == 0);
    snprintf(path, sizeof path, "%s/precious", inside); /* has the same name there */
    assert_int_equal(mkdir(path, 0700), 0);
}

static void a_directory_that_becomes_a_link_at_any_moment_is_not_followed(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.backend = "epoll", .workers = 1});
    int n = 0;

    (void)state;
    allow_seconds(240);
    do {
        make_tree();
        swap_at = n++;
        before_every_call = swap_directory_and_link;
        (void)BLZ_BLOCK_ON(rt, removes, .path = tree); /* 0, or an error: it was disturbed */
        before_every_call = NULL;
        assert_int_equal(access(precious, F_OK), 0);
        assert_int_equal(BLZ_BLOCK_ON(rt, removes, .path = dir), 0);
    } while (swap_at < 0);
    assert_true(n > 8);
    free_rt(rt);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(an_atomic_write_that_is_cut_short_leaves_the_old_file_or_the_new_one),
        TEST(a_first_atomic_write_that_is_cut_short_leaves_nothing_or_the_new_file),
        TEST(a_directory_that_becomes_a_link_at_any_moment_is_not_followed),
    };
    if (argc > 1 && strncmp(argv[1], "cut ", 4) == 0)
        return write_until_cut(argv[1]);
    return RUN_TESTS(tests);
}
