// SPDX-License-Identifier: Apache-2.0
//! Arguments of the two servers.
pub fn port_and_threads() -> (u16, usize) {
    let mut args = std::env::args().skip(1);
    let port = args.next().map_or(7000, |s| s.parse().unwrap());
    let threads = args.next().map_or(1, |s| s.parse().unwrap());
    (port, threads)
}
