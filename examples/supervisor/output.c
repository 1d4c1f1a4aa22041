/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What services say. A line is written at once, behind the name of who said it, so that no two of
 * them mix; where the system may divide it, a lock keeps the others away. A line that is too long
 * is written in pieces.
 */
#include "supervisor.h"

#include <string.h>

/* The next line of `in`, behind a name, as what is to be written. False: it has no end yet. */
static bool next_line(struct capture *self, bool at_end)
{
    char *from = self->in + self->done;
    size_t len = self->end - self->done;
    const char *newline = memchr(from, '\n', len);
    static char end[] = "\n";

    if (newline)
        len = (size_t)(newline - from) + 1;
    else if (len == 0 || (!at_end && self->end < LINE))
        return false;
    self->parts[0] = (blz_iovec){self->name, strlen(self->name)};
    self->parts[1] = (blz_iovec){from, len};
    self->parts[2] = (blz_iovec){end, newline ? 0 : 1};
    self->done += len;
    return true;
}

/* What is left moves to the front, to make room. */
static void compact(struct capture *self)
{
    self->end -= self->done;
    memmove(self->in, self->in + self->done, self->end);
    self->done = 0;
}

BLZ_ASYNC_EXTERN(capture)
{
    BLZ_BEGIN;
    do {
        self->io = (blz_io){.done = 0};
        BLZ_AWAIT(self->n,
                  blz_pipe_read(&self->io, &self->pipe, self->in + self->end, LINE - self->end));
        if (self->n > 0)
            self->end += (size_t)self->n;
        while (self->n >= 0 && next_line(self, self->n == 0)) {
            BLZ_AWAIT(self->rc, blz_mutex_lock(&self->lock, &self->supervisor->output_lock));
            if (self->rc < 0)
                goto out;
            self->write = (blz_stream_op){.done = 0};
            BLZ_AWAIT(self->rc, blz_stream_writev_all(&self->write, &self->supervisor->output,
                                                      self->parts, 3));
            blz_mutex_unlock(&self->supervisor->output_lock);
            if (self->rc < 0)
                break; /* nobody wants to know: it is read all the same */
        }
        compact(self);
    } while (self->n > 0);
out:
    blz_pipe_close(&self->pipe);
    BLZ_END(self->n);
}
