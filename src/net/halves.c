/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection in two halves. Both are the connection's handle; which of them have been closed is
 * in `halves` of the entry. Nothing moves when it is split
 * or reunited, so operations in flight do not care. [any thread]
 */
#include <blitz/tcp.h>

#include "net/socket.h"

#include "base/assert.h"

#include <blitz/error.h>

enum { SPLIT = 0x1, READER_CLOSED = 0x2, WRITER_CLOSED = 0x4, BOTH_CLOSED = 0x6 };

static uintptr_t halves_of(const blz__fd *entry)
{
    return blz__load(&entry->halves, RELAXED);
}

static void set_halves(blz__fd *entry, uintptr_t halves)
{
    BLZ_ASSERT(blz__lock_is_held(&entry->lock));
    BLZ_ASSERT(!(halves & BOTH_CLOSED) || (halves & SPLIT));
    blz__store(&entry->halves, halves, RELAXED); /* backlog_is_empty may be looking: adopt */
}

/*
 * Adds and removes bits, if all of `wanted` and none of `unwanted` are there: gives what there is
 * then, or -EBADF. The reference that it takes is the caller's to release.
 */
static int change(const blz__fd_ref *ref, uintptr_t wanted, uintptr_t unwanted, uintptr_t add,
                  uintptr_t remove)
{
    uintptr_t halves;
    int fd = blz__fd_acquire(ref);

    if (fd < 0)
        return fd;
    blz__lock_acquire(&ref->entry->lock);
    halves = halves_of(ref->entry);
    bool fits = (halves & wanted) == wanted && !(halves & unwanted);
    if (fits) {
        halves = (halves | add) & ~remove;
        set_halves(ref->entry, halves);
    }
    blz__lock_release(&ref->entry->lock);
    if (fits)
        return (int)halves;
    blz__fd_release(ref);
    return -EBADF;
}

int blz_tcp_split(blz_tcp *conn, blz_tcp_reader *reader, blz_tcp_writer *writer)
{
    int rc = change(net_ref(conn), 0, SPLIT, SPLIT, 0);

    if (rc < 0)
        return rc;
    blz__fd_release(net_ref(conn));
    reader->conn = writer->conn = *conn;
    *conn = (blz_tcp){NULL, 0};
    return 0;
}

int blz_tcp_reunite(blz_tcp *conn, blz_tcp_reader *reader, blz_tcp_writer *writer)
{
    int rc;

    if (reader->conn.entry_ != writer->conn.entry_ ||
        reader->conn.generation_ != writer->conn.generation_)
        return -EINVAL;
    rc = change(net_ref(reader), SPLIT, BOTH_CLOSED, 0, SPLIT);
    if (rc < 0)
        return rc;
    blz__fd_release(net_ref(reader));
    *conn = reader->conn;
    *reader = (blz_tcp_reader){{NULL, 0}};
    *writer = (blz_tcp_writer){{NULL, 0}};
    return 0;
}

/* `half` is the bit of the one that closes. */
static int close_half(blz_tcp *conn, uintptr_t half)
{
    blz__fd_ref ref = *net_ref(conn);
    int halves = change(&ref, SPLIT, half, half, 0);

    if (halves < 0)
        return halves;
    *conn = (blz_tcp){NULL, 0};
    if (half == WRITER_CLOSED)
        blz__net_shutdown(&ref, BLZ_SHUT_WRITE);
    blz__fd_cancel(&ref, half == WRITER_CLOSED ? FD_OUT : FD_IN);
    if ((halves & BOTH_CLOSED) == BOTH_CLOSED) {
        blz__fd_ref last = ref;
        blz__fd_close(&last);
    }
    blz__fd_release(&ref);
    return 0;
}

int blz_tcp_reader_close(blz_tcp_reader *reader)
{
    return close_half(&reader->conn, READER_CLOSED);
}

int blz_tcp_writer_close(blz_tcp_writer *writer)
{
    return close_half(&writer->conn, WRITER_CLOSED);
}
