/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipes. Ours are in the mode that the backend likes best; those from elsewhere stay in theirs,
 * because others may share it, and are used by calls that do not wait in either mode (see
 * src/io/try_now.c).
 */
#include <blitz/pipe.h>

#include "net/socket.h"

#include "system/handle.h"
#include "system/pipe.h"

#include <blitz/error.h>

NET_STREAM(pipe, blz_pipe);

/* A pipe has one direction, so this is all there is to end. */
static int64_t end_writing(const blz_stream *stream)
{
    return blz_pipe_close(&(blz_pipe){stream->object, stream->word});
}

STREAM_OF_HANDLE(pipe, blz_pipe, STREAM_PIPE, end_writing);

static int mode_of(blz_rt **rt)
{
    if (!*rt)
        *rt = blz_rt_current();
    return *rt ? blz__io_mode(*rt) : -ENXIO;
}

int blz_pipe_new(blz_pipe *in, blz_pipe *out, blz_rt *rt)
{
    int mode = mode_of(&rt), rc;
    blz_sysfd fds[2];

    *in = *out = (blz_pipe){NULL, 0};
    if (mode < 0)
        return mode;
    rc = blz__pipe_new(mode & FD_NONBLOCK, fds);
    if (rc < 0)
        return rc;
    rc = blz__fd_adopt(net_mutable_ref(in), rt, fds[0], (unsigned)mode);
    if (rc < 0) {
        blz__handle_close(fds[0]);
        blz__handle_close(fds[1]);
        return rc;
    }
    rc = blz__fd_adopt(net_mutable_ref(out), rt, fds[1], (unsigned)mode);
    if (rc < 0) {
        blz__handle_close(fds[1]);
        blz_pipe_close(in);
    }
    return rc;
}

/* ---- from elsewhere ---- */

static bool can_be_waited_for(int kind)
{
    return kind != BLZ__HANDLE_FILE && kind != BLZ__HANDLE_DIRECTORY && kind != BLZ__HANDLE_DISK;
}

int blz_pipe_from_fd(blz_pipe *pipe, blz_sysfd fd, blz_rt *rt)
{
    int mode = mode_of(&rt), kind;

    *pipe = (blz_pipe){NULL, 0};
    if (mode < 0)
        return mode;
    kind = blz__handle_kind(fd);
    if (kind < 0)
        return kind;
    if (!can_be_waited_for(kind))
        return -EINVAL;
    return blz__fd_adopt(net_mutable_ref(pipe), rt, fd, 0);
}

_Static_assert((int)BLZ_PIPE_READ == BLZ__PIPE_READ && (int)BLZ_PIPE_WRITE == BLZ__PIPE_WRITE &&
                   (int)BLZ_PIPE_BOTH == BLZ__PIPE_BOTH,
               "sides are numbered alike");

int blz_pipe_open(blz_pipe *pipe, const char *path, int how, blz_rt *rt)
{
    int64_t fd = blz__pipe_open(path, how);
    int rc;

    *pipe = (blz_pipe){NULL, 0};
    if (fd < 0)
        return (int)fd;
    rc = mode_of(&rt);
    if (rc >= 0)
        rc = blz__fd_adopt(net_mutable_ref(pipe), rt, (blz_sysfd)fd, FD_NONBLOCK);
    if (rc < 0)
        blz__handle_close((blz_sysfd)fd);
    return rc;
}

/* ---- room ---- */

int64_t blz_pipe_capacity(const blz_pipe *pipe)
{
    int fd = blz__fd_acquire(net_ref(pipe));
    int64_t bytes;

    if (fd < 0)
        return fd;
    bytes = blz__pipe_capacity(fd);
    blz__fd_release(net_ref(pipe));
    return bytes;
}

int64_t blz_pipe_set_capacity(const blz_pipe *pipe, size_t bytes)
{
    int fd = blz__fd_acquire(net_ref(pipe));
    int64_t rc;

    if (fd < 0)
        return fd;
    rc = blz__pipe_set_capacity(fd, bytes);
    blz__fd_release(net_ref(pipe));
    return rc;
}
