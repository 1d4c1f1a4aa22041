// SPDX-License-Identifier: Apache-2.0
//! The work that is forked and joined, in parallel and serial form.
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering::*};

pub const SUM_N: usize = 100_000_000; // elements of sum_*, indices of mapreduce_splitmix
pub const SORT_N: usize = 10_000_000; // elements of sort_*
pub const TREE_N: usize = (1 << 24) - 1; // nodes of tree24
pub const QUEENS_NODES: usize = 856_189; // nodes of the 12-queens search tree
pub const QUEENS_SOLUTIONS: u64 = 14_200;
pub const MATRIX: usize = 1024; // order of the matrices of matmul1024

pub fn splitmix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D049BB133111EB);
    z ^ (z >> 31)
}

/// Joins made by fib(n) when every call with n >= 2 joins: fib(n + 1) - 1.
pub fn joins(n: u32) -> usize {
    let (mut a, mut b) = (0usize, 1usize);
    for _ in 0..n + 1 {
        (a, b) = (b, a + b);
    }
    a - 1
}

pub fn fib(n: u32) -> u64 {
    if n < 2 {
        return n as u64;
    }
    let (a, b) = rayon::join(|| fib(n - 1), || fib(n - 2));
    a + b
}

#[inline(never)]
pub fn fib_serial(n: u32) -> u64 {
    if n < 2 {
        return n as u64;
    }
    fib_serial(n - 1) + fib_serial(n - 2)
}

pub fn queens(n: u32, cols: u32, d1: u32, d2: u32) -> u64 {
    let full = (1u32 << n) - 1;
    if cols == full {
        return 1;
    }
    let (mut candidate, mut k) = ([0u32; 16], 0);
    let mut free = full & !(cols | d1 | d2);
    while free != 0 {
        candidate[k] = free & free.wrapping_neg();
        free ^= candidate[k];
        k += 1;
    }
    let place = |&b: &u32| queens(n, cols | b, ((d1 | b) << 1) & full, (d2 | b) >> 1);
    candidate[..k].par_iter().map(place).sum()
}

pub fn queens_serial(n: u32, cols: u32, d1: u32, d2: u32) -> u64 {
    let full = (1u32 << n) - 1;
    if cols == full {
        return 1;
    }
    let (mut free, mut sum) = (full & !(cols | d1 | d2), 0);
    while free != 0 {
        let b = free & free.wrapping_neg();
        free ^= b;
        sum += queens_serial(n, cols | b, ((d1 | b) << 1) & full, (d2 | b) >> 1);
    }
    sum
}

pub fn tree_sum(v: &[u64], i: usize) -> u64 {
    if i >= v.len() {
        return 0;
    }
    let (a, b) = rayon::join(|| tree_sum(v, 2 * i + 1), || tree_sum(v, 2 * i + 2));
    v[i].wrapping_add(a).wrapping_add(b)
}

pub fn tree_sum_serial(v: &[u64], i: usize) -> u64 {
    if i >= v.len() {
        return 0;
    }
    let children = tree_sum_serial(v, 2 * i + 1).wrapping_add(tree_sum_serial(v, 2 * i + 2));
    v[i].wrapping_add(children)
}

pub fn matrices() -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let n = MATRIX * MATRIX;
    let x = (0..n).map(|i| (i % 97) as f64).collect();
    let y = (0..n).map(|i| (i % 89) as f64).collect();
    (x, y, vec![0f64; n])
}

/// One row of the product, i-k-j order.
pub fn matmul_row(x: &[f64], y: &[f64], i: usize, row: &mut [f64]) {
    row.fill(0.0);
    for k in 0..MATRIX {
        let a = x[i * MATRIX + k];
        for (c, b) in row.iter_mut().zip(&y[k * MATRIX..k * MATRIX + MATRIX]) {
            *c += a * b
        }
    }
}

/// A join that ends only when both halves have run at the same time. The one that waits gives way to
/// other threads now and then: the one that it waits for may have been woken on its processor.
pub fn meet() {
    let met = AtomicBool::new(false);
    let wait = || {
        for round in 1.. {
            if met.load(Acquire) {
                break;
            }
            if round % 16 == 0 {
                std::thread::yield_now()
            } else {
                std::hint::spin_loop()
            }
        }
    };
    rayon::join(wait, || met.store(true, Release));
}
