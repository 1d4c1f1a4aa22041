/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of src/fs that fs_fault.c does not reach: a scenario with all of them, in which the
 * first call of a kind fails, then the second, until none does. The error reaches the program, or
 * is made up for, and neither a descriptor nor memory nor a file under a name of ours stays behind.
 */
#include "harness.h"

#include "faulty.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64], a[96], b[96], c[96], d[96], sub[96];

struct many_calls {
    BLZ_FRAME;
    int64_t rc;
    blz_io io;
    blz_fs_op op;
    blz_file file, at;
    blz_file_lock_op lock;
    blz_bytes bytes;
    blz_metadata metadata;
    blz_fs_watch watch;
    char buf[16];
};

/* Each step only if those before it went well. */
#define STEP(future)                     \
    do {                                 \
        if (self->rc >= 0)               \
            BLZ_AWAIT(self->rc, future); \
    } while (0)

/* Not every file system can. */
static int64_t unless_unsupported(int64_t rc)
{
    return rc == -ENOTSUP ? 0 : rc;
}

BLZ_ASYNC(many_calls)
{
    BLZ_BEGIN;
    STEP(blz_fs_create_dir_all(&self->op, sub, 0700));
    STEP(blz_fs_write(&self->op, a, "whole", 5));
    STEP(blz_fs_append(&self->op, a, "more", 4));
    STEP(blz_fs_read(&self->op, a, &self->bytes, 100));
    check(self->rc < 0 || self->bytes.len == 9);
    blz_bytes_free(&self->bytes);
    STEP(blz_file_open(&self->io, &self->at, dir, &(blz_open_options){.directory = true}));
    STEP(blz_file_open(
        &self->io, &self->file, "a",
        &(blz_open_options){.read = true, .write = true, .at = &self->at, .beneath = true}));
    blz_file_close(&self->at);
    STEP(blz_file_write_all_at(&self->io, &self->file, "WHOLE", 5, 0));
    STEP(blz_file_read_exact_at(&self->io, &self->file, self->buf, 9, 0));
    check(self->rc < 0 || memcmp(self->buf, "WHOLEmore", 9) == 0);
    STEP(blz_file_allocate(&self->io, &self->file, 0, 4096, true));
    self->rc = unless_unsupported(self->rc);
    STEP(blz_file_set_mode(&self->io, &self->file, 0640));
    STEP(blz_file_set_times(&self->io, &self->file, BLZ_TIME_NOW, 0));
    STEP(blz_file_sync(&self->io, &self->file));
    STEP(blz_file_sync_data(&self->io, &self->file));
    STEP(blz_file_try_lock_shared(&self->io, &self->file));
    STEP(blz_file_unlock(&self->io, &self->file));
    STEP(blz_file_lock(&self->lock, &self->file));
    if (self->rc >= 0)
        self->rc = blz_file_seek(&self->file, 0, SEEK_END);
    check(self->rc < 0 || self->rc == 9);
    blz_file_close(&self->file);
    STEP(blz_fs_write_atomic(&self->op, a, "atomic", 6));
    STEP(blz_fs_remove_unfinished(&self->op, dir));
    check(self->rc <= 0);
    STEP(blz_fs_metadata(&self->op, a, &self->metadata));
    check(self->rc < 0 || self->metadata.mode == 0640);
    STEP(blz_fs_copy(&self->op, a, b));
    STEP(blz_fs_set_mode(&self->op, b, 0600));
    STEP(blz_fs_set_times(&self->op, b, 0, BLZ_TIME_NOW));
    STEP(blz_fs_hard_link(&self->op, b, c));
    STEP(blz_fs_rename(&self->op, c, d));
    STEP(blz_fs_symlink(&self->op, "d", c));
    STEP(blz_fs_read_link(&self->op, c, &self->bytes));
    blz_bytes_free(&self->bytes);
    STEP(blz_fs_canonicalize(&self->op, c, &self->bytes));
    blz_bytes_free(&self->bytes);
    STEP(blz_fs_exists(&self->op, d));
    STEP(blz_fs_remove(&self->op, d));
    STEP(blz_fs_create_dir(&self->op, d, 0700));
    STEP(blz_fs_remove_dir(&self->op, d));
    if (self->rc >= 0)
        self->rc = blz_fs_watch_new(&self->watch, NULL);
    STEP(blz_fs_watch_add(&self->op, &self->watch, dir, BLZ_FS_ALL));
    if (self->rc >= 0)
        self->rc = blz_fs_watch_remove(&self->watch, (int)self->rc);
    blz_fs_watch_close(&self->watch);
    STEP(blz_fs_remove_dir_all(&self->op, dir));
    BLZ_END(self->rc);
}

