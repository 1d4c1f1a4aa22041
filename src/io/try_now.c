/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carrying out an operation with a call of the system contract that does not wait, and raises no
 * SIGPIPE: those of sockets by system/socket.h and system/message.h, those of other descriptors by
 * system/pipe.h. Pipes may be shared with other processes, which chose their mode: unless the entry
 * says that the descriptor is in non-blocking mode, its lock goes along.
 *
 * -EAGAIN means: not now, and nothing has happened. EINTR is never seen here.
 */
#include "io/io.h"

#include "system/handle.h"
#include "system/message.h"
#include "system/pipe.h"
#include "system/socket.h"

#include <blitz/error.h>

/* NULL: the descriptor is in non-blocking mode. */
static blz__lock *mode_lock_of(const struct io *io)
{
    return io->fd->flags & FD_NONBLOCK ? NULL : &io->fd->lock;
}

/* ---- one kind each ---- */

static int64_t try_read(const struct io *io, int fd, bool socket)
{
    blz_iovec one = {io->bytes.buf, io_clamp(io->bytes.len)};

    if (socket)
        return blz__socket_recv(fd, one.base, one.len);
    return blz__pipe_read(fd, &one, 1, mode_lock_of(io));
}

static int64_t try_write(const struct io *io, int fd, bool socket)
{
    if (socket)
        return blz__socket_send(fd, io->bytes.buf, io_clamp(io->bytes.len));
    return blz__pipe_write(fd, io->bytes.buf, io_clamp(io->bytes.len), mode_lock_of(io));
}

static int64_t try_readv(const struct io *io, int fd, bool socket)
{
    return socket ? blz__message_recv_pieces(fd, io->pieces.iov, io->pieces.count)
                  : blz__pipe_read(fd, io->pieces.iov, io->pieces.count, mode_lock_of(io));
}

static int64_t try_writev(const struct io *io, int fd, bool socket)
{
    return socket ? blz__message_send_pieces(fd, io->pieces.iov, io->pieces.count)
                  : blz__pipe_writev(fd, io->pieces.iov, io->pieces.count, mode_lock_of(io));
}

static int64_t try_lease(const struct io *io, int fd, bool socket)
{
    struct lease *lease = blz__lease_take(blz__driver_current()->leases);
    blz_iovec one;
    int64_t n;

    if (!lease)
        return -ENOBUFS;
    one = (blz_iovec){lease->data, LEASE_SIZE};
    n = socket ? blz__socket_recv(fd, lease->data, LEASE_SIZE)
               : blz__pipe_read(fd, &one, 1, mode_lock_of(io));
    if (n > 0)
        lease_hand_out(io->lease.out, lease, (size_t)n);
    else
        blz__lease_give(lease);
    return n;
}

static int64_t try_poll(const struct io *io, int fd)
{
    int events = blz__socket_events(fd, io->readiness.events);

    return events == 0 ? -EAGAIN : events;
}

/* The first attempt begins to connect, the later ones ask how it went. */
static int64_t try_connect(struct io *io, int fd)
{
    int rc;

    if (io->progress & IO_CONNECTING)
        return blz__socket_connect_result(fd);
    io->progress |= IO_CONNECTING;
    rc = blz__socket_connect(fd, io->connect.addr);
    return rc == -EINPROGRESS ? -EAGAIN : rc;
}

/* Of a socket only this one direction needs the mode, so the lock is not needed. */
static int64_t try_sendfile(const struct io *io, int fd, bool socket)
{
    blz__lock *lock = socket ? NULL : mode_lock_of(io);
    int64_t n;

    if (lock)
        blz__lock_acquire(lock);
    n = blz__socket_send_file(fd, io->sendfile.file, (int64_t)io->sendfile.offset,
                              io_clamp(io->sendfile.len), io->fd->flags & FD_NONBLOCK);
    if (lock)
        blz__lock_release(lock);
    return n;
}

void blz__io_close(int fd)
{
    blz__handle_close(fd);
}

int64_t blz__io_try_now(struct io *io)
{
    int fd = io->fd->fd;
    bool socket = io->fd->flags & FD_SOCKET;

    switch (io->op.kind) {
    case IO_READ:
        return try_read(io, fd, socket);
    case IO_PEEK:
        return blz__socket_peek(fd, io->bytes.buf, io_clamp(io->bytes.len));
    case IO_WRITE:
        return try_write(io, fd, socket);
    case IO_READV:
        return try_readv(io, fd, socket);
    case IO_WRITEV:
        return try_writev(io, fd, socket);
    case IO_LEASE:
        return try_lease(io, fd, socket);
    case IO_RECVMSG:
        return blz__message_recv(fd, io->message.message);
    case IO_SENDMSG:
        return blz__message_send(fd, io->message.message);
    case IO_ACCEPT:
        return blz__socket_accept(fd, io->fd->flags & FD_NONBLOCK);
    case IO_CONNECT:
        return try_connect(io, fd);
    case IO_SENDFILE:
        return try_sendfile(io, fd, socket);
    case IO_POLL:
        return try_poll(io, fd);
    case IO_CALL:
        return io->call.by->call(io, fd);
    default:
        return -EINVAL; /* of files */
    }
}
