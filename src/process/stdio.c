/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors that other processes share. What it is decides how it is waited for:
 *
 *   regular file, block device,       a file: never waited for, read by the ring or by a thread;
 *   /dev/null and its like            the position stays the one that is shared
 *   terminal                          opened anew (/proc/self/fd), in non-blocking mode: an open
 *                                     file of our own, whose mode is nobody else's
 *   pipe, socket, other devices       a pipe: waited for, then called in a way that does not wait
 *                                     whatever the mode is (src/io/try_now.c)
 *
 * The last way works for terminals, too, but for two things: another reader may be faster after
 * poll(2) has said that there is something, and the read waits then; and a write has to change the
 * mode. So it is for those that cannot be opened.
 */
#include <blitz/file.h>
#include <blitz/pipe.h>
#include <blitz/stdio.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { MEMORY_DEVICES = 1, TERMINALS = 5 }; /* major numbers */

/* Those that always answer at once: null, zero, full, random, urandom. */
static bool is_memory_device(const struct stat *st)
{
    unsigned number = minor(st->st_rdev);

    return S_ISCHR(st->st_mode) && major(st->st_rdev) == MEMORY_DEVICES &&
           (number == 3 || number == 5 || (number >= 7 && number <= 9));
}

static bool is_like_a_file(const struct stat *st)
{
    return S_ISREG(st->st_mode) || S_ISBLK(st->st_mode) || S_ISDIR(st->st_mode) ||
           is_memory_device(st);
}

/* Opening the master of a pseudo-terminal makes another one. */
static bool is_terminal(int fd, const struct stat *st)
{
    return S_ISCHR(st->st_mode) && isatty(fd) &&
           !(major(st->st_rdev) == TERMINALS && minor(st->st_rdev) == 2);
}

/* -1: it cannot be had. */
static int open_anew(int fd, const struct stat *st)
{
    int mode = fcntl(fd, F_GETFL), own;
    char path[32];
    struct stat there;

    if (mode < 0)
        return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    own = open(path, (mode & O_ACCMODE) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (own < 0)
        return -1;
    if (fstat(own, &there) == 0 && S_ISCHR(there.st_mode) && there.st_rdev == st->st_rdev)
        return own;
    close(own);
    return -1;
}

static int adopt_file(blz_stream *stream, int own, blz_rt *rt)
{
    blz_file file;
    int rc = blz_file_from_fd(&file, rt, own);

    if (rc == 0)
        *stream = blz_file_stream(&file);
    return rc;
}

static int adopt_pipe(blz_stream *stream, int own, blz_rt *rt)
{
    blz_pipe pipe;
    int rc = blz_pipe_from_fd(&pipe, rt, own);

    if (rc == 0)
        *stream = blz_pipe_stream(&pipe);
    return rc;
}

int blz_stdio_open(blz_stream *stream, int fd, blz_rt *rt)
{
    struct stat st;
    int own = -1, rc;

    *stream = (blz_stream){NULL, NULL, 0};
    if (fstat(fd, &st) < 0)
        return -errno;
    if (is_terminal(fd, &st))
        own = open_anew(fd, &st);
    if (own < 0)
        own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (own < 0)
        return -errno;
    rc = is_like_a_file(&st) ? adopt_file(stream, own, rt) : adopt_pipe(stream, own, rt);
    if (rc < 0)
        close(own);
    return rc;
}
