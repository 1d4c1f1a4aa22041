/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listing a directory. The kernel fills a buffer with entries, on a thread of the pool; the task
 * takes them out of it one by one, and goes to the pool again when it is empty.
 */
#include "fs/path.h"

#include "base/alloc.h"
#include "sched/sched.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BATCH = 32 << 10 };

/* What blz_dir is. */
struct dir {
    char *batch; /* NULL: none */
    uint32_t used, len;
    int fd;
    bool ended;
    blz_allocator allocator;
};

_Static_assert(sizeof(struct dir) <= sizeof(blz_dir), "blz_dir is too small");

static void close_dir(struct dir *dir)
{
    if (!dir->batch)
        return;
    close(dir->fd);
    blz__free(&dir->allocator, dir->batch, BATCH, _Alignof(struct dirent64));
    *dir = (struct dir){.batch = NULL};
}

void blz_dir_close(blz_dir *public)
{
    close_dir((struct dir *)public);
}

/* ---- opening ---- */

/* 0, or -ENOMEM. */
static int begin_list(struct dir *dir, const blz_allocator *allocator, int fd)
{
    *dir = (struct dir){.fd = fd, .allocator = *allocator};
    dir->batch = blz__alloc(&dir->allocator, BATCH, _Alignof(struct dirent64));
    return dir->batch ? 0 : -ENOMEM;
}

static int64_t open_run(blz_fs_op *op)
{
    int fd = blz__open_at(AT_FDCWD, op->path, O_RDONLY | O_DIRECTORY, 0), rc;

    if (fd < 0)
        return fd;
    rc = begin_list(op->out, blz__rt_allocator(op->rt), fd);
    if (rc < 0)
        close(fd);
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

int blz_dir_from_fd(blz_dir *dir, blz_rt *rt, int fd)
{
    struct stat st;

    *dir = (blz_dir){{0}};
    if (!rt)
        rt = blz_rt_current();
    if (!rt)
        return -ENXIO;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISDIR(st.st_mode))
        return -ENOTDIR;
    return begin_list((struct dir *)dir, blz__rt_allocator(rt), fd);
}

/* ---- the entries ---- */

static blz_file_type type_of(unsigned char type)
{
    switch (type) {
    case DT_REG:
        return BLZ_FILE_REGULAR;
    case DT_DIR:
        return BLZ_FILE_DIRECTORY;
    case DT_LNK:
        return BLZ_FILE_SYMLINK;
    case DT_FIFO:
        return BLZ_FILE_FIFO;
    case DT_SOCK:
        return BLZ_FILE_SOCKET;
    case DT_CHR:
        return BLZ_FILE_CHAR_DEVICE;
    case DT_BLK:
        return BLZ_FILE_BLOCK_DEVICE;
    default:
        return BLZ_FILE_UNKNOWN;
    }
}

/* False: the batch is empty. */
static bool take_entry(struct dir *dir, blz_dir_entry *out)
{
    while (dir->used < dir->len) {
        const struct dirent64 *e = (const struct dirent64 *)(const void *)(dir->batch + dir->used);
        dir->used += e->d_reclen;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        *out = (blz_dir_entry){e->d_name, type_of(e->d_type), e->d_ino};
        return true;
    }
    return false;
}

/* 1: there are more; 0: there are none. */
static int64_t fetch_run(blz_fs_op *op)
{
    struct dir *dir = op->out;
    ssize_t n;

    do
        n = getdents64(dir->fd, dir->batch, BATCH);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    dir->used = 0;
    dir->len = (uint32_t)n;
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
            if (take_entry(dir, (blz_dir_entry *)(uintptr_t)op->data))
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
