// SPDX-License-Identifier: Apache-2.0
//! spawn_blocking of an empty closure: one at a time, and many at once.
use crate::harness::{inside, plain, Outcome};
use std::time::Instant;
use tokio::runtime::Runtime;
use tokio::task::spawn_blocking;

pub fn blocking_seq(rt: &Runtime, n: usize) -> Outcome {
    inside(rt, async move {
        let t = Instant::now();
        for _ in 0..n {
            spawn_blocking(|| ()).await.unwrap();
        }
        plain(t.elapsed())
    })
}

pub fn blocking_batch(rt: &Runtime, n: usize) -> Outcome {
    inside(rt, async move {
        let t = Instant::now();
        let v: Vec<_> = (0..n).map(|_| spawn_blocking(|| ())).collect();
        for h in v {
            h.await.unwrap()
        }
        plain(t.elapsed())
    })
}
