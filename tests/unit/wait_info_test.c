/* SPDX-License-Identifier: Apache-2.0 */
/* What tasks that wait for files and processes are seen to wait for. */
#include "observe/observe.h"
#include "process_tasks.h"

#include <blitz/file.h>
#include <blitz/fs.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- looking ---- */

static struct observed_task seen;

/* Whether the only task of the runtime waits for something by that name: then it is in `seen`. */
static const struct observed_wait *find_wait(blz_rt *rt, const char *kind)
{
    const struct observed_wait *found = NULL;
    observe_walk walk;
    bool more = true;

    blz__observe_begin(&walk, rt);
    while (more && !found)
        if (blz__observe_step(&walk, &seen, 1, &more) == 1 && seen.state == OBSERVE_WAITING)
            for (unsigned i = 0; i < seen.nr_waits && !found; i++)
                if (strcmp(seen.waits[i].kind, kind) == 0)
                    found = &seen.waits[i];
    blz__observe_end(&walk);
    return found;
}

/* It will wait, sooner or later, and then for as long as we like. */
static const struct observed_wait *wait_of(blz_rt *rt, const char *kind)
{
    const struct observed_wait *wait;

    while (!(wait = find_wait(rt, kind)))
        sched_yield();
    return wait;
}

static void end_of(blz_handle *handle)
{
    assert_int_equal(blz_handle_wait(handle), 0);
    assert_int_equal(handle->result, 0);
}

/* ---- processes ---- */

/* It lives until its input ends. */
static blz_child start_cat(blz_rt *rt, blz_command *cmd)
{
    blz_child child;

    *cmd = command("cat");
    blz_command_stdio(cmd, 0, BLZ_STDIO_PIPE);
    assert_int_equal(blz_command_spawn(cmd, &child, rt), 0);
    return child;
}

static void end_cat(blz_child *child, blz_command *cmd)
{
    blz_pipe_close(&child->in);
    while (blz_child_try_await(child) == -EAGAIN)
        sched_yield();
    blz_child_drop(child);
    blz_command_free(cmd);
}

static void looks_at_a_child(blz_rt *rt)
{
    const struct observed_wait *wait;
    blz_command cmd;
    blz_child child = start_cat(rt, &cmd);
    blz_handle handle;

    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits, .child = &child), 0);
    wait = wait_of(rt, "process");
    assert_int_equal(wait->object, (uintptr_t)blz_child_pid(&child));
    assert_true(wait->fd >= 0 && !wait->optional);
    blz_pipe_close(&child.in);
    end_of(&handle);
    end_cat(&child, &cmd);
}

static void who_awaits_a_child_waits_for_a_process(void **state)
{
    (void)state;
    on_every_backend(looks_at_a_child);
}

static void looks_at_any_process(blz_rt *rt)
{
    blz_command cmd;
    blz_child child = start_cat(rt, &cmd);
    blz_handle handle;

    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, watches, .pid = blz_child_pid(&child)), 0);
    assert_int_equal(wait_of(rt, "process")->object, (uintptr_t)blz_child_pid(&child));
    blz_pipe_close(&child.in);
    end_of(&handle);
    end_cat(&child, &cmd);
}

static void who_watches_a_process_waits_for_it(void **state)
{
    (void)state;
    on_every_backend(looks_at_any_process);
}

static void looks_at_what_a_child_writes(blz_rt *rt)
{
    blz_command cmd = command("cat");
    blz_output output = {0};
    blz_handle handle;
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    blz_command_fd(&cmd, 0, ends[0]);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, captures, .cmd = &cmd, .out = &output), 0);
    wait_of(rt, "pipe");
    assert_int_equal(seen.nr_waits, 2); /* its output and its errors */
    assert_string_equal(seen.waits[1].kind, "pipe");
    assert_int_not_equal(seen.waits[0].fd, seen.waits[1].fd);
    close(ends[1]);
    end_of(&handle);
    close(ends[0]);
    blz_output_free(&output);
    blz_command_free(&cmd);
}

static void who_gathers_what_a_child_writes_waits_for_both_pipes(void **state)
{
    (void)state;
    on_every_backend(looks_at_what_a_child_writes);
}

