/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeping what a child writes. Output and errors are read at the same time, by one future that has
 * a read of each in flight: a child that fills one pipe while we wait for the other would wait for
 * ever. A stream's memory doubles, and moves only between two reads.
 *
 * At its limit a stream has no room left and reads one byte more into a place of its own: the end
 * is fine, a byte is one too many. The first stream that fails closes both pipes, which ends the
 * read that is still in flight.
 */
#include "process/process.h"

#include "base/alloc.h"
#include "io/io.h"

#include <blitz/async.h>
#include <blitz/wait_info.h>

#include <string.h>

enum { FIRST_SIZE = 4096, DEFAULT_LIMIT = 16 * 1024 * 1024 };

/* ---- streams ---- */

struct stream {
    blz_pipe *pipe;
    char *data;
    size_t len, size, limit; /* `size` is one less than allocated, for the NUL */
    char excess;
    bool reads, ended;
    blz_io io;
};

/* Reads from both of a child's pipes: 0, or the first error. */
struct drain {
    blz_future future;
    const blz_allocator *allocator;
    struct stream streams[2];
    blz_future *reads[2]; /* those of the streams, for who looks */
    int64_t error;
};

static bool grow(struct stream *s, const blz_allocator *allocator)
{
    size_t size = s->size ? s->size * 2 : FIRST_SIZE;
    char *data;

    if (size > s->limit)
        size = s->limit;
    data = blz__alloc(allocator, size + 1, 1);
    if (!data)
        return false;
    if (s->data) {
        memcpy(data, s->data, s->len);
        blz__free(allocator, s->data, s->size + 1, 1);
    }
    s->data = data;
    s->size = size;
    return true;
}

static void stop(struct drain *drain, int64_t error)
{
    if (drain->error == 0)
        drain->error = error;
    for (int i = 0; i < 2; i++)
        blz_pipe_close(drain->streams[i].pipe);
}

/* False: there is no memory. */
static bool begin_read(struct stream *s, const blz_allocator *allocator)
{
    bool full = s->len == s->limit;

    if (s->len == s->size && !full && !grow(s, allocator))
        return false;
    if (full)
        blz_ignore(blz_pipe_read(&s->io, s->pipe, &s->excess, 1));
    else
        blz_ignore(blz_pipe_read(&s->io, s->pipe, s->data + s->len, s->size - s->len));
    s->reads = true;
    return true;
}

/* What a read that has ended means. A cancelled one may have moved bytes all the same. */
static void take_result(struct drain *drain, struct stream *s, int64_t n)
{
    bool full = s->len == s->limit;

    s->reads = false;
    if (n > 0 && !full)
        s->len += (size_t)n;
    if (n > 0 && !full && drain->error == 0)
        return;
    s->ended = true;
    if (n > 0 && full)
        stop(drain, -EMSGSIZE);
    else if (n < 0)
        stop(drain, n);
}

static void advance(struct drain *drain, struct stream *s, blz_cx *cx)
{
    while (!s->ended) {
        if (!s->reads && drain->error < 0) {
            s->ended = true;
        } else if (!s->reads && !begin_read(s, drain->allocator)) {
            s->ended = true;
            stop(drain, -ENOMEM);
        } else if (blz_is_pending(s->io.future.ops->poll(&s->io.future, cx))) {
            return;
        } else {
            take_result(drain, s, s->io.future.result);
        }
    }
}

/* The second look: the other stream may have failed after this one was looked at. */
static blz_poll drain_poll(blz_future *self, blz_cx *cx)
{
    struct drain *drain = (struct drain *)self;

    advance(drain, &drain->streams[0], cx);
    advance(drain, &drain->streams[1], cx);
    if (drain->error < 0)
        advance(drain, &drain->streams[0], cx);
    if (!drain->streams[0].ended || !drain->streams[1].ended)
        return BLZ_PENDING;
    return blz_future_done(self, drain->error);
}

static void drain_cancel(blz_future *self, blz_cx *cx)
{
    struct drain *drain = (struct drain *)self;

    if (drain->error == 0)
        drain->error = -ECANCELED;
    for (int i = 0; i < 2; i++)
        if (drain->streams[i].reads)
            blz_future_cancel(&drain->streams[i].io.future, cx);
}

