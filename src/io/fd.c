/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The open descriptors of a runtime: entries in chunks that stay until the runtime is freed, so
 * that a stale handle may always look at its entry and find another generation there.
 *
 * An operation enters its entry before it does anything, and leaves it when it is over. In between
 * the descriptor is not closed, and the entry knows the operation, so that closing can cancel it:
 *
 *   event           refs   waiting          who
 *   -----------------------------------------------------------------------------------------
 *   enter           + 1    linked           the task; refused when closing, or busy
 *   leave           - 1    unlinked         the task; at 0 and closing: closes the descriptor
 *   close           -      all are asked    any thread; at 0: closes the descriptor
 *                          to end
 *
 * Whoever closes cannot own the operations that it finds. What makes it safe to touch them: under
 * the lock none can leave, and one that is asked to end (blz__op_request_cancel) counts the request
 * as one more event, so its memory stays until the request has arrived.
 *
 * A foreign descriptor is closed by its owner right after it was closed here, whatever still waits
 * for it. So the drivers forget it at once. An operation that is still on its way may ask the
 * kernel about a number that means something else by then: it asks for readiness and nothing more,
 * its answer is not believed (blz__fd_is_gone), and the request to end follows behind it.
 */
#include "io/fd.h"

#include "base/assert.h"
#include "base/alloc.h"

#include <blitz/error.h>
#include <string.h>

enum { CHUNK_ENTRIES = 63 };

struct chunk {
    struct chunk *next;
    blz__fd entries[CHUNK_ENTRIES];
};

struct blz__io {
    blz__lock lock;
    blz__fd *free;
    struct chunk *chunks;
    uint64_t open;
    blz_rt *rt;
    const blz_allocator *allocator;
};

int blz__io_new(blz__io **out, blz_rt *rt)
{
    const blz_allocator *allocator = blz__rt_allocator(rt);
    blz__io *io = blz__alloc(allocator, sizeof *io, _Alignof(blz__io));

    if (!io)
        return -ENOMEM;
    *io = (blz__io){.rt = rt, .allocator = allocator};
    *out = io;
    return 0;
}

static void close_leftover(blz__fd *entry)
{
    if (entry->refs > 0 || entry->fd < 0)
        return;
    if (!(entry->flags & FD_FOREIGN))
        blz__io_close(entry->fd);
    else if (entry->state & FD_COPIED)
        blz__io_close((int)entry->copy);
    entry->state = 0;
}

void blz__io_end(blz__io *io)
{
    for (struct chunk *chunk = io->chunks; chunk; chunk = chunk->next)
        for (size_t i = 0; i < CHUNK_ENTRIES; i++)
            if (chunk->entries[i].state & FD_IN_USE)
                close_leftover(&chunk->entries[i]);
}

void blz__io_free(blz__io *io)
{
    if (!io)
        return;
    BLZ_ASSERT_VALID(blz__fd_check(io));
    blz__io_end(io); /* of a runtime that never ran */
    for (struct chunk *chunk = io->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        blz__free(io->allocator, chunk, sizeof *chunk, _Alignof(struct chunk));
    }
    blz__free(io->allocator, io, sizeof *io, _Alignof(blz__io));
}

/* ---- entries ---- */

static struct chunk *new_chunk(blz__io *io)
{
    struct chunk *chunk = blz__alloc(io->allocator, sizeof *chunk, _Alignof(struct chunk));

    if (!chunk)
        return NULL;
    memset(chunk, 0, sizeof *chunk);
    for (size_t i = 0; i < CHUNK_ENTRIES; i++) {
        chunk->entries[i].owner = io;
        chunk->entries[i].generation = 1; /* 0 is no handle */
        chunk->entries[i].next_free = i + 1 < CHUNK_ENTRIES ? &chunk->entries[i + 1] : NULL;
    }
    return chunk;
}

static void add_chunk(blz__io *io, struct chunk *chunk)
{
    BLZ_ASSERT(blz__lock_is_held(&io->lock));
    chunk->entries[CHUNK_ENTRIES - 1].next_free = io->free;
    io->free = &chunk->entries[0];
    chunk->next = io->chunks;
    io->chunks = chunk;
}

