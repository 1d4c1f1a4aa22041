/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watching for changes: an inotify descriptor, read like a pipe by the driver, and a buffer of
 * which the task takes one event after the other. What is in the buffer is the watch's, not the
 * operation's, so a wait that is cancelled loses nothing: it has read into the buffer, or not.
 */
#include "fs/path.h"

#include "base/alloc.h"
#include "sched/sched.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { ROOM = 4096 };

/* What blz_fs_watch is. */
struct watch {
    blz__fd_ref ref;
    char *batch; /* NULL: none */
    uint32_t used, len;
    blz_fs_change *change; /* where the wait puts what it finds */
    blz_allocator allocator;
};

_Static_assert(sizeof(struct watch) <= sizeof(blz_fs_watch), "blz_fs_watch is too small");

/* ---- life ---- */

static int adopt_new(struct watch *w, blz_rt *rt)
{
    int mode = blz__io_mode(rt), fd, rc;

    if (mode < 0)
        return mode;
    fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd < 0)
        return -errno;
    rc = blz__fd_adopt(&w->ref, rt, fd, FD_NONBLOCK);
    if (rc < 0)
        close(fd);
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
    w->batch = blz__alloc(&w->allocator, ROOM, _Alignof(struct inotify_event));
    if (!w->batch)
        return -ENOMEM;
    rc = adopt_new(w, rt);
    if (rc == 0)
        return 0;
    blz__free(&w->allocator, w->batch, ROOM, _Alignof(struct inotify_event));
    w->batch = NULL;
    return rc;
}

void blz_fs_watch_close(blz_fs_watch *public)
{
    struct watch *w = (struct watch *)public;

    if (!w->batch)
        return;
    blz__fd_close(&w->ref, NULL);
    blz__free(&w->allocator, w->batch, ROOM, _Alignof(struct inotify_event));
    *public = (blz_fs_watch){{0}};
}

/* ---- what is watched ---- */

/* Ours and the system's. */
static const struct {
    uint32_t ours, system;
} words[] = {
    {BLZ_FS_MODIFIED, IN_MODIFY},
    {BLZ_FS_WRITTEN, IN_CLOSE_WRITE},
    {BLZ_FS_ATTRIBUTES, IN_ATTRIB},
    {BLZ_FS_CREATED, IN_CREATE},
    {BLZ_FS_REMOVED, IN_DELETE | IN_DELETE_SELF},
    {BLZ_FS_MOVED_FROM, IN_MOVED_FROM},
    {BLZ_FS_MOVED_TO, IN_MOVED_TO | IN_MOVE_SELF},
};

enum { NR_WORDS = sizeof words / sizeof *words };

static uint32_t to_system(uint32_t ours)
{
    uint32_t mask = 0;

    for (int i = 0; i < NR_WORDS; i++)
        mask |= ours & words[i].ours ? words[i].system : 0;
    return mask;
}

static uint32_t from_system(uint32_t mask)
{
    uint32_t ours = mask & IN_ISDIR ? BLZ_FS_OF_DIRECTORY : 0;

    for (int i = 0; i < NR_WORDS; i++)
        ours |= mask & words[i].system ? words[i].ours : 0;
    ours |= mask & (IN_IGNORED | IN_UNMOUNT) ? BLZ_FS_GONE : 0;
    return ours | (mask & IN_Q_OVERFLOW ? BLZ_FS_OVERFLOW : 0);
}

static int64_t add_run(blz_fs_op *op)
{
    const struct watch *w = op->out;
    int fd = blz__fd_acquire(&w->ref), id;

    if (fd < 0)
        return fd;
    id = inotify_add_watch(fd, op->path, (uint32_t)op->number[0]);
    id = id < 0 ? -errno : id;
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
    op->number[0] = to_system(events);
    return &op->future;
}

int blz_fs_watch_remove(blz_fs_watch *public, int id)
{
    const struct watch *w = (const struct watch *)public;
    int fd = blz__fd_acquire(&w->ref), rc;

    if (fd < 0)
        return fd;
    rc = inotify_rm_watch(fd, id) < 0 ? -errno : 0;
    blz__fd_release(&w->ref);
    return rc == -EINVAL ? -ENOENT : rc;
}

/* ---- changes ---- */

/* False: the batch is empty. */
static bool take_change(struct watch *w, blz_fs_change *out)
{
    const struct inotify_event *e;

    if (w->used >= w->len)
        return false;
    e = (const struct inotify_event *)(const void *)(w->batch + w->used);
    w->used += (uint32_t)(sizeof *e + e->len);
    *out = (blz_fs_change){e->wd, from_system(e->mask), e->cookie, e->len > 0 ? e->name : ""};
    return true;
}

static blz_poll next_poll(blz_future *self, blz_cx *cx)
{
    struct io *io = (struct io *)self;
    struct watch *w = io->extra;

    if (!(io->flags & (IO_STARTED | IO_CANCELLED)) && take_change(w, w->change))
        return blz_future_done(self, 1);
    if (blz_is_pending(blz__io_poll(self, cx)))
        return BLZ_PENDING;
    if (self->result > 0) {
        w->used = 0;
        w->len = (uint32_t)self->result;
        /* whoever cancelled it may not look at the result: the next one gets it */
        self->result = io->flags & IO_CANCELLED ? -ECANCELED : take_change(w, w->change);
    }
    return BLZ_READY;
}

static void next_look(const blz_future *self, blz_look *look)
{
    blz__io_look(self, look);
    if (look->kind)
        look->kind = "file changes";
}

blz_future *blz_fs_watch_next(blz_io *io, blz_fs_watch *public, blz_fs_change *change)
{
    static const blz_future_ops ops = {.name = "fs_watch_next",
                                       .poll = next_poll,
                                       .cancel = blz__io_cancel,
                                       .look = next_look};
    struct watch *w = (struct watch *)public;

    blz__io_init(io, &ops, IO_READ, &w->ref, w->batch, ROOM);
    ((struct io *)io)->extra = w;
    w->change = change;
    return &io->future;
}