/* ---- around it ---- */

/* In memory where that is possible: hundreds of rounds would wait for the disk. */
static void begin(void)
{
    bool in_memory = access("/dev/shm", W_OK) == 0;

    strcpy(dir, in_memory ? "/dev/shm/blitz-fault-XXXXXX" : "/tmp/blitz-fault-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(sub, sizeof sub, "%s/sub/deep", dir);
    snprintf(a, sizeof a, "%s/a", dir);
    snprintf(b, sizeof b, "%s/b", dir);
    snprintf(c, sizeof c, "%s/c", dir);
    snprintf(d, sizeof d, "%s/d", dir);
}

static int remove_it(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    assert_true(strncmp(path + at->base, ".blitz-", 7) != 0); /* of ours, for a while */
    return remove(path);
}

/* What is left of it goes. */
static void end(void)
{
    if (access(dir, F_OK) == 0)
        assert_int_equal(nftw(dir, remove_it, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static const char *const backends[] = {"io_uring", "epoll", "poll"};

enum { OF_FILES = 3, OF_PATHS = 1 }; /* what is done by threads is the same with all backends */

struct outcome {
    int told, forgiven;
};

/* A runtime that has all that it needs. */
static blz_rt *warm_rt(int backend)
{
    blz_rt *rt = new_rt(&(blz_options){.backend = backends[backend], .workers = 1});

    begin();
    assert_int_equal(BLZ_BLOCK_ON(rt, many_calls), 0);
    end();
    return rt;
}

/* Runs it until no call fails any more. `seen` is what the program must see, if it sees one. */
static struct outcome fail_each(blz_rt *rt, enum faulty call, int error, int seen)
{
    struct outcome outcome = {0, 0};
    int fds = nr_fds();

    for (bool failed = true; failed;) {
        begin();
        fail_call(call, outcome.told + outcome.forgiven + 1, false, error);
        int64_t rc = BLZ_BLOCK_ON(rt, many_calls);
        failed = stop_failing(call);
        if (rc != 0 && rc != -seen)
            fail_msg("call %d: %d", call, (int)rc);
        assert_true(failed || rc == 0);
        assert_int_equal(nr_fds(), fds);
        outcome.told += failed && rc < 0;
        outcome.forgiven += failed && rc == 0;
        end();
    }
    return outcome;
}

static void the_error_of_each_call_is_told(void **state)
{
    static const struct {
        enum faulty call;
        int nr_backends, told;
        int forgiven; /* what can be done without */
    } calls[] = {
        {FAULTY_FILE_READ, OF_PATHS, 1, 0},      {FAULTY_FILE_WRITE, OF_PATHS, 3, 0},
        {FAULTY_FILE_SYNC, OF_FILES, 2, 0},      {FAULTY_FILE_ALLOCATE, OF_FILES, 1, 0},
        {FAULTY_FILE_SET_MODE, OF_FILES, 3, 0},  {FAULTY_FILE_SET_TIMES, OF_FILES, 1, 0},
        {FAULTY_FILE_LOCK, OF_FILES, 3, 1}, /* of an atomic write */
        {FAULTY_FILE_SEEK, OF_PATHS, 1, 0},      {FAULTY_PATH_REMOVE, OF_PATHS, 3, 0},
        {FAULTY_PATH_RENAME, OF_PATHS, 2, 0},    {FAULTY_PATH_LINK, OF_PATHS, 1, 0},
        {FAULTY_PATH_SYMLINK, OF_PATHS, 1, 0},   {FAULTY_PATH_SET_MODE, OF_PATHS, 1, 0},
        {FAULTY_PATH_EXISTS, OF_PATHS, 1, 0},    {FAULTY_PATH_SET_TIMES, OF_PATHS, 1, 0},
        {FAULTY_PATH_READ_LINK, OF_PATHS, 1, 0}, {FAULTY_PATH_CANONICAL, OF_PATHS, 1, 0},
        {FAULTY_DIR_FETCH, OF_PATHS, 2, 0},      {KERNEL_SETFL, OF_FILES, 1, 0},
        {FAULTY_CHANGE_REMOVE, OF_PATHS, 1, 0},
    };

    int told[sizeof calls / sizeof *calls] = {0};

    (void)state;
    for (int backend = 0; backend < OF_FILES; backend++) {
        blz_rt *rt = warm_rt(backend);
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
            if (backend >= calls[i].nr_backends)
                continue;
            struct outcome outcome = fail_each(rt, calls[i].call, EIO, EIO);
            if (outcome.told < calls[i].told || outcome.forgiven != calls[i].forgiven)
                fail_msg("call %d, backend %s: told %d, forgiven %d", calls[i].call,
                         backends[backend], outcome.told, outcome.forgiven);
            told[i] += outcome.told;
        }
        free_rt(rt);
    }
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        assert_true(told[i] > 0);
}

/* A hint that is missing, and what is tried first only. */
static void what_can_be_done_without_is_forgiven(void **state)
{
    blz_rt *rt = warm_rt(1);
    struct outcome outcome;

    (void)state;
    outcome = fail_each(rt, KERNEL_FSTATFS, EIO, EIO);
    assert_true(outcome.told == 0 && outcome.forgiven >= 0);
    outcome = fail_each(rt, KERNEL_FICLONE, EIO, EIO);
    assert_true(outcome.told == 0 && outcome.forgiven == 1);
    outcome = fail_each(rt, KERNEL_GETRANDOM, EAGAIN, EIO);
    assert_true(outcome.told == 0 && outcome.forgiven >= 1);
    outcome = fail_each(rt, KERNEL_OPENAT2, EIO, EIO); /* first the cached one, then for certain */
    assert_true(outcome.told <= 1 && outcome.forgiven >= 1);
    free_rt(rt);
}

/* write, append, copy: a file system over a network may tell there. */
static void closing_tells_of_what_was_written(void **state)
{
    blz_rt *rt = warm_rt(1);
    struct outcome outcome = fail_each(rt, FAULTY_FILE_CLOSE, EIO, EIO);

    (void)state;
    assert_int_equal(outcome.told, 3);
    assert_true(outcome.forgiven >= 4); /* of what was read or synced, and of the handle */
    free_rt(rt);
}

static void an_interrupted_call_is_made_again(void **state)
{
    static const enum faulty calls[] = {KERNEL_READ,   KERNEL_WRITE,     KERNEL_FDATASYNC,
                                        KERNEL_FLOCK,  KERNEL_FALLOCATE, KERNEL_FSYNC,
                                        KERNEL_OPENAT, KERNEL_STATX,     KERNEL_FUTIMENS};
    blz_rt *rt = warm_rt(1);

    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct outcome outcome = fail_each(rt, calls[i], EINTR, EIO);
        assert_true(outcome.told == 0 && outcome.forgiven > 0);
    }
    free_rt(rt);
}

/* ---- the ring ---- */

/* Nothing is done at once, so that everything goes to the ring. */
static void nothing_at_once(bool on)
{
    if (on) {
        fail_call(FAULTY_FILE_READ_NOW, 1, true, EAGAIN);
        fail_call(FAULTY_FILE_WRITE_NOW, 1, true, EAGAIN);
    } else {
        stop_failing(FAULTY_FILE_READ_NOW);
        stop_failing(FAULTY_FILE_WRITE_NOW);
    }
}

static bool has_ring(void)
{
    blz_rt *rt;

    if (blz_rt_new(&rt, &(blz_options){.backend = "io_uring", .workers = 1}) < 0)
        return false;
    return blz_rt_free(rt) == 0;
}

/* As fail_each, where all goes through the ring. */
static struct outcome fail_each_of_the_ring(enum faulty call, int error, int seen)
{
    struct outcome outcome;
    blz_rt *rt;

    if (!has_ring())
        skip();
    rt = warm_rt(0);
    nothing_at_once(true);
    outcome = fail_each(rt, call, error, seen);
    nothing_at_once(false);
    free_rt(rt);
    return outcome;
}

static void an_error_of_the_ring_is_told(void **state)
{
    struct outcome outcome;

    (void)state;
    if (!uring_works())
        skip();
    outcome = fail_each_of_the_ring(RING_FILE, EIO, EBADF);
    assert_true(outcome.told >= 4 && outcome.forgiven == 0); /* write, read, sync, sync_data */
}

static void a_ring_that_moves_less_is_asked_again(void **state)
{
    struct outcome outcome;

    (void)state;
    if (!uring_works())
        skip();
    outcome = fail_each_of_the_ring(RING_SHORT, EIO, EIO);
    assert_true(outcome.told == 0 && outcome.forgiven >= 2);
}

/* ---- secrets ---- */

struct replaces {
    BLZ_FRAME;
    int64_t rc;
    blz_fs_op op;
};

BLZ_ASYNC(replaces)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_fs_write_atomic(&self->op, a, "new secret", 10));
    BLZ_END(self->rc);
}

