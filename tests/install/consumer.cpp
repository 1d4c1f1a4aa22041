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

static const blz_future_ops countdown_ops = {"countdown", nullptr, countdown_poll,
                                             nullptr,     nullptr, {}};

static countdown make_countdown(int from)
{
    countdown frame = {};

    frame.future.ops = &countdown_ops;
    frame.left = from;
    return frame;
}

static void on_done(int64_t result, void *arg)
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
    if (blz_spawn(&frame, sizeof frame, &args) < 0 || blz_handle_wait(&waited) < 0)
        return false;
    args.handle = &called_back;
    if (blz_spawn(&frame, sizeof frame, &args) < 0 ||
        blz_task_on_done(&called_back, on_done, &called) < 0 || blz_rt_shutdown(rt, BLZ_NEVER) < 0)
        return false;

    blz_rt_stats(rt, &stats);
    // The last one may have been polled once: the shutdown cancels it, which it does not notice.
    return waited.result == 42 && called == 42 && stats.live_tasks == 0 &&
           stats.total.completed == 3 && stats.total.polls >= 9;
}

// What is typed by macro is for C++, too; its threads wait by the blocking forms.
struct price {
    double amount;
    int item;
};

BLZ_CHANNEL(orders, price)
BLZ_BROADCAST(prices, price)
BLZ_WATCH(latest, price)
BLZ_ONESHOT(answer, price)

static void next_item(price *value, void *)
{
    value->item++;
}

static bool use_queue()
{
    price sent = {2.5, 7}, got = {};
    orders_sender tx;
    orders_receiver rx;
    blz_permit permit;
    bool fine;

    if (orders_new(&tx, &rx, 2) < 0)
        return false;
    fine = orders_try_send(&tx, sent) == 0 && orders_recv_wait(&rx, &got) == 0 && got.item == 7;
    fine = fine && blz_sender_try_reserve(&tx.raw, &permit, 1) == 0;
    if (fine)
        orders_permit_send(&permit, sent);
    orders_sender_drop(&tx);
    fine = fine && orders_try_recv(&rx, &got) == 0 && orders_try_recv(&rx, &got) == -EPIPE;
    orders_receiver_drop(&rx);
    return fine;
}

static bool use_channels()
{
    price sent = {1.5, 2}, got = {};
    prices_sender tx;
    prices_receiver rx;
    latest_sender setter;
    latest_receiver watcher;
    answer reply;
    bool fine;

    answer_init(&reply);
    if (prices_new(&tx, &rx, 4) < 0 || latest_new(&setter, &watcher, sent) < 0)
        return false;
    fine = prices_send(&tx, sent) == 1 && prices_recv_wait(&rx, &got) == 0 && got.item == 2;
    fine = fine && latest_send_modify(&setter, next_item, nullptr) == 0 &&
           latest_changed_wait(&watcher) == 0 && latest_get(&watcher, &got) == 0 && got.item == 3;
    fine = fine && answer_send(&reply, got) == 0 && answer_recv_wait(&reply, &sent) == 0;
    prices_sender_drop(&tx);
    prices_receiver_drop(&rx);
    latest_sender_drop(&setter);
    latest_receiver_drop(&watcher);
    return fine && sent.item == 3;
}

static int use_library()
{
    blz_options options = {};
    blz_rt *rt = nullptr;

    options.workers = 2;
    if (blz_rt_new(&rt, &options) < 0)
        return 1;
    bool fine = use_runtime(rt) && use_channels() && use_queue();
    return blz_rt_free(rt) < 0 || !fine;
}

int main()
{
    std::printf("blitz %s\n", blz_version());
    return use_library();
}
