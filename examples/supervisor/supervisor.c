/* SPDX-License-Identifier: Apache-2.0 */
/* The program: signals, starting, reloading, stopping. */
#include "supervisor.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INTERRUPT, TERMINATE, HANGUP, NR_SIGNALS };
enum { MAX_FILE = 1 << 20 };

void say(const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "supervisor: %s\n", text);
}

/* All that the main task knows. */
struct state {
    struct supervisor *supervisor;
    blz_signal signals[NR_SIGNALS];
    struct service *services[MAX_SERVICES]; /* in the order in which they were started */
    size_t count;
    struct config config; /* as read last; what has been started is not in it any more */
    unsigned nr_stops;    /* how often we were asked to */
    bool reload;
};

/* ---- waiting ---- */

/* Waits until something happens, and takes note of it. */
struct wait_event {
    BLZ_FRAME;
    struct state *state;
    int64_t rc;
    blz_signal_op received[NR_SIGNALS];
    blz_semaphore_op ended;
    blz_select_op select;
};

/* More than one may have come: a signal that was received when another branch was first, too. */
static void note_signals(struct wait_event *self)
{
    struct state *state = self->state;

    for (int i = 0; i < NR_SIGNALS; i++) {
        if (self->received[i].future.result <= 0)
            continue;
        if (i == HANGUP)
            state->reload = true;
        else
            state->nr_stops++;
    }
    if (state->nr_stops > 1 && blz_token_cancel(state->supervisor->force))
        say("all services are killed");
}

BLZ_ASYNC(wait_event)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc,
              blz_select(&self->select,
                         blz_signal_recv(&self->received[0], &self->state->signals[0], NULL),
                         blz_signal_recv(&self->received[1], &self->state->signals[1], NULL),
                         blz_signal_recv(&self->received[2], &self->state->signals[2], NULL),
                         blz_semaphore_acquire(&self->ended, &self->state->supervisor->ended, 1)));
    if (self->rc >= 0)
        note_signals(self);
    BLZ_END(self->rc);
}

/* ---- services ---- */

static void start_service(struct state *state, struct definition *definition)
{
    struct service *service = calloc(1, sizeof *service);
    int rc = service ? 0 : -ENOMEM;

    if (rc == 0) {
        service->supervisor = state->supervisor;
        service->definition = definition;
        rc = service_spawn(service);
    }
    if (rc == 0) {
        state->services[state->count++] = service;
        return;
    }
    say("%s: %s", definition->name, blz_strerror(rc));
    definition_free(definition);
    free(service);
}

static void remove_service(struct state *state, size_t i)
{
    definition_free(state->services[i]->definition);
    free(state->services[i]);
    state->count--;
    memmove(&state->services[i], &state->services[i + 1],
            (state->count - i) * sizeof *state->services);
}

static bool all_have_ended(const struct state *state)
{
    for (size_t i = 0; i < state->count; i++)
        if (!atomic_load(&state->services[i]->ended))
            return false;
    return true;
}

static bool any_has_failed(const struct state *state)
{
    for (size_t i = 0; i < state->count; i++)
        if (state->services[i]->failed)
            return true;
    return false;
}

/* Which of the new definitions is this service's, or -1. */
static long find_same(const struct state *state, const struct service *service)
{
    const struct definition *old = service->definition;

    for (size_t i = 0; i < state->config.count; i++) {
        const struct definition *new = state->config.services[i];
        if (new &&strcmp(new->name, old->name) == 0 && strcmp(new->text, old->text) == 0)
            return (long)i;
    }
    return -1;
}

/* Stops one service, and waits for its end: 0. */
struct stop_service {
    BLZ_FRAME;
    struct state *state;
    size_t i;
    int64_t rc;
    union {
        struct wait_event wait;
        blz_handle_join_op join;
    };
};

/* When there is no more grace, nobody waits for its turn either. */
static void cancel_services(struct state *state, size_t i)
{
    blz_handle_cancel(&state->services[i]->task);
    if (state->nr_stops > 1)
        for (size_t k = 0; k < state->count; k++)
            blz_handle_cancel(&state->services[k]->task);
}

BLZ_ASYNC(stop_service)
{
    BLZ_BEGIN;
    cancel_services(self->state, self->i);
    while (!atomic_load(&self->state->services[self->i]->ended)) {
        BLZ_CALL(self->rc, self->wait, wait_event, .state = self->state);
        cancel_services(self->state, self->i);
    }
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->state->services[self->i]->task));
    remove_service(self->state, self->i);
    BLZ_END(0);
}

/* ---- the file ---- */

