// SPDX-License-Identifier: Apache-2.0
//! Arguments, clocks, the pool, the repetition loop and the output line of the Rayon benchmarks.
use std::time::{Duration, Instant};

pub type Pool = rayon::ThreadPool;

/// Wall and CPU time of the measured part, a figure that replaces wall / n, more key=value pairs.
pub struct Timing {
    elapsed: Duration,
    cpu_ns: u64,
    figure_ns: Option<f64>,
    extra: String,
}

impl Timing {
    pub fn of(f: impl FnOnce()) -> Timing {
        let (cpu0, wall0) = (cpu_ns(), Instant::now());
        f();
        let elapsed = wall0.elapsed();
        Timing { elapsed, cpu_ns: cpu_ns() - cpu0, figure_ns: None, extra: String::new() }
    }

    /// The figure is the median of the samples.
    pub fn from_samples(mut ns: Vec<u64>) -> Timing {
        ns.sort();
        Timing {
            elapsed: Duration::ZERO,
            cpu_ns: 0,
            figure_ns: Some(ns[ns.len() / 2] as f64),
            extra: format!("min_ns={} p99_ns={}", ns[0], ns[ns.len() * 99 / 100]),
        }
    }

    /// CPU burnt by an idle pool: 200 ms to settle, then 3 s of sleep.
    pub fn idle_cpu() -> Timing {
        std::thread::sleep(Duration::from_millis(200));
        let (cpu0, wall0) = (cpu_ns(), Instant::now());
        std::thread::sleep(Duration::from_secs(3));
        let share = (cpu_ns() - cpu0) as f64 / wall0.elapsed().as_nanos() as f64;
        let extra = format!("cpu_percent={:.4}", 100.0 * share);
        Timing { elapsed: Duration::ZERO, cpu_ns: 0, figure_ns: Some(0.0), extra }
    }
}

pub struct Config {
    pub which: String,
    pub threads: usize,
    reps: usize,
    peer: String,
}

impl Config {
    pub fn from_args() -> Config {
        let mut config = Config { which: "all".into(), threads: 2, reps: 5, peer: "rayon".into() };
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            let mut value = || args.next().expect("an option lacks its value");
            match arg.as_str() {
                "--threads" => config.threads = value().parse().unwrap(),
                "--reps" => config.reps = value().parse().unwrap(),
                "--peer" => config.peer = value(),
                name => config.which = name.to_string(),
            }
        }
        config
    }
}

pub fn pool(threads: usize) -> Pool {
    let mut builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
    if std::env::var("PIN").is_ok() {
        builder = builder.start_handler(|core| unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(core, &mut set);
            libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set);
        });
    }
    builder.build().unwrap()
}

/// CPU time of all threads of this process.
fn cpu_ns() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Busy and stolen time of the whole machine: user nice system irq softirq steal, in 10 ms ticks.
fn machine_busy_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let fields = stat.lines().next().unwrap().split_whitespace().skip(1);
    let v: Vec<u64> = fields.map(|x| x.parse().unwrap()).collect();
    (v[0] + v[1] + v[2] + v[5] + v[6] + v[7]) * 10_000_000
}

/// Prints a line per repetition.
pub fn repeat(config: &Config, name: &str, n: usize, run: impl Fn() -> Timing) {
    for rep in 0..config.reps {
        let (busy0, cpu0, wall0) = (machine_busy_ns(), cpu_ns(), Instant::now());
        let timing = run();
        let wall = wall0.elapsed().as_nanos() as f64;
        let cpu = (cpu_ns() - cpu0) as f64;
        let other = ((machine_busy_ns() - busy0) as f64 - cpu).max(0.0) / wall;
        let per_op = timing.elapsed.as_nanos() as f64 / n as f64;
        print!("bench={} peer={} threads={} ", name, config.peer, config.threads);
        print!("n={} rep={} ns_per_op={:.3} ", n, rep, timing.figure_ns.unwrap_or(per_op));
        if timing.figure_ns.is_none() {
            print!("cpu_ns={:.3} ", timing.cpu_ns as f64 / n as f64);
        }
        println!("other={:.2} {}", other, timing.extra);
    }
}