/* ---- files ---- */

static char folder[64], path[96];

static void make_folder(void)
{
    strcpy(folder, "/tmp/blitz-look-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
}

static void remove_folder(void)
{
    unlink(path);
    assert_int_equal(rmdir(folder), 0);
}

/* From a terminal, which is waited for as no file on a disk is. */
struct reads_file {
    BLZ_FRAME;
    blz_file file;
    char byte;
    int64_t rc;
    blz_io io;
};

BLZ_ASYNC(reads_file)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_file_open(&self->io, &self->file, path, NULL));
    if (self->rc >= 0)
        BLZ_AWAIT(self->rc, blz_file_read(&self->io, &self->file, &self->byte, 1));
    blz_file_close(&self->file);
    check(self->rc == 1);
    BLZ_END(0);
}

static void looks_at_a_file(blz_rt *rt)
{
    int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    const struct observed_wait *wait;
    blz_handle handle;

    assert_true(fd >= 0 && grantpt(fd) == 0 && unlockpt(fd) == 0);
    assert_int_equal(ptsname_r(fd, path, sizeof path), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, reads_file), 0);
    do
        wait = wait_of(rt, "file");
    while (wait->fd < 0); /* it is being opened */
    assert_true(wait->object != 0);
    assert_string_equal(seen.frames[seen.nr_frames - 1].name, "file_read");
    assert_int_equal(write(fd, "x\n", 2), 2);
    end_of(&handle);
    close(fd);
}

static void who_reads_a_file_waits_for_it(void **state)
{
    (void)state;
    on_every_backend(looks_at_a_file);
}

struct locks {
    BLZ_FRAME;
    blz_file file;
    int64_t rc;
    union {
        blz_io io;
        blz_file_lock_op lock;
    } op;
};

BLZ_ASYNC(locks)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_file_open(&self->op.io, &self->file, path, NULL));
    if (self->rc >= 0)
        BLZ_AWAIT(self->rc, blz_file_lock(&self->op.lock, &self->file));
    blz_file_close(&self->file);
    BLZ_END(self->rc);
}

static void looks_at_a_lock(blz_rt *rt)
{
    blz_handle handle;
    int fd;

    make_folder();
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, locks), 0);
    assert_true(wait_of(rt, "file lock")->object != 0);
    close(fd);
    end_of(&handle);
    remove_folder();
}

static void who_locks_a_file_waits_for_the_lock(void **state)
{
    (void)state;
    on_every_backend(looks_at_a_lock);
}

struct sees_changes {
    BLZ_FRAME;
    blz_fs_watch watch;
    blz_fs_change change;
    int64_t rc;
    union {
        blz_fs_op add;
        blz_io io;
    } op;
};

BLZ_ASYNC(sees_changes)
{
    BLZ_BEGIN;
    self->rc = blz_fs_watch_new(&self->watch, blz_cx_rt(cx));
    check(self->rc == 0);
    BLZ_AWAIT(self->rc, blz_fs_watch_add(&self->op.add, &self->watch, folder, BLZ_FS_CREATED));
    if (self->rc >= 0)
        BLZ_AWAIT(self->rc, blz_fs_watch_next(&self->op.io, &self->watch, &self->change));
    blz_fs_watch_close(&self->watch);
    check(self->rc == 1);
    BLZ_END(0);
}

static void looks_at_changes(blz_rt *rt)
{
    blz_handle handle;

    make_folder();
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, sees_changes), 0);
    assert_true(wait_of(rt, "file changes")->fd >= 0);
    close(open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    end_of(&handle);
    remove_folder();
}

static void who_watches_a_folder_waits_for_changes(void **state)
{
    (void)state;
    on_every_backend(looks_at_changes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(who_awaits_a_child_waits_for_a_process),
        TEST(who_watches_a_process_waits_for_it),
        TEST(who_gathers_what_a_child_writes_waits_for_both_pipes),
        TEST(who_reads_a_file_waits_for_it),
        TEST(who_locks_a_file_waits_for_the_lock),
        TEST(who_watches_a_folder_waits_for_changes),
    };
    return RUN_TESTS(tests);
}
