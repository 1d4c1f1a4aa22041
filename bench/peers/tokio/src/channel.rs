// SPDX-License-Identifier: Apache-2.0
//! Channels and hand-overs: oneshot, mpsc, mpmc (async-channel, flume), broadcast, watch.
use crate::harness::{inside, plain, Outcome};
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::Runtime;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::yield_now;

// tokio's ping_pong: each ping spawns a task pair talking over two oneshots
pub fn pingpong_oneshot(rt: &Runtime, n: usize) -> Outcome {
    inside(rt, async move {
        let t = Instant::now();
        let rounds = n / 1000;
        for _ in 0..rounds {
            let rem = Arc::new(AtomicUsize::new(1000));
            let (dtx, drx) = oneshot::channel();
            let dtx = Arc::new(std::sync::Mutex::new(Some(dtx)));
            for _ in 0..1000 {
                let rem = rem.clone();
                let dtx = dtx.clone();
                tokio::spawn(async move {
                    let (tx1, rx1) = oneshot::channel::<()>();
                    let (tx2, rx2) = oneshot::channel::<()>();
                    tokio::spawn(async move {
                        rx1.await.unwrap();
                        tx2.send(()).unwrap();
                    });
                    tx1.send(()).unwrap();
                    rx2.await.unwrap();
                    if rem.fetch_sub(1, AcqRel) == 1 {
                        dtx.lock().unwrap().take().unwrap().send(()).unwrap();
                    }
                });
            }
            drx.await.unwrap();
        }
        plain(t.elapsed())
    })
}

pub fn pingpong_mpsc(rt: &Runtime, n: usize) -> Outcome {
    inside(rt, async move {
        let (atx, mut arx) = mpsc::channel::<u64>(1);
        let (btx, mut brx) = mpsc::channel::<u64>(1);
        let h = tokio::spawn(async move {
            while let Some(x) = arx.recv().await {
                btx.send(x + 1).await.unwrap();
            }
        });
        let t = Instant::now();
        for i in 0..n as u64 {
            atx.send(i).await.unwrap();
            assert!(brx.recv().await.unwrap() == i + 1);
        }
        let d = t.elapsed();
        drop(atx);
        h.await.unwrap();
        plain(d)
    })
}

pub fn oneshot_same(rt: &Runtime, n: usize) -> Outcome {
    inside(rt, async move {
        let t = Instant::now();
        for i in 0..n as u64 {
            let (tx, rx) = oneshot::channel();
            tx.send(i).unwrap();
            assert!(rx.await.unwrap() == i);
        }
        plain(t.elapsed())
    })
}

pub fn mpsc_p_1(rt: &Runtime, n: usize, p: usize) -> Outcome {
    inside(rt, async move {
        let (tx, mut rx) = mpsc::channel::<u64>(1024);
        let t = Instant::now();
        for _ in 0..p {
            let tx = tx.clone();
            tokio::spawn(async move {
                for i in 0..(n / p) as u64 {
                    tx.send(i).await.unwrap();
                }
            });
        }
        drop(tx);
        let mut c = 0;
        while let Some(_) = rx.recv().await {
            c += 1;
        }
        assert!(c == n / p * p);
        plain(t.elapsed())
    })
}

pub fn mpsc_unbounded(rt: &Runtime, n: usize) -> Outcome {
    inside(rt, async move {
        let (tx, mut rx) = mpsc::unbounded_channel::<u64>();
        let t = Instant::now();
        tokio::spawn(async move {
            for i in 0..n as u64 {
                tx.send(i).unwrap();
                if i % 1024 == 1023 {
                    yield_now().await
                }
            }
        });
        let mut c = 0;
        while let Some(_) = rx.recv().await {
            c += 1;
        }
        assert!(c == n);
        plain(t.elapsed())
    })
}

pub fn mpmc_async_channel(rt: &Runtime, n: usize, k: usize) -> Outcome {
    inside(rt, async move {
        let (tx, rx) = async_channel::bounded::<u64>(1024);
        let t = Instant::now();
        for _ in 0..k {
            let tx = tx.clone();
            tokio::spawn(async move {
                for i in 0..(n / k) as u64 {
                    tx.send(i).await.unwrap();
                }
            });
        }
        drop(tx);
        let hs: Vec<_> = (0..k)
            .map(|_| {
                let rx = rx.clone();
                tokio::spawn(async move {
                    let mut c = 0;
                    while rx.recv().await.is_ok() {
                        c += 1
                    }
                    c
                })
            })
            .collect();
        drop(rx);
        let mut c = 0;
        for h in hs {
            c += h.await.unwrap();
        }
        assert!(c == n / k * k);
        plain(t.elapsed())
    })
}

pub fn mpmc_flume(rt: &Runtime, n: usize, k: usize) -> Outcome {
    inside(rt, async move {
        let (tx, rx) = flume::bounded::<u64>(1024);
        let t = Instant::now();
        for _ in 0..k {
            let tx = tx.clone();
            tokio::spawn(async move {
                for i in 0..(n / k) as u64 {
                    tx.send_async(i).await.unwrap();
                }
            });
        }
        drop(tx);
        let hs: Vec<_> = (0..k)
            .map(|_| {
                let rx = rx.clone();
                tokio::spawn(async move {
                    let mut c = 0;
                    while rx.recv_async().await.is_ok() {
                        c += 1
                    }
                    c
                })
            })
            .collect();
        drop(rx);
        let mut c = 0;
        for h in hs {
            c += h.await.unwrap();
        }
        assert!(c == n / k * k);
        plain(t.elapsed())
    })
}

// 1 sender, 4 receivers, ring of 1024: send 512, wait for 4 acks; op = 1 send (4 deliveries)
pub fn broadcast_1_4(rt: &Runtime, n: usize) -> Outcome {
    inside(rt, async move {
        let (tx, _rx) = broadcast::channel::<u64>(1024);
        let (atx, mut arx) = mpsc::channel::<()>(8);
        let rounds = n / 512;
        for _ in 0..4 {
            let mut rx = tx.subscribe();
            let atx = atx.clone();
            tokio::spawn(async move {
                for _ in 0..rounds {
                    for _ in 0..512 {
                        rx.recv().await.unwrap();
                    }
                    atx.send(()).await.unwrap();
                }
            });
        }
        drop(_rx);
        let t = Instant::now();
        for _ in 0..rounds {
            for i in 0..512 {
                tx.send(i).unwrap();
            }
            for _ in 0..4 {
                arx.recv().await.unwrap();
            }
        }
        plain(t.elapsed())
    })
}

// 1 sender (yield after each send), 4 receivers in changed().await loops; op = 1 send
pub fn watch_1_4(rt: &Runtime, n: usize) -> Outcome {
    inside(rt, async move {
        let (tx, rx) = watch::channel(0u64);
        let hs: Vec<_> = (0..4)
            .map(|_| {
                let mut rx = rx.clone();
                tokio::spawn(async move {
                    let mut c = 0u64;
                    while rx.changed().await.is_ok() {
                        let _ = *rx.borrow();
                        c += 1
                    }
                    c
                })
            })
            .collect();
        drop(rx);
        let t = Instant::now();
        for i in 0..n as u64 {
            tx.send(i).unwrap();
            yield_now().await;
        }
        drop(tx);
        let mut c = 0;
        for h in hs {
            c += h.await.unwrap();
        }
        (t.elapsed(), format!("seen_per_rx={:.2}", c as f64 / 4.0 / n as f64))
    })
}
