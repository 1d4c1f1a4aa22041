/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carrying out an operation with a system call that does not wait, and raises no SIGPIPE. Sockets
 * have flags for that, and so have pipes, whose mode other processes may share. A descriptor that
 * has no such flag (a terminal, anything that a file is sent to) is in non-blocking mode, or put
 * into it for the call. That it was ready a moment before would not do: another process may have
 * taken what there was.
 *
 * -EAGAIN means: not now, and nothing has happened. EINTR is never seen above.
 */
#include "io/call.h"
#include "io/io.h"

#include "system/linux/refused.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(blz_iovec) == sizeof(struct iovec), "blz_iovec is laid out differently");
_Static_assert(offsetof(blz_iovec, base) == offsetof(struct iovec, iov_base) &&
                   offsetof(blz_iovec, len) == offsetof(struct iovec, iov_len),
               "blz_iovec is laid out differently");

static int ready_events(int fd, short wanted)
{
    struct pollfd p = {.fd = fd, .events = wanted};
    int rc;

    do
        rc = poll(&p, 1, 0);
    while (rc < 0 && errno == EINTR);
    return rc < 0 ? -errno : p.revents;
}

/* ---- descriptors that are no sockets ---- */

/* Of a call with RWF_NOWAIT: whether it is not to be had for this descriptor. */
static bool has_no_flag(ssize_t n)
{
    return n < 0 && (errno == EOPNOTSUPP || sys_is_refused(errno));
}

/* `iov`: of reads. */
static ssize_t call_of(const struct io *io, int fd, const struct iovec *iov, int count)
{
    off_t offset;

    switch (io->op.kind) {
    case IO_READ:
    case IO_READV:
    case IO_LEASE:
        return readv(fd, iov, count);
    case IO_WRITE:
        return write(fd, io->buf, io_clamp(io->len));
    case IO_WRITEV:
        return writev(fd, io->buf, (int)io->len);
    default:
        offset = (off_t)(uintptr_t)io->buf;
        return sendfile(fd, (int)(intptr_t)io->extra, &offset, io_clamp(io->len));
    }
}

/* With a flag, which a file that is sent has not. */
static ssize_t call_with_flag(const struct io *io, int fd)
{
    struct iovec one = {io->buf, io_clamp(io->len)};

    if (io->op.kind == IO_WRITE)
        return pwritev2(fd, &one, 1, -1, RWF_NOWAIT);
    if (io->op.kind == IO_WRITEV)
        return pwritev2(fd, io->buf, (int)io->len, -1, RWF_NOWAIT);
    errno = EOPNOTSUPP;
    return -1;
}

static ssize_t call_in_mode_locked(const struct io *io, int fd, const struct iovec *iov, int count)
{
    int mode = fcntl(fd, F_GETFL), error;
    ssize_t n;

    if (mode < 0 || (mode & O_NONBLOCK))
        return mode < 0 ? -1 : call_of(io, fd, iov, count);
    if (fcntl(fd, F_SETFL, mode | O_NONBLOCK) < 0)
        return -1;
    n = call_of(io, fd, iov, count);
    error = errno;
    fcntl(fd, F_SETFL, mode);
    errno = error;
    return n;
}

/*
 * With the descriptor's mode in place of a flag. The lock keeps a read and a write of one terminal
 * from restoring the mode under each other. Of a socket only one direction needs the mode.
 */
static ssize_t call_in_mode(const struct io *io, int fd, const struct iovec *iov, int count)
{
    ssize_t n;

    if (io->fd->flags & FD_SOCKET)
        return call_in_mode_locked(io, fd, iov, count);
    blz__lock_acquire(&io->fd->lock);
    n = call_in_mode_locked(io, fd, iov, count);
    blz__lock_release(&io->fd->lock); /* leaves errno alone */
    return n;
}

static ssize_t read_plain(const struct io *io, int fd, const struct iovec *iov, int count)
{
    ssize_t n;

    if (io->fd->flags & FD_NONBLOCK)
        return readv(fd, iov, count);
    n = preadv2(fd, iov, count, -1, RWF_NOWAIT);
    return has_no_flag(n) ? call_in_mode(io, fd, iov, count) : n;
}

static ssize_t call_without_waiting(const struct io *io, int fd)
{
    ssize_t n;

    if (io->fd->flags & FD_NONBLOCK)
        return call_of(io, fd, NULL, 0);
    n = call_with_flag(io, fd);
    return has_no_flag(n) ? call_in_mode(io, fd, NULL, 0) : n;
}

