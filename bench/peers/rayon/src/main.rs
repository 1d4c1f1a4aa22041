// SPDX-License-Identifier: Apache-2.0
//! Rayon fork-join benchmarks.
//!
//! Usage: rayon-bench BENCH|all|list [--threads T] [--reps R] [--peer NAME]
//! With PIN set in the environment, each worker is pinned to a core.
mod harness;
mod work;

use harness::{Config, Pool, Timing};
use rayon::prelude::*;
use std::hint::black_box;
use std::time::{Duration, Instant};
use work::*;

type Bench = (&'static str, usize, Box<dyn Fn(&Pool) -> Timing>);

/// Times one call in the pool.
fn timed<R: Send>(pool: &Pool, f: impl FnOnce() -> R + Send) -> Timing {
    Timing::of(|| {
        black_box(pool.install(f));
    })
}

/// Times one call on the calling thread.
fn timed_serial<R>(f: impl FnOnce() -> R) -> Timing {
    Timing::of(|| {
        black_box(f());
    })
}

fn sort<T: Ord + Send>(pool: &Pool, mut v: Vec<T>, f: impl FnOnce(&mut [T]) + Send) -> Timing {
    timed(pool, || f(&mut v))
}

fn nqueens12(f: impl FnOnce() -> u64) -> Timing {
    Timing::of(|| assert!(f() == QUEENS_SOLUTIONS))
}

fn matmul1024(pool: &Pool) -> Timing {
    let (x, y, mut z) = matrices();
    timed(pool, || {
        z.par_chunks_mut(MATRIX).enumerate().for_each(|(i, row)| matmul_row(&x, &y, i, row))
    })
}

fn install_empty_hot(pool: &Pool, n: usize) -> Timing {
    Timing::of(|| {
        for _ in 0..n {
            pool.install(|| rayon::join(|| (), || ()));
        }
    })
}

/// Median of `samples` joins, each after an idle pause; with `rendezvous` the two halves must meet.
fn wake(pool: &Pool, samples: usize, idle: Duration, rendezvous: bool) -> Timing {
    let mut ns = Vec::with_capacity(samples);
    for _ in 0..samples {
        std::thread::sleep(idle);
        let t = Instant::now();
        pool.install(|| {
            if rendezvous {
                meet()
            } else {
                rayon::join(|| (), || ());
            }
        });
        ns.push(t.elapsed().as_nanos() as u64);
    }
    Timing::from_samples(ns)
}

fn idle_cpu(pool: &Pool) -> Timing {
    pool.install(|| fib(25));
    Timing::idle_cpu()
}

fn table(threads: usize) -> Vec<Bench> {
    const MS: Duration = Duration::from_millis(1);
    let u64s = || (0..SORT_N as u64).map(splitmix).collect::<Vec<u64>>();
    let u32s = || (0..SORT_N as u64).map(|i| splitmix(i) as u32).collect::<Vec<u32>>();
    let mut table: Vec<Bench> = vec![
        ("fib30", joins(30), Box::new(|p| timed(p, || fib(black_box(30))))),
        ("fib35", joins(35), Box::new(|p| timed(p, || fib(black_box(35))))),
        ("fib38", joins(38), Box::new(|p| timed(p, || fib(black_box(38))))),
        ("fib35_serial", joins(35), Box::new(|_| timed_serial(|| fib_serial(black_box(35))))),
        ("fib38_serial", joins(38), Box::new(|_| timed_serial(|| fib_serial(black_box(38))))),
        (
            "sum_u64",
            SUM_N,
            Box::new(|p| {
                let v: Vec<u64> = (0..SUM_N as u64).collect();
                timed(p, || v.par_iter().sum::<u64>())
            }),
        ),
        (
            "sum_u64_serial",
            SUM_N,
            Box::new(|_| {
                let v: Vec<u64> = (0..SUM_N as u64).collect();
                timed_serial(|| v.iter().sum::<u64>())
            }),
        ),
        (
            "sum_f64",
            SUM_N,
            Box::new(|p| {
                let v: Vec<f64> = (0..SUM_N).map(|x| x as f64).collect();
                timed(p, || v.par_iter().sum::<f64>())
            }),
        ),
        (
            "mapreduce_splitmix",
            SUM_N,
            Box::new(|p| {
                timed(p, || {
                    let hashes = (0..black_box(SUM_N as u64)).into_par_iter().map(splitmix);
                    hashes.reduce(|| 0, |a, b| a.wrapping_add(b))
                })
            }),
        ),
        (
            "mapreduce_splitmix_serial",
            SUM_N,
            Box::new(|_| {
                timed_serial(|| {
                    let hashes = (0..black_box(SUM_N as u64)).map(splitmix);
                    hashes.fold(0u64, |a, b| a.wrapping_add(b))
                })
            }),
        ),
        ("sort_stable_u64", SORT_N, Box::new(move |p| sort(p, u64s(), |v| v.par_sort()))),
        (
            "sort_unstable_u64",
            SORT_N,
            Box::new(move |p| sort(p, u64s(), |v| v.par_sort_unstable())),
        ),
        ("sort_stable_u32", SORT_N, Box::new(move |p| sort(p, u32s(), |v| v.par_sort()))),
        (
            "sort_unstable_u32",
            SORT_N,
            Box::new(move |p| sort(p, u32s(), |v| v.par_sort_unstable())),
        ),
        (
            "sort_unstable_u64_serial",
            SORT_N,
            Box::new(move |_| {
                let mut v = u64s();
                timed_serial(|| v.sort_unstable())
            }),
        ),
        (
            "sort_unstable_u32_serial",
            SORT_N,
            Box::new(move |_| {
                let mut v = u32s();
                timed_serial(|| v.sort_unstable())
            }),
        ),
        ("nqueens12", QUEENS_NODES, Box::new(|p| nqueens12(|| p.install(|| queens(12, 0, 0, 0))))),
        (
            "nqueens12_serial",
            QUEENS_NODES,
            Box::new(|_| nqueens12(|| queens_serial(black_box(12), 0, 0, 0))),
        ),
        ("matmul1024", MATRIX * MATRIX * MATRIX, Box::new(matmul1024)),
        (
            "tree24",
            TREE_N,
            Box::new(|p| {
                let v: Vec<u64> = (0..TREE_N as u64).collect();
                timed(p, || tree_sum(&v, 0))
            }),
        ),
        (
            "tree24_serial",
            TREE_N,
            Box::new(|_| {
                let v: Vec<u64> = (0..TREE_N as u64).collect();
                timed_serial(|| tree_sum_serial(&v, 0))
            }),
        ),
        (
            "scope_spawn",
            1_000_000,
            Box::new(|p| {
                timed(p, || {
                    rayon::scope(|s| {
                        for _ in 0..1_000_000 {
                            s.spawn(|_| ())
                        }
                    })
                })
            }),
        ),
        (
            "parfor1000_hot",
            20_000,
            Box::new(|p| {
                timed(p, || {
                    for _ in 0..20_000 {
                        (0..1000usize).into_par_iter().for_each(|i| {
                            black_box(i);
                        })
                    }
                })
            }),
        ),
        ("install_empty_hot", 50_000, Box::new(|p| install_empty_hot(p, 50_000))),
        ("wake_empty_1ms", 400, Box::new(|p| wake(p, 400, MS, false))),
        ("idle_cpu", 1, Box::new(idle_cpu)),
    ];
    if threads > 1 {
        table.push(("wake_rdv_1ms", 400, Box::new(|p| wake(p, 400, MS, true))));
        table.push(("wake_rdv_20ms", 60, Box::new(|p| wake(p, 60, 20 * MS, true))));
    }
    table
}

fn main() {
    let config = Config::from_args();
    let pool = harness::pool(config.threads);
    let mut found = false;
    for (name, n, run) in table(config.threads) {
        if config.which == "list" {
            println!("{}", name);
            found = true;
        } else if config.which == "all" || config.which == name {
            harness::repeat(&config, name, n, || run(&pool));
            found = true;
        }
    }
    if !found {
        eprintln!("no benchmark named {}; try: list", config.which);
        std::process::exit(2);
    }
}
