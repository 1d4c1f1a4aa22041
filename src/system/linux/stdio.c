/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors that other processes share. A terminal is opened anew through /proc/self/fd. It could
 * be waited for as a pipe is, but for two things: another reader may be faster after poll(2) has
 * said that there is something, and the read waits then; and a write has to change the mode.
 */
#include "system/stdio.h"

#include <blitz/error.h>

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

static bool is_same_device(int fd, const struct stat *st)
{
    struct stat there;

    return fstat(fd, &there) == 0 && S_ISCHR(there.st_mode) && there.st_rdev == st->st_rdev;
}

/* -1: it cannot be had. */
static int open_anew(int fd, const struct stat *st)
{
    int mode = fcntl(fd, F_GETFL), own;
    char path[32];

    if (mode < 0)
        return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    own = open(path, (mode & O_ACCMODE) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (own > 2 && is_same_device(own, st))
        return own;
    if (own >= 0)
        close(own);
    return -1;
}

int blz__stdio_open(blz_sysfd *own, blz_sysfd fd)
{
    struct stat st;

    *own = BLZ_NO_SYSFD;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (is_terminal(fd, &st))
        *own = open_anew(fd, &st);
    if (*own < 0)
        *own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (*own < 0)
        return -errno;
    return is_like_a_file(&st) ? BLZ__STDIO_FILE : BLZ__STDIO_PIPE;
}