/* Of the file that is to become `a`; 0: there is none. */
static mode_t mode_of_the_new_file(void)
{
    DIR *list = opendir(dir);
    mode_t mode = 0;

    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list));) {
        struct stat st;
        if (strncmp(entry->d_name, ".blitz-", 7) != 0)
            continue;
        assert_int_equal(fstatat(dirfd(list), entry->d_name, &st, 0), 0);
        assert_int_equal(unlinkat(dirfd(list), entry->d_name, 0), 0);
        mode = st.st_mode & 07777;
    }
    closedir(list);
    return mode;
}

/* What it looks like before it has the old one's permissions is seen when it cannot get them. */
static void what_replaces_a_secret_file_is_secret_from_the_beginning(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    mode_t mask = umask(0);
    int fd;

    (void)state;
    begin();
    fd = open(a, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0 && close(fd) == 0);
    fail_call(FAULTY_FILE_SET_MODE, 1, false, EIO);
    fail_call(FAULTY_PATH_REMOVE, 1, false, EIO);
    assert_int_equal(BLZ_BLOCK_ON(rt, replaces), -EIO);
    assert_true(stop_failing(FAULTY_FILE_SET_MODE) && stop_failing(FAULTY_PATH_REMOVE));
    assert_int_equal(mode_of_the_new_file(), 0600);
    umask(mask);
    end();
    free_rt(rt);
}

