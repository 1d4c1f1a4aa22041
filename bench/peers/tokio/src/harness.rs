// SPDX-License-Identifier: Apache-2.0
//! Arguments, clocks, the repetition loop and the output line of the Tokio benchmarks.
use crate::runtime;
use std::future::Future;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Time of the measured part, and more key=value pairs for the line.
pub type Outcome = (Duration, String);

pub fn plain(elapsed: Duration) -> Outcome {
    (elapsed, String::new())
}

pub struct Config {
    pub which: String,
    pub threads: usize,
    reps: usize,
    scale: f64,
    peer: String,
}

impl Config {
    pub fn from_args() -> Config {
        let mut config =
            Config { which: "all".into(), threads: 2, reps: 5, scale: 1.0, peer: "tokio".into() };
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            let mut value = || args.next().expect("an option lacks its value");
            match arg.as_str() {
                "--threads" => config.threads = value().parse().unwrap(),
                "--reps" => config.reps = value().parse().unwrap(),
                "--scale" => config.scale = value().parse().unwrap(),
                "--peer" => config.peer = value(),
                name => config.which = name.to_string(),
            }
        }
        config
    }

    /// "all" leaves out the memory benchmarks, which need a fresh process each.
    pub fn wants(&self, name: &str) -> bool {
        self.which == name || (self.which == "all" && !name.starts_with("mem_"))
    }
}

/// Runs the future as a task of the runtime, not on the thread that blocks for it.
pub fn inside<F>(rt: &Runtime, future: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    rt.block_on(async { tokio::spawn(future).await.unwrap() })
}

pub fn rss() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// CPU time of all threads of this process.
pub fn cpu_ns() -> u64 {
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

/// Runs one benchmark on a runtime of its own and prints a line per repetition.
pub fn repeat(config: &Config, name: &str, n: usize, run: &dyn Fn(&Runtime, usize) -> Outcome) {
    let n = ((n as f64 * config.scale) as usize).max(1);
    let reps = if name.starts_with("mem_") { 1 } else { config.reps };
    let rt = runtime::build(config.threads);
    for rep in 0..reps {
        let (busy0, cpu0, wall0) = (machine_busy_ns(), cpu_ns(), Instant::now());
        let (elapsed, extra) = run(&rt, n);
        let wall = wall0.elapsed().as_nanos() as f64;
        let cpu = (cpu_ns() - cpu0) as f64;
        let other = ((machine_busy_ns() - busy0) as f64 - cpu).max(0.0) / wall;
        println!(
            "bench={} peer={} threads={} n={} rep={} ns_per_op={:.2} cpu_ns={:.2} other={:.2} {}",
            name,
            config.peer,
            config.threads,
            n,
            rep,
            elapsed.as_nanos() as f64 / n as f64,
            cpu / n as f64,
            other,
            extra
        );
    }
    rt.shutdown_timeout(Duration::from_secs(5));
}
