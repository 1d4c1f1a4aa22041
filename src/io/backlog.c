/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backlog of a listener: connections that have been accepted and that nothing has claimed yet,
 * oldest first. An accept that is cancelled while its connection arrives leaves it here, and so
 * does a socket that blz_serve opened beside the listener and closes again. The next accept takes
 * the oldest one before it asks the system.
 *
 * Connections are chained to the listener's entry through their own entries, so that nothing is
 * allocated. The chain is under the lock of the listener's entry. A connection in it belongs to the
 * chain alone: no handle of the program names it. Closing the listener closes them (fd.c).
 */
#include "io/fd.h"

#include "base/assert.h"

static bool append_to_backlog(blz__fd *entry, uint32_t generation, blz__fd *conn)
{
    bool open;

    blz__lock_acquire(&entry->lock);
    open = !fd_is_stale(entry, generation); /* if it is, the entry may be that of `conn` by now */
    if (open) {
        blz__fd **end = &entry->backlog;
        BLZ_ASSERT(conn != entry);
        BLZ_ASSERT(!conn->next_in_backlog);
        while (*end)
            end = &(*end)->next_in_backlog;
        blz__store(end, conn, RELAXED); /* backlog_is_empty looks without the lock */
    }
    blz__lock_release(&entry->lock);
    return open;
}

void blz__backlog_push(const blz__fd_ref *listener, blz__fd_ref conn)
{
    if (!append_to_backlog(listener->entry, (uint32_t)listener->generation, conn.entry))
        blz__fd_close(&conn);
}

/* Out of a chain that nothing else can reach, or under the lock of the listener. */
static blz__fd *unchain_first(blz__fd **backlog)
{
    blz__fd *conn = *backlog;

    BLZ_ASSERT(conn);
    BLZ_ASSERT(blz__peek(&conn->state) & FD_IN_USE);
    blz__store(backlog, conn->next_in_backlog, RELAXED); /* as in append_to_backlog */
    blz__store(&conn->next_in_backlog, (blz__fd *)NULL, RELAXED);
    return conn;
}

blz__fd_ref blz__backlog_pop(const blz__fd_ref *listener)
{
    blz__fd *entry = listener->entry, *conn = NULL;

    blz__lock_acquire(&entry->lock);
    if (!fd_is_stale(entry, (uint32_t)listener->generation) && entry->backlog)
        conn = unchain_first(&entry->backlog);
    blz__lock_release(&entry->lock);
    return conn ? (blz__fd_ref){conn, conn->generation} : (blz__fd_ref){NULL, 0};
}

blz__fd *blz__backlog_detach(blz__fd *entry)
{
    blz__fd *backlog = entry->flags & FD_LISTENER ? entry->backlog : NULL;

    if (backlog)
        blz__store(&entry->backlog, (blz__fd *)NULL, RELAXED);
    return backlog;
}

void blz__backlog_close(blz__fd *backlog)
{
    while (backlog) {
        blz__fd *conn = unchain_first(&backlog);
        blz__fd_close(&(blz__fd_ref){conn, conn->generation});
    }
}
