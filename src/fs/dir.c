/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listing a directory. The system fills a buffer with entries, on a thread of the pool; the task
 * takes them out of it one by one, and goes to the pool again when it is empty.
 */
#include "fs/path.h"

#include "base/alloc.h"
#include "sched/sched.h"
#include "system/dir.h"

#include <blitz/error.h>

/* What blz_dir is. */
struct dir {
    void *batch; /* NULL: none */
    size_t used, len;
    blz_sysfd fd;
    bool ended;
    blz_allocator allocator;
};

_Static_assert(sizeof(struct dir) <= sizeof(blz_dir), "blz_dir is too small");

static void close_dir(struct dir *dir)
{
    if (!dir->batch)
        return;
    (void)blz__file_close(dir->fd);
    blz__free(&dir->allocator, dir->batch, DIR_BATCH, DIR_BATCH_ALIGN);
    *dir = (struct dir){.batch = NULL};
}

void blz_dir_close(blz_dir *public)
{
    close_dir((struct dir *)public);
}

/* ---- opening ---- */

/* 0, or -ENOMEM. */
static int begin_list(struct dir *dir, const blz_allocator *allocator, blz_sysfd fd)
{
    *dir = (struct dir){.fd = fd, .allocator = *allocator};
    dir->batch = blz__alloc(&dir->allocator, DIR_BATCH, DIR_BATCH_ALIGN);
    return dir->batch ? 0 : -ENOMEM;
}

static int64_t open_run(blz_fs_op *op)
{
    int64_t fd = blz__open_dir(op->path);
    int rc;

    if (fd < 0)
        return fd;
    rc = begin_list(op->out, blz__rt_allocator(op->rt), (blz_sysfd)fd);
    if (rc < 0)
        (void)blz__file_close((blz_sysfd)fd);
    return rc;
}

static void open_undo(blz_fs_op *op, int64_t result)
{
    (void)result;
    close_dir(op->out);
}

blz_future *blz_dir_open(blz_fs_op *op, blz_dir *dir, const char *path)
{
    static const struct fs_ops ops = {FS_OP("dir_open"), open_run, NULL, open_undo};

    blz__fs_init(op, &ops, path);
    *dir = (blz_dir){{0}};
    op->out = dir;
    return &op->future;
}

int blz_dir_from_fd(blz_dir *dir, blz_sysfd fd, blz_rt *rt)
{
    blz_metadata about;
    int rc;

    *dir = (blz_dir){{0}};
    if (!rt)
        rt = blz_rt_current();
    if (!rt)
        return -ENXIO;
    rc = blz__file_metadata(fd, &about);
    if (rc < 0)
        return rc;
    if (about.type != BLZ_FILE_DIRECTORY)
        return -ENOTDIR;
    return begin_list((struct dir *)dir, blz__rt_allocator(rt), fd);
}

/* ---- the entries ---- */

/* 1: there are more; 0: there are none. */
static int64_t fetch_run(blz_fs_op *op)
{
    struct dir *dir = op->out;
    int64_t n = blz__dir_fetch(dir->fd, dir->batch, DIR_BATCH);

    if (n < 0)
        return n;
    dir->used = 0;
    dir->len = (size_t)n;
    dir->ended = n == 0;
    return n > 0;
}

static blz_poll next_poll(blz_future *self, blz_cx *cx)
{
    blz_fs_op *op = (blz_fs_op *)self;
    struct dir *dir = op->out;

    for (;;) {
        if (!self->child) { /* no thread has the batch */
            if (!dir->batch)
                return blz_future_done(self, -EBADF);
            if (!blz_coop_take(cx))
                return BLZ_PENDING;
            if (blz__dir_take(dir->batch, dir->len, &dir->used,
                              (blz_dir_entry *)(uintptr_t)op->data))
                return blz_future_done(self, 1);
            if (dir->ended)
                return blz_future_done(self, 0);
            blz_coop_give_back(cx);
        }
        if (blz_is_pending(blz__fs_poll(self, cx)))
            return BLZ_PENDING;
        if (self->result < 0)
            return BLZ_READY;
        self->line = 0; /* it is not over */
    }
}

blz_future *blz_dir_next(blz_fs_op *op, blz_dir *dir, blz_dir_entry *entry)
{
    static const struct fs_ops ops = {
        {.name = "dir_next", .poll = next_poll, .cancel = blz__fs_cancel}, fetch_run, NULL, NULL};

    blz__fs_init(op, &ops, NULL);
    op->out = dir;
    op->data = entry;
    return &op->future;
}
