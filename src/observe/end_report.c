/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line on stderr about a runtime that did not end well: tasks that ignored their cancellation,
 * calls on the blocking pool that did not return, handles that were never closed. A program that
 * gets -ETIMEDOUT and does not look at it would otherwise only be slow to end, and one that forgets
 * to close would only grow. One line, so that it does not drown what the program writes itself;
 * blz_task_dump has the whole of it.
 *
 * Called by the thread that ends the runtime, when the watchdog has gone. Tasks that did not end
 * may still be running: the dump knows how to look at them.
 */
#include "base/panic.h"
#include "sched/rt.h"

#include <stdio.h>
#include <string.h>

enum { TASK_TEXT = 512, REPORT_TEXT = 960 };

struct first_task {
    uint64_t count; /* of all tasks */
    char text[TASK_TEXT];
};

static void keep_first(const char *line, void *arg)
{
    struct first_task *first = arg;

    if (first->count++ == 0)
        snprintf(first->text, sizeof first->text, "%s", line);
}

static void add(char *text, const char *part)
{
    size_t len = strlen(text);

    snprintf(text + len, REPORT_TEXT - len, "%s%s", len ? "; " : "", part);
}

/* Where the last task that refused its cancellation does so: the dump does not look into it. */
static void add_refusal(blz_rt *rt, char *text)
{
    watchdog *dog = &rt->watchdog;
    char part[TASK_TEXT];

    blz__lock_acquire(&dog->log_lock); /* such a task may still be running */
    for (uint32_t i = 0, found = 0; i < STUCK_RECORDS && !found; i++) {
        const stuck_record *record = &dog->records[(dog->nr_records - 1 - i) % STUCK_RECORDS];
        const char *slash;

        if (!record->refused || !record->file)
            continue;
        slash = strrchr(record->file, '/');
        snprintf(part, sizeof part, "task %llu ignores its cancellation in %s at %s:%u",
                 (unsigned long long)record->id, record->function, slash ? slash + 1 : record->file,
                 record->line);
        add(text, part);
        found = 1;
    }
    blz__lock_release(&dog->log_lock);
}

static void add_tasks(blz_rt *rt, char *text)
{
    struct first_task first = {.count = 0};
    char part[TASK_TEXT + 64];

    if (blz_task_dump(rt, keep_first, &first) < 0 || first.count == 0)
        snprintf(part, sizeof part, "tasks did not end");
    else
        snprintf(part, sizeof part, "%llu task%s did not end: %s", (unsigned long long)first.count,
                 first.count > 1 ? "s" : "", first.text);
    add(text, part);
    add_refusal(rt, text);
}

static void add_handles(blz_rt *rt, char *text)
{
    uint64_t open = blz__io_open_count(rt->io);
    char part[96];

    if (open == 0)
        return;
    snprintf(part, sizeof part, "%llu handle%s of sockets, files or pipes %s never closed",
             (unsigned long long)open, open > 1 ? "s" : "", open > 1 ? "were" : "was");
    add(text, part);
}

void blz__rt_report_end(blz_rt *rt, bool drained)
{
    char text[REPORT_TEXT] = "";

    if (rt->options.quiet_end)
        return;
    if (!drained)
        add_tasks(rt, text);
    else if (rt->io)
        add_handles(rt, text);
    if (rt->jobs_stuck)
        add(text, "calls on the blocking pool did not return");
    if (text[0])
        blz__warn("at the end of the runtime \"%s\": %s", rt->options.name, text);
}
