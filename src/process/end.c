/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ending a child for sure: terminate (ask, wait, kill), and run (start, wait). Both kill it when
 * they are cancelled, and wait for that behind a shield, since it takes no time; a shutdown that
 * has lost its patience overrides it, and then the child is an orphan. Signals go to all of the
 * group that the child leads.
 */
#include "process/process.h"

#include "system/signal.h"

#include <blitz/async.h>
#include <blitz/time.h>

/* ---- terminate ---- */

struct terminate {
    BLZ_FRAME;
    blz_child child; /* without its pipes */
    int64_t grace_ns;
    int64_t rc;
    blz_timeout limit;
    blz_child_await_op wait;
};
_Static_assert(sizeof(struct terminate) <= sizeof(blz_child_terminate_op), "it is too small");

static int signal_handle(const blz_child *child, int signal)
{
    return child->child_ ? blz__child_signal_all(child->child_, signal) : -EBADF;
}

BLZ_ASYNC(terminate)
{
    BLZ_BEGIN;
    self->rc = signal_handle(&self->child, SIGTERM);
    if (self->rc == 0 || self->rc == -ESRCH)
        BLZ_AWAIT(self->rc, blz_with_timeout(&self->limit, self->grace_ns,
                                             blz_child_await(&self->wait, &self->child)));
    if (self->rc == -ETIMEDOUT || self->rc == -ECANCELED) {
        self->rc = signal_handle(&self->child, SIGKILL);
        if (self->rc == 0 || self->rc == -ESRCH)
            BLZ_AWAIT_SHIELDED(self->rc, blz_child_await(&self->wait, &self->child));
    }
    if (self->rc >= 0)
        (void)signal_handle(&self->child, SIGKILL); /* what is left of its group */
    BLZ_END(self->rc);
}

blz_future *blz_child_terminate(blz_child_terminate_op *op, blz_child *child, int64_t grace_ns)
{
    struct terminate *self = (struct terminate *)(void *)op;

    blz_op_check(&self->blz_frame, &terminate_ops);
    *self = (struct terminate){
        .blz_frame = {.ops = &terminate_ops, .flags = BLZ_FUTURE_ALWAYS}, /* it cleans up */
        .child = {.child_ = child->child_},
        .grace_ns = grace_ns < 0 ? 0 : grace_ns,
    };
    return &self->blz_frame;
}

/* ---- run ---- */

struct run {
    BLZ_FRAME;
    blz_command *cmd;
    blz_child child;
    int64_t rc, status;
    blz_child_await_op wait;
};
_Static_assert(sizeof(struct run) <= sizeof(blz_command_run_op), "it is too small");

static int start(struct run *self)
{
    int rc = blz_command_spawn(self->cmd, &self->child, NULL);

    if (rc < 0)
        return rc;
    blz_pipe_close(&self->child.in); /* nobody is going to use them */
    blz_pipe_close(&self->child.out);
    blz_pipe_close(&self->child.err);
    return 0;
}

BLZ_ASYNC(run)
{
    BLZ_BEGIN;
    self->rc = start(self);
    if (self->rc < 0)
        goto out;
    BLZ_AWAIT(self->rc, blz_child_await(&self->wait, &self->child));
    if (self->rc < 0 && blz__child_kill(&self->child))
        BLZ_AWAIT_SHIELDED(self->status, blz_child_await(&self->wait, &self->child));
    blz_child_drop(&self->child);
out:
    BLZ_END(self->rc);
}

blz_future *blz_command_run(blz_command_run_op *op, blz_command *cmd)
{
    struct run *self = (struct run *)(void *)op;

    blz_op_check(&self->blz_frame, &run_ops);
    *self = (struct run){.blz_frame.ops = &run_ops, .cmd = cmd};
    return &self->blz_frame;
}
