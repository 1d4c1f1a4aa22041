// SPDX-License-Identifier: Apache-2.0
//! Tokio micro-benchmarks: spawning, channels, locks, timers, blocking calls, memory per task.
//!
//! Usage: tokio-bench BENCH|all|list [--threads T] [--reps R] [--scale S] [--peer NAME]
//! T = 0 is the current_thread runtime, T >= 1 the multi_thread runtime with T workers.
mod blocking;
mod channel;
mod harness;
mod memory;
mod runtime;
mod spawn;
mod sync;
mod timer;

use harness::{Config, Outcome};
use tokio::runtime::Runtime;

type Bench = (&'static str, usize, Box<dyn Fn(&Runtime, usize) -> Outcome>);

/// Name, operations in one repetition, function.
fn table(workers: usize) -> Vec<Bench> {
    vec![
        ("spawn_join_in", 1_000_000, Box::new(spawn::spawn_join_in)),
        ("spawn_join_out", 1_000_000, Box::new(spawn::spawn_join_out)),
        ("spawn_await_seq", 300_000, Box::new(spawn::spawn_await_seq)),
        ("yield_1", 2_000_000, Box::new(|r, n| spawn::yield_tasks(r, n, 1))),
        ("yield_1000", 4_000_000, Box::new(|r, n| spawn::yield_tasks(r, n, 1000))),
        ("pingpong_oneshot", 200_000, Box::new(channel::pingpong_oneshot)),
        ("pingpong_mpsc", 300_000, Box::new(channel::pingpong_mpsc)),
        ("chained_spawn", 1_000_000, Box::new(spawn::chained_spawn)),
        ("spawn_many_local", 1_000_000, Box::new(spawn::spawn_many_local)),
        ("spawn_many_remote_idle", 500_000, Box::new(spawn::spawn_many_remote_idle)),
        (
            "spawn_many_remote_busy",
            500_000,
            Box::new(move |r, n| spawn::spawn_many_remote_busy(r, n, workers.max(1))),
        ),
        ("mpsc_1_1", 3_000_000, Box::new(|r, n| channel::mpsc_p_1(r, n, 1))),
        ("mpsc_4_1", 3_000_000, Box::new(|r, n| channel::mpsc_p_1(r, n, 4))),
        ("mpsc_unbounded_1_1", 3_000_000, Box::new(channel::mpsc_unbounded)),
        (
            "mpmc_4_4_async_channel",
            2_000_000,
            Box::new(|r, n| channel::mpmc_async_channel(r, n, 4)),
        ),
        ("mpmc_4_4_flume", 2_000_000, Box::new(|r, n| channel::mpmc_flume(r, n, 4))),
        ("oneshot", 2_000_000, Box::new(channel::oneshot_same)),
        ("broadcast_1_4", 512 * 1000, Box::new(channel::broadcast_1_4)),
        ("watch_1_4", 300_000, Box::new(channel::watch_1_4)),
        ("mutex_uncontended", 5_000_000, Box::new(sync::mutex_uncontended)),
        ("mutex_100tasks", 2_000_000, Box::new(|r, n| sync::mutex_tasks(r, n, 100, false))),
        ("mutex_100tasks_yield", 500_000, Box::new(|r, n| sync::mutex_tasks(r, n, 100, true))),
        ("rwlock_read_1", 5_000_000, Box::new(|r, n| sync::rwlock_read(r, n, 1))),
        ("rwlock_read_8", 5_000_000, Box::new(|r, n| sync::rwlock_read(r, n, 8))),
        ("sem_uncontended", 5_000_000, Box::new(sync::sem_uncontended)),
        ("sem_64tasks_4permits_yield", 500_000, Box::new(sync::sem_contended)),
        ("notify_self", 5_000_000, Box::new(sync::notify_self)),
        ("notify_pingpong", 300_000, Box::new(sync::notify_pingpong)),
        ("timer_insert_cancel", 100_000, Box::new(timer::timer_insert_cancel)),
        ("timer_insert_expire", 100_000, Box::new(timer::timer_insert_expire)),
        ("blocking_seq", 50_000, Box::new(blocking::blocking_seq)),
        ("blocking_batch", 10_000, Box::new(blocking::blocking_batch)),
        ("timeout_ready", 2_000_000, Box::new(timer::timeout_ready)),
        ("timeout_yield", 1_000_000, Box::new(timer::timeout_yield)),
        ("mem_idle_tasks", 1_000_000, Box::new(|r, n| memory::mem_tasks(r, n, false))),
        ("mem_sleep_tasks", 1_000_000, Box::new(|r, n| memory::mem_tasks(r, n, true))),
    ]
}

fn main() {
    let config = Config::from_args();
    let mut found = false;
    for (name, n, run) in table(config.threads) {
        if config.which == "list" {
            println!("{}", name);
            found = true;
        } else if config.wants(name) {
            harness::repeat(&config, name, n, &*run);
            found = true;
        }
    }
    if !found {
        eprintln!("no benchmark named {}; try: list", config.which);
        std::process::exit(2);
    }
}
