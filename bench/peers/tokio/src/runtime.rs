// SPDX-License-Identifier: Apache-2.0
//! The runtime under test.
use tokio::runtime::{Builder, Runtime};

/// 0 threads: the current_thread runtime; otherwise multi_thread with that many workers.
pub fn build(threads: usize) -> Runtime {
    let mut builder = match threads {
        0 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    if threads > 0 {
        builder.worker_threads(threads);
    }
    builder.enable_all().build().unwrap()
}
