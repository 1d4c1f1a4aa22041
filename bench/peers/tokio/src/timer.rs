// SPDX-License-Identifier: Apache-2.0
//! Timers and timeouts: armed and dropped, armed and expired, and around ready futures.
use crate::harness::{cpu_ns, inside, plain, Outcome};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout, Sleep};

/// xorshift64, so that every runtime draws the same delays.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Polls a sleep once, which arms it; true if it had already expired.
struct PollOnce<'a>(Pin<&'a mut Sleep>);

impl<'a> Future for PollOnce<'a> {
    type Output = bool;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        Poll::Ready(self.0.as_mut().poll(cx).is_ready())
    }
}

pub fn timer_insert_cancel(rt: &Runtime, n: usize) -> Outcome {
    inside(rt, async move {
        let mut r = Rng(88172645463325252);
        let mut v = Vec::with_capacity(n);
        let t = Instant::now();
        for _ in 0..n {
            let mut s = Box::pin(sleep(Duration::from_millis(1000 + r.next() % 59_000)));
            assert!(!PollOnce(s.as_mut()).await);
            v.push(s);
        }
        let ins = t.elapsed();
        drop(v);
        let d = t.elapsed();
        (
            d,
            format!(
                "insert_ns={:.1} cancel_ns={:.1}",
                ins.as_nanos() as f64 / n as f64,
                (d - ins).as_nanos() as f64 / n as f64
            ),
        )
    })
}

pub fn timer_insert_expire(rt: &Runtime, n: usize) -> Outcome {
    inside(rt, async move {
        let mut r = Rng(88172645463325252);
        let c0 = cpu_ns();
        let t = Instant::now();
        let mut v = Vec::with_capacity(n);
        for _ in 0..n {
            let ms = 1 + r.next() % 100;
            v.push(tokio::spawn(sleep(Duration::from_millis(ms))));
        }
        for h in v {
            h.await.unwrap();
        }
        let d = t.elapsed();
        (d, format!("cpu_ns_per_op={:.1}", (cpu_ns() - c0) as f64 / n as f64))
    })
}

pub fn timeout_ready(rt: &Runtime, n: usize) -> Outcome {
    inside(rt, async move {
        let t = Instant::now();
        for _ in 0..n {
            timeout(Duration::from_secs(1), async {}).await.unwrap();
        }
        plain(t.elapsed())
    })
}

pub fn timeout_yield(rt: &Runtime, n: usize) -> Outcome {
    inside(rt, async move {
        let t = Instant::now();
        for _ in 0..n {
            timeout(Duration::from_secs(1), yield_now()).await.unwrap();
        }
        plain(t.elapsed())
    })
}
