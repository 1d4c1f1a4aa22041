/* SPDX-License-Identifier: Apache-2.0 */
/* Shutdowns that take notes of what they say, and tasks for them to end. */
#ifndef PHASES_H
#define PHASES_H

#include "io_fixture.h"

#include <stdio.h>
#include <string.h>

enum { LINES = 64, LINE = 400 };

/* What the shutdown has said. */
static struct {
    int phases[16], nr_phases;
    char lines[LINES][LINE];
    int nr_lines;
} said;

static void note_phase(const blz_shutdown_report *report, void *arg)
{
    check(arg == &said && said.nr_phases < 16);
    said.phases[said.nr_phases++] = report->phase;
}

static void note_line(const char *line, void *arg)
{
    check(arg == &said);
    if (said.nr_lines < LINES)
        snprintf(said.lines[said.nr_lines++], LINE, "%s", line);
}

static blz_shutdown *new_shutdown(blz_shutdown_options options)
{
    blz_shutdown *s;

    said.nr_phases = said.nr_lines = 0;
    options.on_phase = note_phase;
    options.write = note_line;
    options.arg = &said;
    options.allocator = test_memory();
    assert_int_equal(blz_shutdown_new(&s, &options), 0);
    return s;
}

static blz_shutdown *new_quiet_shutdown(void)
{
    return new_shutdown((blz_shutdown_options){.no_signals = true});
}

static blz_shutdown_report report_of(blz_shutdown *s)
{
    blz_shutdown_report report;

    blz_shutdown_get_report(s, &report);
    return report;
}

static blz_guard working(blz_shutdown *s)
{
    blz_guard guard;

    check(blz_guard_work(&guard, s) == 0);
    return guard;
}

static blz_guard accepting(blz_shutdown *s)
{
    blz_guard guard;

    check(blz_guard_accept(&guard, s) == 0);
    return guard;
}

/* ---- tasks ---- */

struct runs {
    BLZ_FRAME;
    blz_shutdown *shutdown;
    int64_t rc;
    blz_shutdown_op op;
};

BLZ_ASYNC(runs)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_shutdown_run(&self->op, self->shutdown));
    BLZ_END(self->rc);
}

static blz_handle run_it(blz_rt *rt, blz_shutdown *s)
{
    blz_handle handle;

    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, runs, .shutdown = s), 0);
    turn_all(rt);
    return handle;
}

/* Sleeps for an hour, under as many shields as that. */
struct naps {
    BLZ_FRAME;
    bool shielded;
    int64_t rc;
    blz_sleep_op nap;
};

BLZ_ASYNC(naps)
{
    BLZ_BEGIN;
    if (self->shielded)
        BLZ_AWAIT_SHIELDED(self->rc, blz_sleep(&self->nap, BLZ_HOUR));
    else
        BLZ_AWAIT(self->rc, blz_sleep(&self->nap, BLZ_HOUR));
    BLZ_END(self->rc < 0 ? self->rc : 7);
}

struct session {
    BLZ_FRAME;
    blz_guard guard;
    bool shielded;
    int64_t rc;
    struct naps naps;
    blz_guard_op op;
};

BLZ_ASYNC(session)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_guard_run(&self->op, &self->guard,
                                      BLZ_FUTURE(self->naps, naps, .shielded = self->shielded)));
    BLZ_END(self->rc);
}

static blz_handle session(blz_rt *rt, blz_guard guard, bool shielded)
{
    blz_handle handle;

    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, session, .guard = guard, .shielded = shielded), 0);
    turn_all(rt);
    return handle;
}

#endif
