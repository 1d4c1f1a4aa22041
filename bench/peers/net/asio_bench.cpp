// SPDX-License-Identifier: Apache-2.0
// Boost.Asio micro-benchmarks: co_spawn of empty coroutines, post, yielding by post, steady_timer.
// spawn_join_in has no join handles: the coroutines are detached and the context runs until empty.
#include <utility>  // Boost 1.74 forgets it
#include <boost/asio.hpp>
#include "bench.h"
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace asio = boost::asio;
using asio::awaitable, asio::detached, asio::use_awaitable;
using std::chrono::milliseconds;

static asio::io_context *g_io;

static void run_until_empty()
{
    g_io->restart();
    std::vector<std::thread> others;
    for (int i = 1; i < g_threads; i++) others.emplace_back([] { g_io->run(); });
    g_io->run();
    for (auto &thread : others) thread.join();
}

static awaitable<void> nothing()
{
    co_return;
}

static void spawn_join_in(struct run *r, size_t n)
{
    bench_start(r);
    asio::post(*g_io, [n] {
        for (size_t i = 0; i < n; i++) co_spawn(*g_io, nothing, detached);
    });
    run_until_empty();
    bench_stop(r);
}

static void post_noop(struct run *r, size_t n)
{
    bench_start(r);
    asio::post(*g_io, [n] {
        for (size_t i = 0; i < n; i++) asio::post(*g_io, [] {});
    });
    run_until_empty();
    bench_stop(r);
}

static awaitable<void> yield_loop(size_t n)
{
    for (size_t i = 0; i < n; i++) co_await asio::post(use_awaitable);
}

static void yield_tasks(struct run *r, size_t n, size_t tasks)
{
    bench_start(r);
    for (size_t k = 0; k < tasks; k++) co_spawn(*g_io, yield_loop(n / tasks), detached);
    run_until_empty();
    bench_stop(r);
}

static void yield_1(struct run *r, size_t n) { yield_tasks(r, n, 1); }
static void yield_1000(struct run *r, size_t n) { yield_tasks(r, n, 1000); }

static void timer_insert_cancel(struct run *r, size_t n)
{
    std::vector<std::unique_ptr<asio::steady_timer>> timers;
    timers.reserve(n);
    bench_start(r);
    for (size_t i = 0; i < n; i++) {
        auto delay = milliseconds(1000 + xorshift() % 59000);
        timers.emplace_back(new asio::steady_timer(*g_io, delay));
        timers.back()->async_wait([](auto) {});
    }
    timers.clear();
    run_until_empty();  // delivers the cancellations
    bench_stop(r);
}

static awaitable<void> sleep_a_while()
{
    asio::steady_timer timer(co_await asio::this_coro::executor, milliseconds(1 + xorshift() % 100));
    co_await timer.async_wait(use_awaitable);
}

static void timer_insert_expire(struct run *r, size_t n)
{
    bench_start(r);
    for (size_t i = 0; i < n; i++) co_spawn(*g_io, sleep_a_while, detached);
    run_until_empty();
    bench_stop(r);
}

int main(int argc, char **argv)
{
    static const struct bench table[] = {
        {"spawn_join_in", 1000000, spawn_join_in, 0},
        {"post_noop", 1000000, post_noop, 0},
        {"yield_1", 2000000, yield_1, 0},
        {"yield_1000", 2000000, yield_1000, 0},
        {"timer_insert_cancel", 100000, timer_insert_cancel, 0},
        {"timer_insert_expire", 100000, timer_insert_expire, 0},
    };
    g_peer = "asio";
    parse_args(argc, argv);
    asio::io_context io(g_threads);
    g_io = &io;
    return bench_main(table, sizeof table / sizeof *table);
}
