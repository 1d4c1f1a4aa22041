/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carrying out an operation with a system call that does not wait. Sockets have a flag for that;
 * other descriptors are in non-blocking mode, or known to be ready.
 *
 * -EAGAIN means: not now, and nothing has happened. EINTR is never seen above.
 */
#include "io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* The kernel takes no more at a time, and says so by moving less. */
#define MAX_LEN ((size_t)1 << 30)

_Static_assert(sizeof(blz_iovec) == sizeof(struct iovec), "blz_iovec is laid out differently");
_Static_assert(offsetof(blz_iovec, base) == offsetof(struct iovec, iov_base) &&
                   offsetof(blz_iovec, len) == offsetof(struct iovec, iov_len),
               "blz_iovec is laid out differently");

static size_t clamp(size_t len)
{
    return len < MAX_LEN ? len : MAX_LEN;
}

static ssize_t try_read(const struct io *io, int fd, bool socket, int flags)
{
    if (socket)
        return recv(fd, io->buf, clamp(io->len), MSG_DONTWAIT | flags);
    return read(fd, io->buf, clamp(io->len));
}

static ssize_t try_write(const struct io *io, int fd, bool socket)
{
    if (socket)
        return send(fd, io->buf, clamp(io->len), MSG_DONTWAIT | MSG_NOSIGNAL | io->msg_flags);
    return write(fd, io->buf, clamp(io->len));
}

static ssize_t try_vector(const struct io *io, int fd, bool socket)
{
    struct msghdr msg = {.msg_iov = io->buf, .msg_iovlen = io->len};
    bool reads = io->op.kind == IO_READV;

    if (!socket)
        return reads ? readv(fd, io->buf, (int)io->len) : writev(fd, io->buf, (int)io->len);
    return reads ? recvmsg(fd, &msg, MSG_DONTWAIT) : sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static int64_t try_lease(const struct io *io, int fd, bool socket)
{
    struct lease *lease = blz__lease_take(blz__driver_current()->leases);
    ssize_t n;

    if (!lease)
        return -ENOBUFS;
    do
        n = socket ? recv(fd, lease->data, LEASE_SIZE, MSG_DONTWAIT)
                   : read(fd, lease->data, LEASE_SIZE);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        lease_hand_out(io->buf, lease, (size_t)n);
        return n;
    }
    n = n < 0 ? -errno : 0;
    blz__lease_give(lease);
    return n;
}

static int ready_events(int fd, short wanted)
{
    struct pollfd p = {.fd = fd, .events = wanted};
    int rc;

    do
        rc = poll(&p, 1, 0);
    while (rc < 0 && errno == EINTR);
    return rc < 0 ? -errno : p.revents;
}

static int64_t try_poll(const struct io *io, int fd)
{
    int events = ready_events(fd, (short)io->len);

    if (events == 0)
        return -EAGAIN;
    return events > 0 && (events & POLLNVAL) ? -EBADF : events;
}

/* The first attempt begins to connect, the later ones ask how it went. */
static int64_t try_connect(struct io *io, int fd)
{
    socklen_t len = sizeof(int);
    int error = 0;

    if (!(io->progress & IO_CONNECTING)) {
        io->progress |= IO_CONNECTING;
        if (connect(fd, io->buf, (socklen_t)io->len) == 0)
            return 0;
        if (errno == EAGAIN)
            return -ECONNREFUSED; /* a Unix listener's queue is full: nothing would tell us more */
        return errno == EINPROGRESS || errno == EINTR ? -EAGAIN : -errno;
    }
    if (ready_events(fd, POLLOUT) == 0)
        return -EAGAIN;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        return -errno;
    return -error;
}

/* There is no flag for this one call: the descriptor's mode decides. */
static ssize_t try_sendfile(const struct io *io, int fd)
{
    struct io_sendfile *part = io->buf;
    off_t offset = part->offset;
    bool waits = !(io->fd->flags & FD_NONBLOCK);
    int mode = waits ? fcntl(fd, F_GETFL) : 0;
    ssize_t n;

    if (waits)
        fcntl(fd, F_SETFL, mode | O_NONBLOCK);
    n = sendfile(fd, part->file, &offset, clamp(part->len));
    int error = errno;
    if (waits)
        fcntl(fd, F_SETFL, mode);
    errno = error;
    return n;
}

static int accept_flags(const struct io *io)
{
    return SOCK_CLOEXEC | (io->fd->flags & FD_NONBLOCK ? SOCK_NONBLOCK : 0);
}

static int64_t once(struct io *io, int fd, bool socket)
{
    switch ((enum io_kind)io->op.kind) {
    case IO_READ:
        return try_read(io, fd, socket, 0);
    case IO_PEEK:
        return try_read(io, fd, true, MSG_PEEK);
    case IO_WRITE:
        return try_write(io, fd, socket);
    case IO_READV:
    case IO_WRITEV:
        return try_vector(io, fd, socket);
    case IO_RECVMSG:
        return recvmsg(fd, io->buf, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | io->msg_flags);
    case IO_SENDMSG:
        return sendmsg(fd, io->buf, MSG_DONTWAIT | MSG_NOSIGNAL | io->msg_flags);
    case IO_ACCEPT:
        return accept4(fd, NULL, NULL, accept_flags(io));
    case IO_SENDFILE:
        return try_sendfile(io, fd);
    case IO_LEASE:
    case IO_CONNECT:
    case IO_POLL:
    case IO_KINDS:
        break;
    }
    errno = EINVAL;
    return -1;
}

int64_t blz__io_attempt(struct io *io)
{
    int fd = io->fd->fd;
    bool socket = io->fd->flags & FD_SOCKET;
    int64_t n;

    switch (io->op.kind) {
    case IO_LEASE:
        return try_lease(io, fd, socket);
    case IO_CONNECT:
        return try_connect(io, fd);
    case IO_POLL:
        return try_poll(io, fd);
    default:
        do
            n = once(io, fd, socket);
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : n;
    }
}
