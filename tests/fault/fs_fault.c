/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files when the system refuses: a scenario that uses all of them is repeated with the first call
 * of a kind failing, then the second, until none fails. The error reaches the program, and neither
 * a descriptor nor memory nor a file under another name stays behind.
 */
#include "harness.h"

#include "faulty.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[64], names[4][96];

struct scenario {
    BLZ_FRAME;
    int64_t rc;
    blz_io io;
    blz_fs_op op;
    blz_file file;
    blz_dir list;
    blz_dir_entry entry;
    blz_bytes bytes, temp;
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

static int list_open_directory(struct scenario *self)
{
    int fd = (int)blz_file_into_fd(&self->file), rc = blz_dir_from_fd(&self->list, fd, NULL);

    if (rc < 0)
        close(fd);
    return rc;
}

BLZ_ASYNC(scenario)
{
    BLZ_BEGIN;
    STEP(blz_fs_create_dir_all(&self->op, names[0], 0700));
    STEP(blz_file_open(&self->io, &self->file, names[1],
                       &(blz_open_options){.read = true, .write = true, .create = true}));
    STEP(blz_file_write_all(&self->io, &self->file, "0123456789", 10));
    STEP(blz_file_set_len(&self->io, &self->file, 8));
    STEP(blz_file_read_exact_at(&self->io, &self->file, self->buf, 8, 0));
    STEP(blz_file_metadata(&self->io, &self->file, &self->metadata));
    blz_file_close(&self->file);
    STEP(blz_file_open(&self->io, &self->file, names[1], NULL));
    blz_file_close(&self->file);
    STEP(blz_fs_write_atomic(&self->op, names[1], "atomic", 6));
    STEP(blz_fs_copy(&self->op, names[1], names[2]));
    STEP(blz_fs_read(&self->op, names[2], &self->bytes, 100));
    blz_bytes_free(&self->bytes);
    STEP(blz_dir_open(&self->op, &self->list, dir));
    while (self->rc >= 0) {
        BLZ_AWAIT(self->rc, blz_dir_next(&self->op, &self->list, &self->entry));
        check(self->rc != 1 || strncmp(self->entry.name, ".blitz", 6) != 0);
        if (self->rc == 0)
            break;
    }
    blz_dir_close(&self->list);
    STEP(blz_file_open(&self->io, &self->file, dir, NULL));
    if (self->rc >= 0)
        self->rc = list_open_directory(self);
    blz_dir_close(&self->list);
    if (self->rc >= 0)
        self->rc = blz_fs_watch_new(&self->watch, NULL);
    STEP(blz_fs_watch_add(&self->op, &self->watch, dir, BLZ_FS_ALL));
    blz_fs_watch_close(&self->watch);
    STEP(blz_fs_temp_file(&self->op, &self->file, dir));
    blz_file_close(&self->file);
    STEP(blz_fs_temp_dir(&self->op, &self->temp, dir, "t"));
    blz_bytes_free(&self->temp);
    STEP(blz_fs_remove_dir_all(&self->op, dir));
    BLZ_END(self->rc);
}

static void begin(void)
{
    strcpy(dir, "/tmp/blitz-fault-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(names[0], sizeof names[0], "%s/sub/deep", dir);
    snprintf(names[1], sizeof names[1], "%s/sub/a", dir);
    snprintf(names[2], sizeof names[2], "%s/b", dir);
}

/* What is left of it; no name of ours for a while may be among them. */
static void end(void)
{
    char command[200];

    snprintf(command, sizeof command,
             "! find %s -name '.blitz-*' 2>/dev/null | grep -q . && rm -rf %s", dir, dir);
    assert_int_equal(system(command), 0);
}

static const char *const backends[] = {"io_uring", "epoll", "poll"};

/* Operations on paths are the same with all of them. */
enum { OF_FILES = 3, OF_PATHS = 1 };

/* `forgiven`: a failure that is made up for. */
static void fail_each(enum faulty call, int nr_backends, bool forgiven)
{
    for (int b = 0; b < nr_backends; b++) {
        blz_rt *rt = new_rt(&(blz_options){.backend = backends[b], .workers = 1});
        int failures = 0;
        for (bool failed = true; failed;) {
            begin();
            fail_call(call, failures + 1, false, EIO);
            int64_t rc = BLZ_BLOCK_ON(rt, scenario);
            failed = stop_failing(call);
            assert_true(failed ? rc == -EIO || (forgiven && rc == 0) : rc == 0);
            failures += failed;
            end();
        }
        assert_true(failures > 0);
        free_rt(rt);
    }
}

#define FAILS(name, call, nr_backends, forgiven) \
    static void name(void **state)               \
    {                                            \
        (void)state;                             \
        fail_each(call, nr_backends, forgiven);  \
    }

FAILS(opening_fails, FAULTY_FILE_OPEN, OF_FILES, false)
FAILS(opening_from_memory_fails, FAULTY_FILE_OPEN_NOW, OF_FILES, true)
FAILS(reading_fails, FAULTY_FILE_READ, OF_FILES, false)
FAILS(reading_from_memory_fails, FAULTY_FILE_READ_NOW, OF_FILES, false)
FAILS(writing_fails, FAULTY_FILE_WRITE, OF_FILES, false)
FAILS(writing_to_memory_fails, FAULTY_FILE_WRITE_NOW, OF_FILES, false)
FAILS(asking_fails, FAULTY_FILE_METADATA, OF_FILES, true)
FAILS(asking_what_is_in_memory_fails, FAULTY_FILE_METADATA_NOW, OF_FILES, true)
FAILS(asking_about_a_path_fails, FAULTY_PATH_METADATA, OF_FILES, true)
FAILS(writing_to_the_disk_fails, FAULTY_FILE_SYNC, OF_PATHS, false)
FAILS(cutting_off_fails, FAULTY_FILE_SET_LEN, OF_FILES, false)
FAILS(moving_fails, FAULTY_PATH_RENAME, OF_PATHS, false)
FAILS(making_directories_fails, FAULTY_PATH_CREATE_DIR, OF_PATHS, false)
FAILS(removing_fails, FAULTY_PATH_REMOVE, OF_PATHS, false)
FAILS(removing_directories_fails, FAULTY_PATH_REMOVE_DIR, OF_PATHS, false)
FAILS(listing_fails, FAULTY_DIR_FETCH, OF_PATHS, false)
FAILS(copying_fails, FAULTY_TRANSFER_COPY, OF_PATHS, true)
FAILS(watching_fails, FAULTY_CHANGE_OPEN, OF_PATHS, false)
FAILS(watching_a_path_fails, FAULTY_CHANGE_ADD, OF_PATHS, false)

static void every_allocation_fails_once(void **state)
{
    bool failed = true;

    (void)state;
    for (int n = 1; failed; n++) {
        blz_rt *rt = new_rt(&(blz_options){.backend = "epoll", .workers = 1});
        begin();
        assert_int_equal(BLZ_BLOCK_ON(rt, scenario), 0); /* all is set up */
        end();
        begin();
        memory_fail_at(the_memory(), n, false);
        int64_t rc = BLZ_BLOCK_ON(rt, scenario);
        failed = the_memory()->failed;
        memory_fail_at(the_memory(), 0, false);
        end();
        free_rt(rt);
        assert_true(failed ? rc == 0 || rc == -ENOMEM : rc == 0);
        assert_int_equal(memory_blocks(the_memory()), 0);
        assert_true(failed || n > 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(opening_fails),
        TEST(opening_from_memory_fails),
        TEST(reading_fails),
        TEST(reading_from_memory_fails),
        TEST(writing_fails),
        TEST(writing_to_memory_fails),
        TEST(asking_fails),
        TEST(asking_what_is_in_memory_fails),
        TEST(asking_about_a_path_fails),
        TEST(writing_to_the_disk_fails),
        TEST(cutting_off_fails),
        TEST(moving_fails),
        TEST(making_directories_fails),
        TEST(removing_fails),
        TEST(removing_directories_fails),
        TEST(listing_fails),
        TEST(copying_fails),
        TEST(watching_fails),
        TEST(watching_a_path_fails),
        TEST(every_allocation_fails_once),
    };
    return RUN_TESTS(tests);
}
