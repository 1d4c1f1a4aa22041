// SPDX-License-Identifier: Apache-2.0
//! Resident memory of a million parked tasks. One repetition per process.
use crate::harness::{inside, rss, Outcome};
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::sleep;

pub fn mem_tasks(rt: &Runtime, n: usize, sleepers: bool) -> Outcome {
    inside(rt, async move {
        let started = Arc::new(AtomicUsize::new(0));
        let r0 = rss();
        let t = Instant::now();
        let no = Arc::new(Notify::new());
        for _ in 0..n {
            let s = started.clone();
            let no = no.clone();
            if sleepers {
                tokio::spawn(async move {
                    s.fetch_add(1, Relaxed);
                    sleep(Duration::from_secs(3600)).await;
                });
            } else {
                tokio::spawn(async move {
                    s.fetch_add(1, Relaxed);
                    let _k = no;
                    std::future::pending::<()>().await;
                });
            }
        }
        while started.load(Relaxed) < n {
            yield_now().await;
        }
        for _ in 0..10 {
            yield_now().await;
        }
        let d = t.elapsed();
        let r1 = rss();
        (d, format!("rss_per_task={:.1}", (r1 - r0) as f64 / n as f64))
    })
}
