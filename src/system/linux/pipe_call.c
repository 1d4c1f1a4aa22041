/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading, writing, and sending files by calls that do not wait and raise no SIGPIPE.
 *
 * Pipes have a flag for the first (RWF_NOWAIT), which leaves their mode alone: other processes may
 * share it. A descriptor that has no such flag (a terminal, anything that a file is sent to) is in
 * non-blocking mode, or put into it for the call. That it was ready a moment before would not do:
 * another process may have taken what there was. For SIGPIPE there is no flag: it is blocked for
 * the length of the call. The kernel sends it to the thread that makes the call.
 */
#include "system/linux/refused.h"
#include "system/pipe.h"
#include "system/posix/result.h"
#include "system/socket.h"
#include "system/transfer.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

struct call {
    enum { CALL_READV, CALL_WRITE, CALL_WRITEV, CALL_SEND_FILE } what;
    const struct iovec *iov; /* CALL_WRITE: one */
    int count;
    int file; /* CALL_SEND_FILE */
    off_t offset;
    size_t len;
    bool nonblocking;     /* the descriptor is */
    blz__lock *mode_lock; /* held while its mode is changed; or NULL */
};

static ssize_t call_plain(const struct call *c, int fd)
{
    off_t offset = c->offset;

    switch (c->what) {
    case CALL_READV:
        return readv(fd, c->iov, c->count);
    case CALL_WRITE:
        return write(fd, c->iov->iov_base, c->iov->iov_len);
    case CALL_WRITEV:
        return writev(fd, c->iov, c->count);
    default:
        return sendfile(fd, c->file, &offset, c->len);
    }
}

static ssize_t call_with_flag(const struct call *c, int fd)
{
    switch (c->what) {
    case CALL_READV:
        return preadv2(fd, c->iov, c->count, -1, RWF_NOWAIT);
    case CALL_WRITE:
    case CALL_WRITEV:
        return pwritev2(fd, c->iov, c->count, -1, RWF_NOWAIT);
    default:
        errno = EOPNOTSUPP;
        return -1;
    }
}

/* Whether a call with RWF_NOWAIT is not to be had for this descriptor. */
static bool has_no_flag(ssize_t n)
{
    return n < 0 && (errno == EOPNOTSUPP || sys_is_refused(errno));
}

static ssize_t call_in_mode_locked(const struct call *c, int fd)
{
    int mode = fcntl(fd, F_GETFL), error;
    ssize_t n;

    if (mode < 0 || (mode & O_NONBLOCK))
        return mode < 0 ? -1 : call_plain(c, fd);
    if (fcntl(fd, F_SETFL, mode | O_NONBLOCK) < 0)
        return -1;
    n = call_plain(c, fd);
    error = errno;
    fcntl(fd, F_SETFL, mode);
    errno = error;
    return n;
}

static ssize_t call_in_mode(const struct call *c, int fd)
{
    ssize_t n;

    if (!c->mode_lock)
        return call_in_mode_locked(c, fd);
    blz__lock_acquire(c->mode_lock);
    n = call_in_mode_locked(c, fd);
    blz__lock_release(c->mode_lock); /* leaves errno alone */
    return n;
}

static ssize_t call_without_waiting(const struct call *c, int fd)
{
    ssize_t n;

    if (c->nonblocking)
        return call_plain(c, fd);
    n = call_with_flag(c, fd);
    return has_no_flag(n) ? call_in_mode(c, fd) : n;
}

static ssize_t call_quietly(const struct call *c, int fd)
{
    blz__transfer_mask mask;
    ssize_t n;
    int error;

    blz__transfer_quiet(&mask);
    n = call_without_waiting(c, fd);
    error = errno;
    blz__transfer_quiet_end(&mask, n < 0 && error == EPIPE);
    errno = error;
    return n;
}

static int64_t call_until_done(const struct call *c, int fd,
                               ssize_t (*call)(const struct call *c, int fd))
{
    ssize_t n;

    do
        n = call(c, fd);
    while (n < 0 && errno == EINTR);
    return n < 0 ? sys_error() : n;
}

/* ---- the contract ---- */

int64_t blz__pipe_read(blz_sysfd fd, const blz_iovec *pieces, size_t count, blz__lock *mode_lock)
{
    struct call c = {.what = CALL_READV,
                     .iov = sys_pieces(pieces),
                     .count = (int)count,
                     .nonblocking = !mode_lock,
                     .mode_lock = mode_lock};

    return call_until_done(&c, fd, call_without_waiting);
}

int64_t blz__pipe_write(blz_sysfd fd, const void *buf, size_t len, blz__lock *mode_lock)
{
    struct iovec one = {(void *)(uintptr_t)buf, len};
    struct call c = {.what = CALL_WRITE,
                     .iov = &one,
                     .count = 1,
                     .nonblocking = !mode_lock,
                     .mode_lock = mode_lock};

    return call_until_done(&c, fd, call_quietly);
}

int64_t blz__pipe_writev(blz_sysfd fd, const blz_iovec *pieces, size_t count, blz__lock *mode_lock)
{
    struct call c = {.what = CALL_WRITEV,
                     .iov = sys_pieces(pieces),
                     .count = (int)count,
                     .nonblocking = !mode_lock,
                     .mode_lock = mode_lock};

    return call_until_done(&c, fd, call_quietly);
}

int64_t blz__socket_send_file(blz_sysfd fd, blz_sysfd file, int64_t offset, size_t len,
                              bool nonblocking)
{
    struct call c = {.what = CALL_SEND_FILE,
                     .file = file,
                     .offset = (off_t)offset,
                     .len = len,
                     .nonblocking = nonblocking};

    return call_until_done(&c, fd, call_quietly);
}
