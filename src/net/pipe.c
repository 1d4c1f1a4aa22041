/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipes. Ours are in the mode that the backend likes best; those from elsewhere stay in theirs,
 * because others may share it, and are used by calls that do not wait in either mode (see
 * src/io/try_now.c).
 */
#include <blitz/pipe.h>

#include "net/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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
    int mode = mode_of(&rt), fds[2], rc;

    *in = *out = (blz_pipe){NULL, 0};
    if (mode < 0)
        return mode;
    if (pipe2(fds, O_CLOEXEC | (mode & FD_NONBLOCK ? O_NONBLOCK : 0)) < 0)
        return -errno;
    rc = blz__fd_adopt(net_mutable_ref(in), rt, fds[0], (unsigned)mode);
    if (rc < 0) {
        close(fds[0]);
        close(fds[1]);
        return rc;
    }
    rc = blz__fd_adopt(net_mutable_ref(out), rt, fds[1], (unsigned)mode);
    if (rc < 0) {
        close(fds[1]);
        blz_pipe_close(in);
    }
    return rc;
}

/* ---- from elsewhere ---- */

static bool is_kind(int fd, bool (*fits)(mode_t mode))
{
    struct stat st;

    return fstat(fd, &st) == 0 && fits(st.st_mode);
}

static bool is_fifo(mode_t mode)
{
    return S_ISFIFO(mode);
}

static bool can_be_waited_for(mode_t mode)
{
    return !S_ISREG(mode) && !S_ISDIR(mode) && !S_ISBLK(mode);
}

int blz_pipe_from_fd(blz_pipe *pipe, blz_rt *rt, int fd)
{
    int mode = mode_of(&rt);

    *pipe = (blz_pipe){NULL, 0};
    if (mode < 0)
        return mode;
    if (fcntl(fd, F_GETFD) < 0)
        return -errno;
    if (!is_kind(fd, can_be_waited_for))
        return -EINVAL;
    return blz__fd_adopt(net_mutable_ref(pipe), rt, fd, 0);
}

/* Opened in non-blocking mode, so that it does not wait for the other side. */
int blz_pipe_open(blz_pipe *pipe, const char *path, int how, blz_rt *rt)
{
    static const int flags[] = {-1, O_RDONLY, O_WRONLY, O_RDWR};
    int fd, rc;

    *pipe = (blz_pipe){NULL, 0};
    if (how < BLZ_PIPE_READ || how > BLZ_PIPE_BOTH)
        return -EINVAL;
    fd = open(path, flags[how] | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return -errno;
    rc = is_kind(fd, is_fifo) ? mode_of(&rt) : -EINVAL;
    if (rc >= 0)
        rc = blz__fd_adopt(net_mutable_ref(pipe), rt, fd, FD_NONBLOCK);
    if (rc < 0)
        close(fd);
    return rc;
}

/* ---- room ---- */

static int64_t control(const blz_pipe *pipe, int command, int value)
{
    int fd = blz__fd_acquire(net_ref(pipe)), rc;

    if (fd < 0)
        return fd;
    rc = fcntl(fd, command, value);
    rc = rc < 0 ? -errno : rc;
    blz__fd_release(net_ref(pipe));
    return rc;
}

int64_t blz_pipe_capacity(const blz_pipe *pipe)
{
    return control(pipe, F_GETPIPE_SZ, 0);
}

int64_t blz_pipe_set_capacity(const blz_pipe *pipe, size_t bytes)
{
    return bytes > INT32_MAX ? -EINVAL : control(pipe, F_SETPIPE_SZ, (int)bytes);
}
