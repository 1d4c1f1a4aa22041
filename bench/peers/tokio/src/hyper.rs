// SPDX-License-Identifier: Apache-2.0
//! HTTP/1.1 server on hyper 0.14 and Tokio that answers every request with "Hello, World!".
//!
//! Usage: hyper-hello PORT [THREADS]     THREADS = 0 is the current_thread runtime
use hyper::service::{make_service_fn, service_fn};
use hyper::{Body, Request, Response, Server};
use std::convert::Infallible;

mod runtime;
mod server;

async fn hello(_: Request<Body>) -> Result<Response<Body>, Infallible> {
    let response = Response::builder().header("content-type", "text/plain");
    Ok(response.body(Body::from("Hello, World!")).unwrap())
}

fn main() {
    let (port, threads) = server::port_and_threads();
    runtime::build(threads).block_on(async move {
        let service = make_service_fn(|_| async { Ok::<_, Infallible>(service_fn(hello)) });
        let address = ([127, 0, 0, 1], port).into();
        let server = Server::bind(&address).tcp_nodelay(true).serve(service);
        server.await.unwrap();
    });
}
