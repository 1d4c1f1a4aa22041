/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is wrong, as JSON: polls that take too long, tasks that ignore their cancellation, tasks
 * that have been queued for long, and circles of tasks that wait for each other.
 *
 * Circles. A task that waits for a lock, or for the end of a task, waits for one task in
 * particular: the holder. Waits that may end otherwise (inside of a select, or with a limit) do not
 * count. A walk along these edges finds circles. But a snapshot is not one moment: a circle in it
 * may be made of waits that were never there at the same time. So it is only a suspicion until the
 * next snapshot shows the same circle, and none of its tasks has been polled in between, as their
 * counts of polls say. Then there was a moment, between the two, at which all of them waited for
 * each other; and as each can only be woken by the next one, that is for good. The request that has
 * the suspicion takes the second snapshot itself.
 */
#include "console/console.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "system/clock.h"

#include <stdio.h>
#include <string.h>

#define RECENT_NS     (60 * BLZ_SEC)
#define QUEUED_FOR_NS (1 * BLZ_SEC)

enum { MAX_SHOWN = 5, MAX_MEMBERS = 16 };

struct writer {
    struct target *target;
    const struct snapshot *s;
    struct text *out;
    uint32_t count;
};

static void begin(struct writer *w, const char *kind)
{
    blz__text_print(w->out, "%s{\"kind\":\"%s\",\"text\":", w->count++ ? "," : "", kind);
}

/* The key is the same as long as it is the same warning about the same tasks. */
static void middle(struct writer *w, const char *text, uint64_t key)
{
    blz__text_json(w->out, text, strlen(text));
    blz__text_print(w->out, ",\"key\":\"%llx\",\"tasks\":[", (unsigned long long)key);
}

static void write_duration(char *out, size_t size, int64_t ns)
{
    if (ns < BLZ_SEC)
        snprintf(out, size, "%.0f ms", (double)ns / 1e6);
    else
        snprintf(out, size, "%.1f s", (double)ns / 1e9);
}

/* ---- long polls ---- */

static void say_stuck(struct writer *w, const struct observed_stuck *stuck, int64_t now_ns)
{
    char text[200], took[32], ago[32];

    write_duration(took, sizeof took, stuck->for_ns);
    write_duration(ago, sizeof ago, now_ns - stuck->since_ns);
    if (stuck->refused)
        snprintf(text, sizeof text, "Ignores that it has been cancelled (noticed %s ago):", ago);
    else if (stuck->ongoing)
        snprintf(text, sizeof text, "Has kept worker %u for %s without a pause:", stuck->worker,
                 took);
    else
        snprintf(text, sizeof text, "A poll took %s on worker %u, %s ago:", took, stuck->worker,
                 ago);
    begin(w, stuck->refused ? "ignores_cancel" : stuck->ongoing ? "never_yields" : "long_poll");
    middle(w, text, stuck->id ^ (uint64_t)stuck->since_ns);
    blz__text_print(w->out, "{\"id\":%llu,\"name\":", (unsigned long long)stuck->id);
    blz__text_json(w->out, stuck->name, strlen(stuck->name));
    blz__text_print(w->out, "}]}");
}

static void say_all_stuck(struct writer *w)
{
    struct observed_stuck stuck[OBSERVE_STUCK];
    int64_t now_ns = blz__clock_ns();
    blz_rt *rt = blz__target_enter(w->target);
    size_t count = 0, shown = 0;

    if (rt) {
        count = blz__observe_stuck(rt, stuck);
        blz__target_leave(w->target);
    }
    for (size_t i = 0; i < count && shown < MAX_SHOWN; i++)
        if (stuck[i].ongoing || now_ns - stuck[i].since_ns < RECENT_NS) {
            say_stuck(w, &stuck[i], now_ns);
            shown++;
        }
}

/* ---- tasks that nobody runs ---- */

static void say_queued(struct writer *w)
{
    const struct row *oldest = NULL;
    char text[160], longest[32];
    uint32_t count = 0;

    for (size_t i = 0; i < w->s->nr_rows; i++) {
        const struct row *row = &w->s->rows[i];
        if (row->state != OBSERVE_QUEUED || row->since_ns < QUEUED_FOR_NS)
            continue;
        count++;
        if (!oldest || row->since_ns > oldest->since_ns)
            oldest = row;
    }
    if (!oldest)
        return;
    write_duration(longest, sizeof longest, oldest->since_ns);
    snprintf(text, sizeof text, "%u %s could run, but have not for up to %s, such as:", count,
             count == 1 ? "task" : "tasks", longest);
    begin(w, "starved");
    middle(w, text, oldest->id);
    blz__snapshot_write_task(w->s, w->out, oldest);
    blz__text_print(w->out, "]}");
}

/* ---- circles ---- */

enum { WHITE, GREY, BLACK };

struct circles {
    struct writer *w;
    uint8_t *colour;  /* of each row */
    uint32_t *path;   /* rows */
    uint8_t *edge;    /* of each row on the path: the wait that was looked at last */
    uint32_t suspect; /* not confirmed yet */
    struct suspicion found[MAX_SUSPICIONS];
    uint32_t nr_found;
};

