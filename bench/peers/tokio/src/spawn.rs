// SPDX-License-Identifier: Apache-2.0
//! Spawning, joining and yielding: what a task costs from birth to join.
use crate::harness::{inside, plain, Outcome};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::yield_now;

pub fn spawn_join_in(rt: &Runtime, n: usize) -> Outcome {
    inside(rt, async move {
        let t = Instant::now();
        let mut v = Vec::with_capacity(n);
        for _ in 0..n {
            v.push(tokio::spawn(async {}));
        }
        for h in v {
            h.await.unwrap();
        }
        plain(t.elapsed())
    })
}

pub fn spawn_join_out(rt: &Runtime, n: usize) -> Outcome {
    let t = Instant::now();
    let mut v = Vec::with_capacity(n);
    for _ in 0..n {
        v.push(rt.spawn(async {}));
    }
    rt.block_on(async move {
        for h in v {
            h.await.unwrap();
        }
    });
    plain(t.elapsed())
}

pub fn spawn_await_seq(rt: &Runtime, n: usize) -> Outcome {
    inside(rt, async move {
        let t = Instant::now();
        for _ in 0..n {
            tokio::spawn(async {}).await.unwrap();
        }
        plain(t.elapsed())
    })
}

pub fn spawn_many_local(rt: &Runtime, n: usize) -> Outcome {
    let r = n / 10_000;
    inside(rt, async move {
        let t = Instant::now();
        for _ in 0..r {
            let rem = Arc::new(AtomicUsize::new(10_000));
            let (tx, rx) = oneshot::channel();
            let tx = Arc::new(std::sync::Mutex::new(Some(tx)));
            for _ in 0..10_000 {
                let tx = tx.clone();
                let rem = rem.clone();
                tokio::spawn(async move {
                    if rem.fetch_sub(1, AcqRel) == 1 {
                        tx.lock().unwrap().take().unwrap().send(()).unwrap();
                    }
                });
            }
            rx.await.unwrap();
        }
        plain(t.elapsed())
    })
}

pub fn spawn_many_remote_idle(rt: &Runtime, n: usize) -> Outcome {
    let mut hs = Vec::with_capacity(10_000);
    let t = Instant::now();
    for _ in 0..n / 10_000 {
        for _ in 0..10_000 {
            hs.push(rt.spawn(async {}));
        }
        rt.block_on(async {
            for h in hs.drain(..) {
                h.await.unwrap();
            }
        });
    }
    plain(t.elapsed())
}

pub fn spawn_many_remote_busy(rt: &Runtime, n: usize, workers: usize) -> Outcome {
    // 2 yielding tasks per worker keep the workers busy
    let flag = Arc::new(AtomicBool::new(true));
    let bg: Vec<_> = (0..workers * 2)
        .map(|_| {
            let f = flag.clone();
            rt.spawn(async move {
                while f.load(Relaxed) {
                    yield_now().await
                }
            })
        })
        .collect();
    let r = spawn_many_remote_idle(rt, n);
    flag.store(false, Relaxed);
    rt.block_on(async {
        for h in bg {
            h.await.unwrap()
        }
    });
    r
}

pub fn chained_spawn(rt: &Runtime, n: usize) -> Outcome {
    fn iter(done: oneshot::Sender<()>, k: usize) {
        if k == 0 {
            done.send(()).unwrap();
        } else {
            tokio::spawn(async move { iter(done, k - 1) });
        }
    }
    inside(rt, async move {
        let t = Instant::now();
        for _ in 0..n / 1000 {
            let (tx, rx) = oneshot::channel();
            tokio::spawn(async move { iter(tx, 1000) });
            rx.await.unwrap();
        }
        plain(t.elapsed())
    })
}

pub fn yield_tasks(rt: &Runtime, n: usize, tasks: usize) -> Outcome {
    inside(rt, async move {
        let t = Instant::now();
        let per = n / tasks;
        let hs: Vec<_> = (0..tasks)
            .map(|_| {
                tokio::spawn(async move {
                    for _ in 0..per {
                        yield_now().await
                    }
                })
            })
            .collect();
        for h in hs {
            h.await.unwrap();
        }
        plain(t.elapsed())
    })
}