static void remove_the_new_file(enum faulty call)
{
    if (call != FAULTY_FILE_LOCK)
        return;
    before_every_call = NULL;
    check(mode_of_the_new_file() != 0);
}

static void a_new_file_that_was_removed_before_it_was_locked_is_made_again(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});

    (void)state;
    begin();
    before_every_call = remove_the_new_file;
    assert_int_equal(BLZ_BLOCK_ON(rt, replaces), 0);
    assert_null(before_every_call);
    assert_int_equal(access(a, F_OK), 0);
    assert_int_equal(mode_of_the_new_file(), 0);
    end();
    free_rt(rt);
}

static void a_new_file_that_another_has_locked_is_given_up(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});

    (void)state;
    begin();
    fail_call(FAULTY_FILE_LOCK, 1, false, EAGAIN);
    fail_call(FAULTY_PATH_REMOVE, 1, false, EIO);
    assert_int_equal(BLZ_BLOCK_ON(rt, replaces), 0);
    assert_true(stop_failing(FAULTY_FILE_LOCK) && stop_failing(FAULTY_PATH_REMOVE));
    assert_int_not_equal(mode_of_the_new_file(), 0);
    end();
    free_rt(rt);
}

/* ---- names ---- */

struct removes {
    BLZ_FRAME;
    int64_t rc;
    blz_fs_op op;
};

BLZ_ASYNC(removes)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_fs_remove_dir_all(&self->op, dir));
    BLZ_END(self->rc);
}

static void a_tree_with_a_name_longer_than_any_limit_is_removed(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    char name[4096], path[128];

    (void)state;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    begin();
    snprintf(path, sizeof path, "%s/long", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/long/inside", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    long_name = name;
    assert_int_equal(BLZ_BLOCK_ON(rt, removes), 0);
    long_name = NULL;
    assert_int_equal(access(dir, F_OK), -1);
    free_rt(rt);
}

/* ---- memory ---- */

static void every_allocation_fails_once(void **state)
{
    int failures = 0;
    bool failed = true;

    (void)state;
    for (int n = 1; failed; n++) {
        blz_rt *rt = new_rt(&(blz_options){.backend = "epoll", .workers = 1});
        begin();
        assert_int_equal(BLZ_BLOCK_ON(rt, many_calls), 0); /* all is set up */
        end();
        begin();
        memory_fail_at(the_memory(), n, false);
        int64_t rc = BLZ_BLOCK_ON(rt, many_calls);
        failed = the_memory()->failed;
        memory_fail_at(the_memory(), 0, false);
        end();
        free_rt(rt);
        assert_true(failed ? rc == 0 || rc == -ENOMEM : rc == 0);
        assert_int_equal(memory_blocks(the_memory()), 0);
        failures += rc < 0;
    }
    assert_true(failures >= 4); /* bytes, texts, the parent's path, levels of a tree */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_error_of_each_call_is_told),
        TEST(what_can_be_done_without_is_forgiven),
        TEST(closing_tells_of_what_was_written),
        TEST(an_interrupted_call_is_made_again),
        TEST(an_error_of_the_ring_is_told),
        TEST(a_ring_that_moves_less_is_asked_again),
        TEST(what_replaces_a_secret_file_is_secret_from_the_beginning),
        TEST(a_new_file_that_was_removed_before_it_was_locked_is_made_again),
        TEST(a_new_file_that_another_has_locked_is_given_up),
        TEST(a_tree_with_a_name_longer_than_any_limit_is_removed),
        TEST(every_allocation_fails_once),
    };
    return RUN_TESTS(tests);
}
