// SPDX-License-Identifier: Apache-2.0
// libuv micro-benchmarks: timers, uv_queue_work one by one and in a batch, an idle callback per
// loop turn as the nearest thing to a yield, a uv_async ping-pong between two threads.
#include "bench.h"
#include <uv.h>

static uv_loop_t *g_loop;
static size_t g_left;

static void on_timer(uv_timer_t *timer)
{
    (void)timer;
}

static void timer_insert_cancel(struct run *r, size_t n)
{
    uv_timer_t *timers = calloc(n, sizeof *timers);
    g_xorshift = XORSHIFT_SEED;
    bench_start(r);
    for (size_t i = 0; i < n; i++) {
        uv_timer_init(g_loop, &timers[i]);
        uv_timer_start(&timers[i], on_timer, 1000 + xorshift() % 59000, 0);
    }
    uint64_t inserted = now_ns();
    for (size_t i = 0; i < n; i++)
        uv_timer_stop(&timers[i]);
    bench_stop(r);
    double insert = (double)(inserted - r->wall0);
    snprintf(r->extra, sizeof r->extra, " insert_ns=%.1f cancel_ns=%.1f", insert / (double)n,
             ((double)r->wall_ns - insert) / (double)n);
    // the handles stay linked in the loop: the memory is left to the end of the process
}

static void timer_insert_expire(struct run *r, size_t n)
{
    uv_timer_t *timers = calloc(n, sizeof *timers);
    g_xorshift = XORSHIFT_SEED;
    uv_update_time(g_loop);
    bench_start(r);
    for (size_t i = 0; i < n; i++) {
        uv_timer_init(g_loop, &timers[i]);
        uv_timer_start(&timers[i], on_timer, 1 + xorshift() % 100, 0);
    }
    uv_run(g_loop, UV_RUN_DEFAULT);
    bench_stop(r);
}

static void work_nothing(uv_work_t *work)
{
    (void)work;
}

static void after_queue_next(uv_work_t *work, int status)
{
    (void)status;
    if (--g_left > 0)
        uv_queue_work(g_loop, work, work_nothing, after_queue_next);
}

static void after_count(uv_work_t *work, int status)
{
    (void)work;
    (void)status;
    g_left--;
}

static void blocking_seq(struct run *r, size_t n)
{
    uv_work_t work;
    g_left = n;
    bench_start(r);
    uv_queue_work(g_loop, &work, work_nothing, after_queue_next);
    uv_run(g_loop, UV_RUN_DEFAULT);
    bench_stop(r);
}

static void blocking_batch(struct run *r, size_t n)
{
    uv_work_t *works = malloc(n * sizeof *works);
    g_left = n;
    bench_start(r);
    for (size_t i = 0; i < n; i++)
        uv_queue_work(g_loop, &works[i], work_nothing, after_count);
    uv_run(g_loop, UV_RUN_DEFAULT);
    bench_stop(r);
    free(works);
}

static void on_idle(uv_idle_t *idle)
{
    if (--g_left == 0)
        uv_idle_stop(idle);
}

static void yield_1(struct run *r, size_t n)
{
    uv_idle_t idle;
    g_left = n;
    uv_idle_init(g_loop, &idle);
    uv_idle_start(&idle, on_idle);
    bench_start(r);
    uv_run(g_loop, UV_RUN_DEFAULT);
    bench_stop(r);
    uv_close((uv_handle_t *)&idle, 0);
    uv_run(g_loop, UV_RUN_DEFAULT);
}

static uv_loop_t g_loop2;
static uv_async_t g_ping, g_pong;

static void on_ping(uv_async_t *async)
{
    (void)async;
    uv_async_send(&g_pong);
}

static void on_pong(uv_async_t *async)
{
    (void)async;
    if (--g_left > 0)
        uv_async_send(&g_ping);
    else
        uv_stop(g_loop);
}

static void run_loop2(void *unused)
{
    (void)unused;
    uv_run(&g_loop2, UV_RUN_DEFAULT);
}

static void pingpong_xthread(struct run *r, size_t n)
{
    static int started;
    if (!started++) {
        uv_thread_t thread;
        uv_loop_init(&g_loop2);
        uv_async_init(g_loop, &g_pong, on_pong);
        uv_async_init(&g_loop2, &g_ping, on_ping);
        uv_thread_create(&thread, run_loop2, 0);
    }
    g_left = n;
    bench_start(r);
    uv_async_send(&g_ping);
    uv_run(g_loop, UV_RUN_DEFAULT);
    bench_stop(r);
}

int main(int argc, char **argv)
{
    static const struct bench table[] = {
        {"timer_insert_cancel", 100000, timer_insert_cancel, 0},
        {"timer_insert_expire", 100000, timer_insert_expire, 0},
        {"blocking_seq", 50000, blocking_seq, 0},
        {"blocking_batch", 10000, blocking_batch, 0},
        {"yield_1", 300000, yield_1, 0},
        {"pingpong_xthread", 50000, pingpong_xthread, 2}, // last: its handles keep the loop alive
    };
    g_peer = "libuv";
    parse_args(argc, argv);
    g_loop = uv_default_loop();
    int status = bench_main(table, sizeof table / sizeof *table);
    fflush(stdout);
    _Exit(status);
}
