/* SPDX-License-Identifier: Apache-2.0 */
/* Files and directories for a while, under names that nobody has. */
#include "fs/path.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "system/clock.h"
#include "system/env.h"
#include "sched/sched.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* If the system has no random numbers yet, others may have the name; then another one is tried. */
void blz__random_name(char name[RANDOM_NAME])
{
    static uint64_t tries;
    uint64_t number;

    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != (ssize_t)sizeof number)
        number = (uint64_t)blz__clock_ns() + blz__fetch_add(&tries, UINT64_C(1) << 40, RELAXED);
    snprintf(name, RANDOM_NAME, "%016llx", (unsigned long long)number);
}

static const char *dir_or_default(const char *dir)
{
    if (!dir || !*dir)
        dir = blz__env_get("TMPDIR");
    return dir && *dir ? dir : "/tmp";
}

/* ---- files ---- */

/* Where there are no files without a name, one has its name for a moment. */
static int open_named(int dir)
{
    char name[RANDOM_NAME + 8] = ".blitz-";
    int fd;

    do {
        blz__random_name(name + 7);
        fd = blz__open_at(dir, name, O_RDWR | O_CREAT | O_EXCL, 0600);
    } while (fd == -EEXIST);
    if (fd >= 0)
        unlinkat(dir, name, 0);
    return fd;
}

static int64_t temp_file_run(blz_fs_op *op)
{
    int fd = blz__open_at(AT_FDCWD, op->path, O_TMPFILE | O_RDWR, 0600), dir;

    if (fd != -EOPNOTSUPP && fd != -EISDIR && fd != -ENOENT)
        return fd;
    dir = blz__open_at(AT_FDCWD, op->path, O_RDONLY | O_DIRECTORY, 0);
    if (dir < 0)
        return dir;
    fd = open_named(dir);
    close(dir);
    return fd;
}

static int64_t temp_file_hand_out(blz_fs_op *op, int64_t fd)
{
    int rc = blz__fd_adopt(file_mutable_ref(op->out), op->rt, (int)fd, 0);

    if (rc < 0)
        close((int)fd);
    return rc;
}

static void temp_file_undo(blz_fs_op *op, int64_t fd)
{
    (void)op;
    close((int)fd);
}

blz_future *blz_fs_temp_file(blz_fs_op *op, blz_file *file, const char *dir)
{
    static const struct fs_ops ops = {FS_OP("fs_temp_file"), temp_file_run, temp_file_hand_out,
                                      temp_file_undo};

    blz__fs_init(op, &ops, dir_or_default(dir));
    *file = (blz_file){NULL, 0};
    op->out = file;
    return &op->future;
}

/* ---- directories ---- */

static int64_t temp_dir_run(blz_fs_op *op)
{
    size_t dir = strlen(op->path), prefix = strlen(op->other), len = dir + 1 + prefix + 16;
    blz_bytes *out = op->out;
    int rc = blz__bytes_reserve(out, blz__rt_allocator(op->rt), len);

    if (rc < 0)
        return rc;
    snprintf(out->data, len + 1, "%s/%s", op->path, op->other);
    do {
        blz__random_name(out->data + dir + 1 + prefix);
        rc = mkdir(out->data, 0700) < 0 ? -errno : 0;
    } while (rc == -EEXIST);
    out->len = len;
    if (rc < 0)
        blz_bytes_free(out);
    return rc;
}

static void temp_dir_undo(blz_fs_op *op, int64_t result)
{
    blz_bytes *out = op->out;

    (void)result;
    rmdir(out->data);
    blz_bytes_free(out);
}

blz_future *blz_fs_temp_dir(blz_fs_op *op, blz_bytes *path, const char *dir, const char *prefix)
{
    static const struct fs_ops ops = {FS_OP("fs_temp_dir"), temp_dir_run, NULL, temp_dir_undo};

    blz__fs_init(op, &ops, dir_or_default(dir));
    *path = (blz_bytes){.data = NULL};
    op->out = path;
    op->other = prefix;
    return &op->future;
}
