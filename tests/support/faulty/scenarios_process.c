/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios with runtimes, threads, memory, processes, signals and fork-join. */
#include "scenarios.h"

#include <blitz/blocking.h>
#include <blitz/par.h>
#include <blitz/par_for.h>
#include <blitz/process.h>
#include <blitz/random.h>
#include <blitz/signal.h>
#include <blitz/stream.h>

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the life of a runtime ---- */

static int64_t do_nothing(void *arg)
{
    (void)arg;
    return 0;
}

struct lives {
    BLZ_FRAME;
    int64_t rc;
    blz_blocking_op op;
    blz_handle handle;
    blz_handle_join_op join;
    blz_stream a, b;
    char bytes[16];
};

BLZ_ASYNC(lives)
{
    BLZ_BEGIN;
    DO(blz_random_bytes(self->bytes, sizeof self->bytes));
    DO(blz_stream_pair(&self->a, &self->b, 0, NULL));
    blz_stream_close(&self->a);
    blz_stream_close(&self->b);
    STEP(blz_blocking(&self->op, do_nothing, NULL));
    DO(BLZ_SPAWN_JOIN(&self->handle, give));
    STEP(blz_handle_join(&self->join, &self->handle));
    BLZ_END(self->rc);
}

RUN_SCENARIO(lives, options)

/* ---- processes ---- */

struct runs_children {
    BLZ_FRAME;
    int64_t rc;
    blz_command cmd;
    blz_child child;
    blz_output out;
    blz_output_op capture;
    blz_child_await_op await;
    blz_process_watch_op watch;
};

static void set_command(struct runs_children *self, const char *script)
{
    blz_command_init(&self->cmd, "/bin/sh");
    blz_command_args(&self->cmd, (const char *const[]){"-c", script, NULL});
}

/* Starts a child with a group of its own, which runs until it is killed. */
static int start_child(struct runs_children *self)
{
    int rc;

    set_command(self, "read x");
    blz_command_group(&self->cmd, 0);
    blz_command_stdio(&self->cmd, 0, BLZ_STDIO_PIPE);
    blz_command_kill_on_drop(&self->cmd);
    rc = blz_command_spawn(&self->cmd, &self->child, NULL);
    blz_command_free(&self->cmd);
    return rc;
}

static int kill_child(struct runs_children *self)
{
    int rc = blz_child_signal(&self->child, SIGCONT);

    if (rc == 0)
        rc = blz_child_signal_group(&self->child, SIGCONT);
    return rc < 0 ? rc : blz_child_kill(&self->child);
}

BLZ_ASYNC(runs_children)
{
    BLZ_BEGIN;
    set_command(self, "printf out");
    STEP(blz_command_output(&self->capture, &self->cmd, &self->out));
    blz_output_free(&self->out);
    blz_command_free(&self->cmd);
    DO(start_child(self));
    if (self->rc >= 0) {
        DO(kill_child(self));
        STEP(blz_process_watch(&self->watch, blz_child_pid(&self->child)));
        STEP(blz_child_await(&self->await, &self->child));
        blz_child_drop(&self->child);
    }
    DO(start_child(self));
    if (self->rc >= 0)
        blz_child_drop(&self->child); /* an orphan, which is killed */
    BLZ_END(self->rc);
}

RUN_SCENARIO(runs_children, options)

static void drop_a_child(const blz_options *options)
{
    blz_command cmd;
    blz_child child;
    blz_rt *rt;

    check(blz_rt_new(&rt, options) == 0);
    blz_command_init_with(&cmd, "/bin/true",
                          options->allocator ? options->allocator : test_memory());
    check(blz_command_spawn(&cmd, &child, rt) == 0);
    blz_child_drop(&child);
    blz_command_free(&cmd);
    check(blz_rt_free(rt) == 0);
}

static bool has_children(void)
{
    return waitpid(-1, NULL, WNOHANG) >= 0; /* reaps one of which the library has lost sight */
}

/*
 * Orphans are reaped and freed by a thread, which ends after the last one. Those that it could not
 * be told of are told when the next child is dropped.
 */
static void settle_children(const blz_options *options, int fds)
{
    drop_a_child(options);
    while (has_children() || memory_blocks(the_memory()) != 0 || nr_fds() != fds)
        sched_yield();
}

/* ---- signals ---- */

struct takes_signals {
    BLZ_FRAME;
    int64_t rc;
    blz_signal sub;
    blz_signal_op op;
    blz_stop stop;
};

BLZ_ASYNC(takes_signals)
{
    BLZ_BEGIN;
    DO(blz_signal_open(&self->sub, SIGUSR1));
    if (self->rc >= 0)
        kill(getpid(), SIGUSR1); /* workers block all signals */
    STEP(blz_signal_recv(&self->op, &self->sub, NULL));
    blz_signal_close(&self->sub);
    DO(blz_stop_open(&self->stop));
    blz_stop_close(&self->stop);
    BLZ_END(self->rc);
}

RUN_SCENARIO(takes_signals, options)

/* ---- fork-join ---- */

static void nothing_in_parallel(blz_par *par, void *arg)
{
    (void)par;
    (void)arg;
}

static int64_t run_pool(const blz_options *options)
{
    blz_pool *pool;
    int rc =
        blz_pool_new(&pool, &(blz_pool_options){.threads = 2, .allocator = options->allocator});

    if (rc < 0)
        return rc;
    rc = blz_pool_run(pool, nothing_in_parallel, NULL);
    check(blz_pool_free(pool) == 0);
    return rc;
}

const struct scenario process_scenarios[] = {
    {"runtime", run_lives, NULL},
    {"processes", run_runs_children, settle_children},
    {"signals", run_takes_signals, NULL},
    {"fork-join", run_pool, NULL},
    {NULL, NULL, NULL},
};
