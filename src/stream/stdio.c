/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standard streams: descriptors that other processes share. What it is decides how it is waited for
 * (system/stdio.h): files are read by the ring or by a thread, and the position stays the one that
 * is shared; all others are waited for, as pipes are.
 */
#include <blitz/file.h>
#include <blitz/pipe.h>
#include <blitz/stdio.h>

#include "system/handle.h"
#include "system/stdio.h"

static int adopt_file(blz_stream *stream, blz_sysfd own, blz_rt *rt)
{
    blz_file file;
    int rc = blz_file_from_fd(&file, own, rt);

    if (rc == 0)
        *stream = blz_file_stream(&file);
    return rc;
}

static int adopt_pipe(blz_stream *stream, blz_sysfd own, blz_rt *rt)
{
    blz_pipe pipe;
    int rc = blz_pipe_from_fd(&pipe, own, rt);

    if (rc == 0)
        *stream = blz_pipe_stream(&pipe);
    return rc;
}

int blz_stdio_open(blz_stream *stream, blz_sysfd fd, blz_rt *rt)
{
    blz_sysfd own;
    int kind = blz__stdio_open(&own, fd), rc;

    *stream = (blz_stream){NULL, NULL, 0};
    if (kind < 0)
        return kind;
    rc = kind == BLZ__STDIO_FILE ? adopt_file(stream, own, rt) : adopt_pipe(stream, own, rt);
    if (rc < 0)
        blz__handle_close(own);
    return rc;
}