/* With the thread's signal mask in place of MSG_NOSIGNAL. The signal is sent to the thread. */
static ssize_t call_quietly(const struct io *io, int fd)
{
    sigset_t sigpipe, old;
    ssize_t n;
    int error;

    sigemptyset(&sigpipe);
    sigaddset(&sigpipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &sigpipe, &old);
    n = call_without_waiting(io, fd);
    error = errno;
    if (n < 0 && error == EPIPE && !sigismember(&old, SIGPIPE))
        sigtimedwait(&sigpipe, NULL, &(struct timespec){0});
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    errno = error;
    return n;
}

/* ---- one kind each ---- */

static ssize_t try_read(const struct io *io, int fd, bool socket, int flags)
{
    struct iovec one = {io->buf, io_clamp(io->len)};

    if (socket)
        return blz__call_recv(fd, io->buf, one.iov_len, MSG_DONTWAIT | flags);
    return read_plain(io, fd, &one, 1);
}

static ssize_t try_write(const struct io *io, int fd, bool socket)
{
    if (socket)
        return blz__call_send(fd, io->buf, io_clamp(io->len),
                              MSG_DONTWAIT | MSG_NOSIGNAL | io->msg_flags);
    return call_quietly(io, fd);
}

static ssize_t try_readv(const struct io *io, int fd, bool socket)
{
    struct msghdr msg = {.msg_iov = io->buf, .msg_iovlen = io->len};

    return socket ? recvmsg(fd, &msg, MSG_DONTWAIT) : read_plain(io, fd, io->buf, (int)io->len);
}

static ssize_t try_writev(const struct io *io, int fd, bool socket)
{
    struct msghdr msg = {.msg_iov = io->buf, .msg_iovlen = io->len};

    return socket ? sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) : call_quietly(io, fd);
}

static int64_t try_lease(const struct io *io, int fd, bool socket)
{
    struct lease *lease = blz__lease_take(blz__driver_current()->leases);
    struct iovec one;
    ssize_t n;

    if (!lease)
        return -ENOBUFS;
    one = (struct iovec){lease->data, LEASE_SIZE};
    do
        n = socket ? blz__call_recv(fd, lease->data, LEASE_SIZE, MSG_DONTWAIT)
                   : read_plain(io, fd, &one, 1);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        lease_hand_out(io->buf, lease, (size_t)n);
        return n;
    }
    n = n < 0 ? -errno : 0;
    blz__lease_give(lease);
    return n;
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

int blz__io_accept(int fd, bool nonblock)
{
    int mode = fcntl(fd, F_GETFL);

    if (mode < 0 || (!(mode & O_NONBLOCK) && fcntl(fd, F_SETFL, mode | O_NONBLOCK) < 0))
        return -1;
    return accept4(fd, NULL, NULL, SOCK_CLOEXEC | (nonblock ? SOCK_NONBLOCK : 0));
}

static int64_t do_syscall(struct io *io, int fd, bool socket)
{
    switch ((enum io_kind)io->op.kind) {
    case IO_READ:
        return try_read(io, fd, socket, 0);
    case IO_PEEK:
        return try_read(io, fd, true, MSG_PEEK);
    case IO_WRITE:
        return try_write(io, fd, socket);
    case IO_READV:
        return try_readv(io, fd, socket);
    case IO_WRITEV:
        return try_writev(io, fd, socket);
    case IO_RECVMSG:
        return recvmsg(fd, io->buf, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | io->msg_flags);
    case IO_SENDMSG:
        return sendmsg(fd, io->buf, MSG_DONTWAIT | MSG_NOSIGNAL | io->msg_flags);
    case IO_ACCEPT:
        return blz__io_accept(fd, io->fd->flags & FD_NONBLOCK);
    case IO_SENDFILE:
        return call_quietly(io, fd);
    case IO_LEASE:
    case IO_CONNECT:
    case IO_POLL:
    case IO_CALL:
    case IO_KINDS:
    case IO_FILE_READ:
    case IO_FILE_WRITE:
    case IO_FILE_READV:
    case IO_FILE_WRITEV:
    case IO_FILE_SYNC:
    case IO_FILE_KINDS:
        break;
    }
    errno = EINVAL;
    return -1;
}

void blz__io_close(int fd)
{
    close(fd);
}

int64_t blz__io_try_now(struct io *io)
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
    case IO_CALL:
        return ((const struct io_call *)io->buf)->call(io, fd);
    default:
        do
            n = do_syscall(io, fd, socket);
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : n;
    }
}
