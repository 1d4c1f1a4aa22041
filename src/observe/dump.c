/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The task dump: one line a task.
 *
 *     task 1030 "echo" waiting 1.20 s, 5 polls, 0.3 ms busy, spawned at echo.c:52: \
 *         echo at echo.c:31 > select { 0: read | 1: timeout > recv }
 *
 * The futures are a tree, written in one line: `>` stands before what a future awaits, and the
 * branches of a combinator are in braces, each with its number. Branches that have ended are left
 * out. blitz-top and gdb's `blz bt` show the same tree.
 *
 * The tasks come from the walk of observe.h, in steps. Between two steps no lock is held and no
 * task is claimed: that is when lines are written.
 */
#include "observe/observe.h"
#include "sched/rt.h"

#include <blitz/error.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    STEP_TASKS = 32,  /* that a step of the walk brings */
    DUMP_LINE = 4096, /* a longer line is cut */
};

struct dump {
    observe_walk walk;
    struct observed_task tasks[STEP_TASKS];
    char line[DUMP_LINE];
    size_t len;
};

/* ---- text ---- */

static __attribute__((format(printf, 2, 3))) void add(struct dump *d, const char *fmt, ...)
{
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(d->line + d->len, sizeof d->line - d->len, fmt, args);
    va_end(args);
    if (len > 0)
        d->len += (size_t)len < sizeof d->line - d->len ? (size_t)len : sizeof d->line - d->len - 1;
}

static void add_duration(struct dump *d, double ns)
{
    if (ns < 1e6)
        add(d, "%.1f us", ns / 1e3);
    else if (ns < 1e9)
        add(d, "%.1f ms", ns / 1e6);
    else
        add(d, "%.2f s", ns / 1e9);
}

static const char *without_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ---- the tree ---- */

/* Depths of the combinators' branches that are open, outermost first. */
struct braces {
    uint16_t depth[OBSERVE_FRAMES];
    uint32_t count;
};

/* Before a branch: ends what is open inside of it, and begins or goes on with its combinator. */
static void add_branch(struct dump *d, struct braces *open, const struct observed_frame *frame)
{
    while (open->count > 0 && open->depth[open->count - 1] > frame->depth) {
        add(d, " }");
        open->count--;
    }
    if (open->count > 0 && open->depth[open->count - 1] == frame->depth) {
        add(d, " | ");
    } else {
        add(d, " { ");
        open->depth[open->count++] = frame->depth;
    }
    add(d, "%d: ", frame->branch);
}

static void add_tree(struct dump *d, const struct observed_task *task)
{
    struct braces open = {.count = 0};

    for (uint32_t i = 0; i < task->nr_frames; i++) {
        const struct observed_frame *frame = &task->frames[i];

        if (frame->branch >= 0)
            add_branch(d, &open, frame);
        else
            add(d, i ? " > " : ": ");
        add(d, "%s", frame->name);
        if (frame->file)
            add(d, " at %s:%u", without_folder(frame->file), frame->line);
        if (i == 0 && task->omitted)
            add(d, " > (%u more)", task->omitted);
    }
    while (open.count-- > 0)
        add(d, " }");
}

/* ---- a task ---- */

static const char *state_of(const struct observed_task *task)
{
    if (task->state == OBSERVE_RUNNING)
        return "running";
    if (task->state == OBSERVE_QUEUED)
        return "queued";
    return task->cancelled ? "cancelled, waiting" : "waiting";
}

static void write_task(struct dump *d, const struct observed_task *task)
{
    const char *place = strstr(task->origin, " at ");

    d->len = 0;
    add(d, "task %llu \"%s\" %s", (unsigned long long)task->id, task->name, state_of(task));
    if (task->since_ns > 0) {
        add(d, " ");
        add_duration(d, (double)task->since_ns);
    }
    add(d, ", %u polls, ", task->polls);
    add_duration(d, (double)task->busy_ns);
    add(d, " busy");
    if (place)
        add(d, ", spawned at %s", without_folder(place + 4));
    add_tree(d, task);
}

int blz_task_dump(blz_rt *rt, void (*write)(const char *line, void *arg), void *arg)
{
    struct dump *d;
    bool more = true;

    if (rt_is_forked(rt))
        return -EOWNERDEAD;
    d = blz__rt_alloc(rt, sizeof *d, _Alignof(struct dump));
    if (!d)
        return -ENOMEM;
    blz__observe_begin(&d->walk, rt);
    while (more) {
        size_t count = blz__observe_step(&d->walk, d->tasks, STEP_TASKS, &more);
        for (size_t i = 0; i < count; i++) {
            write_task(d, &d->tasks[i]);
            write(d->line, arg);
        }
    }
    blz__observe_end(&d->walk);
    blz__rt_free(rt, d, sizeof *d, _Alignof(struct dump));
    return 0;
}
