/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The task dump: one line a task.
 *
 *     task 1030 "echo" waiting 1.20 s, 5 polls, 0.3 ms busy, spawned at echo.c:52: \
 *         echo at echo.c:31 > read
 *
 * A dump never races with a poll: an idle task is claimed (its state becomes running, so that
 * nobody polls it), its chain of futures is read, and it is let go again. Of tasks that run or are
 * queued only the header is read. While the heaps are walked their locks are held, so the lines are
 * gathered first, in memory that is there before, and written and woken tasks queued afterwards. If
 * the memory does not suffice, the walk finds out how much would, and is repeated.
 */
#include "sched/rt.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct dump {
    blz_rt *rt;
    char *text; /* lines, each ended by a 0 */
    size_t size;
    size_t len; /* of the text; more than the size if it did not fit */
    double ns_per_tick;
    uint64_t now;
    task_list woken; /* while we had them */
};

/* ---- text ---- */

static __attribute__((format(printf, 2, 3))) void add(struct dump *d, const char *fmt, ...)
{
    size_t room = d->len < d->size ? d->size - d->len : 0;
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(room ? d->text + d->len : NULL, room, fmt, args);
    va_end(args);
    if (len > 0)
        d->len += (size_t)len;
}

static void end_line(struct dump *d)
{
    if (d->len < d->size)
        d->text[d->len] = '\0';
    d->len++;
}

static void free_text(struct dump *d)
{
    if (d->text)
        blz__rt_free(d->rt, d->text, d->size, 1);
    d->text = NULL;
    d->size = 0;
}

/* Room for what the last walk wanted, and for some tasks more. False: no memory. */
static bool make_room(struct dump *d)
{
    size_t size = d->len + d->len / 4 + 4096;

    free_text(d);
    d->text = blz__rt_alloc(d->rt, size, 1);
    d->size = d->text ? size : 0;
    return d->text != NULL;
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

/* ---- a task ---- */

static const char *without_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void add_backtrace(struct dump *d, const blz_task *task)
{
    const char *separator = ": ";

    blz__plain_read(&task->root->child); /* the frame is ours */
    for (const blz_future *f = task->root; f; f = f->child) {
        add(d, "%s%s", separator, f->ops->name);
        if (f->ops->file && f->line != 0 && f->line != BLZ_LINE_DONE)
            add(d, " at %s:%u", without_folder(f->ops->file), f->line);
        separator = " > ";
    }
}

/* "fn at /path/file.c:12": the function is the default name. */
static void add_line(struct dump *d, const blz_task *task, const char *state, bool claimed)
{
    const char *given = task_given_name(task);
    const char *origin = blz__task_origin(task), *place = strstr(origin, " at ");
    int name_len = place ? (int)(place - origin) : (int)strlen(origin);
    uint64_t since = blz__load(&task->stamp, RELAXED);

    if (given)
        add(d, "task %llu \"%s\" %s", (unsigned long long)blz_task_id(task), given, state);
    else
        add(d, "task %llu \"%.*s\" %s", (unsigned long long)blz_task_id(task), name_len, origin,
            state);
    if (since > 1 && d->now > since) {
        add(d, " ");
        add_duration(d, (double)(d->now - since) * d->ns_per_tick);
    }
    add(d, ", %u polls, ", blz__load(&task->polls, RELAXED));
    add_duration(d, (double)blz__load(&task->busy, RELAXED) * TASK_BUSY_NS);
    add(d, " busy");
    if (place)
        add(d, ", spawned at %s", without_folder(place + 4));
    if (claimed)
        add_backtrace(d, task);
    end_line(d);
}

/* A task that runs another one, which it joins, counts as queued meanwhile. */
static bool is_polled(const blz_rt *rt, const blz_task *task)
{
    for (uint32_t i = 0; i < rt->nr_workers; i++)
        /* relaxed: it is a guess, and nothing is read through it */
        if (blz__load(&rt->workers[i].current, RELAXED) == task)
            return true;
    return false;
}

static void visit(void *arg, blz_task *task)
{
    struct dump *d = arg;
    uint64_t state = blz__load(&task->state, ACQUIRE);

    if (task_state_refs(state) == 0 || (state & TASK_COMPLETE))
        return;
    if (task_state_claim(&task->state)) {
        add_line(d, task, state & TASK_CANCEL ? "cancelled, waiting" : "waiting", true);
        if (task_state_unclaim(&task->state) == TASK_QUEUE)
            task_list_append(&d->woken, task);
    } else {
        add_line(d, task, is_polled(d->rt, task) ? "running" : "queued", false);
    }
}

static void walk(struct dump *d)
{
    blz_rt *rt = d->rt;

    d->len = 0;
    d->now = blz__clock_ticks(&rt->clock);
    blz__rt_walk(rt, visit, d);
    for (blz_task *task = task_list_take(&d->woken); task; task = task_list_take(&d->woken))
        blz__sched_queue(task);
}

int blz_task_dump(blz_rt *rt, void (*write)(void *arg, const char *line), void *arg)
{
    struct dump d = {.rt = rt};

    if (rt_is_forked(rt))
        return -EOWNERDEAD;
    d.ns_per_tick = blz__clock_ns_per_tick(&rt->clock);
    do {
        if (!make_room(&d))
            return -ENOMEM;
        walk(&d);
    } while (d.len > d.size);
    for (size_t at = 0; at < d.len; at += strlen(d.text + at) + 1)
        write(arg, d.text + at);
    free_text(&d);
    return 0;
}

static void write_line(void *arg, const char *line)
{
    int fd = *(int *)arg;

    (void)!write(fd, line, strlen(line));
    (void)!write(fd, "\n", 1);
}

int blz_task_dump_fd(blz_rt *rt, int fd)
{
    return blz_task_dump(rt, write_line, &fd);
}