static blz__fd *take_free(blz__io *io)
{
    blz__fd *entry = io->free;

    BLZ_ASSERT(blz__lock_is_held(&io->lock));
    BLZ_ASSERT(!entry || entry->state == 0);
    BLZ_ASSERT(!entry || entry->owner == io);
    if (entry) {
        io->free = entry->next_free;
        io->open++;
    }
    return entry;
}

static blz__fd *alloc_entry(blz__io *io)
{
    blz__fd *entry;

    blz__lock_acquire(&io->lock);
    entry = take_free(io);
    blz__lock_release(&io->lock);
    if (entry)
        return entry;
    struct chunk *chunk = new_chunk(io); /* never under the lock */
    if (!chunk)
        return NULL;
    blz__lock_acquire(&io->lock);
    add_chunk(io, chunk);
    entry = take_free(io);
    blz__lock_release(&io->lock);
    return entry;
}

static void free_entry(blz__fd *entry)
{
    blz__io *io = entry->owner;

    BLZ_ASSERT(entry->state == 0);
    BLZ_ASSERT(entry->refs == 0);
    blz__lock_acquire(&io->lock);
    blz__store(&entry->next_free, io->free, RELAXED); /* it is `backlog`: see adopt */
    io->free = entry;
    io->open--;
    blz__lock_release(&io->lock);
}

uint64_t blz__io_open_count(blz__io *io)
{
    uint64_t open;

    blz__lock_acquire(&io->lock);
    open = io->open;
    blz__lock_release(&io->lock);
    return open;
}

int blz__fd_adopt(blz__fd_ref *ref, blz_rt *rt, int fd, unsigned flags)
{
    blz__io *io = rt ? blz__rt_io(rt) : NULL;
    blz__fd *entry;

    if (!io)
        return rt ? -ENOTSUP : -ENXIO;
    entry = alloc_entry(io);
    if (!entry)
        return -ENOMEM;
    blz__lock_acquire(&entry->lock); /* a stale handle may be looking */
    BLZ_ASSERT(entry->state == 0);
    BLZ_ASSERT(fd >= 0);
    entry->fd = fd;
    entry->refs = 0;
    entry->flags = (uint8_t)flags;
    entry->state = FD_IN_USE;
    blz__store(&entry->ready[FD_IN], FD_READY, RELAXED);
    blz__store(&entry->ready[FD_OUT], FD_READY, RELAXED);
    entry->waiting[FD_IN] = entry->waiting[FD_OUT] = NULL;
    entry->home = NULL;
    blz__store(&entry->backlog, (blz__fd *)NULL, RELAXED); /* a stale handle may be looking */
    *ref = (blz__fd_ref){entry, entry->generation};
    blz__lock_release(&entry->lock);
    return 0;
}

/* ---- entering and leaving ---- */

static void append(struct io **list, struct io *io)
{
    while (*list)
        list = &(*list)->next;
    io->next = NULL;
    *list = io;
}

static void unlink_op(struct io **list, struct io *io)
{
    while (*list != io)
        list = &(*list)->next;
    *list = io->next;
}

/* Under the lock. */
static int enter_locked(blz__fd *entry, struct io *io, const blz_rt *rt)
{
    int direction = io_direction(io);

    BLZ_ASSERT(blz__lock_is_held(&entry->lock));
    if (fd_is_stale(entry, io->generation))
        return -EBADF;
    if (entry->owner->rt != rt)
        return -EXDEV;
    if (entry->waiting[direction] && !(entry->flags & FD_SHARED))
        return -EBUSY;
    if (entry->refs == UINT16_MAX)
        return -EOVERFLOW;
    entry->refs++;
    append(&entry->waiting[direction], io);
    return 0;
}

int blz__fd_enter(struct io *io, blz_cx *cx)
{
    blz__fd *entry = io->fd;
    int rc;

    if (!entry)
        return -EBADF;
    blz__lock_acquire(&entry->lock);
    rc = enter_locked(entry, io, blz_rt_current());
    if (rc == 0)
        blz__op_begin(&io->op, cx);
    blz__lock_release(&entry->lock);
    return rc;
}

