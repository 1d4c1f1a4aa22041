// SPDX-License-Identifier: Apache-2.0
//
// As consumer.c, in C++17: no async macros, but futures written by hand, calls and callbacks.
#include <atomic>
#include <blitz.h>
#include <cstdio>

struct countdown {
    blz_future future;
    int left;
};

static blz_poll countdown_poll(blz_future *future, blz_cx *cx)
{
    auto *self = reinterpret_cast<countdown *>(future);

    if (self->left-- > 0)
        return blz_cx_yield(cx);
    return blz_future_done(future, 42);
}

static const blz_future_ops countdown_ops = {"countdown", nullptr, countdown_poll, nullptr};

static countdown make_countdown(int from)
{
    countdown frame = {};

    frame.future.ops = &countdown_ops;
    frame.left = from;
    return frame;
}

static void on_done(void *arg, int64_t result)
{
    static_cast<std::atomic<int64_t> *>(arg)->store(result);
}

static bool use_runtime(blz_rt *rt)
{
    std::atomic<int64_t> called{0};
    blz_handle waited = {}, called_back = {};
    blz_spawn_args args = {};
    countdown frame = make_countdown(3);
    blz_stats stats;

    if (blz_block_on(rt, &frame, sizeof frame, "countdown") != 42)
        return false;

    args.rt = rt;
    args.handle = &waited;
    args.name = "waited for";
    if (blz_spawn(&args, &frame, sizeof frame) < 0 || blz_handle_wait(&waited) < 0)
        return false;
    args.handle = &called_back;
    if (blz_spawn(&args, &frame, sizeof frame) < 0 ||
        blz_task_on_done(&called_back, on_done, &called) < 0 || blz_rt_shutdown(rt, -1) < 0)
        return false;

    blz_rt_stats(rt, &stats);
    // The last one may have been polled once: the shutdown cancels it, which it does not notice.
    return waited.result == 42 && called == 42 && stats.live_tasks == 0 &&
           stats.total.completed == 3 && stats.total.polls >= 9;
}

static int use_library()
{
    blz_options options = {};
    blz_rt *rt = nullptr;

    options.workers = 2;
    if (blz_rt_new(&rt, &options) < 0)
        return 1;
    bool fine = use_runtime(rt);
    return blz_rt_free(rt) < 0 || !fine;
}

int main()
{
    std::printf("blitz %s\n", blz_version());
    return use_library();
}
