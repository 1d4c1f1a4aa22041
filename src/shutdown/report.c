/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is still running when a phase ends too early: a line that says so, and one for each task.
 *
 *     shutdown: draining was not done after 30.0 s: 1 at work, 0 accepting. Tasks:
 *       task 7 "session" waiting 31.20 s, ...: session at server.c:40 > guard_run > talk > read
 */
#include "shutdown/shutdown.h"

#include <blitz/runtime.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { HEAD_LEN = 160, LINE_LEN = 1024 };

const char *blz__shutdown_phase_name(int phase)
{
    static const char *const names[] = {"running", "stopping", "draining", "cancelling", "forcing"};

    return phase < NR_PHASES ? names[phase] : "ended";
}

static void write_head(const blz_shutdown *s, int phase)
{
    const blz_shutdown_step *step = &s->report.steps[phase];
    char line[HEAD_LEN];

    snprintf(line, sizeof line,
             "shutdown: %s was not done after %.1f s%s: %" PRIu64 " at work, %" PRIu32
             " accepting. Tasks:",
             blz__shutdown_phase_name(phase), (double)step->ns / 1e9,
             step->end == BLZ_SHUTDOWN_HURRIED ? ", in a hurry" : "", step->working,
             step->accepting);
    s->options.write(line, s->options.arg);
}

/* A task's line, set in by two columns; what does not fit is cut off. */
static void write_task(const char *text, void *arg)
{
    const blz_shutdown *s = arg;
    char line[LINE_LEN];

    snprintf(line, sizeof line, "  %s", text);
    s->options.write(line, s->options.arg);
}

void blz__shutdown_tell(blz_shutdown *s, int phase)
{
    blz_rt *rt = blz_rt_current();
    int rc;

    write_head(s, phase);
    rc = rt ? blz_task_dump(rt, write_task, s) : 0;
    if (rc < 0)
        write_task(blz_strerror(rc), s);
}
