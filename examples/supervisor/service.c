/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One service. It lives, dies, and after a pause lives again, as its definition says; the pause
 * grows twofold from one death to the next, unless it has lived for a while in between.
 *
 * Each has a process group of its own: the terminal's Ctrl-C does not reach it, so that we can stop
 * services in order, and what it has started is stopped with it.
 */
#include "supervisor.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* ---- ending a life ---- */

struct stop_child {
    BLZ_FRAME;
    struct service *service;
    blz_child *child;
    int64_t rc;
    blz_child_await_op wait;
    blz_token_op force;
    blz_sleep_op grace;
    blz_select_op select;
};

/* Asks it to end, and kills it if it has not in time: its status. */
BLZ_ASYNC(stop_child)
{
    BLZ_BEGIN;
    blz_child_signal_group(self->child, SIGTERM);
    blz_child_signal_group(self->child, SIGCONT); /* one that is stopped would not hear of it */
    BLZ_AWAIT(self->rc,
              blz_race(&self->select, blz_child_await(&self->wait, self->child),
                       blz_token_cancelled(&self->force, self->service->supervisor->force),
                       blz_sleep(&self->grace, self->service->definition->grace_ns)));
    if (self->rc != 0) {
        say("%s: %s, and is killed", self->service->definition->name,
            self->rc == 2 ? "has not ended in time" : "gets no more time");
        blz_child_signal_group(self->child, SIGKILL);
        BLZ_AWAIT(self->rc, blz_child_await(&self->wait, self->child));
    }
    BLZ_END(self->wait.future.result);
}

/* ---- a life ---- */

enum { NR_PASSED = 2 };
static const int passed_on[NR_PASSED] = {SIGUSR1, SIGUSR2};

struct life {
    BLZ_FRAME;
    struct service *service;
    blz_command *command;
    blz_signal *signals;
    blz_child child;
    blz_handle output;
    bool stopped;
    int64_t rc, status;
    blz_child_await_op wait;
    union {
        struct {
            blz_signal_op received[NR_PASSED];
            blz_select_op select;
        };
        struct stop_child stop;
        struct {
            blz_handle_join_op join;
            blz_timeout limit;
        } end;
    };
};

/* 0 or a negative errno. */
static int64_t begin_life(struct life *self)
{
    struct service *service = self->service;
    const char *name = service->definition->name;
    struct capture capture = {.supervisor = service->supervisor};
    int rc = blz_command_spawn(self->command, &self->child, NULL);

    if (rc < 0) {
        say("%s: cannot be started: %s: %s", name, blz_command_failed_step(self->command),
            blz_strerror(rc));
        return rc;
    }
    say("%s: started, pid %d", name, (int)blz_child_pid(&self->child));
    snprintf(capture.name, sizeof capture.name, "%s | ", name);
    capture.pipe = self->child.out;
    capture.blz_frame.ops = &capture_ops;
    rc = blz_spawn(&capture, sizeof capture,
                   &(blz_spawn_args){.handle = &self->output, .name = "output"});
    if (rc == 0)
        self->child.out = (blz_pipe){NULL, 0}; /* is that one's now */
    return rc;
}

static void report(const char *name, int64_t status)
{
    if (status < 0)
        say("%s: its end was not seen: %s", name, blz_strerror(status));
    else if (blz_exit_signal(status))
        say("%s: killed by signal %d", name, blz_exit_signal(status));
    else
        say("%s: exited with %d", name, blz_exit_code(status));
}

