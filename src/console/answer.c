/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which answer a path gives.
 *
 * A snapshot is shared: requests that come soon after each other get the same one, so a page with
 * several tables, or several pages, cost one. How soon is as long as it took, five times over, and
 * 100 ms at least: whoever asks all the time gets a fifth of one CPU. `fresh=1` asks for a new one
 * in any case, for tools that ask once.
 */
#include "console/console.h"

#include "base/clock.h"
#include "system/clock.h"

#include <string.h>

#define SHARED_NS (100 * BLZ_MSEC)

enum { DUTY = 5 };

struct route {
    const char *path, *type;
    void (*plain)(blz_console *console, struct text *out);
    void (*with_tasks)(const struct snapshot *snapshot, const char *query, struct text *out);
    bool (*with_target)(struct target *target, struct text *out); /* true: try again */
};

#define JSON "application/json"

static const struct route routes[] = {
    {"/api/overview", JSON, blz__console_overview, NULL, NULL},
    {"/metrics", "text/plain; version=0.0.4; charset=utf-8", blz__console_metrics, NULL, NULL},
    {"/api/tasks", JSON, NULL, blz__console_tasks, NULL},
    {"/api/resources", JSON, NULL, blz__console_resources, NULL},
    {"/api/warnings", JSON, NULL, NULL, blz__console_warnings},
};

static const struct route *find_route(const char *path)
{
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++)
        if (strcmp(path, routes[i].path) == 0)
            return &routes[i];
    return NULL;
}

static bool needs_tasks(const char *path)
{
    const struct route *route = find_route(path);
    return route && !route->plain;
}

static bool is_recent(const struct blz__console_answer *a)
{
    const struct snapshot *s = &a->console->targets[a->target].snapshot;
    int64_t keep_ns = s->took_ns * DUTY > SHARED_NS ? s->took_ns * DUTY : SHARED_NS;

    return s->number > 0 && !s->failed && blz__clock_ns() - s->taken_ns < keep_ns &&
           blz__query_number(a->request.query, "fresh", 1, 0) == 0;
}

/* The status; 0: it wants another snapshot, and is to be called again. */
static int write_body(struct blz__console_answer *a)
{
    const struct route *route = find_route(a->request.path);
    struct target *target = &a->console->targets[a->target];
    const char *file;
    size_t len;

    if (!route) {
        file = blz__page_find(a->request.path, &len, a->type);
        if (file)
            blz__text_add(a->body, file, len);
        return file ? 200 : 404;
    }
    *a->type = route->type;
    if (route->plain)
        route->plain(a->console, a->body);
    else if (route->with_tasks)
        route->with_tasks(&target->snapshot, a->request.query, a->body);
    else if (route->with_target(target, a->body) && a->tries++ == 0) {
        text_clear(a->body);
        return 0;
    }
    return 200;
}

/* The status; negative: cancelled. */
BLZ_ASYNC_EXTERN(blz__console_answer)
{
    BLZ_BEGIN;
    if (!needs_tasks(self->request.path)) {
        self->rc = write_body(self);
        goto out;
    }
    self->target =
        (uint32_t)blz__query_number(self->request.query, "rt", self->console->nr_targets, 0);
    if (self->target >= self->console->nr_targets) {
        self->rc = 404;
        goto out;
    }
    BLZ_AWAIT(self->rc, blz_mutex_lock(&self->lock, &self->console->snapshot_mutex));
    if (self->rc < 0)
        goto out;
    if (is_recent(self))
        self->rc = write_body(self);
    while (self->rc == 0) {
        BLZ_CALL(self->rc, self->take, blz__snapshot_take,
                 .target = &self->console->targets[self->target]);
        if (self->rc == 0)
            self->rc = write_body(self);
    }
    if (self->rc < 0 && self->rc != -ECANCELED)
        self->rc = self->rc == -ESHUTDOWN ? 404 : 503;
    blz_mutex_unlock(&self->console->snapshot_mutex);
out:
    BLZ_END(self->rc);
}