static void drain_describe(const blz_future *self, blz_wait_info *info)
{
    const struct drain *drain = (const struct drain *)self;

    info->branches = drain->reads;
    info->nr_branches = 2;
    for (int i = 0; i < 2; i++)
        info->live |= (uint64_t)drain->streams[i].reads << i;
}

/* ---- the whole ---- */

struct output {
    BLZ_FRAME;
    blz_command *cmd;
    blz_output *output;
    blz_child child;
    int64_t rc, status;
    struct drain drain;
    blz_child_await_op wait;
};
_Static_assert(sizeof(struct output) <= sizeof(blz_output_op), "it is too small");

static void set_stream(struct stream *s, blz_pipe *pipe, size_t limit)
{
    s->pipe = pipe;
    s->limit = limit ? limit : DEFAULT_LIMIT;
    s->ended = !pipe->entry_; /* goes elsewhere */
}

static blz_future *drain(struct output *self, const blz_allocator *allocator)
{
    static const blz_future_ops ops = {.name = "child_output",
                                       .poll = drain_poll,
                                       .cancel = drain_cancel,
                                       .describe_wait = drain_describe};

    self->drain.future = (blz_future){.ops = &ops};
    self->drain.allocator = allocator;
    set_stream(&self->drain.streams[0], &self->child.out, self->output->max_out);
    set_stream(&self->drain.streams[1], &self->child.err, self->output->max_err);
    for (int i = 0; i < 2; i++)
        self->drain.reads[i] = &self->drain.streams[i].io.future;
    return &self->drain.future;
}

static int start(struct output *self)
{
    static const int defaults[3] = {BLZ_STDIO_NULL, BLZ_STDIO_PIPE, BLZ_STDIO_PIPE};
    int rc = blz__command_spawn(self->cmd, &self->child, NULL, defaults);

    if (rc == 0)
        blz_pipe_close(&self->child.in); /* there is nothing for it to read */
    return rc;
}

/* The sizes are kept, because an allocator wants them back. */
static void hand_over(struct output *self)
{
    struct stream *s = self->drain.streams;
    blz_output *out = self->output;

    for (int i = 0; i < 2; i++)
        if (s[i].data)
            s[i].data[s[i].len] = 0;
    out->out = s[0].data;
    out->out_len = s[0].len;
    out->err = s[1].data;
    out->err_len = s[1].len;
    out->sizes_[0] = s[0].size;
    out->sizes_[1] = s[1].size;
    out->allocator_ = self->drain.allocator;
}

/* After an error the child is killed; when it has ended, the error is the result. */
BLZ_ASYNC(output)
{
    BLZ_BEGIN;
    self->rc = start(self);
    if (self->rc < 0)
        goto out;
    BLZ_AWAIT(self->rc, drain(self, blz__rt_allocator(blz_cx_rt(cx))));
    if (self->rc == 0)
        BLZ_AWAIT(self->rc, blz_child_await(&self->wait, &self->child));
    if (self->rc < 0 && blz__child_kill(&self->child))
        BLZ_AWAIT_SHIELDED(self->status, blz_child_await(&self->wait, &self->child));
    hand_over(self);
    blz_child_drop(&self->child);
out:
    BLZ_END(self->rc);
}

blz_future *blz_command_output(blz_output_op *op, blz_command *cmd, blz_output *output)
{
    struct output *self = (struct output *)(void *)op;

    blz_op_check(&self->blz_frame, &output_ops);
    memset(self, 0, sizeof *self);
    self->blz_frame.ops = &output_ops;
    self->cmd = cmd;
    self->output = output;
    return &self->blz_frame;
}

void blz_output_free(blz_output *out)
{
    const blz_allocator *allocator = out->allocator_;

    if (out->out)
        blz__free(allocator, out->out, out->sizes_[0] + 1, 1);
    if (out->err)
        blz__free(allocator, out->err, out->sizes_[1] + 1, 1);
    *out = (blz_output){.max_out = out->max_out, .max_err = out->max_err};
}
