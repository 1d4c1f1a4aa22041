/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does a little of everything that a trace shows; run.py has it traced, and looks at the file. With
 * one worker, so that who reads before the other has written really has to wait.
 */
#include <blitz.h>
#include <stdlib.h>

enum { NR_MESSAGES = 20, NR_SLEEPERS = 10 };

/* Gives back what it reads. */
struct echo {
    BLZ_FRAME;
    blz_pipe *in, *out;
    char byte;
    int64_t rc;
    blz_io io;
};

BLZ_ASYNC(echo)
{
    BLZ_BEGIN;
    for (;;) {
        BLZ_AWAIT(self->rc, blz_pipe_read(&self->io, self->in, &self->byte, 1));
        if (self->rc != 1)
            break;
        BLZ_AWAIT(self->rc, blz_pipe_write_all(&self->io, self->out, &self->byte, 1));
    }
    BLZ_END(self->rc);
}

struct sleeper {
    BLZ_FRAME;
    int64_t rc;
    blz_sleep_op op;
};

BLZ_ASYNC(sleeper)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_sleep(&self->op, 20 * BLZ_MSEC));
    BLZ_END(self->rc);
}

/* A blocking job: lasts until the worker sleeps. */
static int64_t wait_for_sleep(void *rt)
{
    blz_stats stats;

    do
        blz_rt_stats(rt, &stats);
    while (stats.workers_parked == 0);
    return 7;
}

static int64_t compute(blz_par *par, blz_par_cancel *cancel, void *arg)
{
    (void)par;
    (void)cancel;
    (void)arg;
    return 8;
}

struct root {
    BLZ_FRAME;
    int i;
    int64_t rc;
    uint64_t span;
    char byte;
    blz_pipe in[2], out[2];
    blz_scope scope;
    union {
        blz_io io;
        blz_blocking_op blocking;
        blz_par_run_op par;
        blz_scope_op wait;
    } op;
};

BLZ_ASYNC(root)
{
    BLZ_BEGIN;
    self->span = blz_trace_begin("everything");
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    if (blz_pipe_new(&self->in[0], &self->out[0], NULL) < 0 ||
        blz_pipe_new(&self->in[1], &self->out[1], NULL) < 0)
        abort();
    self->rc = BLZ_SCOPE_SPAWN(&self->scope, echo, .in = &self->in[0], .out = &self->out[1]);
    for (self->i = 0; self->rc == 0 && self->i < NR_SLEEPERS; self->i++)
        self->rc = BLZ_SCOPE_SPAWN(&self->scope, sleeper);
    for (self->i = 0; self->rc >= 0 && self->i < NR_MESSAGES; self->i++) {
        BLZ_AWAIT(self->rc, blz_pipe_write_all(&self->op.io, &self->out[0], "x", 1));
        BLZ_AWAIT(self->rc, blz_pipe_read(&self->op.io, &self->in[1], &self->byte, 1));
    }
    blz_trace_mark("say \"hello\" \\ \n \xff");
    BLZ_AWAIT(self->rc, blz_blocking(&self->op.blocking, wait_for_sleep, blz_cx_rt(cx)));
    BLZ_AWAIT(self->rc, blz_par_run(&self->op.par, NULL, compute, NULL));
    blz_pipe_close(&self->out[0]);
    BLZ_AWAIT(self->rc, blz_scope_join(&self->op.wait, &self->scope));
    blz_pipe_close(&self->in[0]);
    blz_pipe_close(&self->in[1]);
    blz_pipe_close(&self->out[1]);
    blz_trace_end(self->span);
    BLZ_END(self->rc);
}

int main(void)
{
    return BLZ_RUN_WITH(&(blz_options){.workers = 1}, root) < 0;
}