/* The row that this wait is for, or NULL. */
static const struct row *waits_for(const struct snapshot *s, const struct wait *wait)
{
    const struct row *holder =
        wait->optional ? NULL : blz__snapshot_find(s, wait->holder, wait->holder32);

    return holder && holder->state == OBSERVE_WAITING ? holder : NULL;
}

/* The same whichever task it begins with. */
static uint64_t hash_of(const struct snapshot *s, const uint32_t *path, uint32_t len)
{
    uint64_t sum = len;

    for (uint32_t i = 0; i < len; i++) {
        uint64_t h = (s->rows[path[i]].id ^ (uint64_t)s->rows[path[i]].polls << 40);
        h *= 0x9e3779b97f4a7c15u;
        sum += h ^ h >> 31;
    }
    return sum;
}

static bool was_suspected(const struct target *target, uint64_t hash)
{
    for (uint32_t i = 0; i < target->nr_suspicions; i++)
        if (target->suspicions[i].hash == hash &&
            target->suspicions[i].snapshot < target->snapshot.number)
            return true;
    return false;
}

static void say_circle(struct circles *c, const uint32_t *path, uint32_t len, uint64_t hash)
{
    struct writer *w = c->w;
    char text[100];

    if (len == 1)
        snprintf(text, sizeof text, "A deadlock: a task waits for itself:");
    else
        snprintf(text, sizeof text, "A deadlock: %u tasks wait for each other in a circle:", len);
    begin(w, "deadlock");
    middle(w, text, hash);
    for (uint32_t i = 0; i < len && i < MAX_MEMBERS; i++) {
        if (i)
            blz__text_add(w->out, ",", 1);
        blz__snapshot_write_task(w->s, w->out, &w->s->rows[path[i]]);
    }
    blz__text_print(w->out, "]}");
}

static void found_circle(struct circles *c, const uint32_t *path, uint32_t len)
{
    struct target *target = c->w->target;
    uint64_t hash = hash_of(c->w->s, path, len);

    if (c->nr_found == MAX_SUSPICIONS)
        return;
    c->found[c->nr_found++] = (struct suspicion){hash, c->w->s->number};
    if (was_suspected(target, hash)) {
        c->found[c->nr_found - 1].snapshot = 0; /* known for good */
        say_circle(c, path, len, hash);
    } else {
        c->suspect++;
    }
}

/* From one row in all directions; `path` is where we are, grey; what is behind us is black. */
static void follow(struct circles *c, uint32_t from)
{
    const struct snapshot *s = c->w->s;
    uint32_t len = 1;

    c->path[0] = from;
    c->edge[from] = 0;
    c->colour[from] = GREY;
    while (len > 0) {
        uint32_t at = c->path[len - 1];
        const struct row *row = &s->rows[at], *next;

        if (c->edge[at] == row->nr_waits) {
            c->colour[at] = BLACK;
            len--;
            continue;
        }
        next = waits_for(s, &s->waits[row->first_wait + c->edge[at]++]);
        if (!next)
            continue;
        uint32_t to = (uint32_t)(next - s->rows);
        if (c->colour[to] == GREY) {
            uint32_t begin_at = len - 1;
            while (c->path[begin_at] != to)
                begin_at--;
            found_circle(c, c->path + begin_at, len - begin_at);
        } else if (c->colour[to] == WHITE) {
            c->colour[to] = GREY;
            c->edge[to] = 0;
            c->path[len++] = to;
        }
    }
}

/* True: there is a suspicion that another snapshot would settle. */
static bool say_circles(struct writer *w)
{
    const struct snapshot *s = w->s;
    size_t n = s->nr_rows + 1;
    struct circles c = {.w = w};

    c.colour = blz__alloc(s->allocator, n, 1);
    c.edge = blz__alloc(s->allocator, n, 1);
    c.path = blz__alloc(s->allocator, n * sizeof *c.path, _Alignof(uint32_t));
    if (c.colour && c.edge && c.path) {
        memset(c.colour, WHITE, n);
        for (uint32_t i = 0; i < s->nr_rows; i++)
            if (c.colour[i] == WHITE && s->rows[i].nr_waits > 0 &&
                s->rows[i].state == OBSERVE_WAITING)
                follow(&c, i);
        memcpy(w->target->suspicions, c.found, sizeof c.found);
        w->target->nr_suspicions = c.nr_found;
    } else {
        w->out->failed = true;
    }
    if (c.colour)
        blz__free(s->allocator, c.colour, n, 1);
    if (c.edge)
        blz__free(s->allocator, c.edge, n, 1);
    if (c.path)
        blz__free(s->allocator, c.path, n * sizeof *c.path, _Alignof(uint32_t));
    return c.suspect > 0;
}

bool blz__console_warnings(struct target *target, struct text *out)
{
    struct writer w = {.target = target, .s = &target->snapshot, .out = out};
    bool suspicion;

    blz__text_print(out, "{\"snapshot\":%llu,\"warnings\":[", (unsigned long long)w.s->number);
    suspicion = say_circles(&w);
    say_all_stuck(&w);
    say_queued(&w);
    blz__text_print(out, "]}\n");
    return suspicion;
}