/* Its status; -ECANCELED: it was stopped; or another error, and it has not lived at all. */
BLZ_ASYNC(life)
{
    BLZ_BEGIN;
    self->rc = self->status = begin_life(self);
    while (self->rc >= 0) {
        BLZ_AWAIT(self->rc,
                  blz_select(&self->select, blz_child_await(&self->wait, &self->child),
                             blz_signal_recv(&self->received[0], &self->signals[0], NULL),
                             blz_signal_recv(&self->received[1], &self->signals[1], NULL)));
        if (self->rc <= 0)
            break;
        blz_child_signal_group(&self->child, passed_on[self->rc - 1]);
    }
    self->stopped = blz_cancelled(cx);
    if (self->rc == 0)
        self->status = self->wait.future.result;
    else if (blz_child_pid(&self->child) > 0) /* also if its output could not be read */
        BLZ_AWAIT_SHIELDED(self->status, BLZ_FUTURE(self->stop, stop_child, .child = &self->child,
                                                    .service = self->service));
    if (self->output.task) {
        /* All that it has said; unless something that it has left behind goes on talking. */
        memset(&self->end, 0, sizeof self->end); /* another member was there */
        BLZ_AWAIT_SHIELDED(self->rc,
                           blz_with_timeout(&self->end.limit, BLZ_SEC,
                                            blz_handle_join(&self->end.join, &self->output)));
        if (self->rc < 0) {
            blz_handle_cancel(&self->output);
            blz_handle_detach(&self->output);
        }
    }
    if (blz_child_pid(&self->child) > 0)
        report(self->service->definition->name, self->status);
    blz_child_drop(&self->child);
    BLZ_END(self->stopped ? -ECANCELED : self->status);
}

/* ---- all of them ---- */

struct service_run {
    BLZ_FRAME;
    struct service *service;
    blz_command command;
    blz_signal signals[NR_PASSED];
    int64_t rc, pause_ns, started_ns;
    union {
        struct life life;
        blz_sleep_op sleep;
    };
};

static int64_t prepare(struct service_run *self)
{
    const struct definition *d = self->service->definition;
    int rc = 0;

    blz_command_init(&self->command, d->args[0]);
    blz_command_args(&self->command, (const char *const *)d->args + 1);
    blz_command_stdio(&self->command, 0, BLZ_STDIO_NULL);
    blz_command_stdio(&self->command, 1, BLZ_STDIO_PIPE);
    blz_command_stderr_to_stdout(&self->command);
    blz_command_group(&self->command, 0);
    blz_command_kill_on_drop(&self->command);
    if (d->directory)
        blz_command_dir(&self->command, d->directory);
    for (int i = 0; i < NR_PASSED && rc == 0; i++)
        rc = blz_signal_open(&self->signals[i], passed_on[i]);
    if (rc < 0)
        say("%s: signals: %s", d->name, blz_strerror(rc));
    return rc;
}

static bool lives_again(const struct service_run *self)
{
    enum restart restart = self->service->definition->restart;

    if (self->rc == -ECANCELED)
        return false;
    return restart == RESTART_ALWAYS || (restart == RESTART_ON_FAILURE && self->rc != 0);
}

#define A_WHILE (10 * BLZ_SEC) /* longer than the longest pause */

static int64_t next_pause(struct service_run *self)
{
    const struct definition *d = self->service->definition;

    if (self->pause_ns == 0 || blz_now() - self->started_ns > d->max_ns + A_WHILE)
        self->pause_ns = d->first_ns;
    else
        self->pause_ns = self->pause_ns < d->max_ns / 2 ? 2 * self->pause_ns : d->max_ns;
    say("%s: will be started again in %lld ms", d->name, (long long)(self->pause_ns / BLZ_MSEC));
    return self->pause_ns;
}

BLZ_ASYNC(service_run)
{
    BLZ_BEGIN;
    self->rc = prepare(self);
    while (self->rc >= 0) {
        self->started_ns = blz_now();
        BLZ_CALL(self->rc, self->life, life, .service = self->service, .command = &self->command,
                 .signals = self->signals);
        if (!lives_again(self))
            break;
        BLZ_AWAIT(self->rc, blz_sleep(&self->sleep, next_pause(self)));
    }
    for (int i = 0; i < NR_PASSED; i++)
        blz_signal_close(&self->signals[i]);
    blz_command_free(&self->command);
    self->service->failed = self->rc != 0 && self->rc != -ECANCELED;
    atomic_store(&self->service->ended, true);
    blz_ignore(blz_semaphore_release(&self->service->supervisor->ended, 1));
    BLZ_END(0);
}

int service_spawn(struct service *service)
{
    return BLZ_SPAWN_JOIN(&service->task, service_run, .service = service);
}
