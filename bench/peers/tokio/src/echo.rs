// SPDX-License-Identifier: Apache-2.0
//! TCP echo server on Tokio: a task a connection, each with a 1 KiB buffer.
//!
//! Usage: tokio-echo PORT [THREADS]     THREADS = 0 is the current_thread runtime
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

mod runtime;
mod server;

async fn session(mut stream: TcpStream) {
    let mut buf = [0u8; 1024];
    loop {
        match stream.read(&mut buf).await {
            Ok(0) | Err(_) => return,
            Ok(n) => {
                if stream.write_all(&buf[..n]).await.is_err() {
                    return;
                }
            }
        }
    }
}

async fn listen(port: u16) {
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            tokio::spawn(session(stream));
        }
    }
}

fn main() {
    let (port, threads) = server::port_and_threads();
    let rt = runtime::build(threads);
    if threads == 0 {
        rt.block_on(listen(port))
    } else {
        rt.block_on(async { tokio::spawn(listen(port)).await.unwrap() })
    }
}