int blz__fd_reenter(struct io *io, blz_cx *cx)
{
    blz__fd *entry = io->fd;
    int rc = 0;

    blz__lock_acquire(&entry->lock);
    if (entry->state & FD_CLOSING)
        rc = -EBADF;
    else
        blz__op_begin(&io->op, cx);
    blz__lock_release(&entry->lock);
    return rc;
}

/*
 * The driver that it is registered with, if any, drops it. Without the lock only when nobody knows
 * the descriptor any more: the home may still meet an old edge, and looks at `state`.
 */
static void unregister(blz__fd *entry)
{
    if (entry->home && entry->home->ops->unregister_fd)
        entry->home->ops->unregister_fd(entry->home, entry);
    entry->home = NULL;
}

/* Nobody knows the descriptor any more. */
static void finish(blz__fd *entry)
{
    int fd = entry->fd;

    BLZ_ASSERT(entry->refs == 0);
    BLZ_ASSERT(!entry->waiting[FD_IN] && !entry->waiting[FD_OUT]);
    BLZ_ASSERT(entry->state & FD_CLOSING);
    unregister(entry);
    if (!(entry->flags & FD_FOREIGN) && fd >= 0)
        blz__io_close(fd);
    blz__lock_acquire(&entry->lock); /* a stale handle may be looking */
    entry->state = 0;
    entry->fd = -1;
    blz__lock_release(&entry->lock);
    free_entry(entry);
}

static void drop_ref_locked(blz__fd *entry)
{
    BLZ_ASSERT(blz__lock_is_held(&entry->lock));
    BLZ_ASSERT(entry->refs > 0);
    bool last = --entry->refs == 0 && (entry->state & FD_CLOSING);

    blz__lock_release(&entry->lock);
    if (last)
        finish(entry);
}

void blz__fd_leave(struct io *io)
{
    blz__fd *entry = io->fd;

    blz__lock_acquire(&entry->lock);
    unlink_op(&entry->waiting[io_direction(io)], io);
    drop_ref_locked(entry);
}

/*
 * A forked child may not touch its parent's: locks may be held by threads that it does not have,
 * and an epoll set is the same one in both processes.
 */
static int check_owner(const blz__fd *entry)
{
    if (!entry)
        return -EBADF;
    return blz_unlikely(blz__rt_is_forked(entry->owner->rt)) ? -EOWNERDEAD : 0;
}

int blz__fd_acquire(const blz__fd_ref *ref)
{
    blz__fd *entry = ref->entry;
    int fd = check_owner(entry);

    if (fd < 0)
        return fd;
    blz__lock_acquire(&entry->lock);
    if (fd_is_stale(entry, (uint32_t)ref->generation)) {
        fd = -EBADF;
    } else if (entry->refs == UINT16_MAX) {
        fd = -EOVERFLOW;
    } else {
        entry->refs++;
        fd = entry->fd;
    }
    blz__lock_release(&entry->lock);
    return fd;
}

void blz__fd_release(const blz__fd_ref *ref)
{
    blz__lock_acquire(&ref->entry->lock);
    drop_ref_locked(ref->entry);
}

/* ---- closing ---- */

/* Requests the end of the operations of one direction; chains the requests to be sent. */
static blz__message *request_cancels(struct io *io, blz__message *chain)
{
    for (; io; io = io->next)
        if (blz__op_request_cancel(&io->op)) {
            io->op.cancel.next = chain;
            chain = &io->op.cancel;
        }
    return chain;
}

static void send_cancels(blz__message *chain)
{
    while (chain) {
        blz__op *op = blz_container_of(chain, blz__op, cancel);
        chain = chain->next;
        blz__op_send_cancel(op);
    }
}

