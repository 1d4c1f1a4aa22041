/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watching for changes: a descriptor that the driver waits for like a pipe, and a buffer of which
 * the task takes one change after the other. What is in the buffer is the watch's, not the
 * operation's, so a wait that is cancelled loses nothing: it has filled the buffer, or not.
 */
#include "fs/path.h"

#include "base/alloc.h"
#include "sched/sched.h"
#include "system/change.h"

#include <blitz/fd.h>

#include <blitz/error.h>

/* What blz_fs_watch is. */
struct watch {
    struct io_call call; /* first: what the driver calls */
    blz__fd_ref ref;
    void *batch; /* NULL: none */
    size_t used, len;
    blz_fs_change *change; /* where the wait puts what it finds */
    blz_allocator allocator;
};

_Static_assert(sizeof(struct watch) <= sizeof(blz_fs_watch), "blz_fs_watch is too small");

/* ---- life ---- */

static int adopt_new(struct watch *w, blz_rt *rt)
{
    int64_t fd = blz__io_mode(rt);
    int rc;

    if (fd >= 0)
        fd = blz__change_open();
    if (fd < 0)
        return (int)fd;
    rc = blz__fd_adopt(&w->ref, rt, (blz_sysfd)fd, FD_NONBLOCK);
    if (rc < 0)
        (void)blz__file_close((blz_sysfd)fd);
    return rc;
}

int blz_fs_watch_new(blz_fs_watch *public, blz_rt *rt)
{
    struct watch *w = (struct watch *)public;
    int rc;

    *public = (blz_fs_watch){{0}};
    if (!rt)
        rt = blz_rt_current();
    if (!rt)
        return -ENXIO;
    w->allocator = *blz__rt_allocator(rt);
    w->batch = blz__alloc(&w->allocator, CHANGE_BATCH, CHANGE_BATCH_ALIGN);
    if (!w->batch)
        return -ENOMEM;
    rc = adopt_new(w, rt);
    if (rc == 0)
        return 0;
    blz__free(&w->allocator, w->batch, CHANGE_BATCH, CHANGE_BATCH_ALIGN);
    w->batch = NULL;
    return rc;
}

void blz_fs_watch_close(blz_fs_watch *public)
{
    struct watch *w = (struct watch *)public;

    if (!w->batch)
        return;
    blz__fd_close(&w->ref);
    blz__free(&w->allocator, w->batch, CHANGE_BATCH, CHANGE_BATCH_ALIGN);
    *public = (blz_fs_watch){{0}};
}

/* ---- what is watched ---- */

uint32_t blz_fs_watch_events(void)
{
    return blz__change_events();
}

static int64_t add_run(blz_fs_op *op)
{
    const struct watch *w = op->out;
    int fd = blz__fd_acquire(&w->ref);
    int64_t id;

    if (fd < 0)
        return fd;
    id = blz__change_add(fd, op->path, (uint32_t)op->number[0]);
    blz__fd_release(&w->ref);
    return id;
}

static void add_undo(blz_fs_op *op, int64_t id)
{
    blz_fs_watch_remove(op->out, (int)id);
}

blz_future *blz_fs_watch_add(blz_fs_op *op, blz_fs_watch *watch, const char *path, uint32_t events)
{
    static const struct fs_ops ops = {FS_OP("fs_watch_add"), add_run, NULL, add_undo};

    blz__fs_init(op, &ops, path);
    op->out = watch;
    op->number[0] = events;
    return &op->future;
}

int blz_fs_watch_remove(blz_fs_watch *public, int id)
{
    const struct watch *w = (const struct watch *)public;
    int fd = blz__fd_acquire(&w->ref), rc;

    if (fd < 0)
        return fd;
    rc = blz__change_remove(fd, id);
    blz__fd_release(&w->ref);
    return rc;
}

/* ---- changes ---- */

static struct watch *watch_of(const struct io *io)
{
    return (struct watch *)(uintptr_t)io->call.by;
}

static int64_t fetch_changes(struct io *io, int fd)
{
    const struct watch *w = watch_of(io);

    return blz__change_fetch(fd, w->batch, CHANGE_BATCH);
}

/* False: the batch is empty. */
static bool take_change(struct watch *w)
{
    return blz__change_take(w->batch, w->len, &w->used, w->change);
}

static blz_poll next_poll(blz_future *self, blz_cx *cx)
{
    struct io *io = (struct io *)self;
    struct watch *w = watch_of(io);

    if (!(io->flags & (IO_STARTED | IO_CANCELLED)) && take_change(w))
        return blz_future_done(self, 1);
    if (blz_is_pending(blz__io_poll(self, cx)))
        return BLZ_PENDING;
    if (self->result > 0) {
        w->used = 0;
        w->len = (size_t)self->result;
        /* a task that cancelled the wait may ignore its result: the next wait gets the change */
        self->result = io->flags & IO_CANCELLED ? -ECANCELED : take_change(w);
    }
    return BLZ_READY;
}

static void next_describe(const blz_future *self, blz_wait_info *info)
{
    blz__io_describe(self, info);
    if (info->kind)
        info->kind = "file changes";
}

blz_future *blz_fs_watch_next(blz_io *io, blz_fs_watch *public, blz_fs_change *change)
{
    static const blz_future_ops ops = {.name = "fs_watch_next",
                                       .poll = next_poll,
                                       .cancel = blz__io_cancel,
                                       .describe_wait = next_describe};
    struct watch *w = (struct watch *)public;
    struct io *op = blz__io_prepare(io, &ops, IO_CALL, &w->ref);

    op->call.by = &w->call;
    op->call.events = BLZ_FD_READ;
    w->call.call = fetch_changes;
    w->change = change;
    return &io->future;
}