struct load {
    BLZ_FRAME;
    struct state *state;
    int64_t rc;
    blz_fs_op read;
    blz_bytes text;
};

/* Reads it: 0 and state->config, or an error, which has been told. */
BLZ_ASYNC(load)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc,
              blz_fs_read(&self->read, self->state->supervisor->path, &self->text, MAX_FILE));
    if (self->rc < 0) {
        say("%s: %s", self->state->supervisor->path, blz_strerror(self->rc));
    } else {
        char why[128] = "no memory";
        self->rc = config_parse(&self->state->config, self->text.data, why, sizeof why);
        if (self->rc < 0)
            say("%s: %s", self->state->supervisor->path, why);
    }
    blz_bytes_free(&self->text);
    BLZ_END(self->rc);
}

static void start_new(struct state *state)
{
    for (size_t i = 0; i < state->config.count; i++)
        if (state->config.services[i])
            start_service(state, state->config.services[i]);
    state->config.count = 0;
}

struct reload {
    BLZ_FRAME;
    struct state *state;
    size_t i;
    int64_t rc;
    union {
        struct load load;
        struct stop_service stop;
    };
};

/* A service that is as it was is left alone, and its new definition is not needed. */
static bool is_kept(struct state *state, size_t i)
{
    long same = find_same(state, state->services[i]);

    if (same < 0)
        return false;
    definition_free(state->config.services[same]);
    state->config.services[same] = NULL;
    return true;
}

BLZ_ASYNC(reload)
{
    BLZ_BEGIN;
    self->state->reload = false;
    BLZ_CALL(self->rc, self->load, load, .state = self->state);
    if (self->rc < 0)
        goto out; /* as before, then */
    for (self->i = self->state->count; self->i-- > 0;)
        if (!is_kept(self->state, self->i))
            BLZ_CALL(self->rc, self->stop, stop_service, .state = self->state, .i = self->i);
    start_new(self->state);
    say("%s has been read again", self->state->supervisor->path);
out:
    BLZ_END(self->rc);
}

/* ---- the main task ---- */

struct supervise {
    BLZ_FRAME;
    struct state state;
    int64_t rc, stopped;
    union {
        struct load load;
        struct reload reload;
        struct wait_event wait;
        struct stop_service stop;
    };
};

static int64_t open_all(struct state *state)
{
    static const int numbers[NR_SIGNALS] = {SIGINT, SIGTERM, SIGHUP};
    int rc = blz_stdout(&state->supervisor->output);

    for (int i = 0; i < NR_SIGNALS && rc == 0; i++)
        rc = blz_signal_open(&state->signals[i], numbers[i]);
    if (rc < 0)
        say("%s", blz_strerror(rc));
    return rc;
}

static void close_all(struct state *state)
{
    for (int i = 0; i < NR_SIGNALS; i++)
        blz_signal_close(&state->signals[i]);
    config_free(&state->config);
}

/* 0; 1: all have ended by themselves, and not all of them well; or a negative errno. */
BLZ_ASYNC(supervise)
{
    BLZ_BEGIN;
    self->rc = open_all(&self->state);
    if (self->rc == 0)
        BLZ_CALL(self->rc, self->load, load, .state = &self->state);
    if (self->rc < 0)
        goto out;
    start_new(&self->state);
    while (self->state.nr_stops == 0 && !all_have_ended(&self->state)) {
        BLZ_CALL(self->rc, self->wait, wait_event, .state = &self->state);
        if (self->state.reload && self->state.nr_stops == 0)
            BLZ_CALL(self->rc, self->reload, reload, .state = &self->state);
    }
    self->rc = self->state.nr_stops == 0 && any_has_failed(&self->state);
    if (self->state.nr_stops > 0)
        say("stopping");
    while (self->state.count > 0) {
        BLZ_CALL(self->stopped, self->stop, stop_service, .state = &self->state,
                 .i = self->state.count - 1);
    }
out:
    close_all(&self->state);
    BLZ_END(self->rc);
}

int main(int argc, char **argv)
{
    static struct supervisor supervisor;
    int64_t rc;

    if (argc != 2) {
        fprintf(stderr, "usage: supervisor FILE\n");
        return 2;
    }
    supervisor.path = argv[1];
    blz_semaphore_init(&supervisor.ended, 0);
    blz_mutex_init(&supervisor.output_lock);
    if (blz_token_new(&supervisor.force) < 0)
        return 2;
    rc = BLZ_RUN(supervise, .state.supervisor = &supervisor);
    blz_token_unref(supervisor.force);
    if (rc == 0)
        say("done");
    return rc < 0 ? 2 : (int)rc;
}