int blz__fd_cancel(const blz__fd_ref *ref, int direction)
{
    blz__fd *entry = ref->entry;
    blz__message *chain;
    int rc = check_owner(entry);

    if (rc < 0)
        return rc;
    blz__lock_acquire(&entry->lock);
    if (fd_is_stale(entry, (uint32_t)ref->generation)) {
        blz__lock_release(&entry->lock);
        return -EBADF;
    }
    chain = request_cancels(entry->waiting[direction], NULL);
    blz__lock_release(&entry->lock);
    send_cancels(chain);
    return 0;
}

int blz__fd_take(blz__fd_ref *ref)
{
    blz__fd *entry = ref->entry, *backlog = NULL;
    int fd = check_owner(entry);

    if (fd < 0)
        return fd;
    blz__lock_acquire(&entry->lock);
    if (fd_is_stale(entry, (uint32_t)ref->generation))
        fd = -EBADF;
    else
        fd = entry->refs > 0 ? -EBUSY : entry->fd;
    if (fd >= 0) {
        entry->state |= FD_CLOSING;
        entry->generation++;
        entry->flags |= FD_FOREIGN;
        unregister(entry); /* while the number still means the same */
        backlog = blz__backlog_detach(entry);
    }
    blz__lock_release(&entry->lock);
    if (fd >= 0)
        finish(entry);
    blz__backlog_close(backlog);
    return fd;
}

int blz__fd_close(blz__fd_ref *ref)
{
    blz__fd *entry = ref->entry;
    blz__message *chain = NULL;
    blz__fd *backlog;
    bool last;
    int rc = check_owner(entry);

    if (rc < 0)
        return rc;
    blz__lock_acquire(&entry->lock);
    if (fd_is_stale(entry, (uint32_t)ref->generation)) {
        blz__lock_release(&entry->lock);
        return -EBADF;
    }
    entry->state |= FD_CLOSING;
    entry->generation++;
    backlog = blz__backlog_detach(entry);
    chain = request_cancels(entry->waiting[FD_IN], chain);
    chain = request_cancels(entry->waiting[FD_OUT], chain);
    if (entry->flags & FD_FOREIGN)
        unregister(entry); /* while the number still means the same */
    last = entry->refs == 0;
    blz__lock_release(&entry->lock);
    send_cancels(chain);
    if (last)
        finish(entry);
    blz__backlog_close(backlog);
    return 0;
}

bool blz__fd_is_gone(const struct io *io)
{
    bool gone;

    blz__lock_acquire(&io->fd->lock);
    gone = io->fd->generation != io->generation;
    blz__lock_release(&io->fd->lock);
    return gone;
}

/* ---- validator ---- */

static uint32_t nr_waiting(const blz__fd *entry)
{
    uint32_t count = 0;

    for (int direction = FD_IN; direction <= FD_OUT; direction++)
        for (const struct io *io = entry->waiting[direction]; io; io = io->next)
            count++;
    return count;
}

static const char *entry_check(blz__fd *entry, const blz__io *io)
{
    BLZ_REQUIRE(entry->owner == io);
    BLZ_REQUIRE(!blz__lock_is_held(&entry->lock));
    BLZ_REQUIRE(entry->generation != 0); /* 0 is no handle */
    if (!(entry->state & FD_IN_USE)) {
        BLZ_REQUIRE(entry->refs == 0);
        return NULL;
    }
    BLZ_REQUIRE(nr_waiting(entry) <= entry->refs);
    BLZ_REQUIRE(!(entry->state & FD_CLOSING) || entry->refs > 0); /* the last to leave closes it */
    return NULL;
}

const char *blz__fd_check(blz__io *io)
{
    uint64_t nr_entries = 0, nr_free = 0;
    const char *broken = NULL;

    for (struct chunk *chunk = io->chunks; chunk; chunk = chunk->next)
        for (size_t i = 0; i < CHUNK_ENTRIES && !broken; i++, nr_entries++)
            broken = entry_check(&chunk->entries[i], io);
    for (const blz__fd *entry = io->free; entry && nr_free <= nr_entries;
         entry = entry->next_free) {
        BLZ_REQUIRE(entry->state == 0); /* a free entry is not in use */
        nr_free++;
    }
    BLZ_REQUIRE(broken || nr_free + io->open == nr_entries);
    return broken;
}
