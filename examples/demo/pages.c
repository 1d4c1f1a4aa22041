/* SPDX-License-Identifier: Apache-2.0 */
/* What there is to see: each page shows a side of the runtime. */
#include "demo.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* ---- pages that are written at once ---- */

static void write_start(struct bytes *body, const struct exchange *x)
{
    static const char text[] =
        "<!DOCTYPE html><meta charset=utf-8><title>Blitz</title>\n"
        "<h1>Blitz</h1>\n"
        "<p>An HTTP server in C: each connection is a task of a few hundred bytes, written as\n"
        "straight-line code, and run by a work-stealing scheduler on all cores.\n"
        "<ul>\n"
        "<li><a href=/hello>/hello</a>: a few bytes, to measure with\n"
        "<li><a href=/stats>/stats</a>: what the workers have done\n"
        "<li><a href=/tasks>/tasks</a>: what every task is waiting for, down to the source line\n"
        "<li><a href=\"/sleep?ms=500\">/sleep?ms=500</a>: waits, 10,000 at most; blocks nobody\n"
        "<li><a href=\"/block?ms=500\">/block?ms=500</a>: blocks, on a thread made for that\n"
        "<li>/echo: what you POST comes back\n"
        "</ul>\n";

    (void)x;
    bytes_add(body, text, sizeof text - 1);
}

static void write_hello(struct bytes *body, const struct exchange *x)
{
    (void)x;
    bytes_add(body, "Hello, World!", 13);
}

static void write_echo(struct bytes *body, const struct exchange *x)
{
    bytes_add(body, x->in + x->head_len, x->body_len);
}

static void write_count(struct bytes *body, const char *name, uint64_t n)
{
    bytes_print(body, "  \"%s\": %llu,\n", name, (unsigned long long)n);
}

static void write_stats(struct bytes *body, const struct exchange *x)
{
    blz_rt *rt = blz_rt_current();
    blz_stats s;

    blz_rt_stats(rt, &s);
    bytes_print(body, "{\n  \"backend\": ");
    bytes_quote(body, blz_rt_backend(rt));
    bytes_print(body, ",\n  \"backend_reason\": ");
    bytes_quote(body, blz_rt_backend_reason(rt));
    bytes_print(body, ",\n");
    write_count(body, "connections", atomic_load(&x->server->nr_connections));
    write_count(body, "requests", atomic_load(&x->server->nr_requests));
    write_count(body, "workers", s.workers);
    write_count(body, "live_tasks", s.live_tasks);
    write_count(body, "polls", s.total.polls);
    write_count(body, "steals", s.total.steals);
    write_count(body, "parks", s.total.parks);
    write_count(body, "timers_armed", s.total.timers_armed);
    write_count(body, "blocking_threads", s.blocking_threads);
    bytes_print(body, "  \"uptime_ms\": %lld\n}\n",
                (long long)((blz_now() - x->server->started_ns) / BLZ_MSEC));
}

static void write_task(const char *line, void *arg)
{
    bytes_print(arg, "%s\n", line);
}

static void write_tasks(struct bytes *body, const struct exchange *x)
{
    (void)x;
    blz_task_dump(blz_rt_current(), write_task, body);
}

/* ---- pages that wait ---- */

static blz_future *wait_asleep(union page_wait *op, struct exchange *x)
{
    return blz_sleep(&op->sleep, (int64_t)x->ms * BLZ_MSEC);
}

/* The kind of function that no task should call: it blocks the thread that it is on. */
static int64_t block(void *arg)
{
    const uint64_t *ms = arg;
    struct timespec left = {.tv_sec = (time_t)(*ms / 1000),
                            .tv_nsec = (long)(*ms % 1000) * 1000000};

    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
    return 0;
}

static blz_future *wait_blocked(union page_wait *op, struct exchange *x)
{
    return blz_blocking(&op->block, block, &x->ms);
}

static void write_slept(struct bytes *body, const struct exchange *x)
{
    bytes_print(body, "slept for %llu ms\n", (unsigned long long)x->ms);
}

static void write_blocked(struct bytes *body, const struct exchange *x)
{
    bytes_print(body, "blocked a thread of the blocking pool for %llu ms\n",
                (unsigned long long)x->ms);
}

/* ---- all of them ---- */

static const struct page pages[] = {
    {"/", "GET, HEAD", "text/html", NULL, write_start},
    {"/hello", "GET, HEAD", "text/plain", NULL, write_hello},
    {"/stats", "GET, HEAD", "application/json", NULL, write_stats},
    {"/tasks", "GET, HEAD", "text/plain", NULL, write_tasks},
    {"/sleep", "GET, HEAD", "text/plain", wait_asleep, write_slept},
    {"/block", "GET, HEAD", "text/plain", wait_blocked, write_blocked},
    {"/echo", "POST", "application/octet-stream", NULL, write_echo},
};

const struct page *page_find(const char *path, size_t len)
{
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        if (strlen(pages[i].path) == len && memcmp(pages[i].path, path, len) == 0)
            return &pages[i];
    return NULL;
}
