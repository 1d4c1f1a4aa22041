/* SPDX-License-Identifier: Apache-2.0 */
/* Files and directories for a while, under names that nobody has. */
#include "fs/path.h"

#include "base/alloc.h"
#include "sched/sched.h"
#include "system/random.h"

#include <blitz/error.h>
#include <stdio.h>
#include <string.h>

/* If the system has no random numbers yet, others may have the name; then another one is tried. */
void blz__random_name(char name[RANDOM_NAME])
{
    snprintf(name, RANDOM_NAME, "%016llx", (unsigned long long)blz__random_seed());
}

/* The directory that was asked for, or the system's, in `room`; NULL: its name is too long. */
static const char *dir_or_default(const char *dir, char room[PATH_SIZE])
{
    if (dir && *dir)
        return dir;
    return blz__path_temp_dir(room) < 0 ? NULL : room;
}

/* ---- files ---- */

static int64_t temp_file_run(blz_fs_op *op)
{
    char room[PATH_SIZE];
    const char *dir = dir_or_default(op->path, room);

    return dir ? blz__path_temp_file(dir) : -ENAMETOOLONG;
}

static int64_t temp_file_hand_out(blz_fs_op *op, int64_t fd)
{
    int rc = blz__fd_adopt(file_mutable_ref(op->out), op->rt, (blz_sysfd)fd, 0);

    if (rc < 0)
        (void)blz__file_close((blz_sysfd)fd);
    return rc;
}

static void temp_file_undo(blz_fs_op *op, int64_t fd)
{
    (void)op;
    (void)blz__file_close((blz_sysfd)fd);
}

blz_future *blz_fs_temp_file(blz_fs_op *op, blz_file *file, const char *dir)
{
    static const struct fs_ops ops = {FS_OP("fs_temp_file"), temp_file_run, temp_file_hand_out,
                                      temp_file_undo};

    blz__fs_init(op, &ops, dir);
    *file = (blz_file){NULL, 0};
    op->out = file;
    return &op->future;
}

/* ---- directories ---- */

static int64_t temp_dir_run(blz_fs_op *op)
{
    char room[PATH_SIZE];
    const char *dir = dir_or_default(op->path, room);
    size_t random = (dir ? strlen(dir) : 0) + 1 + strlen(op->other), len = random + 16;
    blz_bytes *out = op->out;
    int rc = dir ? blz__bytes_reserve(out, blz__rt_allocator(op->rt), len) : -ENAMETOOLONG;

    if (rc < 0)
        return rc;
    snprintf(out->data, len + 1, "%s/%s", dir, op->other);
    do {
        blz__random_name(out->data + random);
        rc = blz__path_create_dir(out->data, 0700);
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
    (void)blz__path_remove_dir(FILE_CURRENT_DIR, out->data);
    blz_bytes_free(out);
}

blz_future *blz_fs_temp_dir(blz_fs_op *op, blz_bytes *path, const char *dir, const char *prefix)
{
    static const struct fs_ops ops = {FS_OP("fs_temp_dir"), temp_dir_run, NULL, temp_dir_undo};

    blz__fs_init(op, &ops, dir);
    *path = (blz_bytes){.data = NULL};
    op->out = path;
    op->other = prefix;
    return &op->future;
}
