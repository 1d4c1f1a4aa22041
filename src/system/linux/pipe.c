/* SPDX-License-Identifier: Apache-2.0 */
/* Pipes by pipe2(2), and their sizes. */
#include "system/pipe.h"

#include "system/posix/result.h"

#include <fcntl.h>
#include <unistd.h>

int blz__pipe_new(bool nonblocking, blz_sysfd fds[2])
{
    return sys_result(pipe2(fds, O_CLOEXEC | (nonblocking ? O_NONBLOCK : 0)));
}

static int64_t control(blz_sysfd fd, int command, int value)
{
    int rc = fcntl(fd, command, value);

    return rc < 0 ? sys_error() : rc;
}

int64_t blz__pipe_capacity(blz_sysfd fd)
{
    return control(fd, F_GETPIPE_SZ, 0);
}

int64_t blz__pipe_set_capacity(blz_sysfd fd, size_t bytes)
{
    return bytes > INT32_MAX ? -EINVAL : control(fd, F_SETPIPE_SZ, (int)bytes);
}
