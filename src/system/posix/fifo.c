/* SPDX-License-Identifier: Apache-2.0 */
/* FIFOs at paths. They are opened in non-blocking mode, so that open(2) waits for no other side. */
#include "system/handle.h"
#include "system/pipe.h"
#include "system/posix/result.h"

#include <fcntl.h>

int64_t blz__pipe_open(const char *path, int side)
{
    static const int sides[] = {-1, O_RDONLY, O_WRONLY, O_RDWR};
    int fd;

    if (side < BLZ__PIPE_READ || side > BLZ__PIPE_BOTH)
        return -EINVAL;
    do
        fd = open(path, sides[side] | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return sys_error();
    if (blz__handle_kind(fd) == BLZ__HANDLE_PIPE)
        return fd;
    blz__handle_close(fd);
    return -EINVAL;
}
