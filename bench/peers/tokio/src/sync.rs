// SPDX-License-Identifier: Apache-2.0
//! Mutex, RwLock, Semaphore and Notify, alone and contended.
use crate::harness::{inside, plain, Outcome};
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::Runtime;
use tokio::sync::{Mutex, Notify, RwLock, Semaphore};
use tokio::task::yield_now;

pub fn mutex_uncontended(rt: &Runtime, n: usize) -> Outcome {
    inside(rt, async move {
        let m = Mutex::new(0u64);
        let t = Instant::now();
        for _ in 0..n {
            *m.lock().await += 1;
        }
        let d = t.elapsed();
        assert!(*m.lock().await == n as u64);
        plain(d)
    })
}

pub fn mutex_tasks(rt: &Runtime, n: usize, tasks: usize, hold_yield: bool) -> Outcome {
    inside(rt, async move {
        let m = Arc::new(Mutex::new(0u64));
        let t = Instant::now();
        let hs: Vec<_> = (0..tasks)
            .map(|_| {
                let m = m.clone();
                tokio::spawn(async move {
                    for _ in 0..n / tasks {
                        let mut g = m.lock().await;
                        *g += 1;
                        if hold_yield {
                            yield_now().await
                        }
                    }
                })
            })
            .collect();
        for h in hs {
            h.await.unwrap()
        }
        plain(t.elapsed())
    })
}

pub fn rwlock_read(rt: &Runtime, n: usize, tasks: usize) -> Outcome {
    inside(rt, async move {
        let m = Arc::new(RwLock::new(7u64));
        let t = Instant::now();
        let hs: Vec<_> = (0..tasks)
            .map(|_| {
                let m = m.clone();
                tokio::spawn(async move {
                    let mut s = 0;
                    for _ in 0..n / tasks {
                        s += *m.read().await;
                    }
                    s
                })
            })
            .collect();
        for h in hs {
            h.await.unwrap();
        }
        plain(t.elapsed())
    })
}

pub fn sem_uncontended(rt: &Runtime, n: usize) -> Outcome {
    inside(rt, async move {
        let s = Semaphore::new(4);
        let t = Instant::now();
        for _ in 0..n {
            drop(s.acquire().await.unwrap());
        }
        plain(t.elapsed())
    })
}

pub fn sem_contended(rt: &Runtime, n: usize) -> Outcome {
    inside(rt, async move {
        let s = Arc::new(Semaphore::new(4));
        let t = Instant::now();
        let hs: Vec<_> = (0..64)
            .map(|_| {
                let s = s.clone();
                tokio::spawn(async move {
                    for _ in 0..n / 64 {
                        let _p = s.acquire().await.unwrap();
                        yield_now().await
                    }
                })
            })
            .collect();
        for h in hs {
            h.await.unwrap()
        }
        plain(t.elapsed())
    })
}

pub fn notify_self(rt: &Runtime, n: usize) -> Outcome {
    inside(rt, async move {
        let s = Notify::new();
        let t = Instant::now();
        for _ in 0..n {
            s.notify_one();
            s.notified().await;
        }
        plain(t.elapsed())
    })
}

pub fn notify_pingpong(rt: &Runtime, n: usize) -> Outcome {
    inside(rt, async move {
        let a = Arc::new((Notify::new(), Notify::new()));
        let b = a.clone();
        let h = tokio::spawn(async move {
            for _ in 0..n {
                b.0.notified().await;
                b.1.notify_one();
            }
        });
        let t = Instant::now();
        for _ in 0..n {
            a.0.notify_one();
            a.1.notified().await;
        }
        let d = t.elapsed();
        h.await.unwrap();
        plain(d)
    })
}
